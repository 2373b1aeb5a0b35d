// Barriers, fences, threads. Every op that orders memory has a compiler fence at its side: LLVM
// takes an mbarrier's intrinsic to touch the barrier alone.
// RUN: gdn-opt %s --convert-gdn-warp-to-nvvm --canonicalize --cse | FileCheck %s

// CHECK-LABEL: llvm.func @barriers(
gdn_warp.kernel @barriers(%x : memref<2xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = arith.constant 1 : i32
  %bar = gdn_warp.barrier %c0
  // CHECK: nvvm.mbarrier.init %[[BAR:.*]], %{{.*}} : !llvm.ptr<3>, i32
  gdn_warp.barrier_init %bar, 4
  // CHECK: nvvm.fence.mbarrier.init
  gdn_warp.fence barrier_init
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  gdn_warp.fence async
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
  gdn_warp.sync_group %p, 64
  // CHECK-COUNT-2: llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
  // CHECK-NEXT: nvvm.mbarrier.arrive %[[BAR]] : !llvm.ptr<3>
  gdn_warp.barrier_arrive %bar
  // CHECK: %[[REMOTE:.*]] = nvvm.mapa %[[BAR]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // A release at cluster scope would wait for all that the thread has written.
  // CHECK-NEXT: nvvm.mbarrier.arrive %[[REMOTE]] : !llvm.ptr<7>
  gdn_warp.barrier_arrive %bar rank(%p)
  // CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
  // CHECK-NEXT: %[[OTHER:.*]] = nvvm.mapa %[[BAR]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK-NEXT: nvvm.mbarrier.arrive %[[OTHER]], %c9_i32 : !llvm.ptr<7>
  gdn_warp.barrier_arrive %bar rank(%p) count(9)
  // CHECK: nvvm.mbarrier.arrive.expect_tx %[[BAR]], %{{[^ ]*}} : !llvm.ptr<3>, i32
  gdn_warp.barrier_expect %bar, 64
  // CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
  // CHECK-NEXT: %[[THERE:.*]] = nvvm.mapa %[[BAR]], %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK-NEXT: nvvm.mbarrier.arrive.expect_tx %[[THERE]], %{{[^ ]*}} {relaxed = true, scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>, i32
  gdn_warp.barrier_expect %bar, 64 rank(%p)
  // CHECK: scf.while
  // CHECK-NEXT: %[[DONE:.*]] = nvvm.mbarrier.try_wait %[[BAR]], %{{.*}} {scope = #nvvm.mem_scope<cluster>}
  // CHECK-NEXT: %[[AGAIN:.*]] = arith.xori %[[DONE]]
  // CHECK-NEXT: scf.condition(%[[AGAIN]])
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "", "~{memory}"
  gdn_warp.barrier_wait %bar, %p cluster
  // CHECK: nvvm.mbarrier.try_wait %[[BAR]]
  %done = gdn_warp.barrier_test %bar, %p
  // CHECK: nvvm.elect.sync
  %one = gdn_warp.elect
  %either = arith.ori %done, %one : i1
  scf.if %either {
    %f = memref.load %x[%c0] : memref<2xf32>
    // CHECK: nvvm.shfl.sync up %{{.*}}, %{{.*}}, %{{.*}}, %c0_i32 : f32 -> f32
    %y = gdn_warp.shuffle up %f, %p : f32
    // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %{{.*}}, %c31_i32 : f32 -> f32
    %z = gdn_warp.shuffle xor %y, %p : f32
    memref.store %z, %x[%c1] : memref<2xf32>
  }
}
