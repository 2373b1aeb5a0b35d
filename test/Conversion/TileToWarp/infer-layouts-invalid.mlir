// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts))'

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A reduction to a scalar.
gdn_warp.kernel @scalar() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<f32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
    // expected-error @below {{'linalg.reduce' op expected a reduction of one tile of two dimensions along one of them, got [0, 1] of 'tensor<64x64xf32>'}}
    %sum = linalg.reduce { arith.addf } ins(%tile : tensor<64x64xf32>) outs(%zero : tensor<f32>)
        dimensions = [0, 1] {gdn_tile.step = "state"}
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// What a warpgroup has of each row is not where it is wanted of each column.
gdn_warp.kernel @turned() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %empty = tensor.empty() : tensor<64x64xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
    // expected-error @below {{expected a vector 'tensor<64xf32, #gdn_warp.columns>', got 'tensor<64xf32, #gdn_warp.rows>': what other threads hold goes through a channel}}
    %sums = linalg.reduce { arith.addf } ins(%tile : tensor<64x64xf32>) outs(%zero : tensor<64xf32>)
        dimensions = [1] {gdn_tile.step = "state"}
    %spread = linalg.broadcast ins(%sums : tensor<64xf32>) outs(%empty : tensor<64x64xf32>) dimensions = [0]
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A row of a block is read where the tile lies, by the warp that has the block.
gdn_warp.kernel @repeated() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
    // expected-error @below {{expected blocks of 16 rows of a tile of 64 rows from a channel, got blocks of 32 along dimension 0 of 'tensor<64x64xf32>'}}
    %row = gdn_tile.repeat %tile axis 0 block 32 at %c0 {gdn_tile.step = "state"} : tensor<64x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// Tiles of fewer rows than a fragment meet only where they lie in the same rows.
gdn_warp.kernel @apart() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
    %a = tensor.extract_slice %tile[0, 0] [32, 64] [1, 1] : tensor<64x64xf32> to tensor<32x64xf32>
    %b = tensor.extract_slice %tile[32, 0] [32, 64] [1, 1] : tensor<64x64xf32> to tensor<32x64xf32>
    // expected-error @below {{expected tiles in the same rows of a fragment, got one from row 0 and one from row 32}}
    %sum = arith.addf %a, %b {gdn_tile.step = "state"} : tensor<32x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A tile of a channel that no fragment holds: warps hold 16 rows.
gdn_warp.kernel @small() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<24x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<24x64xf32>> -> tensor<24x64xf32>
    // expected-error @below {{'arith.negf' op expected tiles of a multiple of 16 rows up to 64 in registers, got 'tensor<24x64xf32>'}}
    %minus = arith.negf %tile {gdn_tile.step = "state"} : tensor<24x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A warp alone holds no tile whose rows it could reduce.
gdn_warp.kernel @alone() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<32x64xf32>>
  gdn_warp.role "norms" warps(0, 1) {
    %zero = arith.constant dense<0.0> : tensor<32xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<32x64xf32>> -> tensor<32x64xf32>
    // expected-error @below {{expected a sum of products of tiles from channels, or a role of warpgroups to reduce}}
    %sums = linalg.reduce { arith.addf } ins(%tile : tensor<32x64xf32>) outs(%zero : tensor<32xf32>)
        dimensions = [1] {gdn_tile.step = "norms"}
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// Nor does it hold one in registers otherwise.
gdn_warp.kernel @single() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  %out = gdn_warp.channel "out" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "norms" warps(0, 1) {
    // expected-error @below {{'gdn_warp.get' op expected tiles in the registers of whole warpgroups, got one in role "norms", whose warps work alone}}
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
    gdn_warp.put %tile, %out[0] at %c0 : tensor<64x64xf32>, <tensor<64x64xf32>>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// Rows of a fragment from a place that a vector which repeats would not fit.
gdn_warp.kernel @middle(%x: memref<64x64xf32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %tile = gdn_tile.load %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : memref<64x64xf32> -> tensor<64x64xf32>
    // expected-error @below {{'tensor.extract_slice' op expected rows of a fragment from a multiple of their number on, got 32 rows from row 16}}
    %rows = tensor.extract_slice %tile[16, 0] [32, 64] [1, 1] : tensor<64x64xf32> to tensor<32x64xf32>
    %minus = arith.negf %rows {gdn_tile.step = "state"} : tensor<32x64xf32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// A scan over the lanes of each warp, whose sums are wanted along the columns.
gdn_warp.kernel @scanned(%x: memref<64xf32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %empty = tensor.empty() : tensor<64x64xf32>
    %v = gdn_tile.load %x[%c0] axes [0] {gdn_tile.step = "state"} : memref<64xf32> -> tensor<64xf32>
    // expected-error @below {{'gdn_tile.scan' op expected a scan over lanes, got a use of it as 'tensor<64xf32, #gdn_warp.columns>': what other threads hold goes through a channel}}
    %s = gdn_tile.scan %v axis 0 {gdn_tile.step = "state"} : tensor<64xf32>
    %spread = linalg.broadcast ins(%s : tensor<64xf32>) outs(%empty : tensor<64x64xf32>) dimensions = [0]
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// Fewer rows lie in some rows of a fragment, whose numbers repeat where they are a power of two.
gdn_warp.kernel @numbers(%y: memref<48x64xi32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    %rows = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47]> : tensor<48xi32>
    %empty = tensor.empty() : tensor<48x64xi32>
    // expected-error @below {{'linalg.broadcast' op expected the numbers of 2^n rows, got those of 48}}
    %row = linalg.broadcast ins(%rows : tensor<48xi32>) outs(%empty : tensor<48x64xi32>) dimensions = [1] {gdn_tile.step = "state"}
    gdn_tile.store %row, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "state"} : tensor<48x64xi32> -> memref<48x64xi32>
  }
}

// -----

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

gdn_warp.kernel @four_warps(%progress: memref<?x4x1xi32>) threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  gdn_warp.role "state" warps(0, 4) {
    // expected-error @below {{expected a role of one warp, whose stores it follows, got role "state" of 4 warps}}
    gdn_tile.report %c0, %progress[%c0, %c0, %c0] {gdn_tile.step = "store"} : memref<?x4x1xi32>
  }
}
