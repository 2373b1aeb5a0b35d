// RUN: gdn-opt %s --gdn-warp-outline-linalg --split-input-file --verify-diagnostics
// Work around kernels that no program does: each is refused, with what it has.

#id = affine_map<(b, t, h) -> (b, t, h)>
#swapped = affine_map<(b, t, h) -> (b, h, t)>
func.func @by_head_first(%x: tensor<1x4x256xf32>) -> tensor<1x256x4xf32> {
  %e = tensor.empty() : tensor<1x256x4xf32>
  // expected-error @below {{expected elementwise work on arrays [B, T, H] or [B, T, H, K], or a sum over K, over the heads of a group or over tokens, around the kernels of a GPU, got input #0 by affine_map<(d0, d1, d2) -> (d0, d2, d1)>}}
  %y = linalg.generic {indexing_maps = [#swapped, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x4x256xf32>) outs(%e : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1x256x4xf32>
  return %y : tensor<1x256x4xf32>
}

// -----

// A sum over all heads of a token.
#bth = affine_map<(b, t, h) -> (b, t, h)>
#bt = affine_map<(b, t, h) -> (b, t)>
func.func @all_heads(%x: tensor<1x256x4xf32>) -> tensor<1x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256xf32>) -> tensor<1x256xf32>
  // expected-error @below {{got 2 parallel and 1 reduced dimensions}}
  %y = linalg.generic {indexing_maps = [#bth, #bt], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x256x4xf32>) outs(%z : tensor<1x256xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}

// -----

// A sum over tokens and heads of rows.
#bthk = affine_map<(k, b, t, h) -> (b, t, h, k)>
#k = affine_map<(k, b, t, h) -> (k)>
func.func @rows_of_all_heads(%x: tensor<1x256x16x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{got input #0 by affine_map<(d0, d1, d2, d3) -> (d1, d2, d3, d0)>}}
  %y = linalg.generic {indexing_maps = [#bthk, #k], iterator_types = ["parallel", "reduction", "reduction", "reduction"]}
      ins(%x : tensor<1x256x16x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// A work item sums in f32: somebody has to round what is asked for in f64.
#bth = affine_map<(h, b, t) -> (b, t, h)>
#h = affine_map<(h, b, t) -> (h)>
func.func @long_sum(%x: tensor<1x256x4xf32>) -> tensor<4xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  // expected-error @below {{got a sum in f64 that nothing rounds}}
  %y = linalg.generic {indexing_maps = [#bth, #h], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<1x256x4xf32>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f32, %acc: f64):
    %w = arith.extf %a : f32 to f64
    %r = arith.addf %acc, %w : f64
    linalg.yield %r : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

#id = affine_map<(b, t, h) -> (b, t, h)>
func.func @doubles(%x: tensor<1x256x4xf64>) -> tensor<1x256x4xf64> {
  %e = tensor.empty() : tensor<1x256x4xf64>
  // expected-error @below {{got elements of 'f64'}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x256x4xf64>) outs(%e : tensor<1x256x4xf64>) {
  ^bb0(%a: f64, %out: f64):
    linalg.yield %a : f64
  } -> tensor<1x256x4xf64>
  return %y : tensor<1x256x4xf64>
}

// -----

#id = affine_map<(b, t, h, k) -> (b, t, h, k)>
func.func @dynamic_rows(%x: tensor<1x256x4x?xf32>, %k: index) -> tensor<1x256x4x?xf32> {
  %e = tensor.empty(%k) : tensor<1x256x4x?xf32>
  // expected-error @below {{got a dynamic K}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x256x4x?xf32>) outs(%e : tensor<1x256x4x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1x256x4x?xf32>
  return %y : tensor<1x256x4x?xf32>
}

// -----

#row = affine_map<(b, t, h, k) -> (b, t, h)>
#id = affine_map<(b, t, h, k) -> (b, t, h, k)>
func.func @maximum(%x: tensor<1x256x4x64xf32>) -> tensor<1x256x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  // expected-error @below {{got a reduction that is no sum}}
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x256x4x64xf32>) outs(%z : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.maximumf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x256x4xf32>
  return %y : tensor<1x256x4xf32>
}

// -----

#id = affine_map<(b, t, h) -> (b, t, h)>
func.func @index(%x: tensor<1x256x4xf32>) -> tensor<1x256x4xf32> {
  %e = tensor.empty() : tensor<1x256x4xf32>
  // expected-error @below {{got 'linalg.index' in the body}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x256x4xf32>) outs(%e : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i32
    %f = arith.sitofp %c : i32 to f32
    linalg.yield %f : f32
  } -> tensor<1x256x4xf32>
  return %y : tensor<1x256x4xf32>
}

// -----

func.func @filled_by_an_argument(%value: f32, %n: index) -> tensor<1x4x4xf32> {
  %e = tensor.empty() : tensor<1x4x4xf32>
  // expected-error @below {{got a value from outside of the body}}
  %x = linalg.fill ins(%value : f32) outs(%e : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %x : tensor<1x4x4xf32>
}

// -----

// Sums are of f32: one of bf16 would round every addition.
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#row = affine_map<(b, t, h, k) -> (b, t, h)>
func.func @sum_in_bf16(%x: tensor<1x256x4x64xbf16>) -> tensor<1x256x4xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<1x256x4xbf16>
  %z = linalg.fill ins(%zero : bf16) outs(%e : tensor<1x256x4xbf16>) -> tensor<1x256x4xbf16>
  // expected-error @below {{got a sum of 'bf16'}}
  %y = linalg.generic {indexing_maps = [#bthk, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x256x4x64xbf16>) outs(%z : tensor<1x256x4xbf16>) {
  ^bb0(%a: bf16, %acc: bf16):
    %r = arith.addf %a, %acc : bf16
    linalg.yield %r : bf16
  } -> tensor<1x256x4xbf16>
  return %y : tensor<1x256x4xbf16>
}

// -----

// The op that rounds a sum over tokens is part of that sum's program; this one also changes the order of heads.
#sin = affine_map<(h, b, t) -> (b, t, h)>
#sout = affine_map<(h, b, t) -> (h)>
#reversed = affine_map<(h) -> (3 - h)>
#h = affine_map<(h) -> (h)>
func.func @reversed_heads(%x: tensor<1x256x4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#sin, #sout], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<1x256x4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %a, %acc : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<4xf32>
  // expected-error @below {{got 1 parallel and 0 reduced dimensions}}
  %y = linalg.generic {indexing_maps = [#reversed, #h], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%e2 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %n = arith.truncf %a : f32 to bf16
    %w = arith.extf %n : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Rows that 16 lanes cannot share.
#id = affine_map<(b, t, h, k) -> (b, t, h, k)>
func.func @rows_of_24(%x: tensor<1x256x8x24xf32>) -> tensor<1x256x8x24xf32> {
  %e = tensor.empty() : tensor<1x256x8x24xf32>
  // expected-error @below {{got K = 24, no multiple of 16 up to 128}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x256x8x24xf32>) outs(%e : tensor<1x256x8x24xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.negf %a : f32
    linalg.yield %m : f32
  } -> tensor<1x256x8x24xf32>
  return %y : tensor<1x256x8x24xf32>
}
