// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @no_program(%n: index) {
  // expected-error @below {{expected the symbol of a program, got @missing}}
  gdn_tile.launch @missing grid(%n, %n, %n) tokens(%n)
  return
}

// -----

memref.global @data : memref<4xf32>
func.func @not_a_program(%n: index) {
  // expected-error @below {{expected the symbol of a program, got @data}}
  gdn_tile.launch @data grid(%n, %n, %n) tokens(%n)
  return
}

// -----

gdn_tile.program @p() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @grid(%n: index) {
  // expected-error @below {{expected a grid of at least 3 sizes (sequences, value heads, V tiles), got 2}}
  gdn_tile.launch @p grid(%n, %n) tokens(%n)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @p(%x: memref<4xf32>, %s: f32) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @inputs(%n: index, %x: memref<4xf32>) {
  // expected-error @below {{expected 2 inputs for @p, got 1}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) ins(%x : memref<4xf32>)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @p() outs(%y: memref<4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @outs(%n: index) {
  // expected-error @below {{expected 1 outs for @p, got 0}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @p(%x: memref<4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @element(%n: index, %x: tensor<4xbf16>) {
  // expected-error @below {{expected inputs #0 to fit 'memref<4xf32>', got 'tensor<4xbf16>'}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) ins(%x : tensor<4xbf16>)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @p(%x: memref<4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @rank(%n: index, %x: tensor<4x1xf32>) {
  // expected-error @below {{expected inputs #0 to fit 'memref<4xf32>', got 'tensor<4x1xf32>'}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) ins(%x : tensor<4x1xf32>)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @p() outs(%y: memref<?x4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @size(%n: index, %x: memref<2x8xf32>) {
  // expected-error @below {{expected outs #0 to fit 'memref<?x4xf32>', got 'memref<2x8xf32>'}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) outs(%x : memref<2x8xf32>)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @p(%s: f32) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @scalar(%n: index, %s: f16) {
  // expected-error @below {{expected inputs #0 to fit 'f32', got 'f16'}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) ins(%s : f16)
  return
}

// -----

// A launch on tensors returns every out (upstream's destination style).
gdn_tile.program @p() outs(%y: memref<4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @results(%n: index, %x: tensor<4xf32>) {
  // expected-error @below {{expected the number of tensor results (0) to be equal to the number of output tensors (1)}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) outs(%x : tensor<4xf32>)
  return
}

// -----

// expected-note @below {{program declared here}}
gdn_tile.program @four(%x: memref<4xf32>) work_item(%n, %h, %vt, %s) tokens(%batch, %begin, %end) {}
func.func @three(%n: index, %x: memref<4xf32>) {
  // expected-error @below {{expected a grid of 4 sizes for @four, got 3}}
  gdn_tile.launch @four grid(%n, %n, %n) tokens(%n) ins(%x : memref<4xf32>)
  return
}

// -----

// expected-error @below {{expected grid_rank of 3 to the number of block arguments, got 2}}
"gdn_tile.program"() <{grid_rank = 2 : i64, num_inputs = 0 : i64, sym_name = "low"}> ({
^bb0(%n: index, %h: index, %vt: index, %batch: index, %begin: index, %end: index):
}) : () -> ()

// -----

// expected-error @below {{expected grid_rank of 3 to the number of block arguments, got 4611686018427387904}}
"gdn_tile.program"() <{grid_rank = 4611686018427387904 : i64, num_inputs = 0 : i64, sym_name = "high"}> ({
^bb0(%n: index, %h: index, %vt: index, %batch: index, %begin: index, %end: index):
}) : () -> ()

// -----

// No program launches itself, or one that launches it.
gdn_tile.program @nested() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected to be in a function of a module, got parent gdn_tile.program}}
  gdn_tile.launch @nested grid(%n, %n, %n) tokens(%n)
}

// -----

gdn_tile.program @p() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
%n = arith.constant 1 : index
// expected-error @below {{expected to be in a function of a module, got parent builtin.module}}
gdn_tile.launch @p grid(%n, %n, %n) tokens(%n)

// -----

// A vector is no array.
// expected-note @below {{program declared here}}
gdn_tile.program @p(%x: memref<4xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @vector(%n: index, %x: vector<4xf32>) {
  // expected-error @below {{expected inputs #0 to fit 'memref<4xf32>', got 'vector<4xf32>'}}
  gdn_tile.launch @p grid(%n, %n, %n) tokens(%n) ins(%x : vector<4xf32>)
  return
}
