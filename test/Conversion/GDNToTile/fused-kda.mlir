// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// One gate a channel: no decay-free form exists, the gates sit between q and k
// (spec 4.2). Scores by sub-blocks of 16 tokens while the gates allow it, by
// halves beyond (spec 4.3), uniformly for the chunk.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// The largest exponent of a factor: 60 log2(e).
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 8.656170e+01 : f32
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<16x64xf32>)
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[GATE:.*]] = gdn_tile.load %gate{{.*}} axes [1, 3] {{.*}}"gates"} : {{.*}} -> tensor<32x64xf32>
// CHECK: %[[G:.*]] = gdn_tile.scan %{{.*}} axis 0 {gdn_tile.step = "gates"} : tensor<32x64xf32>
// CHECK: %[[IN_RANGE:.*]] = arith.cmpf ole, %{{.*}}, %[[LARGEST]] : f32
// CHECK: %[[SCORES:.*]]:2 = scf.if %[[IN_RANGE]] -> (tensor<32x32xf32>, tensor<32x32xf32>)

// By sub-blocks: block (0, 0), row 1 left of the diagonal, block (1, 1); keys
// and queries each.
// CHECK-COUNT-2: linalg.contract {{.*}} ins(%{{.*}} : tensor<16x64xbf16>, tensor<16x64xbf16>) outs(%{{.*}} : tensor<16x16xf32>)
// CHECK: tensor.insert_slice {{.*}}[16, 0] [16, 16]
// CHECK: tensor.insert_slice {{.*}}[16, 0] [16, 16]
// CHECK: tensor.insert_slice {{.*}}[16, 16] [16, 16]
// CHECK: tensor.insert_slice {{.*}}[16, 16] [16, 16]
// CHECK: scf.yield

// By halves of 16, 8, 4, 2 and 1: a row's exponent is from the end of the earlier
// half or up to it, a mask picks the pairs of each level; the diagonal has no decay.
// CHECK: } else {
// CHECK: linalg.reduce
// CHECK: tensor.expand_shape %[[G]] {{.*}} : tensor<32x64xf32> into tensor<2x16x64xf32>
// CHECK: %[[FROM:.*]] = arith.subf %[[G]], %
// CHECK: %[[LATER:.*]] = arith.mulf %[[FROM]], %
// CHECK: math.exp2 %[[LATER]]
// CHECK: %[[UP_TO:.*]] = arith.negf %[[FROM]]
// CHECK: %[[EARLIER:.*]] = arith.mulf %[[UP_TO]], %
// CHECK: math.exp2 %[[EARLIER]]
// CHECK: tensor.expand_shape %[[G]] {{.*}} into tensor<16x2x64xf32>
// CHECK-COUNT-10: linalg.contract {{.*}} ins(%{{.*}} : tensor<32x64xbf16>, tensor<32x64xbf16>) outs(%{{.*}} : tensor<32x32xf32>)
// CHECK: scf.yield
// CHECK: }

// What lies above the diagonal, infinities included, goes here.
// CHECK: gdn_tile.causal %[[SCORES]]#1
// CHECK: %[[KK:.*]] = gdn_tile.causal strict %[[SCORES]]#0
// The matrix of the chain is -Diag(beta) Bm, and beta is in W.
// CHECK: %[[BM:.*]] = gdn_tile.solve %[[KK]], %[[BETA:[0-9]+]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[BETA]] {gdn_tile.step = "solve"}
// CHECK: linalg.broadcast ins(%[[MINUS]] {{.*}} dimensions = [1] {gdn_tile.step = "solve"}
// CHECK: arith.mulf %[[BM]], %{{.*}}"solve"}
// K+, Q+ and Kr are rounded; the state decays by channel.
// CHECK: %[[GAM:.*]] = math.exp2 %[[G]] {gdn_tile.step = "gates"}
// CHECK: %[[KF:.*]] = arith.extf %[[K]]
// CHECK: %[[KGAM:.*]] = arith.mulf %[[KF]], %[[GAM]]
// CHECK: %[[KREAD:.*]] = arith.truncf %[[KGAM]]
// CHECK: %[[QF:.*]] = arith.extf %[[Q]]
// CHECK: %[[QGAM:.*]] = arith.mulf %[[QF]], %[[GAM]]
// CHECK: %[[QREAD:.*]] = arith.truncf %[[QGAM]]
// CHECK: %[[END:.*]] = tensor.extract_slice %[[G]][31, 0] [1, 64]
// CHECK: %[[KRHO:.*]] = arith.mulf %[[KF]], %
// CHECK: %[[KWRITE:.*]] = arith.truncf %[[KRHO]]
// CHECK: %[[GAMC:.*]] = math.exp2 %[[END]]
// CHECK: %[[CHANNELS:.*]] = linalg.broadcast ins(%[[GAMC]] {{.*}} dimensions = [0]
// CHECK: %[[DECAYED:.*]] = arith.mulf %[[S]], %[[CHANNELS]]
// CHECK: %[[SB:.*]] = arith.truncf %[[S]]
// CHECK: %[[READ:.*]] = linalg.contract {{.*}} ins(%[[SB]], %[[KREAD]] :
// CHECK: %[[BETAS:.*]] = linalg.broadcast ins(%[[BETA]] {{.*}} dimensions = [0] {gdn_tile.step = "state"}
// CHECK: %[[BV:.*]] = arith.mulf %{{.*}}, %[[BETAS]] {{.*}}"state"}
// CHECK: %[[BREAD:.*]] = arith.mulf %[[READ]], %{{.*}}"state"}
// CHECK: arith.subf %[[BV]], %[[BREAD]] {{.*}}"state"}
// CHECK: linalg.contract {{.*}} ins(%[[SB]], %[[QREAD]] :
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[KWRITE]] : {{.*}}) outs(%[[DECAYED]] :
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x64xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      {chunk_size = 32} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}
