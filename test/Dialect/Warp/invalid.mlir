// What the verifiers of the dialect reject.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// A fragment has the rows of one warpgroup.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a fragment of 64 rows and a multiple of 8 columns up to 256, got shape [32, 64]}}
  %f = tensor.empty() : tensor<32x64xf32, #gdn_warp.fragment>
}

// -----

// A vector of rows covers them all.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a vector of 64 rows, got shape [32]}}
  %f = tensor.empty() : tensor<32xf32, #gdn_warp.rows>
}

// -----

// A swizzled panel is 128 bytes wide.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected swizzle 0 or 128, got 64}}
  %f = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 64>
}

// -----

// Swizzled panels repeat every 1024 bytes.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  // expected-error @below {{expected an offset that is a multiple of 1024, got 16}}
  %f = gdn_warp.view %c16 : !gdn_warp.view<64x64xbf16, swizzle = 128>
}

// -----

// A slice keeps the phase of the swizzle.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  // expected-error @below {{expected a row that is a multiple of 8, got 4}}
  %s = gdn_warp.slice %v[4, 0] : !gdn_warp.view<64x64xbf16, swizzle = 128> -> !gdn_warp.view<32x64xbf16, swizzle = 128, stride = 8192>
}

// -----

// A slice has the stride of its view.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  // expected-error @below {{expected a result of type '!gdn_warp.view<32x64xbf16, swizzle = 128, stride = 8192>', got '!gdn_warp.view<32x64xbf16, swizzle = 128>'}}
  %s = gdn_warp.slice %v[8, 0] : !gdn_warp.view<64x64xbf16, swizzle = 128> -> !gdn_warp.view<32x64xbf16, swizzle = 128>
}

// -----

// Every step moves a slice by as much: by whole panels.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x128xbf16, swizzle = 128>
  // expected-error @below {{expected a step of a multiple of 8 rows and of whole panels of a swizzled view, or of 16 bytes of another, got [0, 32]}}
  %s = gdn_warp.slice %v[0, 0] + %c0 * [0, 32] : !gdn_warp.view<64x128xbf16, swizzle = 128> -> !gdn_warp.view<64x32xbf16, swizzle = 128, stride = 8192>
}

// -----

gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  // expected-error @below {{expected a step inside the view, got [8, 0]}}
  %s = gdn_warp.slice %v[0, 0] + %c0 * [8, 0] : !gdn_warp.view<64xf32> -> !gdn_warp.view<32xf32>
}

// -----

gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64xf32>
  // expected-error @below {{expected a number and a step of rows and columns}}
  %s = gdn_warp.slice %v[0, 0] + %c0 * [8] : !gdn_warp.view<64xf32> -> !gdn_warp.view<32xf32>
}

// -----

// A place has no rows of its own.
gdn_warp.kernel @k() threads(128) shared(1024) {
  // expected-error @below {{expected no rows and no transpose without fragments}}
  %s = gdn_warp.publish transpose : -> !gdn_warp.view<64x64xbf16, swizzle = 128>
}

// -----

// Depths of a product agree.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  %w = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16, swizzle = 128>
  // expected-error @below {{expected operands [64, K] and [K, 64], got [64, 64] and [32, 64]}}
  %p = gdn_warp.wgmma %v, %w : !gdn_warp.view<64x64xbf16, swizzle = 128>, !gdn_warp.view<32x64xbf16, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

// Products read swizzled tiles alone.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16>
  // expected-error @below {{expected views with a swizzle of 128 bytes, got '!gdn_warp.view<64x64xbf16>'}}
  %p = gdn_warp.wgmma %v, %v : !gdn_warp.view<64x64xbf16>, !gdn_warp.view<64x64xbf16> -> tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

// Products take 16-bit operands.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xf32, swizzle = 128>
  // expected-error @below {{expected operands of type f16 or bf16, got 'f32'}}
  %p = gdn_warp.wgmma %v, %v : !gdn_warp.view<64x64xf32, swizzle = 128>, !gdn_warp.view<64x64xf32, swizzle = 128> -> tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

// A tensor map steps by one along its rows.
gdn_warp.kernel @k(%a : memref<?x64xbf16>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  %b = gdn_warp.barrier %c0
  // expected-error @below {{expected stride 1 along axis 0 of the array, got 'memref<?x64xbf16>'}}
  gdn_warp.bulk_tensor_load %a[%c0, %c0] axes [1, 0], %v signal %b : memref<?x64xbf16> -> !gdn_warp.view<64x64xbf16, swizzle = 128>
}

// -----

// The lanes of a warp have 32 rows of whole panels between them.
gdn_warp.kernel @k(%a : memref<?x64xbf16>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x32xbf16, swizzle = 128>
  // expected-error @below {{expected a swizzled view of whole panels, got '!gdn_warp.view<64x32xbf16, swizzle = 128>'}}
  gdn_warp.strided_load %a[%c0, %c0] axes [1, 0], %v : memref<?x64xbf16> -> !gdn_warp.view<64x32xbf16, swizzle = 128>
}

// -----

gdn_warp.kernel @k(%a : memref<?x64xbf16>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<48x64xbf16, swizzle = 128>
  // expected-error @below {{expected a multiple of 32 rows, got 48}}
  gdn_warp.strided_load %a[%c0, %c0] axes [1, 0], %v : memref<?x64xbf16> -> !gdn_warp.view<48x64xbf16, swizzle = 128>
}

// -----

// A lane stores 16 bytes of a row at once, of which it has loaded 8 elements.
gdn_warp.kernel @k(%a : memref<?x?xi8, strided<[1, ?]>>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x128xi8, swizzle = 128>
  // expected-error @below {{expected elements of 16 or 32 bits, got '!gdn_warp.view<64x128xi8, swizzle = 128>'}}
  gdn_warp.strided_load %a[%c0, %c0] axes [0, 1], %v
      : memref<?x?xi8, strided<[1, ?]>> -> !gdn_warp.view<64x128xi8, swizzle = 128>
}

// -----

// 16 columns are fewer than lanes.
gdn_warp.kernel @k(%a : memref<?x?xf64, strided<[?, ?]>>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x16xf64, swizzle = 128>
  // expected-error @below {{expected elements of 16 or 32 bits, got '!gdn_warp.view<64x16xf64, swizzle = 128>'}}
  gdn_warp.strided_load %a[%c0, %c0] axes [0, 1], %v
      : memref<?x?xf64, strided<[?, ?]>> -> !gdn_warp.view<64x16xf64, swizzle = 128>
}

// -----

// An offset a dimension.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 2 offsets, one a dimension of the array, got 1}}
  %f = gdn_warp.array_load %a[%c0] axes [0, 1] : memref<?x64xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

// `dim` is one that the tile runs along.
gdn_warp.kernel @k(%a : memref<?x64x4xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected `dim` to be one of the axes, got 2}}
  %f = gdn_warp.array_load %a[%c0, %c0, %c0] axes [0, 1] until(%c0, dim = 2) : memref<?x64x4xf32> -> tensor<64x64xf32, #gdn_warp.fragment>
}

// -----

// A role is whole warpgroups or part of one.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(256) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected whole warpgroups or warps of one, got 2 .. 6}}
  gdn_warp.role "r" warps(2, 4) {
  }
}

// -----

// Registers come in units.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a multiple of 8 registers from 24 to 256, got 60}}
  gdn_warp.role "r" warps(0, 4) registers(60) {
  }
}

// -----

// A kernel is whole warpgroups, or a part of one.
// expected-error @below {{expected whole warpgroups of 128 threads up to 1024, or warps of one, got 160}}
gdn_warp.kernel @k() threads(160) shared(0) {
}

// -----

// A vector over lanes fills them, or repeats in them.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  // expected-error @below {{expected a vector of a multiple or a divisor of 32 elements, got shape [48]}}
  %f = tensor.empty() : tensor<48xf32, #gdn_warp.lanes>
}

// -----

// A vector runs along one axis.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected one axis, got [0, 1]}}
  %f = gdn_warp.array_load %a[%c0, %c0] axes [0, 1] : memref<?x64xf32> -> tensor<32xf32, #gdn_warp.lanes>
}

// -----

// A vector has one dimension to number.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  // expected-error @below {{expected a dimension in [0, 1), got 1}}
  %i = gdn_warp.iota 1 : tensor<32xi32, #gdn_warp.lanes>
}

// -----

// A view repeats along rows in whole fragments of a warp.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<8xf32>
  // expected-error @below {{expected a view that repeats to 64 elements and has a multiple of 16, got '!gdn_warp.view<8xf32>'}}
  %r = gdn_warp.vector_load %v : !gdn_warp.view<8xf32> -> tensor<64xf32, #gdn_warp.rows>
}

// -----

// A view does not repeat over lanes.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(1024) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<32xf32>
  // expected-error @below {{expected a view of 64 elements of 'f32', got '!gdn_warp.view<32xf32>'}}
  %r = gdn_warp.vector_load %v : !gdn_warp.view<32xf32> -> tensor<64xf32, #gdn_warp.lanes>
}

// -----

// A warp inverts three sizes.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<128x128xf16>
  // expected-error @below {{expected a matrix of 16, 32 or 64 rows and columns, got '!gdn_warp.view<128x128xf16>'}}
  gdn_warp.tri_inverse %m, %m : !gdn_warp.view<128x128xf16>, !gdn_warp.view<128x128xf16>
}

// -----

// Rows of M are read in runs.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<32x32xf16, stride = 68>
  // expected-error @below {{expected M in f16 without a swizzle, its rows a multiple of 16 bytes apart, got '!gdn_warp.view<32x32xf16, stride = 68>'}}
  gdn_warp.tri_inverse %m, %m : !gdn_warp.view<32x32xf16, stride = 68>, !gdn_warp.view<32x32xf16, stride = 68>
}

// -----

// The inverse is as large as M.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<32x32xf16>
  %x = gdn_warp.view %c0 : !gdn_warp.view<32x64xbf16>
  // expected-error @below {{expected a result of 32x32 elements of f16 or bf16, got '!gdn_warp.view<32x64xbf16>'}}
  gdn_warp.tri_inverse %m, %x : !gdn_warp.view<32x32xf16>, !gdn_warp.view<32x64xbf16>
}

// -----

// So are runs of the result written.
gdn_warp.kernel @k(%a : memref<?x64xf32>) threads(128) shared(32768) {
  %c0 = arith.constant 0 : index
  %m = gdn_warp.view %c0 : !gdn_warp.view<32x32xf16>
  %x = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16, stride = 68>
  // expected-error @below {{expected rows of the result a multiple of 16 bytes apart, got '!gdn_warp.view<32x32xbf16, stride = 68>'}}
  gdn_warp.tri_inverse %m, %x : !gdn_warp.view<32x32xf16>, !gdn_warp.view<32x32xbf16, stride = 68>
}

// -----

// Loops have bodies to repeat.
gdn_warp.kernel @k(%x : memref<4xf32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected gdn_warp.unroll on an scf.for, with an integer of at least 2, got 1 : i64}}
  scf.for %i = %c0 to %c1 step %c1 {
  } {gdn_warp.unroll = 1}
}

// -----

// What is likely is true or false, of a branch.
gdn_warp.kernel @k(%c : i1) threads(128) shared(0) {
  // expected-error @below {{expected gdn_warp.likely on an scf.if, true or false, got 1 : i64}}
  scf.if %c {
  } {gdn_warp.likely = 1}
}

// -----

// A reduction has scratch memory of its own.
// expected-error @below {{expected gdn_warp.scratch_apart on a linalg.reduce, without a value, got unit}}
gdn_warp.kernel @k() threads(128) shared(0) attributes {gdn_warp.scratch_apart} {
}

// -----

// The rows of a copy end, not its columns.
gdn_warp.kernel @k(%a : memref<?x64xbf16>) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  // expected-error @below {{expected the end of a copy along axis 0, got 1}}
  gdn_warp.bulk_tensor_store %v, %a[%c0, %c0] axes [0, 1] until(%c0, dim = 1) : !gdn_warp.view<64x64xbf16, swizzle = 128> -> memref<?x64xbf16>
}

// -----

// The map of a copy with an end has two dimensions more. Of a dense array outer dimensions are so many rows more.
gdn_warp.kernel @k(%a : memref<?x?x4x64xbf16, strided<[?, ?, 64, 1]>>) threads(128) shared(8192) {
  %c0 = arith.constant 0 : index
  %v = gdn_warp.view %c0 : !gdn_warp.view<64x64xbf16, swizzle = 128>
  // expected-error @below {{expected at most 1 dimensions beside the axes that are not 1, or a dense array, for a copy with an end, got 'memref<?x?x4x64xbf16, strided<[?, ?, 64, 1]>>'}}
  gdn_warp.bulk_tensor_store %v, %a[%c0, %c0, %c0, %c0] axes [1, 3] until(%c0, dim = 1) : !gdn_warp.view<64x64xbf16, swizzle = 128> -> memref<?x?x4x64xbf16, strided<[?, ?, 64, 1]>>
}

// -----

// What goes to another CTA is units of 16 bytes ...
gdn_warp.kernel @k() threads(128) shared(8192) cluster(2) {
  %c0 = arith.constant 0 : index
  %rank = arith.constant 1 : i32
  %b = gdn_warp.barrier %c0
  %v = gdn_warp.view %c0 : !gdn_warp.view<7xf32>
  // expected-error @below {{expected a vector of a multiple of 16 bytes, got '!gdn_warp.view<7xf32>'}}
  gdn_warp.bulk_copy_to_cta %v, %b rank(%rank) : !gdn_warp.view<7xf32>
}

// -----

// ... that lie behind each other.
gdn_warp.kernel @k() threads(128) shared(8192) cluster(2) {
  %c0 = arith.constant 0 : index
  %rank = arith.constant 1 : i32
  %b = gdn_warp.barrier %c0
  %v = gdn_warp.view %c0 : !gdn_warp.view<32x32xbf16, swizzle = 128>
  // expected-error @below {{expected a vector of a multiple of 16 bytes, got '!gdn_warp.view<32x32xbf16, swizzle = 128>'}}
  gdn_warp.bulk_copy_to_cta %v, %b rank(%rank) : !gdn_warp.view<32x32xbf16, swizzle = 128>
}

// -----

gdn_warp.kernel @k(%o : memref<?x4x128xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 3 offsets, one per dimension of the array, got 2}}
  gdn_warp.array_clear %o[%c0, %c0] until(%c0, dim = 0) columns 128 : memref<?x4x128xbf16>
}

// -----

gdn_warp.kernel @k(%o : memref<?x4x128xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a dimension of rows, from 0 to 1, got 2}}
  gdn_warp.array_clear %o[%c0, %c0, %c0] until(%c0, dim = 2) columns 128 : memref<?x4x128xbf16>
}

// -----

gdn_warp.kernel @k(%o : memref<?x4x128xbf16>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected at least 1 column, got 0}}
  gdn_warp.array_clear %o[%c0, %c0, %c0] until(%c0, dim = 0) columns 0 : memref<?x4x128xbf16>
}

// -----

gdn_warp.kernel @waits(%x : memref<2xf32>) threads(128) shared(0) {
  // expected-error @+1 {{expected one of then_launch, launch_later and last_cta, got more}}
  gdn_warp.grid_dependency_wait then_launch last_cta
}

// -----

gdn_warp.kernel @entry(%x : memref<?x4x2xi32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 3 offsets into 'memref<?x4x2xi32>', got 2}}
  gdn_warp.begin_reports %x[%c0, %c0] : memref<?x4x2xi32>
}

// -----

gdn_warp.kernel @rows(%x : memref<?x4x2xi32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected 2 offsets into 'memref<?x4x2xi32>', got 3}}
  gdn_warp.await_report %x[%c0, %c0, %c0] count %c0 done %c0 : memref<?x4x2xi32>
}

// -----

// expected-error @below {{expected elements of bf16, f16, f32, f64, i1, i8, i16, i32, i64, got 'memref<4xindex>'}}
gdn_warp.kernel @array(%x: memref<4xindex>) threads(128) shared(0) {}

// -----

// expected-error @below {{expected arguments that are memrefs or scalars of bf16, f16, f32, f64, i1, i8, i16, i32, i64, got 'tf32'}}
gdn_warp.kernel @scalar(%x: tf32) threads(128) shared(0) {}

// -----

gdn_warp.kernel @tile() threads(128) shared(0) {
  // expected-error @below {{expected elements of bf16, f16, f32, f64, i1, i8, i16, i32, i64, got 'tensor<64x32xf8E5M2, #gdn_warp.fragment>'}}
  %t = tensor.empty() : tensor<64x32xf8E5M2, #gdn_warp.fragment>
}

// -----

gdn_warp.kernel @iota() threads(128) shared(0) {
  // expected-error @below {{expected a dimension in [0, 2), got -1}}
  %i = gdn_warp.iota -1 : tensor<64x32xi32, #gdn_warp.fragment>
}

// -----

// expected-error @below {{expected attributes of the op, or under a dialect's name, got 'min_cta'}}
gdn_warp.kernel @attribute() threads(128) shared(0) attributes {min_cta = 2} {}

// -----

// expected-error @below {{expected a dictionary of strings in gdn_warp.schedules, got {fused = 1 : i64}}}
func.func @schedules() attributes {gdn_warp.schedules = {fused = 1}} { return }

// -----

// expected-error @below {{expected gdn_warp.stage of letters, digits, _ and $, the first one no digit, got "fused%"}}
gdn_warp.kernel @stage() threads(128) shared(0) attributes {gdn_warp.stage = "fused%"} {}
