// RUN: gdn-opt %s --gdn-bound-gates=bound=-5 --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-bound-gates | FileCheck %s --check-prefix=OWN --implicit-check-not=scf.if
// RUN: gdn-opt %s --gdn-bound-gates=bound=-2.5 | FileCheck %s --check-prefix=OTHER
// RUN: not gdn-opt %s --gdn-bound-gates=bound=5 2>&1 | FileCheck %s --check-prefix=POSITIVE
// RUN: not gdn-compile %s --gate-bound=1 --emit=stages 2>&1 | FileCheck %s --check-prefix=OPTION

// POSITIVE: error: expected a finite bound of at most 0, got 5
// OPTION: error: expected --gate-bound of at most 0, got 1

// A stage looks at the gates, and says so in one number.
// CHECK-LABEL: func.func @channels(
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<2x?x4x128xf32>
// CHECK: %[[NONE:.*]] = linalg.fill {{.*}} -> tensor<1x1x1xf32>
// CHECK: %[[FOUND:.*]] = gdn.stage.gate_bound k(%{{.*}}) gate(%[[G]] : tensor<2x?x4x128xf32>) none(%[[NONE]] : tensor<1x1x1xf32>) {lower_bound = -5.000000e+00 : f64}
// CHECK: %[[NUMBER:.*]] = tensor.extract %[[FOUND]]
// CHECK: %[[STRONG:.*]] = arith.cmpf ogt, %[[NUMBER]], %{{.*}} : f32
// CHECK: %[[R:.*]]:2 = scf.if %[[STRONG]] -> (tensor<2x?x4x128xbf16>, tensor<2x4x128x128xf32>) {
// CHECK: %[[ANY:.*]]:2 = gdn.chunk_gated_delta_rule
// CHECK-SAME: {chunk_size = 16 : i64, output_final_state}
// CHECK: scf.yield %[[ANY]]#0, %[[ANY]]#1
// CHECK: } else {
// CHECK: gdn.chunk_gated_delta_rule
// CHECK-SAME: {lower_bound = -5.000000e+00 : f64, output_final_state}
// CHECK: return %[[R]]#0, %[[R]]#1
// OTHER: lower_bound = -2.500000e+00 : f64
func.func @channels(%q: tensor<2x?x4x128xbf16>, %beta: tensor<2x?x4xf32>, %g: tensor<2x?x4x128xf32>)
    -> (tensor<2x?x4x128xbf16>, tensor<2x4x128x128xf32>) {
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<2x?x4x128xbf16>) k(%q : tensor<2x?x4x128xbf16>) v(%q : tensor<2x?x4x128xbf16>)
      beta(%beta : tensor<2x?x4xf32>) gate(%g : tensor<2x?x4x128xf32>) {chunk_size = 16 : i64, output_final_state}
      -> tensor<2x?x4x128xbf16>, tensor<2x4x128x128xf32>
  return %o, %s : tensor<2x?x4x128xbf16>, tensor<2x4x128x128xf32>
}

// Raw gates are the logarithms that softplus makes of them, in the sequences that are packed.
// CHECK-LABEL: func.func @raw(
// CHECK: gdn.stage.gate_bound k({{.*}}) gate(%{{.*}} : tensor<1x8x4x128xbf16>) cu_seqlens(%{{.*}} : tensor<?xi32>) a_log(%{{.*}} : tensor<4xf32>)
// CHECK-SAME: dt_bias(%{{.*}} : tensor<4x128xf32>) none({{.*}}) {gate_domain = #gdn.gate_domain<softplus>, lower_bound = -5.000000e+00 : f64}
// CHECK: scf.if
// CHECK: gdn.chunk_gated_delta_rule
// CHECK: gate_domain = #gdn.gate_domain<softplus>}
// CHECK: gdn.chunk_gated_delta_rule
// CHECK: {gate_domain = #gdn.gate_domain<softplus>, lower_bound = -5.000000e+00 : f64}
func.func @raw(%q: tensor<1x8x4x128xbf16>, %beta: tensor<1x8x4xf32>, %a: tensor<4xf32>, %bias: tensor<4x128xf32>, %cu: tensor<?xi32>)
    -> tensor<1x8x4x128xbf16> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x8x4x128xbf16>) k(%q : tensor<1x8x4x128xbf16>) v(%q : tensor<1x8x4x128xbf16>)
      beta(%beta : tensor<1x8x4xf32>) gate(%q : tensor<1x8x4x128xbf16>) cu_seqlens(%cu : tensor<?xi32>) a_log(%a : tensor<4xf32>) dt_bias(%bias : tensor<4x128xf32>)
      {gate_domain = #gdn.gate_domain<softplus>} -> tensor<1x8x4x128xbf16>
  return %o : tensor<1x8x4x128xbf16>
}

// A function says its own bound.
// CHECK-LABEL: func.func @own(
// CHECK: lower_bound = -3.000000e+00 : f64
// OWN: func.func @own(
// OWN: scf.if
// OWN: lower_bound = -3.000000e+00 : f64
func.func @own(%q: tensor<2x8x4x128xbf16>, %beta: tensor<2x8x4xf32>, %g: tensor<2x8x4x128xf32>) -> tensor<2x8x4x128xbf16>
    attributes {gdn.gate_bound = -3.0} {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<2x8x4x128xbf16>) k(%q : tensor<2x8x4x128xbf16>) v(%q : tensor<2x8x4x128xbf16>)
      beta(%beta : tensor<2x8x4xf32>) gate(%g : tensor<2x8x4x128xf32>) -> tensor<2x8x4x128xbf16>
  return %o : tensor<2x8x4x128xbf16>
}

// Others stay as they are: gates with a bound, gates a head, float16, and token by token.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: scf.if
func.func @others(%q: tensor<2x8x4x128xbf16>, %h: tensor<2x8x4x128xf16>, %beta: tensor<2x8x4xf32>, %g: tensor<2x8x4x128xf32>)
    -> (tensor<2x8x4x128xbf16>, tensor<2x8x4x128xbf16>, tensor<2x8x4x128xf16>, tensor<2x8x4x128xbf16>) {
  %0 = gdn.chunk_gated_delta_rule q(%q : tensor<2x8x4x128xbf16>) k(%q : tensor<2x8x4x128xbf16>) v(%q : tensor<2x8x4x128xbf16>)
      beta(%beta : tensor<2x8x4xf32>) gate(%g : tensor<2x8x4x128xf32>) {lower_bound = -5.0 : f64} -> tensor<2x8x4x128xbf16>
  %1 = gdn.chunk_gated_delta_rule q(%q : tensor<2x8x4x128xbf16>) k(%q : tensor<2x8x4x128xbf16>) v(%q : tensor<2x8x4x128xbf16>)
      beta(%beta : tensor<2x8x4xf32>) gate(%beta : tensor<2x8x4xf32>) -> tensor<2x8x4x128xbf16>
  %2 = gdn.chunk_gated_delta_rule q(%h : tensor<2x8x4x128xf16>) k(%h : tensor<2x8x4x128xf16>) v(%h : tensor<2x8x4x128xf16>)
      beta(%beta : tensor<2x8x4xf32>) gate(%g : tensor<2x8x4x128xf32>) -> tensor<2x8x4x128xf16>
  %3 = gdn.recurrent_gated_delta_rule q(%q : tensor<2x8x4x128xbf16>) k(%q : tensor<2x8x4x128xbf16>) v(%q : tensor<2x8x4x128xbf16>)
      beta(%beta : tensor<2x8x4xf32>) gate(%g : tensor<2x8x4x128xf32>) -> tensor<2x8x4x128xbf16>
  return %0, %1, %2, %3 : tensor<2x8x4x128xbf16>, tensor<2x8x4x128xbf16>, tensor<2x8x4x128xf16>, tensor<2x8x4x128xbf16>
}
