// A layer between elementwise work and sums on whole tensors: a gate out of a parameter a head, the output times another
// array, normed row by row, and summed over the heads of a group.
#bth = affine_map<(b, t, h) -> (b, t, h)>
#head = affine_map<(b, t, h) -> (h)>
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#row = affine_map<(b, t, h, k) -> (b, t, h)>
#grouped = affine_map<(b, t, h, k, g) -> (b, t, h, g, k)>
#summed = affine_map<(b, t, h, k, g) -> (b, t, h, k)>
func.func @around(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x4x128xbf16>, %v: tensor<?x?x4x128xbf16>, %beta: tensor<?x?x4xf32>,
                  %x: tensor<?x?x4xbf16>, %rate: tensor<4xf32>, %z: tensor<?x?x4x128xbf16>) -> tensor<?x?x2x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x4x128xbf16>
  %t = tensor.dim %q, %c1 : tensor<?x?x4x128xbf16>
  %e3 = tensor.empty(%b, %t) : tensor<?x?x4xf32>
  %e4 = tensor.empty(%b, %t) : tensor<?x?x4x128xf32>
  %e2 = tensor.empty(%b, %t) : tensor<?x?x2x128xf32>
  %e2h = tensor.empty(%b, %t) : tensor<?x?x2x128xbf16>
  // g = -rate^2 / (1 + x^2)
  %g = linalg.generic {indexing_maps = [#bth, #head, #bth], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %rate : tensor<?x?x4xbf16>, tensor<4xf32>) outs(%e3 : tensor<?x?x4xf32>) {
  ^bb0(%a: bf16, %r: f32, %out: f32):
    %w = arith.extf %a : bf16 to f32
    %s = arith.mulf %w, %w : f32
    %d = arith.addf %s, %one : f32
    %r2 = arith.mulf %r, %r : f32
    %n = arith.negf %r2 : f32
    %y = arith.divf %n, %d : f32
    linalg.yield %y : f32
  } -> tensor<?x?x4xf32>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<?x?x4x128xbf16>) k(%k : tensor<?x?x4x128xbf16>) v(%v : tensor<?x?x4x128xbf16>)
      beta(%beta : tensor<?x?x4xf32>) gate(%g : tensor<?x?x4xf32>) -> tensor<?x?x4x128xbf16>
  %y = linalg.generic {indexing_maps = [#bthk, #bthk, #bthk], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o, %z : tensor<?x?x4x128xbf16>, tensor<?x?x4x128xbf16>) outs(%e4 : tensor<?x?x4x128xf32>) {
  ^bb0(%a: bf16, %c: bf16, %out: f32):
    %l = arith.extf %a : bf16 to f32
    %m = arith.extf %c : bf16 to f32
    %p = arith.mulf %l, %m : f32
    linalg.yield %p : f32
  } -> tensor<?x?x4x128xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %squares = linalg.generic {indexing_maps = [#bthk, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%y : tensor<?x?x4x128xf32>) outs(%z3 : tensor<?x?x4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.mulf %a, %a : f32
    %r = arith.addf %acc, %s : f32
    linalg.yield %r : f32
  } -> tensor<?x?x4xf32>
  %normed = linalg.generic {indexing_maps = [#bthk, #row, #bthk], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %squares : tensor<?x?x4x128xf32>, tensor<?x?x4xf32>) outs(%e4 : tensor<?x?x4x128xf32>) {
  ^bb0(%a: f32, %s: f32, %out: f32):
    %d = arith.addf %s, %eps : f32
    %r = math.rsqrt %d : f32
    %m = arith.mulf %a, %r : f32
    linalg.yield %m : f32
  } -> tensor<?x?x4x128xf32>
  %view = tensor.expand_shape %normed [[0], [1], [2, 3], [4]] output_shape [%b, %t, 2, 2, 128]
      : tensor<?x?x4x128xf32> into tensor<?x?x2x2x128xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x?x2x128xf32>) -> tensor<?x?x2x128xf32>
  %sum = linalg.generic {indexing_maps = [#grouped, #summed],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%view : tensor<?x?x2x2x128xf32>) outs(%z2 : tensor<?x?x2x128xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x?x2x128xf32>
  %rounded = linalg.generic {indexing_maps = [#bthk, #bthk], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum : tensor<?x?x2x128xf32>) outs(%e2h : tensor<?x?x2x128xbf16>) {
  ^bb0(%a: f32, %out: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x?x2x128xbf16>
  return %rounded : tensor<?x?x2x128xbf16>
}
