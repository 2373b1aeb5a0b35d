// Layers that no kernel is made of are refused before anything of a kernel is, with what there are kernels for.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(convert-gdn-to-tile,canonicalize,cse,gdn_tile.program(gdn-tile-stack-products,gdn-warp-verify-program))'

// This one is none of them.
func.func @layer(%q: tensor<1x?x2x128xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x64xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x?x2x128xbf16>) k(%q : tensor<1x?x2x128xbf16>) v(%v : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32, qk_l2norm} -> tensor<1x?x4x64xbf16>
  return %o : tensor<1x?x4x64xbf16>
}

// -----

func.func @type(%q: tensor<1x?x2x64xf32>, %v: tensor<1x?x4x64xf32>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x64xf32> {
  // expected-error @below {{expected operands of bf16 or f16, got 'f32'; use the forward over chunks with q, k and v of 16 bits, or --operand-type=bf16}}
  %o = gdn.stage.fused q(%q : tensor<1x?x2x64xf32>) k(%q : tensor<1x?x2x64xf32>) v(%v : tensor<1x?x4x64xf32>)
      beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32} -> tensor<1x?x4x64xf32>
  return %o : tensor<1x?x4x64xf32>
}

// -----

func.func @values(%q: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x32xbf16>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x32xbf16> {
  // expected-error @below {{expected products of 64 rows, got one of 32; use V in multiples of 64, and no --two-product-chain}}
  %o = gdn.stage.fused q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x4x32xbf16>)
      beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32} -> tensor<1x?x4x32xbf16>
  return %o : tensor<1x?x4x32xbf16>
}

// -----

func.func @panels(%q: tensor<1x?x2x96xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x64xbf16> {
  // expected-error @below {{expected rows of at most 128 bytes or a multiple of it, got 192; use K of at most 64 or of 128, and V of a multiple of 64}}
  %o = gdn.stage.fused q(%q : tensor<1x?x2x96xbf16>) k(%q : tensor<1x?x2x96xbf16>) v(%v : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32} -> tensor<1x?x4x64xbf16>
  return %o : tensor<1x?x4x64xbf16>
}

// -----

func.func @state(%q: tensor<1x?x2x256xbf16>, %v: tensor<1x?x4x64xbf16>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x64xbf16> {
  // expected-error @below {{expected a state of at most 128 columns in the registers of a warpgroup, got 256; use K of at most 128}}
  %o = gdn.stage.fused q(%q : tensor<1x?x2x256xbf16>) k(%q : tensor<1x?x2x256xbf16>) v(%v : tensor<1x?x4x64xbf16>)
      beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32} -> tensor<1x?x4x64xbf16>
  return %o : tensor<1x?x4x64xbf16>
}

// -----

// One half of two kernels.
func.func @prepare(%k: tensor<1x?x2x64xbf16>, %beta: tensor<1x?x4xf32>) -> tensor<1x?x4x32xbf16> {
  // expected-error @below {{expected gdn_tile.tri_inverse, the solve that a warp has; use --plan=fused}}
  %bm = gdn.stage.prepare k(%k : tensor<1x?x2x64xbf16>) beta(%beta : tensor<1x?x4xf32>) {chunk_size = 32} -> tensor<1x?x4x32xbf16>
  return %bm : tensor<1x?x4x32xbf16>
}

// -----

// Scalars that a host passes.
gdn_tile.program @scalars(%x: index, %y: i64, %z: i32, %s: f32) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// -----

// expected-error @below {{expected inputs of a kernel to be arrays or scalars of index, i64, i32 or f32, got 'f16'}}
gdn_tile.program @scalar(%x: f16) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}

// -----

// An index has no size in memory that a host and a GPU agree on.
// expected-error @below {{expected elements of bf16, f16, f32, f64, i1, i8, i16, i32, i64, got 'memref<4xindex>'}}
gdn_tile.program @array(%x: memref<4xindex>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
