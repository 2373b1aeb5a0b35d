// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// A work item has three coordinates and three facts of its tokens.
// expected-error @below {{expected at least 3 arguments of 'work_item', got 2}}
gdn_tile.program @item(%x: memref<4xf32>) work_item(%n, %h) tokens(%batch, %begin, %end) {}

// -----

// Outputs are arrays.
// expected-error @below {{expected outputs to be memrefs, got 'f32'}}
gdn_tile.program @outputs() outs(%y: f32) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// -----

// num_inputs comes from the block arguments.
// expected-error @below {{expected 3 inputs and 6 work item arguments, got 6 block arguments}}
"gdn_tile.program"() <{sym_name = "count", num_inputs = 3 : i64}> ({
^bb0(%n: index, %h: index, %p: index, %batch: index, %begin: index, %end: index):
}) : () -> ()

// -----

gdn_tile.program @offsets(%x: memref<4x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected 2 offsets, one a dimension of the array, got 1}}
  %t = gdn_tile.load %x[%n] axes [1] : memref<4x8xf32> -> tensor<8xf32>
}

// -----

gdn_tile.program @axes(%x: memref<4x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected 2 axes, one a dimension of the tile, got 1}}
  %t = gdn_tile.load %x[%n, %h] axes [1] : memref<4x8xf32> -> tensor<4x8xf32>
}

// -----

gdn_tile.program @same_axis(%x: memref<4x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected distinct axes in [0, 2), got 1}}
  %t = gdn_tile.load %x[%n, %h] axes [1, 1] : memref<4x8xf32> -> tensor<8x8xf32>
}

// -----

// A load converts nothing: roundings are ops of their own.
gdn_tile.program @element(%x: memref<4x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected a tile of the array's element type 'f32', got 'bf16'}}
  %t = gdn_tile.load %x[%n, %h] axes [0, 1] : memref<4x8xf32> -> tensor<4x8xbf16>
}

// -----

gdn_tile.program @end_dim(%x: memref<4x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected `dim` to be one of the axes, got 0}}
  %t = gdn_tile.load %x[%n, %h] axes [1] until(%end, dim = 0) : memref<4x8xf32> -> tensor<8xf32>
}

// -----

gdn_tile.program @half_end(%x: memref<4x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected `end` and `dim` together, got only one}}
  gdn_tile.store %t, %x[%n, %h] axes [1] {dim = 1 : i64} : tensor<8xf32> -> memref<4x8xf32>
}

// -----

gdn_tile.program @scan_axis() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected an axis in [0, 1), got 1}}
  %s = gdn_tile.scan %t axis 1 : tensor<8xf32>
}

// -----

gdn_tile.program @rebase_axis() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected an axis in [0, 1), got 1}}
  %s = gdn_tile.rebase %t axis 1 block 4 at 0 : tensor<8xf32>
}

// -----

gdn_tile.program @rebase_block() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected blocks that divide 8 elements, got blocks of 3}}
  %s = gdn_tile.rebase %t axis 0 block 3 at 0 : tensor<8xf32>
}

// -----

gdn_tile.program @rebase_at() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected an element in [0, 4), got 4}}
  %s = gdn_tile.rebase %t axis 0 block 4 at 4 : tensor<8xf32>
}

// -----

gdn_tile.program @repeat_block() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xbf16>
  // expected-error @below {{expected blocks that divide 8 elements, got blocks of 16}}
  %s = gdn_tile.repeat %t axis 0 block 16 at %begin : tensor<8xbf16>
}

// -----

gdn_tile.program @square() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8x16xf32>
  // expected-error @below {{expected a square tile, got 'tensor<8x16xf32>'}}
  %s = gdn_tile.causal %t : tensor<8x16xf32>
}

// -----

gdn_tile.program @no_diagonal() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8x16xf32>
  // expected-error @below {{expected a square tile, got 'tensor<8x16xf32>'}}
  %d = gdn_tile.diagonal %t : tensor<8x16xf32> -> tensor<8xf32>
}

// -----

gdn_tile.program @diagonal_size() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<16x16xf32>
  // expected-error @below {{expected a result of type 'tensor<16xf32>', got 'tensor<8xf32>'}}
  %d = gdn_tile.diagonal %t : tensor<16x16xf32> -> tensor<8xf32>
}

// -----

gdn_tile.program @solve_beta() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %m = arith.constant dense<0.0> : tensor<16x16xf32>
  %b = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected beta to be a tile of 16 elements, got 'tensor<8xf32>'}}
  %s = gdn_tile.solve %m, %b merge f16 : tensor<16x16xf32>, tensor<8xf32>
}

// -----

gdn_tile.program @solve_merge() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %m = arith.constant dense<0.0> : tensor<16x16xf32>
  %b = arith.constant dense<0.0> : tensor<16xf32>
  // expected-error @below {{expected merge type f16, bf16 or f32, got 'f64'}}
  %s = gdn_tile.solve %m, %b merge f64 : tensor<16x16xf32>, tensor<16xf32>
}

// -----

func.func @inverse_square(%m: tensor<32x16xf32>) {
  // expected-error @below {{expected a square tile, got 'tensor<32x16xf32>'}}
  %x = gdn_tile.tri_inverse %m merge f16 : tensor<32x16xf32> -> tensor<32x32xf32>
  return
}

// -----

func.func @inverse_shape(%m: tensor<32x32xf32>) {
  // expected-error @below {{expected a result of the operand's shape, got 'tensor<32x32xf32>' and 'tensor<16x16xf32>'}}
  %x = gdn_tile.tri_inverse %m merge f16 : tensor<32x32xf32> -> tensor<16x16xf32>
  return
}

// -----

func.func @inverse_operand(%m: tensor<32x32xbf16>) {
  // expected-error @below {{expected an operand of f32 or of the merge type, got 'bf16' and 'f16'}}
  %x = gdn_tile.tri_inverse %m merge f16 : tensor<32x32xbf16> -> tensor<32x32xf32>
  return
}

// -----

func.func @inverse_merge(%m: tensor<32x32xf32>) {
  // expected-error @below {{expected merge type f16, bf16 or f32, got 'i8'}}
  %x = gdn_tile.tri_inverse %m merge i8 : tensor<32x32xf32> -> tensor<32x32xf32>
  return
}

// -----

func.func @sum_items(%m: tensor<32x32xf32>, %n: index) {
  // expected-error @below {{expected 2, 4 or 8 items, got 3}}
  %x = gdn_tile.cluster_sum %m number %n of 3 : tensor<32x32xf32> -> tensor<32x16xf32>
  return
}

// -----

func.func @sum_columns(%m: tensor<32x32xf32>, %n: index) {
  // expected-error @below {{expected a result with the rows and 1/4 of the columns of 'tensor<32x32xf32>', got 'tensor<32x16xf32>'}}
  %x = gdn_tile.cluster_sum %m number %n of 4 : tensor<32x32xf32> -> tensor<32x16xf32>
  return
}

// -----

gdn_tile.program @entry(%x : memref<?x4x2xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected 3 offsets, one a dimension of the array, got 2}}
  gdn_tile.report %end, %x[%n, %h] {gdn_tile.step = "store"} : memref<?x4x2xi32>
}

// -----

gdn_tile.program @rows(%x : memref<?xi32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected an offset for each dimension but the last one of an array of two or more, got 0 for 1 dimensions}}
  gdn_tile.await_report %x[] count %h done %end : memref<?xi32>
}

// -----

// A tile has rows and columns: nothing of no extent is loaded, made or handed on.
gdn_tile.program @no_rows(%x: memref<0x8xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{result #0 must be tile of static, positive extents and of elements that programs have, but got 'tensor<0x8xf32>'}}
  %t = gdn_tile.load %x[%n, %h] axes [0, 1] : memref<0x8xf32> -> tensor<0x8xf32>
}

// -----

// Nor by ops of other dialects. Tiles of open extents are none, either.
gdn_tile.program @empty() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected tiles of static, positive extents, got 'tensor<4x0xf32>'}}
  %t = tensor.empty() : tensor<4x0xf32>
}

// -----

gdn_tile.program @open() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected tiles of static, positive extents, got 'tensor<?xf32>'}}
  %t = tensor.empty(%n) : tensor<?xf32>
}

// -----

// Too large for code; the second has no number of elements that 64 bits hold.
gdn_tile.program @large() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c = tensor.empty() {gdn_tile.step = "load"} : tensor<1024x1024xf32>
  // expected-error @below {{expected tiles of at most 1048576 elements, got 'tensor<4294967296x32xf32>'}}
  %a = tensor.empty() {gdn_tile.step = "load"} : tensor<4294967296x32xf32>
}

// -----

gdn_tile.program @larger() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected tiles of at most 1048576 elements, got 'tensor<9223372036854775807x32xf32>'}}
  %b = tensor.empty() {gdn_tile.step = "load"} : tensor<9223372036854775807x32xf32>
}

// -----

// expected-error @below {{expected elements of bf16, f16, f32, f64, i1, i8, i16, i32, i64, index, got 'memref<4xf8E4M3FN>'}}
gdn_tile.program @array(%x: memref<4xf8E4M3FN>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// -----

gdn_tile.program @made() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  // expected-error @below {{expected elements of bf16, f16, f32, f64, i1, i8, i16, i32, i64, index, got 'tensor<4xtf32>'}}
  %t = tensor.empty() : tensor<4xtf32>
}

// -----

// expected-error @below {{expected inputs to be memrefs or scalars of bf16, f16, f32, f64, i1, i8, i16, i32, i64, index, got 'complex<f32>'}}
gdn_tile.program @scalar(%x: complex<f32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// -----

// Nothing can address an array without strides.
// expected-error @below {{expected arrays of a known rank with strides, got 'memref<8xf32, affine_map<(d0) -> (d0 mod 4)>>'}}
gdn_tile.program @strides(%x: memref<8xf32, affine_map<(d0) -> (d0 mod 4)>>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// -----

// expected-error @below {{expected -1 inputs and 6 work item arguments, got 6 block arguments}}
"gdn_tile.program"() <{sym_name = "negative", num_inputs = -1 : i64}> ({
^bb0(%n: index, %h: index, %p: index, %batch: index, %begin: index, %end: index):
}) : () -> ()

// -----

gdn_tile.program @axis() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected an axis in [0, 1), got -1}}
  %s = gdn_tile.scan %t axis -1 : tensor<8xf32>
}

// -----

// A misspelled attribute is no default.
gdn_tile.program @attribute() work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error @below {{expected attributes of the op, or under a dialect's name, got 'reversed'}}
  %s = gdn_tile.scan %t axis 0 {reversed, gdn_tile.step = "state"} : tensor<8xf32>
}

// -----

func.func @chunk(%x: f32) -> f32 {
  // expected-error @below {{expected gdn_tile.chunk of at least 0, an i64, got -1 : i64}}
  %y = arith.negf %x {gdn_tile.chunk = -1 : i64} : f32
  return %y : f32
}

// -----

func.func @wide_chunk(%x: f32) -> f32 {
  // expected-error @below {{expected gdn_tile.chunk of at least 0, an i64, got 1 : i128}}
  %y = arith.negf %x {gdn_tile.chunk = 1 : i128} : f32
  return %y : f32
}

// -----

gdn_tile.program @clear_offsets(%x: memref<1x?x4x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %empty = arith.cmpi eq, %begin, %end : index
  // expected-error @below {{expected 4 offsets, one a dimension of the array, got 3}}
  gdn_tile.clear %x[%batch, %begin, %h] until(%end, dim = 1) columns 64 if %empty : memref<1x?x4x64xf32>
}

// -----

gdn_tile.program @clear_last_dim(%x: memref<1x?x4x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %empty = arith.cmpi eq, %begin, %end : index
  // expected-error @below {{expected `dim` to be a dimension before the last one, got 3}}
  gdn_tile.clear %x[%batch, %begin, %h, %n] until(%end, dim = 3) columns 64 if %empty : memref<1x?x4x64xf32>
}

// -----

gdn_tile.program @clear_nothing(%x: memref<1x?x4x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %empty = arith.cmpi eq, %begin, %end : index
  // expected-error @below {{expected at least one column, got 0}}
  gdn_tile.clear %x[%batch, %begin, %h, %n] until(%end, dim = 1) columns 0 if %empty : memref<1x?x4x64xf32>
}
