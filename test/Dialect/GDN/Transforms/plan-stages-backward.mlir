// RUN: gdn-opt %s --gdn-plan-stages --gdn-verify-stages-form --verify-roundtrip | FileCheck %s

// The backward stage works a value head at a time, on what the recurrence
// takes; the chain rules of spec 5.5 stand around it on whole tensors.

// dq and dk are summed over the value heads of a group in f32 and rounded once;
// the sizes are dynamic where they are open. dh0 comes as it is.
// CHECK-LABEL: func.func @groups(
// CHECK: %[[B:.*]]:6 = gdn.stage.backward {{.*}} {chunk_size = 32 : i64}
// CHECK-SAME: -> tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>, tensor<?x?x4x16xbf16>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x4x64x16xf32>
// CHECK: %[[GROUPS:.*]] = tensor.expand_shape %[[B]]#0 {{\[}}[0], [1], [2, 3], [4]] {{.*}} into tensor<?x?x2x2x64xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%[[GROUPS]] :
// CHECK-NOT: arith.truncf
// CHECK: linalg.yield
// CHECK: %[[DQ:.*]] = linalg.generic
// CHECK: arith.truncf
// CHECK: return %[[DQ]], %{{.*}}, %[[B]]#2, %{{.*}}, %{{.*}}, %[[B]]#5
func.func @groups(%q: tensor<?x?x2x64xbf16>, %v: tensor<?x?x4x16xbf16>, %beta: tensor<?x?x4xf32>,
    %gate: tensor<?x?x4xf32>, %initial: tensor<?x4x64x16xf32>)
    -> (tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x4x16xbf16>, tensor<?x?x4xf32>,
        tensor<?x?x4xf32>, tensor<?x4x64x16xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<?x?x2x64xbf16>) k(%q : tensor<?x?x2x64xbf16>)
      v(%v : tensor<?x?x4x16xbf16>) beta(%beta : tensor<?x?x4xf32>) gate(%gate : tensor<?x?x4xf32>)
      initial_state(%initial : tensor<?x4x64x16xf32>) d_o(%v : tensor<?x?x4x16xbf16>)
      -> tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x4x16xbf16>, tensor<?x?x4xf32>,
         tensor<?x?x4xf32>, tensor<?x4x64x16xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>,
      tensor<?x?x4x16xbf16>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x4x64x16xf32>
}

// l2norm: dx = r (dy - y (y . dy)); logit: beta (1 - beta) dbeta, twice that for
// the doubled form.
// CHECK-LABEL: func.func @norm(
// CHECK: gdn.stage.backward
// CHECK-COUNT-2: math.rsqrt
// CHECK: arith.divf
// CHECK: %[[REST:.*]] = arith.subf
// CHECK: %[[SLOPE:.*]] = arith.mulf %{{.*}}, %[[REST]]
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: arith.mulf %[[SLOPE]], %[[TWO]]
func.func @norm(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>)
    -> tensor<1x64x2x64xf32> {
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      {qk_l2norm, beta_domain = #gdn.beta_domain<doubled_logit>}
      -> tensor<1x64x2x64xf32>, tensor<1x64x2x64xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x64x2x64xf32>
}

// Raw gates: da an element, dA_log [H] and ddt_bias [H, K] as sums over all
// tokens, in f64.
// CHECK-LABEL: func.func @bounded(
// CHECK: %[[B:.*]]:5 = gdn.stage.backward
// CHECK: %[[DA:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[B]]#4, %{{.*}}, %{{.*}} : {{.*}}) outs(%{{.*}} : tensor<1x64x2x64xf32>)
// CHECK: %[[RATE:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2xf64>)
// CHECK: %[[DRATE:.*]] = linalg.generic {{.*}} ins(%[[RATE]] : tensor<2xf64>) outs(%{{.*}} : tensor<2xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x64xf64>)
// CHECK: %[[DBIAS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x64xf32>)
// CHECK: return %[[DA]], %
func.func @bounded(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2x64xf32>, %a_log: tensor<2xf32>, %dt_bias: tensor<2x64xf32>)
    -> (tensor<1x64x2x64xf32>, tensor<2xf32>, tensor<2x64xf32>) {
  %r:7 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2x64xf32>)
      a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2x64xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      {gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0}
      -> tensor<1x64x2x64xf32>, tensor<1x64x2x64xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>,
         tensor<1x64x2x64xf32>, tensor<2xf32>, tensor<2x64xf32>
  return %r#4, %r#5, %r#6 : tensor<1x64x2x64xf32>, tensor<2xf32>, tensor<2x64xf32>
}

// The stage gives the gradient of a linear gate itself: nothing is divided by it.
// CHECK-LABEL: func.func @linear(
// CHECK: gdn.stage.backward {{.*}} gate_domain = #gdn.gate_domain<linear>
// CHECK-NOT: arith.divf
// CHECK: return
func.func @linear(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>,
    %gate: tensor<1x64x2xf32>) -> tensor<1x64x2xf32> {
  %r:5 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) gate(%gate : tensor<1x64x2xf32>)
      d_o(%v : tensor<1x64x2x16xf32>) {gate_domain = #gdn.gate_domain<linear>}
      -> tensor<1x64x2x64xf32>, tensor<1x64x2x64xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>,
         tensor<1x64x2xf32>
  return %r#4 : tensor<1x64x2xf32>
}

// A result's type may know less than the operands do.
// CHECK-LABEL: func.func @casts(
// CHECK: tensor.cast %{{.*}} : tensor<1x64x2x64xf32> to tensor<1x?x2x64xf32>
func.func @casts(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x2x16xf32>, %beta: tensor<1x64x2xf32>)
    -> tensor<1x?x2x64xf32> {
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x2x16xf32>) beta(%beta : tensor<1x64x2xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      -> tensor<1x?x2x64xf32>, tensor<1x64x2x64xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
  return %r#0 : tensor<1x?x2x64xf32>
}
