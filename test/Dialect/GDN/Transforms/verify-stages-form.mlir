// RUN: gdn-opt %s --gdn-verify-stages-form -split-input-file -verify-diagnostics

// Stage ops and upstream ops may exist.
func.func @stages(%x: tensor<1x32x1x16xf32>) -> tensor<1x32x1x16xf32> {
  %y = gdn.stage.linear_attention q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) {chunk_size = 16} -> tensor<1x32x1x16xf32>
  %z = arith.addf %x, %y : tensor<1x32x1x16xf32>
  return %z : tensor<1x32x1x16xf32>
}

// -----

func.func @forward(%x: tensor<1x32x1x16xf32>, %beta: tensor<1x32x1xf32>) -> tensor<1x32x1x16xf32> {
  // expected-error @below {{expected only stage ops of gdn at the stages level, got a layer op; run gdn-plan-stages first}}
  %y = gdn.chunk_gated_delta_rule q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) beta(%beta : tensor<1x32x1xf32>) -> tensor<1x32x1x16xf32>
  return %y : tensor<1x32x1x16xf32>
}

// -----

func.func @recurrent(%x: tensor<1x32x1x16xf32>, %beta: tensor<1x32x1xf32>) -> tensor<1x32x1x16xf32> {
  // expected-error @below {{got a layer op}}
  %y = gdn.recurrent_gated_delta_rule q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) beta(%beta : tensor<1x32x1xf32>) -> tensor<1x32x1x16xf32>
  return %y : tensor<1x32x1x16xf32>
}

// -----

func.func @backward(%x: tensor<1x32x1x16xf32>, %beta: tensor<1x32x1xf32>) -> tensor<1x32x1x16xf32> {
  // expected-error @below {{got a layer op}}
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%x : tensor<1x32x1x16xf32>) k(%x : tensor<1x32x1x16xf32>)
      v(%x : tensor<1x32x1x16xf32>) beta(%beta : tensor<1x32x1xf32>) d_o(%x : tensor<1x32x1x16xf32>)
      -> tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1x16xf32>, tensor<1x32x1xf32>
  return %r#0 : tensor<1x32x1x16xf32>
}
