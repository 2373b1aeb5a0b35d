// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-group-products))' | FileCheck %s
// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-group-products{serial=true}))' | FileCheck %s --check-prefix=SERIAL

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 160, steps = ["state"]>],
    channels = [<name = "in", depth = 1, from = ["load"], to = ["state"]>]>
!tile = !gdn_warp.view<64x64xbf16, swizzle = 128>
!sum = tensor<64x64xf32, #gdn_warp.fragment>
!half = tensor<64x64xbf16, #gdn_warp.fragment>
!vector = !gdn_warp.view<64xf32>
!sums = !gdn_warp.view<64x64xf32, swizzle = 128>
!scalar = !gdn_warp.view<1xf32>

// A product of shared memory alone begins behind the one before it; a wait stands before the first reader
// and leaves the later group on its way; at the end nothing is.
// CHECK-LABEL: gdn_warp.kernel @order(
// CHECK: gdn_warp.role
// CHECK: gdn_warp.wgmma_fence
// CHECK-NEXT: %[[A:.*]] = gdn_warp.wgmma
// CHECK-NEXT: gdn_warp.wgmma_commit
// CHECK-NEXT: %[[B:.*]] = gdn_warp.wgmma
// CHECK-NEXT: gdn_warp.wgmma_commit
// CHECK-NEXT: %[[READY:.*]] = gdn_warp.wgmma_wait 1 of %[[A]]
// CHECK-NEXT: arith.negf %[[READY]]
// CHECK-NEXT: gdn_warp.wgmma_wait 0{{$}}
// CHECK-NEXT: }
// Serial, each product is a group of its own.
// SERIAL-LABEL: gdn_warp.kernel @order(
// SERIAL-NOT: gdn_warp.wgmma_
// SERIAL: %[[A:.*]] = gdn_warp.wgmma alone
// SERIAL-NEXT: arith.negf %[[A]]
// SERIAL-NEXT: gdn_warp.wgmma alone
gdn_warp.kernel @order() threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %minus = arith.negf %a : !sum
    %b = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
  }
}

// A wait leaves at most seven groups on their way, so one for the first of nine waits for the second one, too.
// CHECK-LABEL: gdn_warp.kernel @many(
// CHECK: %[[A:.*]] = gdn_warp.wgmma
// CHECK-COUNT-8: gdn_warp.wgmma %
// CHECK-NOT: gdn_warp.wgmma_wait
// CHECK: gdn_warp.wgmma_commit
// CHECK-NEXT: %[[READY:.*]] = gdn_warp.wgmma_wait 7 of %[[A]]
// CHECK-NEXT: arith.negf %[[READY]]
// CHECK-NEXT: gdn_warp.wgmma_wait 0{{$}}
gdn_warp.kernel @many() threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %p0 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p1 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p2 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p3 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p4 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p5 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p6 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p7 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %p8 = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %minus = arith.negf %p0 : !sum
  }
}

// A product may take on a sum that is on its way: one wait serves both.
// CHECK-LABEL: gdn_warp.kernel @chain(
// CHECK: %[[A:.*]] = gdn_warp.wgmma
// CHECK-NOT: gdn_warp.wgmma_wait
// CHECK: %[[B:.*]] = gdn_warp.wgmma {{.*}} into(%[[A]]
// CHECK-NEXT: gdn_warp.wgmma_commit
// CHECK-NEXT: %[[READY:.*]] = gdn_warp.wgmma_wait 0 of %[[B]]
// CHECK-NEXT: arith.negf %[[READY]]
gdn_warp.kernel @chain() threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %b = gdn_warp.wgmma %v, %v into(%a : !sum) : !tile, !tile -> !sum
    %minus = arith.negf %b : !sum
  }
}

// A load under a product would hold up the parts of it that the warp has still to begin: it moves to before what
// makes the product's left operand.
// CHECK-LABEL: gdn_warp.kernel @hoist(
// CHECK: %[[SUM:.*]] = gdn_warp.wgmma_wait 0 of
// CHECK-NEXT: gdn_warp.fragment_load
// CHECK-NEXT: gdn_warp.fragment_load {{.*}} transpose
// CHECK-NEXT: %[[LEFT:.*]] = arith.truncf %[[SUM]]
// CHECK-NEXT: gdn_warp.wgmma_fence
// CHECK-NEXT: gdn_warp.wgmma %[[LEFT]],
// CHECK-NOT: gdn_warp.fragment_load
gdn_warp.kernel @hoist(%x: memref<?x64xbf16>) threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %left = arith.truncf %a : !sum to !half
    %b = gdn_warp.wgmma %left, %v : !half, !tile -> !sum
    %load = gdn_warp.fragment_load %v : !tile -> !half
    %other = gdn_warp.fragment_load %v transpose : !tile -> !half
    %use = arith.addf %load, %other : !half
    gdn_warp.array_store %use, %x[%c0, %c0] axes [0, 1] : !half -> memref<?x64xbf16>
    %minus = arith.negf %b : !sum
  }
}

// A load stays behind a wait, where nothing is left to begin.
// CHECK-LABEL: gdn_warp.kernel @behind_wait(
// CHECK: %[[LEFT:.*]] = arith.truncf
// CHECK: gdn_warp.wgmma %[[LEFT]],
// CHECK: gdn_warp.wgmma_wait 0 of
// CHECK-NEXT: arith.negf
// CHECK-NEXT: gdn_warp.fragment_load
gdn_warp.kernel @behind_wait(%x: memref<?x64xbf16>) threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %left = arith.truncf %a : !sum to !half
    %b = gdn_warp.wgmma %left, %v : !half, !tile -> !sum
    %minus = arith.negf %b : !sum
    %load = gdn_warp.fragment_load %v : !tile -> !half
    gdn_warp.array_store %load, %x[%c0, %c0] axes [0, 1] : !half -> memref<?x64xbf16>
  }
}

// It stays behind stores, which may be of what it loads: behind the product or before it.
// CHECK-LABEL: gdn_warp.kernel @behind_store(
// CHECK: arith.truncf
// CHECK-NEXT: gdn_warp.fragment_store
// CHECK-NEXT: gdn_warp.wgmma_fence
// CHECK-NEXT: gdn_warp.wgmma
// CHECK-NEXT: gdn_warp.wgmma_commit
// CHECK-NEXT: gdn_warp.fragment_load
// CHECK-NEXT: gdn_warp.vector_store
// CHECK-NEXT: gdn_warp.fragment_load {{.*}} transpose
gdn_warp.kernel @behind_store(%x: memref<?x64xbf16>) threads(128) shared(16384)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  %w = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  %row = arith.constant dense<1.0> : tensor<64xf32, #gdn_warp.rows>
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %left = arith.truncf %a : !sum to !half
    gdn_warp.fragment_store %left, %v : !half -> !tile
    %b = gdn_warp.wgmma %left, %v : !half, !tile -> !sum
    %load = gdn_warp.fragment_load %v : !tile -> !half
    gdn_warp.vector_store %row, %w : tensor<64xf32, #gdn_warp.rows> -> !gdn_warp.view<64xf32>
    %other = gdn_warp.fragment_load %v transpose : !tile -> !half
    %use = arith.addf %load, %other : !half
    gdn_warp.array_store %use, %x[%c0, %c0] axes [0, 1] : !half -> memref<?x64xbf16>
    %minus = arith.negf %b : !sum
  }
}

// So does a vector that is multiplied before the product is awaited, if its slot has been waited for: another of its
// fields is read before. One that is read behind the wait stays, and so does one that would wait for its slot.
// CHECK-LABEL: gdn_warp.kernel @vectors(
// CHECK: %[[FACTOR:.*]] = gdn_warp.vector_load
// CHECK-NEXT: %[[LEFT:.*]] = arith.truncf
// CHECK: gdn_warp.wgmma %[[LEFT]],
// CHECK-NEXT: gdn_warp.wgmma_commit
// CHECK: %[[LATE:.*]] = gdn_warp.vector_load
// CHECK: %[[OTHER:.*]] = gdn_warp.vector_load
// CHECK: gdn_warp.wgmma_wait
gdn_warp.kernel @vectors(%x: memref<?x64xf32>) threads(128) shared(16384)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  %open = gdn_warp.channel "open" depth(1) : <!vector, !scalar, !vector>
  %closed = gdn_warp.channel "closed" depth(1) : <!vector>
  %none = tensor.empty() : !sum
  %s = arith.constant dense<1.0> : !sum
  gdn_warp.role "state" warps(0, 4) {
    %first = gdn_warp.slot get %open[1] at %c0 : <!vector, !scalar, !vector> -> !scalar
    %f = gdn_warp.load %first[%c0] : !scalar -> f32
    %values = gdn_warp.slot get %open[0] at %c0 : <!vector, !scalar, !vector> -> !vector
    %reads = gdn_warp.slot get %open[2] at %c0 : <!vector, !scalar, !vector> -> !vector
    %others = gdn_warp.slot get %closed[0] at %c0 : <!vector> -> !vector
    %left = arith.truncf %s : !sum to !half
    %p = gdn_warp.wgmma %left, %v : !half, !tile -> !sum
    %a = gdn_warp.vector_load %values : !vector -> tensor<64xf32, #gdn_warp.columns>
    %ab = linalg.broadcast ins(%a : tensor<64xf32, #gdn_warp.columns>) outs(%none : !sum) dimensions = [0]
    %av = arith.mulf %s, %ab : !sum
    %b = gdn_warp.vector_load %reads : !vector -> tensor<64xf32, #gdn_warp.columns>
    %bb = linalg.broadcast ins(%b : tensor<64xf32, #gdn_warp.columns>) outs(%none : !sum) dimensions = [0]
    %c = gdn_warp.vector_load %others : !vector -> tensor<64xf32, #gdn_warp.columns>
    %cb = linalg.broadcast ins(%c : tensor<64xf32, #gdn_warp.columns>) outs(%none : !sum) dimensions = [0]
    %cv = arith.mulf %av, %cb : !sum
    %w = math.fma %p, %bb, %cv : !sum
    gdn_warp.array_store %w, %x[%c0, %c0] axes [0, 1] : !sum -> memref<?x64xf32>
  }
}

// Without a schedule a kernel is in the explicit form already.
// CHECK-LABEL: gdn_warp.kernel @explicit(
// CHECK-NOT: gdn_warp.wgmma_commit
gdn_warp.kernel @explicit() threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
}

// A product does not follow the one before where its slot would be waited for before what others wait for is stored.
// CHECK-LABEL: gdn_warp.kernel @answer(
// CHECK: gdn_warp.wgmma %
// CHECK: gdn_warp.wgmma_wait
// CHECK: gdn_warp.slot put
// CHECK: gdn_warp.fragment_store
// CHECK: gdn_warp.slot get
// CHECK: gdn_warp.wgmma %
gdn_warp.kernel @answer(%x: memref<?x64xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  %there = gdn_warp.channel "there" depth(1) : <!tile>
  %back = gdn_warp.channel "back" depth(1) : <!tile>
  gdn_warp.role "state" warps(0, 4) {
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %h = arith.truncf %a : !sum to !half
    %s = gdn_warp.slot put %there[0] at %c0 : <!tile> -> !tile
    gdn_warp.fragment_store %h, %s : !half -> !tile
    %r = gdn_warp.slot get %back[0] at %c0 : <!tile> -> !tile
    %b = gdn_warp.wgmma %r, %r : !tile, !tile -> !sum
    gdn_warp.array_store %b, %x[%c0, %c0] axes [0, 1] : !sum -> memref<?x64xf32>
  }
}

// What products of the iteration before wrote is read before new ones begin: ptxas does not see that the wait of that
// iteration was for it, and would wait again.
// CHECK-LABEL: gdn_warp.kernel @carried(
// CHECK: scf.for {{.*}} iter_args(%[[STATE:.*]] = %{{.*}})
// CHECK: %[[HALF:.*]] = arith.mulf %[[STATE]]
// CHECK-NEXT: gdn_warp.wgmma_fence
// CHECK-NEXT: %[[A:.*]] = gdn_warp.wgmma
// CHECK: gdn_warp.wgmma {{.*}} into(%[[HALF]]
// CHECK: %[[READY:.*]] = gdn_warp.wgmma_wait 1 of %[[A]]
// CHECK-NEXT: gdn_warp.fragment_store %[[READY]]
gdn_warp.kernel @carried(%n: i32) threads(128) shared(32768)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c8192 = arith.constant 8192 : index
  %v = gdn_warp.view %c0 : !tile
  %out = gdn_warp.view %c8192 : !sums
  gdn_warp.role "state" warps(0, 4) {
    %half = arith.constant dense<0.5> : !sum
    %first = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %last = scf.for %i = %first to %n step %one iter_args(%state = %half) -> (!sum) : i32 {
      %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
      %less = arith.mulf %state, %half : !sum
      %next = gdn_warp.wgmma %v, %v into(%less : !sum) : !tile, !tile -> !sum
      gdn_warp.fragment_store %a, %out : !sum -> !sums
      scf.yield %next : !sum
    }
  }
}

// A sum that two products begin with, or one product in each iteration, is copied: registers that a product writes
// are its own. What is read only before it, or in another branch, is not.
// CHECK-LABEL: gdn_warp.kernel @copied(
// CHECK: scf.for {{.*}} iter_args(%[[STATE:.*]] = %{{.*}})
// CHECK: %[[COPY:.*]] = gdn_warp.wgmma_wait {{[0-9]+}} of %[[STATE]]
// CHECK-NEXT: gdn_warp.wgmma_fence
// CHECK-NEXT: gdn_warp.wgmma {{.*}} into(%[[COPY]]
// CHECK: gdn_warp.wgmma {{.*}} into(%[[STATE]]
gdn_warp.kernel @copied(%n: i32) threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %half = arith.constant dense<0.5> : !sum
    %first = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %last = scf.for %i = %first to %n step %one iter_args(%state = %half) -> (!sum) : i32 {
      %a = gdn_warp.wgmma %v, %v into(%state : !sum) : !tile, !tile -> !sum
      %left = arith.truncf %a : !sum to !half
      %next = gdn_warp.wgmma %left, %v into(%state : !sum) : !half, !tile -> !sum
      scf.yield %next : !sum
    }
  }
}

// CHECK-LABEL: gdn_warp.kernel @branches(
// CHECK: scf.for {{.*}} iter_args(%[[STATE:.*]] = %{{.*}})
// CHECK-NOT: gdn_warp.wgmma_wait {{[0-9]+}} of %[[STATE]]
// CHECK: gdn_warp.wgmma {{.*}} into(%[[STATE]]
gdn_warp.kernel @branches(%n: i32, %more: i1) threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %half = arith.constant dense<0.5> : !sum
    %first = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %last = scf.for %i = %first to %n step %one iter_args(%state = %half) -> (!sum) : i32 {
      %next = scf.if %more -> (!sum) {
        %a = gdn_warp.wgmma %v, %v into(%state : !sum) : !tile, !tile -> !sum
        scf.yield %a : !sum
      } else {
        %minus = arith.negf %state : !sum
        scf.yield %minus : !sum
      }
      scf.yield %next : !sum
    }
  }
}

// What a publish in turn writes, the products before it may read: it waits for all of them.
// CHECK-LABEL: gdn_warp.kernel @turn(
// CHECK: gdn_warp.wgmma_commit
// CHECK-NEXT: %[[SUM:.*]] = gdn_warp.wgmma_wait 0 of
// CHECK-NEXT: gdn_warp.publish {{.*}} in_turn
gdn_warp.kernel @turn(%x: memref<64x64xbf16>, %y: memref<64x64xf32>) threads(128) shared(8192)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !tile
  gdn_warp.role "state" warps(0, 4) {
    %m = gdn_warp.array_load %x[%c0, %c0] axes [0, 1] : memref<64x64xbf16> -> !half
    %a = gdn_warp.wgmma %v, %v : !tile, !tile -> !sum
    %rows = gdn_warp.publish %m rows [0, 16] in_turn : !half -> !gdn_warp.view<16x64xbf16, swizzle = 128>
    gdn_warp.array_store %a, %y[%c0, %c0] axes [0, 1] : !sum -> memref<64x64xf32>
  }
}
