// RUN: gdn-opt %s --gdn-tile-verify-form -split-input-file -verify-diagnostics

// What the level allows: labelled ops on static tiles, constants and scalar
// arithmetic without labels, control flow whose parts are labelled, scratch.
gdn_tile.program @allowed(%x: memref<1x?x4x16xf32>) outs(%y: memref<1x?x4x16xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1.0> : tensor<16x16xf32>
  %scratch = memref.alloc() : memref<16xf32>
  scf.for %t = %begin to %end step %c16 {
    %a = gdn_tile.load %x[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "load"}
        : memref<1x?x4x16xf32> -> tensor<16x16xf32>
    %b = arith.addf %a, %one {gdn_tile.step = "scores"} : tensor<16x16xf32>
    %late = arith.cmpi sgt, %t, %c16 : index
    %c = scf.if %late -> tensor<16x16xf32> {
      scf.yield %b : tensor<16x16xf32>
    } else {
      scf.yield %a : tensor<16x16xf32>
    }
    gdn_tile.store %c, %y[%batch, %t, %h, %c0] axes [1, 3] until(%end, dim = 1) {gdn_tile.step = "store"}
        : tensor<16x16xf32> -> memref<1x?x4x16xf32>
  }
  memref.dealloc %scratch : memref<16xf32>
}
func.func @outside(%x: tensor<1x32x4x16xf32>) -> tensor<1x32x4x16xf32> {
  %c1 = arith.constant 1 : index
  %r = gdn_tile.launch @allowed grid(%c1, %c1, %c1) tokens(%c1) ins(%x : tensor<1x32x4x16xf32>)
      outs(%x : tensor<1x32x4x16xf32>) -> tensor<1x32x4x16xf32>
  return %r : tensor<1x32x4x16xf32>
}

// -----

gdn_tile.program @no_step() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %one = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @below {{expected gdn_tile.step to be one of load, load_output, load_state, load_gradient, load_keys, load_between, load_kept, load_write, gates, norms, query_norms, decay, halves, factors, scores, solve, low_keys, high_keys, low_pairs, high_pairs, low_queries, high_queries, low_state, high_state, raw_gates, sums, finish, state, keep, store, store_state, cast, activate, got none}}
  %b = arith.addf %one, %one : tensor<16xf32>
}

// -----

gdn_tile.program @unknown_step() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %one = arith.constant dense<1.0> : tensor<16xf32>
  // expected-error @below {{activate, got "warp 3"}}
  %b = arith.addf %one, %one {gdn_tile.step = "warp 3"} : tensor<16xf32>
}

// -----

// A product is a contraction; no named op whose operands cannot be transposed.
gdn_tile.program @matmul() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %one = arith.constant dense<1.0> : tensor<16x16xf32>
  // expected-error @below {{expected an op of the tile level in a program (arith, gdn_tile, math, scf, tensor; linalg.broadcast, linalg.contract,}}
  %b = linalg.matmul {gdn_tile.step = "state"} ins(%one, %one : tensor<16x16xf32>, tensor<16x16xf32>)
      outs(%one : tensor<16x16xf32>) -> tensor<16x16xf32>
}

// -----

// Arrays are written by store alone, which knows the end.
gdn_tile.program @plain_store(%x: memref<4xi32>) outs(%y: memref<4xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %b = memref.load %x[%n] : memref<4xi32>
  // expected-error @below {{got memref.store}}
  memref.store %b, %y[%n] : memref<4xi32>
}

// -----

func.func @tile_outside(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-error @below {{expected to be in a program, got parent func.func}}
  %b = gdn_tile.scan %x axis 0 : tensor<16xf32>
  return %b : tensor<16xf32>
}

// -----

func.func @stage_left(%x: tensor<1x32x1x16xf32>) -> tensor<1x32x1x16xf32> {
  // expected-error @below {{expected no op of gdn at the tile level, got one; run gdn-plan-stages and convert-gdn-to-tile first}}
  %y = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
  return %y : tensor<1x32x1x16xf32>
}

// -----

// Code calls the C library's functions by their names, and so do others in its process.
// expected-error @below {{expected a name that no function of the C library has, got 'memcpy'}}
func.func @memcpy(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// expected-error @below {{expected a name that no function of the C library has, got 'abort'}}
func.func @abort(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// Whoever only declares one may call it.
func.func private @free(tensor<4xf32>)
