// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-hoist-scalars))' | FileCheck %s

!vectors = !gdn_warp.channel<!gdn_warp.view<1xf32>, !gdn_warp.view<32xf32>, !gdn_warp.view<1xf32>>

// What decides the branch of the second chunk is loaded with what decides that of the first. What is of another iteration or
// channel, or at a place that is found later, stays.
// CHECK-LABEL: gdn_warp.kernel @together(
// CHECK: scf.for %[[TRIP:.*]] = {{.*}}
// CHECK-NEXT: arith.addi
// CHECK-NEXT: %[[FIRST:.*]] = gdn_warp.slot get %[[V:.*]][0] at %[[TRIP]]
// CHECK-NEXT: %[[A:.*]] = gdn_warp.load %[[FIRST]]
// CHECK-NEXT: %[[SECOND:.*]] = gdn_warp.slot get %[[V]][2] at %[[TRIP]]
// CHECK-NEXT: %[[B:.*]] = gdn_warp.load %[[SECOND]]
// CHECK-NEXT: gdn_warp.fence async
// CHECK-NEXT: %[[NEXT:.*]] = gdn_warp.slot get %[[V]][2] at
// CHECK-NEXT: gdn_warp.load %[[NEXT]]
// CHECK-NEXT: %[[OTHER:.*]] = gdn_warp.slot get %{{.*}}[0] at %[[TRIP]]
// CHECK-NEXT: gdn_warp.load %[[OTHER]]
// CHECK-NEXT: %[[ROW:.*]] = gdn_warp.slot get %[[V]][1] at %[[TRIP]]
// CHECK-NEXT: arith.addi
// CHECK-NEXT: gdn_warp.load %[[ROW]]
// CHECK-NEXT: arith.addf %[[A]], %[[B]]
gdn_warp.kernel @together(%n: i64) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i64 to index
  %v = gdn_warp.channel "vectors" depth(2) : !vectors
  %w = gdn_warp.channel "others" depth(2) : !vectors
  gdn_warp.role "state" warps(0, 4) {
    scf.for %iteration = %c0 to %end step %c1 {
      %later = arith.addi %iteration, %c1 : index
      %f = gdn_warp.slot get %v[0] at %iteration : !vectors -> !gdn_warp.view<1xf32>
      %a = gdn_warp.load %f[%c0] : !gdn_warp.view<1xf32> -> f32
      gdn_warp.fence async
      %g = gdn_warp.slot get %v[2] at %later : !vectors -> !gdn_warp.view<1xf32>
      %x = gdn_warp.load %g[%c0] : !gdn_warp.view<1xf32> -> f32
      %o = gdn_warp.slot get %w[0] at %iteration : !vectors -> !gdn_warp.view<1xf32>
      %y = gdn_warp.load %o[%c0] : !gdn_warp.view<1xf32> -> f32
      %s = gdn_warp.slot get %v[2] at %iteration : !vectors -> !gdn_warp.view<1xf32>
      %b = gdn_warp.load %s[%c0] : !gdn_warp.view<1xf32> -> f32
      %r = gdn_warp.slot get %v[1] at %iteration : !vectors -> !gdn_warp.view<32xf32>
      %i = arith.addi %iteration, %c1 : index
      %z = gdn_warp.load %r[%i] : !gdn_warp.view<32xf32> -> f32
      %sum = arith.addf %a, %b : f32
    }
  }
}
