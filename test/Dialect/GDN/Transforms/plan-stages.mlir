// RUN: gdn-opt %s --gdn-plan-stages --gdn-verify-stages-form --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,FUSED
// RUN: gdn-opt %s --gdn-plan-stages="plan=separate chunk-size=64" --gdn-verify-stages-form --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,SEPARATE

// One stage, or prepare and run with Bm (of the data type, without beta) and
// the cumulated gate (f32) between them. The op's own attributes stay.
// CHECK-LABEL: func.func @scalar_gate
// FUSED: %[[R:.*]]:2 = gdn.stage.fused q(%{{.*}}) {{.*}} gate({{.*}} initial_state({{.*}} {chunk_size = 32 : i64, qk_l2norm, scale = 5.000000e-01 : f64
// SEPARATE: %[[P:.*]]:2 = gdn.stage.prepare k({{.*}} beta({{.*}} gate({{.*}} {chunk_size = 64 : i64, qk_l2norm}
// SEPARATE-SAME: -> tensor<1x?x4x64xf16>, tensor<1x?x4xf32>
// SEPARATE: %[[R:.*]]:2 = gdn.stage.run q({{.*}} bm(%[[P]]#0 : {{.*}}) decay(%[[P]]#1 : {{.*}}) initial_state({{.*}} {chunk_size = 64 : i64, qk_l2norm, scale = 5.000000e-01 : f64
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @scalar_gate(%q: tensor<1x?x2x64xbf16>, %v: tensor<1x?x4x16xbf16>, %beta: tensor<1x?x4xf32>,
    %gate: tensor<1x?x4xbf16>, %initial: tensor<1x4x64x16xf32>)
    -> (tensor<1x?x4x16xbf16>, tensor<1x4x64x16xf32>) {
  %o, %state = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>)
      v(%v : tensor<1x?x4x16xbf16>) beta(%beta : tensor<1x?x4xf32>) gate(%gate : tensor<1x?x4xbf16>)
      initial_state(%initial : tensor<1x4x64x16xf32>) {output_final_state, qk_l2norm, scale = 0.5}
      -> tensor<1x?x4x16xbf16>, tensor<1x4x64x16xf32>
  return %o, %state : tensor<1x?x4x16xbf16>, tensor<1x4x64x16xf32>
}

// An op's own chunk size is stronger than the option. Gate parameters belong to
// prepare, which alone reads the gate.
// CHECK-LABEL: func.func @own_chunk
// FUSED: gdn.stage.fused {{.*}} {chunk_size = 16
// SEPARATE: gdn.stage.prepare {{.*}} a_log({{.*}} dt_bias({{.*}} {chunk_size = 16 : i64, gate_domain = #gdn.gate_domain<softplus>}
// SEPARATE-SAME: -> tensor<1x64x4x16xf32>, tensor<1x64x4x64xf64>
// SEPARATE: gdn.stage.run
// SEPARATE-NOT: a_log
// SEPARATE-SAME: {chunk_size = 16 : i64}
func.func @own_chunk(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4x64xf32>, %a_log: tensor<4xf32>, %dt_bias: tensor<4x64xf32>) -> tensor<1x64x4x16xf32> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4x64xf32>)
      {chunk_size = 16 : i64, gate_domain = #gdn.gate_domain<softplus>} -> tensor<1x64x4x16xf32>
  return %o : tensor<1x64x4x16xf32>
}

// Without a gate prepare has one result and run no decay.
// CHECK-LABEL: func.func @no_gate
// FUSED: gdn.stage.fused
// SEPARATE: %[[BM:.*]] = gdn.stage.prepare {{.*}} -> tensor<1x64x4x64xf32>
// SEPARATE: gdn.stage.run {{.*}} bm(%[[BM]] : tensor<1x64x4x64xf32>) {chunk_size
func.func @no_gate(%q: tensor<1x64x2x64xf32>, %v: tensor<1x64x4x16xf32>, %beta: tensor<1x64x4xf32>)
    -> tensor<1x64x4x16xf32> {
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x64xf32>) k(%q : tensor<1x64x2x64xf32>)
      v(%v : tensor<1x64x4x16xf32>) beta(%beta : tensor<1x64x4xf32>) -> tensor<1x64x4x16xf32>
  return %o : tensor<1x64x4x16xf32>
}

// Token by token there is one plan. Layers in regions are planned too.
// CHECK-LABEL: func.func @in_region
// CHECK: scf.if
// CHECK: gdn.stage.recurrent
// CHECK-NOT: chunk_size
// CHECK-SAME: -> tensor<8x1x4x16xf32>
func.func @in_region(%on: i1, %q: tensor<8x1x2x64xf32>, %v: tensor<8x1x4x16xf32>, %beta: tensor<8x1x4xf32>)
    -> tensor<8x1x4x16xf32> {
  %r = scf.if %on -> tensor<8x1x4x16xf32> {
    %o = gdn.recurrent_gated_delta_rule q(%q : tensor<8x1x2x64xf32>) k(%q : tensor<8x1x2x64xf32>)
        v(%v : tensor<8x1x4x16xf32>) beta(%beta : tensor<8x1x4xf32>) -> tensor<8x1x4x16xf32>
    scf.yield %o : tensor<8x1x4x16xf32>
  } else {
    scf.yield %v : tensor<8x1x4x16xf32>
  }
  return %r : tensor<8x1x4x16xf32>
}
