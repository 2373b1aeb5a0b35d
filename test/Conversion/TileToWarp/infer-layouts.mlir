// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts,cse))' | FileCheck %s
// A kernel that has its layouts is left alone.
// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts))' > %t.mlir
// RUN: gdn-opt %t.mlir --split-input-file --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts))' | diff %t.mlir -

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A tile that is copied to a channel lies there as in its array, row by row in panels; a product reads it
// there, takes a left operand from registers, and leaves a fragment. What goes on is stored as the taker asks.
// CHECK-LABEL: gdn_warp.kernel @products(
// CHECK: %[[IN:.*]] = gdn_warp.channel "in" depth(2) : <!gdn_warp.view<64x64xbf16, swizzle = 128>>
// CHECK: %[[OUT:.*]] = gdn_warp.channel "out" depth(2) : <!gdn_warp.view<64x64xbf16, swizzle = 128>>
// CHECK: gdn_warp.role "move"
// CHECK-NEXT: %[[SLOT:.*]] = gdn_warp.slot put %[[IN]][0] at
// CHECK-NEXT: gdn_warp.tma_load %x[{{.*}}] axes [0, 1], %[[SLOT]]
// CHECK: %[[BACK:.*]] = gdn_warp.slot get %[[OUT]][0] at
// CHECK-NEXT: gdn_warp.tma_store %[[BACK]], %y[{{.*}}] axes [0, 1]
// CHECK: gdn_warp.role "state"
// CHECK-NEXT: %[[TILE:.*]] = gdn_warp.slot get %[[IN]][0] at
// CHECK-NEXT: %[[S:.*]] = gdn_warp.wgmma %[[TILE]], %[[TILE]] transpose_b : {{.*}} -> tensor<64x64xf32, #gdn_warp.fragment>
// CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[S]] : tensor<64x64xf32, #gdn_warp.fragment>
// CHECK-NEXT: %[[MORE:.*]] = gdn_warp.wgmma %[[ROUNDED]], %[[TILE]] into(%[[S]] :
// CHECK: %[[NARROW:.*]] = arith.truncf %[[MORE]]
// CHECK: %[[PLACE:.*]] = gdn_warp.slot put %[[OUT]][0] at
// CHECK-NEXT: gdn_warp.fragment_store %[[NARROW]], %[[PLACE]] :
gdn_warp.kernel @products(%x: memref<?x64xbf16>, %y: memref<?x64xbf16>) threads(256) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  %out = gdn_warp.channel "out" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "move" warps(0, 1) {
    %load = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<?x64xbf16> -> tensor<64x64xbf16>
    gdn_warp.put %load, %in[0] at %c0 : tensor<64x64xbf16>, <tensor<64x64xbf16>>
    %back = gdn_warp.get %out[0] at %c0 : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    gdn_tile.store %back, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<64x64xbf16> -> memref<?x64xbf16>
  }
  gdn_warp.role "state" warps(4, 4) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    %s = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
        affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"} ins(%tile, %tile : tensor<64x64xbf16>, tensor<64x64xbf16>)
        outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %rounded = arith.truncf %s {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %more = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
        affine_map<(m, n, k) -> (m, n)>] {gdn_tile.step = "state"} ins(%rounded, %tile : tensor<64x64xbf16>, tensor<64x64xbf16>)
        outs(%s : tensor<64x64xf32>) -> tensor<64x64xf32>
    %narrow = arith.truncf %more {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    gdn_warp.put %narrow, %out[0] at %c0 : tensor<64x64xbf16>, <tensor<64x64xbf16>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A warp that works alone has vectors over its lanes, and of tiles the inner products of rows.
// CHECK-LABEL: gdn_warp.kernel @alone(
// CHECK: gdn_warp.role "norms"
// CHECK: %[[TILE:.*]] = gdn_warp.slot get
// CHECK-NEXT: %[[SLICE:.*]] = gdn_warp.slice %[[TILE]][32, 0] :
// CHECK-NEXT: %[[SUMS:.*]] = gdn_warp.row_dots %[[SLICE]], %[[SLICE]] : {{.*}} -> tensor<32xf32, #gdn_warp.lanes>
// CHECK-NEXT: %[[NORMS:.*]] = math.rsqrt %[[SUMS]] : tensor<32xf32, #gdn_warp.lanes>
// CHECK: gdn_warp.vector_store %[[NORMS]], %{{.*}} : tensor<32xf32, #gdn_warp.lanes> -> <32xf32>
gdn_warp.kernel @alone(%x: memref<?x64xbf16>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  %out = gdn_warp.channel "norms" depth(2) : <tensor<32xf32>>
  gdn_warp.role "norms" warps(0, 3) attributes {gdn_warp.round_robin} {
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    %slice = tensor.extract_slice %tile[32, 0] [32, 64] [1, 1] {gdn_tile.step = "norms"} : tensor<64x64xbf16> to tensor<32x64xbf16>
    %wide = arith.extf %slice {gdn_tile.step = "norms"} : tensor<32x64xbf16> to tensor<32x64xf32>
    %squares = arith.mulf %wide, %wide {gdn_tile.step = "norms"} : tensor<32x64xf32>
    %sums = linalg.reduce { arith.addf } ins(%squares : tensor<32x64xf32>) outs(%zero : tensor<32xf32>)
        dimensions = [1] {gdn_tile.step = "norms"}
    %norms = math.rsqrt %sums {gdn_tile.step = "norms"} : tensor<32xf32>
    gdn_warp.put %norms, %out[0] at %c0 : tensor<32xf32>, <tensor<32xf32>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A warpgroup takes them of all the rows of its fragments, and each warp needs those of its own.
// CHECK-LABEL: gdn_warp.kernel @together(
// CHECK: gdn_warp.role "scores"
// CHECK: %[[TILE:.*]] = gdn_warp.slot get
// CHECK: %[[SUMS:.*]] = gdn_warp.row_dots %[[TILE]], %[[TILE]] : {{.*}} -> tensor<64xf32, #gdn_warp.rows>
// CHECK: %[[NORMS:.*]] = math.rsqrt %[[SUMS]] : tensor<64xf32, #gdn_warp.rows>
// CHECK: gdn_warp.vector_store %[[NORMS]], %{{.*}} rows [32, 64] : tensor<64xf32, #gdn_warp.rows> -> <32xf32>
gdn_warp.kernel @together(%x: memref<?x64xbf16>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  %out = gdn_warp.channel "norms" depth(2) : <tensor<32xf32>>
  gdn_warp.role "scores" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    %slice = tensor.extract_slice %tile[32, 0] [32, 64] [1, 1] {gdn_tile.step = "norms"} : tensor<64x64xbf16> to tensor<32x64xbf16>
    %wide = arith.extf %slice {gdn_tile.step = "norms"} : tensor<32x64xbf16> to tensor<32x64xf32>
    %squares = arith.mulf %wide, %wide {gdn_tile.step = "norms"} : tensor<32x64xf32>
    %sums = linalg.reduce { arith.addf } ins(%squares : tensor<32x64xf32>) outs(%zero : tensor<32xf32>)
        dimensions = [1] {gdn_tile.step = "norms"}
    %norms = math.rsqrt %sums {gdn_tile.step = "norms"} : tensor<32xf32>
    gdn_warp.put %norms, %out[0] at %c0 : tensor<32xf32>, <tensor<32xf32>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A warpgroup's rows lie in fragments: a tile of fewer rows in those of the stack that it is part of, and so
// does what is left of its rows. A factor of columns comes through a channel, repeated where it is one of rows.
// CHECK-LABEL: gdn_warp.kernel @rows(
// CHECK: gdn_warp.role "scores"
// CHECK: %[[TILE:.*]] = gdn_warp.slot get
// CHECK: %[[STACK:.*]] = gdn_warp.fragment_load %[[TILE]] : <64x64xbf16, swizzle = 128> -> tensor<64x64xbf16, #gdn_warp.fragment>
// CHECK-NOT: gdn_warp.fragment_load
// CHECK: %[[SUMS:.*]] = linalg.reduce { arith.addf } ins(%{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>) outs(%{{.*}} : tensor<64xf32, #gdn_warp.rows>)
// CHECK: %[[BETA:.*]] = gdn_warp.slot get
// CHECK: %[[REPEATED:.*]] = gdn_warp.vector_load %[[BETA]] : <32xf32> -> tensor<64xf32, #gdn_warp.rows>
// CHECK: %[[UPPER:.*]] = arith.mulf %[[SUMS]], %[[REPEATED]] : tensor<64xf32, #gdn_warp.rows>
// CHECK: gdn_warp.vector_store %[[UPPER]], %{{.*}} rows [0, 32] :
// CHECK: gdn_warp.vector_store %[[SUMS]], %{{.*}} rows [32, 64] :
gdn_warp.kernel @rows(%x: memref<?x64xbf16>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  %vectors = gdn_warp.channel "vectors" depth(2) : <tensor<32xf32>>
  %out = gdn_warp.channel "sums" depth(2) : <tensor<32xf32>, tensor<32xf32>>
  gdn_warp.role "scores" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    %k = tensor.extract_slice %tile[0, 0] [32, 64] [1, 1] {gdn_tile.step = "norms"} : tensor<64x64xbf16> to tensor<32x64xbf16>
    %q = tensor.extract_slice %tile[32, 0] [32, 64] [1, 1] {gdn_tile.step = "norms"} : tensor<64x64xbf16> to tensor<32x64xbf16>
    %kf = arith.extf %k {gdn_tile.step = "norms"} : tensor<32x64xbf16> to tensor<32x64xf32>
    %qf = arith.extf %q {gdn_tile.step = "norms"} : tensor<32x64xbf16> to tensor<32x64xf32>
    %ks = linalg.reduce { arith.addf } ins(%kf : tensor<32x64xf32>) outs(%zero : tensor<32xf32>)
        dimensions = [1] {gdn_tile.step = "norms"}
    %qs = linalg.reduce { arith.addf } ins(%qf : tensor<32x64xf32>) outs(%zero : tensor<32xf32>)
        dimensions = [1] {gdn_tile.step = "norms"}
    %beta = gdn_warp.get %vectors[0] at %c0 : <tensor<32xf32>> -> tensor<32xf32>
    %kb = arith.mulf %ks, %beta {gdn_tile.step = "norms"} : tensor<32xf32>
    gdn_warp.put %kb, %out[0] at %c0 : tensor<32xf32>, <tensor<32xf32>, tensor<32xf32>>
    gdn_warp.put %qs, %out[1] at %c0 : tensor<32xf32>, <tensor<32xf32>, tensor<32xf32>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A product that is subtracted is made negated and added, with a factor in one instruction if the ops may be
// contracted. One that is read otherwise too is subtracted.
// CHECK-LABEL: gdn_warp.kernel @differences(
// CHECK: %[[A:.*]] = gdn_warp.wgmma negate
// CHECK: %[[LEFT:.*]] = gdn_warp.fragment_load
// CHECK: %[[W:.*]] = arith.extf %[[LEFT]]
// CHECK: %[[SUM:.*]] = arith.addf %[[W]], %[[A]] fastmath<contract> : tensor<64x64xf32, #gdn_warp.fragment>
// CHECK: %[[B:.*]] = gdn_warp.wgmma negate
// CHECK: %[[FUSED:.*]] = math.fma %[[B]], %{{.*}}, %[[SUM]] : tensor<64x64xf32, #gdn_warp.fragment>
// CHECK: %[[C:.*]] = gdn_warp.wgmma negate
// CHECK: %[[SCALED:.*]] = arith.mulf %[[C]], %{{.*}} : tensor<64x64xf32, #gdn_warp.fragment>
// CHECK: %[[APART:.*]] = arith.addf %[[FUSED]], %[[SCALED]] : tensor<64x64xf32, #gdn_warp.fragment>
// CHECK: %[[D:.*]] = gdn_warp.wgmma %
// CHECK: %[[LESS:.*]] = arith.subf %[[APART]], %[[D]]
// CHECK: arith.addf %[[LESS]], %[[D]]
gdn_warp.kernel @differences(%x: memref<?x64xbf16>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>, tensor<64xf32>>
  %out = gdn_warp.channel "out" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %none = tensor.empty() : tensor<64x64xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xbf16>, tensor<64xf32>> -> tensor<64x64xbf16>
    %beta = gdn_warp.get %in[1] at %c0 : <tensor<64x64xbf16>, tensor<64xf32>> -> tensor<64xf32>
    %w = arith.extf %tile {gdn_tile.step = "state"} : tensor<64x64xbf16> to tensor<64x64xf32>
    %factors = linalg.broadcast ins(%beta : tensor<64xf32>) outs(%none : tensor<64x64xf32>) dimensions = [0] {gdn_tile.step = "state"}
    %a = linalg.contract indexing_maps = [#mk, #nk, #mn] {gdn_tile.step = "state"}
        ins(%tile, %tile : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %plain = arith.subf %w, %a fastmath<contract> {gdn_tile.step = "state"} : tensor<64x64xf32>
    %r = arith.truncf %plain {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %b = linalg.contract indexing_maps = [#mk, #nk, #mn] {gdn_tile.step = "state"}
        ins(%r, %tile : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %bs = arith.mulf %b, %factors fastmath<contract> {gdn_tile.step = "state"} : tensor<64x64xf32>
    %fused = arith.subf %plain, %bs fastmath<contract> {gdn_tile.step = "state"} : tensor<64x64xf32>
    %s = arith.truncf %fused {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %c = linalg.contract indexing_maps = [#mk, #nk, #mn] {gdn_tile.step = "state"}
        ins(%s, %tile : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %cs = arith.mulf %c, %factors {gdn_tile.step = "state"} : tensor<64x64xf32>
    %apart = arith.subf %fused, %cs {gdn_tile.step = "state"} : tensor<64x64xf32>
    %t = arith.truncf %apart {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    %d = linalg.contract indexing_maps = [#mk, #nk, #mn] {gdn_tile.step = "state"}
        ins(%t, %tile : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %less = arith.subf %apart, %d {gdn_tile.step = "state"} : tensor<64x64xf32>
    %both = arith.addf %less, %d {gdn_tile.step = "state"} : tensor<64x64xf32>
    %narrow = arith.truncf %both {gdn_tile.step = "state"} : tensor<64x64xf32> to tensor<64x64xbf16>
    gdn_warp.put %narrow, %out[0] at %c0 : tensor<64x64xbf16>, <tensor<64x64xbf16>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// The numbers of a tile's rows and columns: each thread knows those of its elements.
// CHECK-LABEL: gdn_warp.kernel @diagonal
// CHECK: %[[ROW:.*]] = gdn_warp.iota 0 : tensor<64x32xi32, #gdn_warp.fragment>
// CHECK: %[[COLUMN:.*]] = gdn_warp.iota 1 : tensor<64x32xi32, #gdn_warp.fragment>
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[ROW]], %[[COLUMN]] : tensor<64x32xi32, #gdn_warp.fragment>
// CHECK: arith.select %[[IS]], %{{.*}}, %{{.*}} : tensor<64x32xi1, #gdn_warp.fragment>, tensor<64x32xf32, #gdn_warp.fragment>
gdn_warp.kernel @diagonal(%y: memref<64x32xf32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %rows = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]> : tensor<64xi32>
    %columns = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]> : tensor<32xi32>
    %empty = tensor.empty() : tensor<64x32xi32>
    %row = linalg.broadcast ins(%rows : tensor<64xi32>) outs(%empty : tensor<64x32xi32>) dimensions = [1] {gdn_tile.step = "state"}
    %column = linalg.broadcast ins(%columns : tensor<32xi32>) outs(%empty : tensor<64x32xi32>) dimensions = [0] {gdn_tile.step = "state"}
    %one = arith.constant dense<1.0> : tensor<64x32xf32>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %is = arith.cmpi eq, %row, %column {gdn_tile.step = "state"} : tensor<64x32xi32>
    %tile = arith.select %is, %one, %zero {gdn_tile.step = "state"} : tensor<64x32xi1>, tensor<64x32xf32>
    gdn_tile.store %tile, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<64x32xf32> -> memref<64x32xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A warp reports how far it is.
// CHECK-LABEL: gdn_warp.kernel @reports
// CHECK: gdn_warp.role "store"
// CHECK: gdn_warp.report %c0, %progress[%c0, %c0, %c0] : memref<?x4x1xi32>
gdn_warp.kernel @reports(%progress: memref<?x4x1xi32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "store" warps(0, 1) {
    gdn_tile.report %c0, %progress[%c0, %c0, %c0] {gdn_tile.step = "store"} : memref<?x4x1xi32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// One number for each element goes to a slot from the warps of its rows: over lanes every warp would store all of it.
// CHECK-LABEL: gdn_warp.kernel @constant(
// CHECK: %[[SLOT:.*]] = gdn_warp.slot put
// CHECK: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf32, #gdn_warp.rows>
// CHECK: %[[FIRST:.*]] = gdn_warp.slice %[[SLOT]][0, 0] : <128xf32> -> <64xf32>
// CHECK: gdn_warp.vector_store %[[ONES]], %[[FIRST]] : tensor<64xf32, #gdn_warp.rows> -> <64xf32>
// CHECK: %[[SECOND:.*]] = gdn_warp.slice %[[SLOT]][0, 64] : <128xf32> -> <64xf32>
// CHECK: gdn_warp.vector_store %{{.*}}, %[[SECOND]] : tensor<64xf32, #gdn_warp.rows> -> <64xf32>
gdn_warp.kernel @constant(%x: memref<?x64xbf16>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %ones = arith.constant dense<1.0> : tensor<128xf32>
  %out = gdn_warp.channel "decay" depth(2) : <tensor<128xf32>>
  gdn_warp.role "scores" warps(0, 4) {
    gdn_warp.put %ones, %out[0] at %c0 : tensor<128xf32>, <tensor<128xf32>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// What all takers read from shared memory: made of %k, which is read once more behind it, it lies in a place of its own;
// the last that is made of %k lies in its slot. A reread loads it from there.
// CHECK-LABEL: gdn_warp.kernel @shared(
// CHECK: gdn_warp.role "state"
// CHECK: %[[K:.*]] = gdn_warp.slot get
// CHECK: %[[FIRST:.*]] = arith.truncf %{{.*}} {gdn_tile.shared}
// CHECK: %[[PLACE:.*]] = gdn_warp.publish %[[FIRST]] in_turn
// CHECK: %[[LAST:.*]] = arith.truncf %{{.*}} {gdn_tile.shared}
// CHECK: gdn_warp.sync warp
// CHECK: gdn_warp.fragment_store %[[LAST]], %[[K]] :
// CHECK: %[[SHARED:.*]] = gdn_warp.share %[[K]] :
// CHECK: %[[P:.*]] = gdn_warp.wgmma %[[SHARED]], %[[PLACE]]
// CHECK: %[[AGAIN:.*]] = gdn_warp.fragment_load %[[SHARED]]
// CHECK: %[[WIDE:.*]] = arith.extf %[[AGAIN]]
// CHECK: arith.mulf %[[P]], %[[WIDE]]
gdn_warp.kernel @shared(%x: memref<?x64xbf16>, %y: memref<?x64xf32>) threads(256) shared(0)
    attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xbf16>>
  gdn_warp.role "move" warps(0, 1) {
    %load = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<?x64xbf16> -> tensor<64x64xbf16>
    gdn_warp.put %load, %in[0] at %c0 : tensor<64x64xbf16>, <tensor<64x64xbf16>>
  }
  gdn_warp.role "state" warps(4, 4) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %two = arith.constant dense<2.0> : tensor<64x64xf32>
    %three = arith.constant dense<3.0> : tensor<64x64xf32>
    %k = gdn_warp.get %in[0] at %c0 : <tensor<64x64xbf16>> -> tensor<64x64xbf16>
    %wide = arith.extf %k : tensor<64x64xbf16> to tensor<64x64xf32>
    %twice = arith.mulf %wide, %two : tensor<64x64xf32>
    %first = arith.truncf %twice {gdn_tile.shared} : tensor<64x64xf32> to tensor<64x64xbf16>
    %thrice = arith.mulf %wide, %three : tensor<64x64xf32>
    %last = arith.truncf %thrice {gdn_tile.shared} : tensor<64x64xf32> to tensor<64x64xbf16>
    %p = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
        affine_map<(m, n, k) -> (m, n)>] ins(%last, %first : tensor<64x64xbf16>, tensor<64x64xbf16>)
        outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
    %again = arith.extf %last {gdn_tile.reread = 0 : i64} : tensor<64x64xbf16> to tensor<64x64xf32>
    %dots = arith.mulf %p, %again : tensor<64x64xf32>
    gdn_tile.store %dots, %y[%c0, %c0] axes [0, 1] : tensor<64x64xf32> -> memref<?x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// Rows of f32 that neither copies nor products read lie an odd number of 32 bytes apart: pairs of four rows meet different banks.
// Rows of a panel have no conflicts as they are.
// CHECK-LABEL: gdn_warp.kernel @wide(
// CHECK: gdn_warp.channel "sums" depth(1) : <!gdn_warp.view<64x64xf32, stride = 288>, !gdn_warp.view<64x32xf32, swizzle = 128>>
// CHECK: gdn_warp.fragment_store %{{.*}} -> <64x64xf32, stride = 288>
// CHECK: gdn_warp.fragment_load %{{.*}} : <64x64xf32, stride = 288>
gdn_warp.kernel @wide(%x: memref<?x64xf32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %sums = gdn_warp.channel "sums" depth(1) : <tensor<64x64xf32>, tensor<64x32xf32>>
  gdn_warp.role "sums" warps(0, 4) {
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "sums"} : memref<?x64xf32> -> tensor<64x64xf32>
    %half = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "sums"} : memref<?x64xf32> -> tensor<64x32xf32>
    %more = arith.addf %tile, %tile {gdn_tile.step = "sums"} : tensor<64x64xf32>
    %less = arith.addf %half, %half {gdn_tile.step = "sums"} : tensor<64x32xf32>
    gdn_warp.put %more, %sums[0] at %c0 : tensor<64x64xf32>, <tensor<64x64xf32>, tensor<64x32xf32>>
    gdn_warp.put %less, %sums[1] at %c0 : tensor<64x32xf32>, <tensor<64x64xf32>, tensor<64x32xf32>>
  }
  gdn_warp.role "state" warps(4, 4) {
    %tile = gdn_warp.get %sums[0] at %c0 : <tensor<64x64xf32>, tensor<64x32xf32>> -> tensor<64x64xf32>
    %half = gdn_warp.get %sums[1] at %c0 : <tensor<64x64xf32>, tensor<64x32xf32>> -> tensor<64x32xf32>
    %more = arith.addf %tile, %tile {gdn_tile.step = "state"} : tensor<64x64xf32>
    %less = arith.addf %half, %half {gdn_tile.step = "state"} : tensor<64x32xf32>
    gdn_tile.store %more, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<?x64xf32>
    gdn_tile.store %less, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<64x32xf32> -> memref<?x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// What few iterations run makes its addresses, and what it makes of numbers, there.
// CHECK-LABEL: gdn_warp.kernel @seldom(
// CHECK: scf.if
// CHECK: gdn_warp.array_store {{.*}} {gdn_warp.late_addresses}
// CHECK: } {gdn_warp.late_addresses, gdn_warp.likely = false}
gdn_warp.kernel @seldom(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %is: i1) threads(128) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<?x64xf32> -> tensor<64x64xf32>
    scf.if %is {
      gdn_tile.store %tile, %y[%c0, %c0] axes [0, 1] {gdn_tile.seldom, gdn_tile.step = "state"} : tensor<64x64xf32> -> memref<?x64xf32>
    } {gdn_tile.likely = false, gdn_tile.seldom}
  }
}
