// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-infer-layouts))'

#one = #gdn_warp.schedule<chunks_per_iteration = 1, v_tiles = 1, roles = [], channels = []>

// Sums of columns would cross warps.
gdn_warp.kernel @columns() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<64x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<64x64xf32>> -> tensor<64x64xf32>
    // expected-error @below {{expected a reduction of the rows of one tile, along dimension 1, got [0] of 'tensor<64x64xf32>'}}
    %sums = linalg.reduce { arith.addf } ins(%tile : tensor<64x64xf32>) outs(%zero : tensor<64xf32>)
        dimensions = [0] {gdn_tile.step = "state"}
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

// A tile of a channel that no fragment holds.
gdn_warp.kernel @small() threads(256) shared(0) attributes {gdn_warp.schedule = #one} {
  %c0 = arith.constant 0 : index
  %in = gdn_warp.channel "in" depth(2) : <tensor<32x64xf32>>
  gdn_warp.role "state" warps(0, 4) {
    // expected-error @below {{expected a tile of 64 rows to read from shared memory, got 'tensor<32x64xf32>'}}
    %tile = gdn_warp.get %in[0] at %c0 : <tensor<32x64xf32>> -> tensor<32x64xf32>
    %minus = arith.negf %tile {gdn_tile.step = "state"} : tensor<32x64xf32>
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
