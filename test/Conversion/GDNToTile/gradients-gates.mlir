// RUN: gdn-compile %s --target=sm_90a --emit=tile | FileCheck %s
// Gates of the gradients in a backward of three kernels.

// A work item is of a q/k head: inside the loop it loads A_log and dt_bias of the value head that is at turn.
// CHECK-LABEL: gdn_tile.program @raw_gradients(
// CHECK: scf.for
// CHECK: %[[HEAD:.*]] = arith.addi
// CHECK-DAG: gdn_tile.load %dt_bias[%[[HEAD]]]
// CHECK-DAG: gdn_tile.load %a_log[%[[HEAD]]]
// CHECK: gdn_tile.load %d_o[%batch, %{{.*}}, %[[HEAD]],
func.func @raw(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2xf32>, %initial_state: tensor<?x2x128x128xf32>, %cu_seqlens: tensor<?xi32>, %a_log: tensor<2xf32>,
    %dt_bias: tensor<2xf32>, %d_o: tensor<1x?x2x128xbf16>, %d_final_state: tensor<?x2x128x128xf32>) -> (tensor<1x?x1x128xbf16>,
    tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x128x128xf32>, tensor<2xf32>,
    tensor<2xf32>) {
  %r:8 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%initial_state : tensor<?x2x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>) a_log(%a_log : tensor<2xf32>) dt_bias(%dt_bias : tensor<2xf32>)
      d_o(%d_o : tensor<1x?x2x128xbf16>) d_final_state(%d_final_state : tensor<?x2x128x128xf32>)
      {gate_domain = #gdn.gate_domain<softplus>} -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>,
      tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x128x128xf32>, tensor<2xf32>, tensor<2xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>,
      tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x128x128xf32>, tensor<2xf32>, tensor<2xf32>
}

// A linear gate is raised to 2^-10, and the gradient of its logarithm is divided by it. The recurrences take 2^-128.
// CHECK-LABEL: gdn_tile.program @linear_replay(
// CHECK: arith.constant {{.*}}dense<-1.280000e+02>
// CHECK-LABEL: gdn_tile.program @linear_gradients(
// CHECK-DAG: %[[LOG2:.*]] = arith.constant {{.*}}dense<-1.000000e+01>
// CHECK-DAG: %[[LEAST:.*]] = arith.constant {{.*}}dense<9.765625E-4>
// CHECK: arith.maximumf %{{.*}}, %[[LOG2]]
// CHECK: %[[GATE:.*]] = gdn_tile.load %gate[{{.*}}gdn_tile.step = "finish"
// CHECK: %[[RAISED:.*]] = arith.maximumf %[[GATE]], %[[LEAST]]
// CHECK: %[[DA:.*]] = arith.divf %{{.*}}, %[[RAISED]]
// CHECK: gdn_tile.store %[[DA]], %dgate[
func.func @linear(%q: tensor<1x?x1x128xbf16>, %k: tensor<1x?x1x128xbf16>, %v: tensor<1x?x2x128xbf16>, %beta: tensor<1x?x2xf32>,
    %gate: tensor<1x?x2xf32>, %initial_state: tensor<?x2x128x128xf32>, %cu_seqlens: tensor<?xi32>, %d_o: tensor<1x?x2x128xbf16>,
    %d_final_state: tensor<?x2x128x128xf32>) -> (tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>,
    tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x128x128xf32>) {
  %r:6 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x?x1x128xbf16>) k(%k : tensor<1x?x1x128xbf16>) v(%v : tensor<1x?x2x128xbf16>)
      beta(%beta : tensor<1x?x2xf32>) gate(%gate : tensor<1x?x2xf32>) initial_state(%initial_state : tensor<?x2x128x128xf32>)
      cu_seqlens(%cu_seqlens : tensor<?xi32>) d_o(%d_o : tensor<1x?x2x128xbf16>) d_final_state(%d_final_state : tensor<?x2x128x128xf32>)
      {gate_domain = #gdn.gate_domain<linear>} -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>,
      tensor<1x?x2xf32>, tensor<1x?x2xf32>, tensor<?x2x128x128xf32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x2x128xbf16>, tensor<1x?x2xf32>,
      tensor<1x?x2xf32>, tensor<?x2x128x128xf32>
}
