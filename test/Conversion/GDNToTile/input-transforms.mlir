// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form | FileCheck %s

// Input transforms (spec 1) stand in the steps that load their operand. All
// but the log gate map padding to something else than zero: it is masked.

// -exp(a_log) softplus(a + dt_bias), without overflow, in log2 units: where softplus is small or huge, its logarithm is
// added to a_log, and the factor is 1. The parameters of a head stand before the loop.
// CHECK-LABEL: gdn_tile.program @softplus_fused(
// CHECK: %[[BIAS:.*]] = gdn_tile.load %dt_bias[%h] axes [0] {gdn_tile.step = "gates"} : {{.*}} -> tensor<1xf32>
// CHECK: tensor.extract %[[BIAS]][
// CHECK: %[[LOADED:.*]] = gdn_tile.load %a_log[%h] axes [0]
// CHECK: %[[A_LOG:.*]] = tensor.extract %[[LOADED]][
// CHECK-NOT: math.exp2
// CHECK: scf.for
// CHECK: %[[RAW:.*]] = gdn_tile.load %beta{{.*}} {gdn_tile.step = "gates"}
// CHECK: %[[LOGIT:.*]] = arith.extf %[[RAW]] {gdn_tile.step = "gates"}
// CHECK: %[[NEG:.*]] = arith.negf %[[LOGIT]]
// CHECK: math.exp2
// CHECK: %[[BETA:.*]] = arith.divf
// CHECK: %[[MASK:.*]] = arith.select {{.*}}"gates"} : tensor<32xi1>, tensor<32xf32>
// CHECK: %[[VALID:.*]] = arith.mulf %[[BETA]], %[[MASK]]
// CHECK: linalg.broadcast ins(%[[VALID]] {{.*}}"scores"}
// CHECK: %[[A:.*]] = gdn_tile.load %gate
// CHECK: %[[AF:.*]] = arith.extf %[[A]]
// CHECK: %[[X:.*]] = arith.addf %[[AF]], %
// CHECK: %[[ABS:.*]] = math.absf %[[X]]
// CHECK: math.log1p
// CHECK: %[[SAFE:.*]] = arith.maximumf %{{.*}}"gates"} : tensor<32xf32>
// CHECK: %[[SOFTPLUS:.*]] = arith.addf %[[SAFE]], %
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %[[X]], %
// CHECK: %[[HUGE:.*]] = arith.cmpf ogt, %[[X]], %
// CHECK: %[[LOG:.*]] = math.log2 %[[SOFTPLUS]]
// CHECK: %[[LN:.*]] = arith.mulf %[[LOG]], %
// CHECK: %[[LARGE:.*]] = arith.select %[[HUGE]], %[[LN]], %
// CHECK: %[[ADDED:.*]] = arith.select %[[SMALL]], %[[X]], %[[LARGE]]
// CHECK: %[[EITHER:.*]] = arith.ori %[[SMALL]], %[[HUGE]]
// CHECK: %[[FACTOR:.*]] = arith.select %[[EITHER]], %{{.*}}, %[[SOFTPLUS]]
// CHECK: tensor.splat %[[A_LOG]]
// CHECK: arith.addf %[[ADDED]], %
// CHECK: math.exp2
// CHECK: %[[RAW_LOG2:.*]] = arith.mulf %{{.*}}, %[[FACTOR]]
// CHECK: %[[LOG2:.*]] = arith.maximumf %[[RAW_LOG2]], %{{.*}}"gates"} : tensor<32xf32>
// CHECK: %[[GATE:.*]] = arith.mulf %[[LOG2]], %[[MASK]]
// CHECK: gdn_tile.scan %[[GATE]]
func.func @softplus(%q: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xbf16>,
    %gate: tensor<1x64x4xbf16>, %a_log: tensor<4xf32>, %dt_bias: tensor<4xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%q : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xbf16>) gate(%gate : tensor<1x64x4xbf16>)
      a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4xf32>)
      {chunk_size = 32, gate_domain = #gdn.gate_domain<softplus>, beta_domain = #gdn.beta_domain<logit>}
      -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}

// lb sigmoid(exp(a_log) (a + dt_bias)) with a bias a channel. exp(a_log) is two finite factors, none of them 0: one of the gate
// and of the bias, and one with the base's logarithm. The bound is a factor of the mask.
// CHECK-LABEL: gdn_tile.program @bounded_fused(
// CHECK: %[[BOUND:.*]] = arith.constant dense<-7.21347522> : tensor<32xf32>
// CHECK: %[[BIAS:.*]] = gdn_tile.load %dt_bias[%h, %{{.*}}] axes [1] {{.*}} -> tensor<64xf32>
// CHECK: %[[LOADED:.*]] = gdn_tile.load %a_log[%h]
// CHECK: %[[A_LOG:.*]] = tensor.extract %[[LOADED]][
// CHECK: %[[MOST:.*]] = arith.maximumf
// CHECK: math.exp2
// CHECK: arith.subf %[[A_LOG]], %[[MOST]]
// CHECK: arith.maximumf
// CHECK: %[[REST:.*]] = math.exp2
// CHECK: %[[OF_ROWS:.*]] = arith.mulf %[[BIAS]], %
// CHECK: scf.for
// CHECK: %[[A:.*]] = gdn_tile.load %gate{{.*}} -> tensor<32x64xf32>
// CHECK: %[[PART:.*]] = arith.mulf %[[A]], %
// CHECK: linalg.broadcast ins(%[[OF_ROWS]] {{.*}} dimensions = [0]
// CHECK: %[[X:.*]] = arith.addf %[[PART]], %
// CHECK: arith.mulf %[[X]], %
// CHECK: arith.divf
// CHECK: arith.mulf %{{.*}}, %[[BOUND]]
func.func @bounded(%q: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4x64xf32>, %a_log: tensor<4xf32>, %dt_bias: tensor<4x64xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%q : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      a_log(%a_log : tensor<4xf32>) dt_bias(%dt_bias : tensor<4x64xf32>)
      {chunk_size = 32, gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}

// A decay of 0 is a full reset: log2 gives -inf, the clamp keeps differences
// of sums from NaN. Beta in (0, 2).
// CHECK-LABEL: gdn_tile.program @linear_fused(
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<-1.280000e+02> : tensor<32xf32>
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<32xf32>
// CHECK: arith.mulf %{{.*}}, %[[TWO]] {{.*}}"gates"}
// CHECK: %[[LOG2:.*]] = math.log2 %{{.*}} {gdn_tile.step = "gates"}
// CHECK: arith.maximumf %[[LOG2]], %[[LEAST]]
func.func @linear(%q: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xf32>,
    %gate: tensor<1x64x4xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%q : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {chunk_size = 32, gate_domain = #gdn.gate_domain<linear>, beta_domain = #gdn.beta_domain<doubled_logit>}
      -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}

// bf16 rows of q and k enter products as they are: normalised, they would be
// rounded again. M is multiplied by the norms of its rows and columns, values by
// beta and a norm, what the solve makes by norms and lengths, what keys read by beta and
// norms squared: the products of the state are multiplied by no norm alone. The squares of keys are on the
// diagonal of the product that M is made of, whose columns the solve multiplies,
// before it rounds M.
// CHECK-LABEL: gdn_tile.program @l2norm_fused(
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[BETA:.*]] = gdn_tile.load %beta
// CHECK: %[[KK:.*]] = linalg.contract {{.*}} ins(%[[K]], %[[K]] :
// CHECK: linalg.contract {{.*}} ins(%[[Q]], %[[K]] :
// CHECK: %[[SQUARES:.*]] = gdn_tile.diagonal %[[KK]] {gdn_tile.step = "norms"}
// CHECK: %[[SUM:.*]] = arith.addf %[[SQUARES]], %{{.*}} {gdn_tile.step = "norms"} : tensor<32xf32>
// CHECK: %[[NORM:.*]] = math.rsqrt %[[SUM]] {gdn_tile.step = "norms"} : tensor<32xf32>
// CHECK: %[[LENGTH:.*]] = arith.mulf %[[SUM]], %[[NORM]] {{.*}}"norms"}
// CHECK: %[[WEIGHT:.*]] = arith.mulf %[[BETA]], %[[NORM]] {{.*}}"norms"}
// CHECK: %[[READ:.*]] = arith.mulf %[[WEIGHT]], %[[NORM]] {{.*}}"norms"}
// CHECK: %[[QF:.*]] = arith.extf %[[Q]]
// CHECK: %[[QSQUARES:.*]] = arith.mulf %[[QF]], %[[QF]]
// CHECK: linalg.reduce ins(%[[QSQUARES]] :
// CHECK: %[[QNORM:.*]] = math.rsqrt %{{.*}} {gdn_tile.step = "query_norms"} : tensor<32xf32>
// CHECK: linalg.broadcast ins(%[[WEIGHT]] {{.*}} dimensions = [1]
// CHECK: %[[ROWS:.*]] = arith.mulf %[[KK]], %
// CHECK: %[[LOWER:.*]] = gdn_tile.causal strict %[[ROWS]] {gdn_tile.step = "scores"}
// CHECK: linalg.broadcast ins(%[[NORM]] {{.*}} dimensions = [0] {gdn_tile.step = "solve"}
// CHECK: %[[MF:.*]] = arith.mulf %[[LOWER]], %
// CHECK: %[[M:.*]] = arith.truncf %[[MF]]
// CHECK: %[[INVERSE:.*]] = gdn_tile.tri_inverse %[[M]]
// CHECK: linalg.broadcast ins(%[[NORM]] {{.*}} dimensions = [1] {gdn_tile.step = "solve"}
// CHECK: %[[SCALED:.*]] = arith.mulf %[[INVERSE]], %
// CHECK: linalg.broadcast ins(%[[LENGTH]] {{.*}} dimensions = [0] {gdn_tile.step = "solve"}
// CHECK: %[[BOTH:.*]] = arith.mulf %[[SCALED]], %
// CHECK: arith.truncf %[[BOTH]]
// CHECK: %[[OUT:.*]] = arith.mulf %[[QNORM]], %{{.*}}"query_norms"}
// CHECK: linalg.broadcast ins(%[[WEIGHT]] {{.*}}"state"}
// CHECK: linalg.broadcast ins(%[[READ]] {{.*}}"state"}
// CHECK: linalg.broadcast ins(%[[OUT]] {{.*}}"state"}
func.func @l2norm(%q: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>, %beta: tensor<1x64x4xf32>)
    -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%q : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32, qk_l2norm}
      -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}

// f16 rows enter products as they are, too. f16 has no room for the solve's result times norms and lengths, nor for
// products of two rows of any length: the scores are times the norms of queries, and what is written is times those of
// keys, which are 0 where a key is. The output is times the scale alone.
// CHECK-LABEL: gdn_tile.program @half_fused(
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[BETA:.*]] = gdn_tile.load %beta
// CHECK: %[[KK:.*]] = linalg.contract {{.*}} ins(%[[K]], %[[K]] :
// CHECK: %[[QK:.*]] = linalg.contract {{.*}} ins(%[[Q]], %[[K]] :
// CHECK: %[[SQUARES:.*]] = gdn_tile.diagonal %[[KK]] {gdn_tile.step = "norms"}
// CHECK: %[[SUM:.*]] = arith.addf %[[SQUARES]], %[[EPS:.*]] {gdn_tile.step = "norms"} : tensor<32xf32>
// CHECK: %[[NORM:.*]] = math.rsqrt %[[SUM]] {gdn_tile.step = "norms"} : tensor<32xf32>
// CHECK: %[[HAS:.*]] = arith.cmpf ogt, %[[SUM]], %{{.*}} {gdn_tile.step = "norms"} : tensor<32xf32>
// CHECK: %[[WRITE:.*]] = arith.select %[[HAS]], %[[NORM]], %{{.*}} {gdn_tile.step = "norms"}
// CHECK: %[[WEIGHT:.*]] = arith.mulf %[[BETA]], %[[NORM]] {{.*}}"norms"}
// CHECK: %[[QNORM:.*]] = math.rsqrt %{{.*}} {gdn_tile.step = "query_norms"} : tensor<32xf32>
// CHECK: linalg.broadcast ins(%[[QNORM]] {{.*}} dimensions = [1] {gdn_tile.step = "scores"}
// CHECK: arith.mulf %[[QK]], %
// CHECK: linalg.broadcast ins(%[[NORM]] {{.*}} dimensions = [0] {gdn_tile.step = "solve"}
// CHECK: %[[INVERSE:.*]] = gdn_tile.tri_inverse
// CHECK-NEXT: arith.truncf %[[INVERSE]]
// CHECK: linalg.broadcast ins(%[[BETA]] {{.*}}"state"}
// CHECK: linalg.broadcast ins(%[[WEIGHT]] {{.*}}"state"}
// CHECK: linalg.broadcast ins(%[[QNORM]] {{.*}}"state"}
// CHECK: linalg.broadcast ins(%[[WRITE]] {{.*}}"state"}
func.func @half(%q: tensor<1x64x2x64xf16>, %v: tensor<1x64x4x16xf16>, %beta: tensor<1x64x4xf32>)
    -> tensor<1x64x4x16xf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xf16>) k(%q : tensor<1x64x2x64xf16>)
      v(%v : tensor<1x64x4x16xf16>) beta(%beta : tensor<1x64x4xf32>) {chunk_size = 32, qk_l2norm}
      -> tensor<1x64x4x16xf16>
  return %o : tensor<1x64x4x16xf16>
}
