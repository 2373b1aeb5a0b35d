// RUN: gdn-opt %s --gdn-warp-merge-roles --split-input-file | FileCheck %s

// What differs is selected at the beginning of the role, and what is the same for both stays. Of constants the distance
// from the first role's is selected, which places of one kind share, and added where they are used.
// CHECK-LABEL: gdn_warp.kernel @merged(
// CHECK: gdn_warp.role "low_high" warps(4, 8) registers(176) {
// CHECK-NEXT: %[[WARP:.*]] = gdn_warp.id warp
// CHECK-NEXT: %[[FIRST:.*]] = arith.constant 8 : index
// CHECK-NEXT: %[[HIGH:.*]] = arith.cmpi uge, %[[WARP]], %[[FIRST]] : index
// CHECK-NEXT: %[[NONE:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[FAR:.*]] = arith.constant 1024 : index
// CHECK-NEXT: %[[DISTANCE:.*]] = arith.select %[[HIGH]], %[[FAR]], %[[NONE]] : index
// CHECK-NEXT: %[[SCALE:.*]] = arith.select %[[HIGH]], %y, %x : f32
// CHECK-NEXT: scf.for
// CHECK-NEXT: %[[A:.*]] = arith.addi %[[DISTANCE]], %c0 : index
// CHECK-NEXT: %[[FROM:.*]] = gdn_warp.view %[[A]]
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[DISTANCE]], %c2048 : index
// CHECK-NEXT: %[[TO:.*]] = gdn_warp.view %[[B]]
// CHECK-NEXT: %[[BARRIER:.*]] = gdn_warp.barrier %c4096
// CHECK-NEXT: gdn_warp.barrier_wait %[[BARRIER]]
// CHECK-NEXT: %[[VALUE:.*]] = gdn_warp.load %[[FROM]][%c0]
// CHECK-NEXT: arith.mulf %[[VALUE]], %[[SCALE]] : f32
// CHECK: gdn_warp.store %{{.*}}, %[[TO]][%c0]
// CHECK-NOT: gdn_warp.role
gdn_warp.kernel @merged(%x: f32, %y: f32) threads(384) shared(5000) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c1024 = arith.constant 1024 : index
  %c2048 = arith.constant 2048 : index
  %c3072 = arith.constant 3072 : index
  %c4096 = arith.constant 4096 : index
  %phase = arith.constant 0 : i32
  gdn_warp.role "low" warps(4, 4) registers(176) attributes {gdn_warp.share_code} {
    scf.for %i = %c0 to %c4 step %c1 {
      %from = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
      %to = gdn_warp.view %c2048 : !gdn_warp.view<64xf32>
      %barrier = gdn_warp.barrier %c4096
      gdn_warp.barrier_wait %barrier, %phase
      %value = gdn_warp.load %from[%c0] : !gdn_warp.view<64xf32> -> f32
      %product = arith.mulf %value, %x : f32
      gdn_warp.store %product, %to[%c0] : f32 -> !gdn_warp.view<64xf32>
    }
  }
  gdn_warp.role "high" warps(8, 4) registers(176) attributes {gdn_warp.share_code} {
    scf.for %i = %c0 to %c4 step %c1 {
      %from = gdn_warp.view %c1024 : !gdn_warp.view<64xf32>
      %to = gdn_warp.view %c3072 : !gdn_warp.view<64xf32>
      %barrier = gdn_warp.barrier %c4096
      gdn_warp.barrier_wait %barrier, %phase
      %value = gdn_warp.load %from[%c0] : !gdn_warp.view<64xf32> -> f32
      %product = arith.mulf %value, %y : f32
      gdn_warp.store %product, %to[%c0] : f32 -> !gdn_warp.view<64xf32>
    }
  }
}

// -----

// Of three roles each has a number of its own. A named barrier of each warpgroup stays one.
// CHECK-LABEL: gdn_warp.kernel @three(
// CHECK: gdn_warp.role "a_b_c" warps(0, 12) {
// CHECK: %[[B:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : index
// CHECK: %[[C:.*]] = arith.cmpi uge, %{{.*}}, %{{.*}} : index
// CHECK: %[[AB:.*]] = arith.select %[[B]], %{{.*}}, %{{.*}} : i32
// CHECK: %[[ABC:.*]] = arith.select %[[C]], %{{.*}}, %[[AB]] : i32
// CHECK: %[[BARRIER:.*]] = arith.addi %[[ABC]], %{{.*}} : i32
// CHECK: gdn_warp.sync_group %[[BARRIER]], 128
// CHECK-NOT: gdn_warp.role
gdn_warp.kernel @three() threads(384) shared(0) {
  %c1_i32 = arith.constant 1 : i32
  %c2_i32 = arith.constant 2 : i32
  %c5_i32 = arith.constant 5 : i32
  gdn_warp.role "a" warps(0, 4) attributes {gdn_warp.share_code} {
    gdn_warp.sync_group %c1_i32, 128
  }
  gdn_warp.role "b" warps(4, 4) attributes {gdn_warp.share_code} {
    gdn_warp.sync_group %c2_i32, 128
  }
  gdn_warp.role "c" warps(8, 4) attributes {gdn_warp.share_code} {
    gdn_warp.sync_group %c5_i32, 128
  }
}

// -----

// Roles stay as they are that do not share their code, are not next to each other, or have other registers.
// CHECK-LABEL: gdn_warp.kernel @other_roles(
// CHECK: gdn_warp.role "plain" warps(0, 4)
// CHECK: gdn_warp.role "alone" warps(4, 4)
// CHECK: gdn_warp.role "far" warps(12, 4)
// CHECK: gdn_warp.role "more" warps(16, 4)
gdn_warp.kernel @other_roles() threads(640) shared(0) {
  gdn_warp.role "plain" warps(0, 4) registers(96) {
    gdn_warp.sync warp
  }
  gdn_warp.role "alone" warps(4, 4) registers(96) attributes {gdn_warp.share_code} {
    gdn_warp.sync warp
  }
  gdn_warp.role "far" warps(12, 4) registers(96) attributes {gdn_warp.share_code} {
    gdn_warp.sync warp
  }
  gdn_warp.role "more" warps(16, 4) registers(104) attributes {gdn_warp.share_code} {
    gdn_warp.sync warp
  }
}

// -----

// Warps of one warpgroup are no whole ones: a product would have to be of four warps of one role.
// CHECK-LABEL: gdn_warp.kernel @few_warps(
// CHECK: gdn_warp.role "a" warps(0, 2)
// CHECK: gdn_warp.role "b" warps(2, 2)
gdn_warp.kernel @few_warps() threads(128) shared(0) {
  gdn_warp.role "a" warps(0, 2) attributes {gdn_warp.share_code} {
    gdn_warp.sync warp
  }
  gdn_warp.role "b" warps(2, 2) attributes {gdn_warp.share_code} {
    gdn_warp.sync warp
  }
}

// -----

// Other ops, other attributes, and what is no number: an array, a value of the role itself in another place.
// CHECK-LABEL: gdn_warp.kernel @other_code(
// CHECK: gdn_warp.role "warp" warps(0, 4)
// CHECK: gdn_warp.role "fence" warps(4, 4)
// CHECK: gdn_warp.role "wait_one" warps(8, 4)
// CHECK: gdn_warp.role "wait_two" warps(12, 4)
// CHECK: gdn_warp.role "x" warps(16, 4)
// CHECK: gdn_warp.role "y" warps(20, 4)
// CHECK: gdn_warp.role "lane" warps(24, 4)
// CHECK: gdn_warp.role "constant" warps(28, 4)
gdn_warp.kernel @other_code(%x: memref<?xf32>, %y: memref<?xf32>) threads(1024) shared(64) {
  %c0 = arith.constant 0 : index
  gdn_warp.role "warp" warps(0, 4) attributes {gdn_warp.share_code} {
    gdn_warp.sync warp
  }
  gdn_warp.role "fence" warps(4, 4) attributes {gdn_warp.share_code} {
    gdn_warp.fence async
  }
  gdn_warp.role "wait_one" warps(8, 4) attributes {gdn_warp.share_code} {
    gdn_warp.wgmma_wait 1
  }
  gdn_warp.role "wait_two" warps(12, 4) attributes {gdn_warp.share_code} {
    gdn_warp.wgmma_wait 2
  }
  gdn_warp.role "x" warps(16, 4) attributes {gdn_warp.share_code} {
    %size = memref.dim %x, %c0 : memref<?xf32>
    %place = gdn_warp.barrier %size
  }
  gdn_warp.role "y" warps(20, 4) attributes {gdn_warp.share_code} {
    %size = memref.dim %y, %c0 : memref<?xf32>
    %place = gdn_warp.barrier %size
  }
  gdn_warp.role "lane" warps(24, 4) attributes {gdn_warp.share_code} {
    %lane = gdn_warp.id lane
    %place = gdn_warp.barrier %lane
  }
  gdn_warp.role "constant" warps(28, 4) attributes {gdn_warp.share_code} {
    %lane = gdn_warp.id lane
    %place = gdn_warp.barrier %c0
  }
}
