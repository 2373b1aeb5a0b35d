// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-clone-likely-path))' --split-input-file | FileCheck %s

// Both conditions are known at the first branch: what follows is copied for where both hold, without the
// branches and with what is not likely. The other iterations keep them, without a hint. The loop carries what either yields.
// CHECK-LABEL: gdn_warp.kernel @pair(
// CHECK-NOT: gdn_warp.clone_likely_path
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}})
// CHECK: %[[A:.*]] = arith.cmpf oge, %{{.*}}, %[[BOUND:.*]] : f32
// CHECK: %[[B:.*]] = arith.cmpf olt, %{{.*}}, %[[BOUND]] : f32
// CHECK: %[[ALL:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK: %[[NEXT:.*]] = scf.if %[[ALL]] -> (f32) {
// CHECK-NEXT: %[[FIRST:.*]] = arith.addf %[[S]], %{{.*}} : f32
// CHECK: %[[SELDOM:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK: } {gdn_warp.likely = false}
// CHECK-NEXT: %[[SECOND:.*]] = arith.mulf %[[SELDOM]], %[[SELDOM]] : f32
// CHECK-NEXT: scf.yield %[[SECOND]] : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[OTHER:.*]] = scf.if %[[A]] -> (f32) {
// CHECK-NEXT: arith.addf
// CHECK: } else {
// CHECK: arith.subf
// CHECK-NOT: likely = true
// CHECK: %[[LAST:.*]] = scf.if %[[B]] -> (f32) {
// CHECK-NOT: likely
// CHECK: scf.yield %[[LAST]] : f32
// CHECK: scf.yield %[[NEXT]] : f32
gdn_warp.kernel @pair(%m: memref<?xf32>) threads(128) shared(0) attributes {gdn_warp.clone_likely_path} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bound = arith.constant 1.0 : f32
  gdn_warp.role "state" warps(0, 1) {
    %end = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %bound) -> (f32) {
      %x = memref.load %m[%i] : memref<?xf32>
      %a = arith.cmpf oge, %x, %bound : f32
      %first = scf.if %a -> (f32) {
        %sum = arith.addf %s, %x : f32
        scf.yield %sum : f32
      } else {
        %less = arith.subf %s, %x : f32
        scf.yield %less : f32
      } {gdn_warp.likely = true}
      %low = arith.cmpf oeq, %x, %bound : f32
      %kept = scf.if %low -> (f32) {
        %zero = arith.subf %first, %first : f32
        scf.yield %zero : f32
      } else {
        scf.yield %first : f32
      } {gdn_warp.likely = false}
      %b = arith.cmpf olt, %x, %bound : f32
      %second = scf.if %b -> (f32) {
        %square = arith.mulf %kept, %kept : f32
        scf.yield %square : f32
      } else {
        scf.yield %kept : f32
      } {gdn_warp.likely = true}
      scf.yield %second : f32
    }
    memref.store %end, %m[%c0] : memref<?xf32>
  }
}

// -----

// A branch inside another one counts too, if its condition is known outside. What it decides may have no results.
// CHECK-LABEL: gdn_warp.kernel @nested(
// CHECK: %[[LIKELY:.*]] = arith.cmpf
// CHECK-NEXT: scf.if %[[LIKELY]] {
// CHECK-NEXT: scf.if %[[MINE:.*]] {
// CHECK-NEXT: memref.store %[[X:.*]], %{{.*}}[%{{.*}}]
// CHECK-NEXT: }
// CHECK-NEXT: gdn_warp.sync warp
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.if %[[MINE]] {
// CHECK-NEXT: scf.if %[[LIKELY]] {
// CHECK-NEXT: memref.store %[[X]],
// CHECK: gdn_warp.sync warp
gdn_warp.kernel @nested(%m: memref<?xf32>, %mine: i1) threads(128) shared(0) attributes {gdn_warp.clone_likely_path} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bound = arith.constant 1.0 : f32
  gdn_warp.role "scores" warps(0, 1) {
    scf.for %i = %c0 to %c4 step %c1 {
      %x = memref.load %m[%i] : memref<?xf32>
      %likely = arith.cmpf oge, %x, %bound : f32
      scf.if %mine {
        scf.if %likely {
          memref.store %x, %m[%i] : memref<?xf32>
        } else {
          memref.store %bound, %m[%i] : memref<?xf32>
        } {gdn_warp.likely = true}
      }
      gdn_warp.sync warp
    }
  }
}

// -----

// Each loop has its own branches: those of an inner one are separate there.
// CHECK-LABEL: gdn_warp.kernel @loops(
// CHECK: scf.for
// CHECK: memref.store
// CHECK-NEXT: scf.for
// CHECK: scf.if
// CHECK-NEXT: memref.store
// CHECK-NEXT: gdn_warp.sync warp
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.if
// CHECK-NOT: scf.for
// CHECK: gdn_warp.role "other"
gdn_warp.kernel @loops(%m: memref<?xf32>, %c: i1, %x: f32) threads(128) shared(0) attributes {gdn_warp.clone_likely_path} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_warp.role "scores" warps(0, 1) {
    scf.for %i = %c0 to %c4 step %c1 {
      memref.store %x, %m[%i] : memref<?xf32>
      scf.for %j = %c0 to %c4 step %c1 {
        scf.if %c {
          memref.store %x, %m[%j] : memref<?xf32>
        } {gdn_warp.likely = true}
        gdn_warp.sync warp
      }
    }
  }
  gdn_warp.role "other" warps(1, 1) {
  }
}

// -----

// The second condition is loaded behind the first branch: that branch alone is separate.
// CHECK-LABEL: gdn_warp.kernel @unknown(
// CHECK: scf.if %[[FIRST:.*]] {
// CHECK: %[[SECOND:.*]] = arith.cmpf
// CHECK-NEXT: scf.if %[[SECOND]] {
// CHECK: } {gdn_warp.likely = true}
// CHECK: } else {
// CHECK: scf.if %[[FIRST]] {
gdn_warp.kernel @unknown(%m: memref<?xf32>) threads(128) shared(0) attributes {gdn_warp.clone_likely_path} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bound = arith.constant 1.0 : f32
  gdn_warp.role "scores" warps(0, 1) {
    scf.for %i = %c0 to %c4 step %c1 {
      %x = memref.load %m[%i] : memref<?xf32>
      %first = arith.cmpf oge, %x, %bound : f32
      scf.if %first {
        memref.store %x, %m[%c0] : memref<?xf32>
      } {gdn_warp.likely = true}
      %y = memref.load %m[%c0] : memref<?xf32>
      %second = arith.cmpf oge, %y, %bound : f32
      scf.if %second {
        memref.store %x, %m[%c1] : memref<?xf32>
      } {gdn_warp.likely = true}
    }
  }
}

// -----

!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!sum = tensor<64x64xf32, #gdn_warp.fragment>

// Nothing is separate if the schedule does not say so. A branch around a product loses its hint, another one keeps it.
// CHECK-LABEL: gdn_warp.kernel @hints(
// CHECK: scf.for
// CHECK-NEXT: scf.if
// CHECK: gdn_warp.wgmma_commit
// CHECK-NEXT: }{{$}}
// CHECK: } {gdn_warp.likely = true}
gdn_warp.kernel @hints(%m: memref<?xf32>, %c: i1, %x: f32) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    scf.for %i = %c0 to %c1 step %c1 {
      scf.if %c {
        gdn_warp.wgmma_fence
        %p = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
        gdn_warp.wgmma_commit
      } {gdn_warp.likely = true}
      scf.if %c {
        memref.store %x, %m[%c0] : memref<?xf32>
      } {gdn_warp.likely = true}
    }
  }
}
