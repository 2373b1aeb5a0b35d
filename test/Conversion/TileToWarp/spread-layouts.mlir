// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts,cse))' | FileCheck %s

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// The array is contiguous along the columns: runs of 16 bytes along them. A vector lies as each of its users asks, what has one
// element is in every thread, and sums along rows lie along the rows.
// CHECK-LABEL: gdn_warp.kernel @rows(
// CHECK: %[[S:.*]] = gdn_warp.array_load %s[{{.*}}] axes [0, 1] : {{.*}} -> tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>
// CHECK: %[[K:.*]] = gdn_warp.array_load %k[{{.*}}] axes [0] : {{.*}} -> tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>
// CHECK: %[[B:.*]] = gdn_warp.array_load %b[{{.*}}] axes [0] : {{.*}} -> tensor<1xf32, #gdn_warp.uniform>
// CHECK: %[[SQUARES:.*]] = arith.mulf %[[K]], %[[K]]
// CHECK: linalg.reduce {{.*}}ins(%[[SQUARES]] {{.*}} outs(%{{.*}} : tensor<f32, #gdn_warp.uniform>) dimensions = [0]
// CHECK: tensor.extract %{{.*}}[] : tensor<f32, #gdn_warp.uniform>
// CHECK: scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %[[S]])
// CHECK: %[[TERMS:.*]] = arith.mulf %[[CARRIED]], %{{.*}}
// CHECK: linalg.reduce {{.*}}ins(%[[TERMS]] {{.*}} outs(%{{.*}} : tensor<32xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 0>>) dimensions = [1]
// CHECK: gdn_warp.array_store %{{.*}}, %o[{{.*}}] axes [0] : tensor<32xf32, #gdn_warp.slice<{{.*}}, axis = 0>>
gdn_warp.kernel @rows(%s: memref<32x128xf32>, %k: memref<128xf32>, %b: memref<1xf32>, %o: memref<32xf32>) threads(128) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gdn_warp.role "state" warps(0, 4) {
    %none = arith.constant dense<0.0> : tensor<f32>
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %empty = tensor.empty() : tensor<32x128xf32>
    %state = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<32x128xf32> -> tensor<32x128xf32>
    %key = gdn_tile.load %k[%c0] axes [0] {gdn_tile.step = "state"} : memref<128xf32> -> tensor<128xf32>
    %one = gdn_tile.load %b[%c0] axes [0] {gdn_tile.step = "state"} : memref<1xf32> -> tensor<1xf32>
    %beta = tensor.extract %one[%c0] {gdn_tile.step = "state"} : tensor<1xf32>
    %squares = arith.mulf %key, %key {gdn_tile.step = "state"} : tensor<128xf32>
    %sum = linalg.reduce { arith.addf } ins(%squares : tensor<128xf32>) outs(%none : tensor<f32>) dimensions = [0] {gdn_tile.step = "state"}
    %length = tensor.extract %sum[] {gdn_tile.step = "state"} : tensor<f32>
    %factor = arith.mulf %beta, %length : f32
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%tile = %state) -> (tensor<32x128xf32>) {
      %spread = linalg.broadcast ins(%key : tensor<128xf32>) outs(%empty : tensor<32x128xf32>) dimensions = [0] {gdn_tile.step = "state"}
      %terms = arith.mulf %tile, %spread {gdn_tile.step = "state"} : tensor<32x128xf32>
      %dots = linalg.reduce { arith.addf } ins(%terms : tensor<32x128xf32>) outs(%zero : tensor<32xf32>) dimensions = [1] {gdn_tile.step = "state"}
      %factors = tensor.splat %factor {gdn_tile.step = "state"} : tensor<32xf32>
      %out = arith.mulf %dots, %factors {gdn_tile.step = "state"} : tensor<32xf32>
      gdn_tile.store %out, %o[%c0] axes [0] {gdn_tile.step = "state"} : tensor<32xf32> -> memref<32xf32>
      scf.yield %terms : tensor<32x128xf32>
    }
    gdn_tile.store %last, %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<32x128xf32> -> memref<32x128xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// The sum of the rows lies along the columns, and so does what is made of it and stored. The warps leave theirs in scratch
// memory. Numbers from 0 that mask rows lie along these.
// CHECK-LABEL: gdn_warp.kernel @sum_of_rows(
// CHECK: gdn_warp.iota 0 : tensor<32xi32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 0>>
// CHECK: %[[SUM:.*]] = linalg.reduce {{.*}} outs(%{{.*}} : tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>) dimensions = [0] {gdn_warp.scratch_bytes = 2048 : i64}
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]]
// CHECK: gdn_warp.array_store %[[ROUNDED]], %o[{{.*}}] axes [0] : tensor<128xbf16, #gdn_warp.slice<{{.*}}, axis = 1>>
gdn_warp.kernel @sum_of_rows(%s: memref<32x128xf32>, %o: memref<128xbf16>, %count: i32) threads(128) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %zeros = arith.constant dense<0.0> : tensor<32x128xf32>
    %none = arith.constant dense<0.0> : tensor<128xf32>
    %numbers = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]> : tensor<32xi32>
    %empty = tensor.empty() : tensor<32x128xi32>
    %state = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<32x128xf32> -> tensor<32x128xf32>
    %rows = linalg.broadcast ins(%numbers : tensor<32xi32>) outs(%empty : tensor<32x128xi32>) dimensions = [1] {gdn_tile.step = "state"}
    %counts = tensor.splat %count {gdn_tile.step = "state"} : tensor<32x128xi32>
    %inside = arith.cmpi slt, %rows, %counts {gdn_tile.step = "state"} : tensor<32x128xi32>
    %kept = arith.select %inside, %state, %zeros {gdn_tile.step = "state"} : tensor<32x128xi1>, tensor<32x128xf32>
    %sum = linalg.reduce { arith.addf } ins(%kept : tensor<32x128xf32>) outs(%none : tensor<128xf32>) dimensions = [0] {gdn_tile.step = "state"}
    %rounded = arith.truncf %sum {gdn_tile.step = "state"} : tensor<128xf32> to tensor<128xbf16>
    gdn_tile.store %rounded, %o[%c0] axes [0] {gdn_tile.step = "state"} : tensor<128xbf16> -> memref<128xbf16>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// Rows past an end are neither read nor written.
// CHECK-LABEL: gdn_warp.kernel @ends(
// CHECK: %[[X:.*]] = gdn_warp.array_load %x[{{.*}}] axes [0, 1] until(%[[END:.*]], dim = 0) : {{.*}} -> tensor<64x128xbf16, #gdn_warp.spread<rows = 1, columns = 8, axis = 1, lanes = 16, warps = 4>>
// CHECK: gdn_warp.array_store %[[X]], %y[{{.*}}] axes [0, 1] until(%[[END]], dim = 0)
gdn_warp.kernel @ends(%x: memref<?x128xbf16>, %y: memref<?x128xbf16>, %tokens: i64) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %tokens : i64 to index
  gdn_warp.role "state" warps(0, 4) {
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] until(%end, dim = 0) {gdn_tile.step = "state"} : memref<?x128xbf16> -> tensor<64x128xbf16>
    gdn_tile.store %tile, %y[%c0, %c0] axes [0, 1] until(%end, dim = 0) {gdn_tile.step = "state"} : tensor<64x128xbf16> -> memref<?x128xbf16>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

gdn_warp.kernel @columns_end(%x: memref<64x?xbf16>, %tokens: i64) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %end = arith.index_cast %tokens : i64 to index
  gdn_warp.role "state" warps(0, 4) {
    // expected-error @below {{expected an access that an end cuts between the rows of a tile, or none, in a role whose tiles lie over lanes}}
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] until(%end, dim = 1) {gdn_tile.step = "state"} : memref<64x?xbf16> -> tensor<64x128xbf16>
    gdn_tile.store %tile, %x[%c0, %c0] axes [0, 1] until(%end, dim = 1) {gdn_tile.step = "state"} : tensor<64x128xbf16> -> memref<64x?xbf16>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// An array that is contiguous along the rows of the tile is accessed along these, by eight lanes with 16 bytes each: a line of
// memory. The warps share the columns. A tile that has no room for it has fewer elements a lane.
// CHECK-LABEL: gdn_warp.kernel @columns(
// CHECK: tensor<64x128xbf16, #gdn_warp.spread<rows = 8, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>>
gdn_warp.kernel @columns(%s: memref<128x64xbf16>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %state = gdn_tile.load %s[%c0, %c0] axes [1, 0] {gdn_tile.step = "state"} : memref<128x64xbf16> -> tensor<64x128xbf16>
    gdn_tile.store %state, %s[%c0, %c0] axes [1, 0] {gdn_tile.step = "state"} : tensor<64x128xbf16> -> memref<128x64xbf16>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @narrow(
// CHECK: tensor<32x128xbf16, #gdn_warp.spread<rows = 4, columns = 8, axis = 0, lanes = 4, warps = 4, column_warps = 4>>
gdn_warp.kernel @narrow(%s: memref<128x32xbf16>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %state = gdn_tile.load %s[%c0, %c0] axes [1, 0] {gdn_tile.step = "state"} : memref<128x32xbf16> -> tensor<32x128xbf16>
    gdn_tile.store %state, %s[%c0, %c0] axes [1, 0] {gdn_tile.step = "state"} : tensor<32x128xbf16> -> memref<128x32xbf16>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

gdn_warp.kernel @channel() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    // expected-error @below {{expected no channels in a role whose tiles lie over lanes: it has all steps that they need}}
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

gdn_warp.kernel @small(%s: memref<4x128xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    // expected-error @below {{expected a tile that lanes share: expected a multiple of 8 rows, got 4}}
    %state = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<4x128xf32> -> tensor<4x128xf32>
    gdn_tile.store %state, %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<4x128xf32> -> memref<4x128xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// What the lanes have along rows they do not have along columns.
gdn_warp.kernel @turned(%s: memref<128x128xf32>, %o: memref<128x128xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<128xf32>
    %empty = tensor.empty() : tensor<128x128xf32>
    %state = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<128x128xf32> -> tensor<128x128xf32>
    // expected-error @below {{expected a value that this thread holds as 'tensor<128xf32, #gdn_warp.slice<of = <rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>, axis = 1>>'}}
    %sums = linalg.reduce { arith.addf } ins(%state : tensor<128x128xf32>) outs(%zero : tensor<128xf32>) dimensions = [1] {gdn_tile.step = "state"}
    %spread = linalg.broadcast ins(%sums : tensor<128xf32>) outs(%empty : tensor<128x128xf32>) dimensions = [0] {gdn_tile.step = "state"}
    gdn_tile.store %spread, %o[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<128x128xf32> -> memref<128x128xf32>
  }
}

// -----

// Runs have room in all tiles, also where no array holds any of them: 96 columns are three times 16 lanes of two.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// CHECK-LABEL: gdn_warp.kernel @update(
// CHECK: arith.mulf {{.*}} : tensor<64x96xf32, #gdn_warp.spread<rows = 1, columns = 2, axis = 1, lanes = 16, warps = 4>>
gdn_warp.kernel @update(%k: memref<96xf32>, %v: memref<64xf32>, %o: memref<64xf32>) threads(128) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %empty = tensor.empty() : tensor<64x96xf32>
    %key = gdn_tile.load %k[%c0] axes [0] {gdn_tile.step = "state"} : memref<96xf32> -> tensor<96xf32>
    %value = gdn_tile.load %v[%c0] axes [0] {gdn_tile.step = "state"} : memref<64xf32> -> tensor<64xf32>
    %keys = linalg.broadcast ins(%key : tensor<96xf32>) outs(%empty : tensor<64x96xf32>) dimensions = [0] {gdn_tile.step = "state"}
    %values = linalg.broadcast ins(%value : tensor<64xf32>) outs(%empty : tensor<64x96xf32>) dimensions = [1] {gdn_tile.step = "state"}
    %update = arith.mulf %keys, %values {gdn_tile.step = "state"} : tensor<64x96xf32>
    %sums = linalg.reduce { arith.addf } ins(%update : tensor<64x96xf32>) outs(%zero : tensor<64xf32>) dimensions = [1] {gdn_tile.step = "state"}
    gdn_tile.store %sums, %o[%c0] axes [0] {gdn_tile.step = "state"} : tensor<64xf32> -> memref<64xf32>
  }
}

// -----

// A constant has lost its place where several are one: an op that takes it is named.
#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>
gdn_warp.kernel @hundred(%s: memref<64x100xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %one = arith.constant dense<1.0> : tensor<64x100xf32>
    // expected-error @below {{expected a tile that lanes share: expected a multiple of 16 columns, got 100}}
    %sum = arith.addf %one, %one {gdn_tile.step = "state"} : tensor<64x100xf32>
    gdn_tile.store %sum, %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<64x100xf32> -> memref<64x100xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 4, registers = 64, steps = ["state"], lanes_per_row = 16>], channels = []>

// A tile that a branch makes lies as all tiles of the role.
// CHECK-LABEL: gdn_warp.kernel @branch(
// CHECK: %[[S:.*]] = scf.if %{{.*}} -> (tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>) {
// CHECK:   %[[LOADED:.*]] = gdn_warp.array_load %s
// CHECK:   scf.yield %[[LOADED]]
// CHECK: } else {
// CHECK:   scf.yield %{{.*}} : tensor<32x128xf32, #gdn_warp.spread<rows = 1, columns = 4, axis = 1, lanes = 16, warps = 4>>
// CHECK: %[[SUM:.*]] = arith.addf %[[S]], %[[S]]
// CHECK: scf.if %{{[^ ]*}} {
// CHECK-NEXT: gdn_warp.array_store %[[SUM]], %s
gdn_warp.kernel @branch(%s: memref<?x32x128xf32>, %n: i64) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %row = arith.index_cast %n : i64 to index
  %rows = memref.dim %s, %c0 : memref<?x32x128xf32>
  %there = arith.cmpi ult, %row, %rows : index
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<32x128xf32>
    %state = scf.if %there -> (tensor<32x128xf32>) {
      %loaded = gdn_tile.load %s[%row, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : memref<?x32x128xf32> -> tensor<32x128xf32>
      scf.yield %loaded : tensor<32x128xf32>
    } else {
      scf.yield %zero : tensor<32x128xf32>
    }
    %sum = arith.addf %state, %state {gdn_tile.step = "state"} : tensor<32x128xf32>
    scf.if %there {
      gdn_tile.store %sum, %s[%row, %c0, %c0] axes [1, 2] {gdn_tile.step = "state"} : tensor<32x128xf32> -> memref<?x32x128xf32>
    }
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [<name = "state", warps = 1, registers = 64, steps = ["state"], lanes_per_row = 32>], channels = []>

// Of a role without tiles the vectors are rows. What loops and branches carry lies as its users ask, here along the columns:
// to be summed.
// CHECK-LABEL: gdn_warp.kernel @vectors(
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%[[Y:.*]] = %{{.*}}) -> (tensor<64xf32, #gdn_warp.slice<of = <rows = 1, columns = 2, axis = 1, lanes = 32, warps = 1>, axis = 1>>)
// CHECK: linalg.reduce {{.*}}ins(%[[Y]] {{.*}} outs(%{{.*}} : tensor<f32, #gdn_warp.uniform>)
// CHECK: %[[NEXT:.*]] = scf.if %{{.*}} -> (tensor<64xf32, #gdn_warp.slice<of = <rows = 1, columns = 2, axis = 1, lanes = 32, warps = 1>, axis = 1>>) {
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK: %[[K:.*]] = gdn_warp.array_load %k[{{.*}} -> tensor<64xf32, #gdn_warp.slice<of = <rows = 1, columns = 2, axis = 1, lanes = 32, warps = 1>, axis = 1>>
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[Y]], %[[K]]
// CHECK-NEXT: scf.yield %[[PRODUCT]]
// CHECK: scf.yield %[[NEXT]]
gdn_warp.kernel @vectors(%k: memref<64xf32>, %o: memref<1xf32>) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %least = arith.constant 0.5 : f32
  gdn_warp.role "state" warps(0, 1) {
    %none = arith.constant dense<0.0> : tensor<f32>
    %ones = arith.constant dense<1.0> : tensor<64xf32>
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %ones) -> (tensor<64xf32>) {
      %sum = linalg.reduce { arith.addf } ins(%y : tensor<64xf32>) outs(%none : tensor<f32>) dimensions = [0] {gdn_tile.step = "state"}
      %number = tensor.extract %sum[] {gdn_tile.step = "state"} : tensor<f32>
      %small = arith.cmpf ole, %number, %least {gdn_tile.step = "state"} : f32
      %next = scf.if %small -> (tensor<64xf32>) {
        scf.yield %y : tensor<64xf32>
      } else {
        %key = gdn_tile.load %k[%c0] axes [0] {gdn_tile.step = "state"} : memref<64xf32> -> tensor<64xf32>
        %product = arith.mulf %y, %key {gdn_tile.step = "state"} : tensor<64xf32>
        scf.yield %product : tensor<64xf32>
      } {gdn_tile.step = "state"}
      scf.yield %next : tensor<64xf32>
    }
    %all = linalg.reduce { arith.addf } ins(%last : tensor<64xf32>) outs(%none : tensor<f32>) dimensions = [0] {gdn_tile.step = "state"}
    %number = tensor.extract %all[] {gdn_tile.step = "state"} : tensor<f32>
    %one = tensor.splat %number {gdn_tile.step = "state"} : tensor<1xf32>
    gdn_tile.store %one, %o[%c0] axes [0] {gdn_tile.step = "state"} : tensor<1xf32> -> memref<1xf32>
  }
}
