// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// One gate a channel: no decay-free form exists, the gates sit between q and k. One reference in the middle of the chunk
// while the gates allow it (spec 4.2), by halves beyond (spec 4.3), uniformly for the chunk.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 1.160000e+02 : f32
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf32>
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<16x64xf32>)
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[BETA:.*]] = gdn_tile.load %beta
// CHECK: %[[GATE:.*]] = gdn_tile.load %gate{{.*}} axes [1, 3] {{.*}}"load"} : {{.*}} -> tensor<32x64xf32>
// CHECK: %[[G:.*]] = gdn_tile.scan %{{.*}} axis 0 {gdn_tile.step = "decay"} : tensor<32x64xf32>
// CHECK: %[[MIDDLE:.*]] = tensor.extract_slice %[[G]][15, 0] [1, 64]
// CHECK: %[[IN_RANGE:.*]] = arith.cmpf ole, %{{.*}}, %[[LARGEST]] : f32
// CHECK: %[[TILES:.*]]:7 = scf.if %[[IN_RANGE]]

// One reference: the state goes there, and on to the end.
// CHECK: %[[F1:.*]] = math.exp2 %[[MIDDLE]]
// CHECK: %[[TO_END:.*]] = arith.subf %{{.*}}, %[[MIDDLE]]
// CHECK: %[[F2:.*]] = math.exp2 %[[TO_END]]
// What reads the state is an operand of the scores. Keys that write it are taken on to the chunk's end.
// CHECK: %[[KF:.*]] = arith.extf %[[K]] {{.*}}gdn_tile.step = "decay"}
// CHECK: %[[E:.*]] = gdn_tile.rebase %[[G]] axis 0 block 32 at 15
// CHECK-DAG: %[[LATER:.*]] = math.exp2 %[[E]]
// CHECK-DAG: %[[DOWN:.*]] = arith.negf %[[E]]
// CHECK: %[[EARLIER:.*]] = math.exp2 %[[DOWN]]
// CHECK: %[[KM:.*]] = arith.mulf %[[KF]], %[[EARLIER]]
// CHECK: %[[KUP:.*]] = arith.mulf %[[KF]], %[[LATER]]
// CHECK: %[[KP:.*]] = arith.truncf %[[KUP]]
// CHECK: %[[QUP:.*]] = arith.mulf %{{.*}}, %[[LATER]]
// CHECK: %[[QP:.*]] = arith.truncf %[[QUP]]
// CHECK: %[[KEND:.*]] = arith.mulf %[[KM]], %
// CHECK: %[[KR:.*]] = arith.truncf %[[KEND]]
// CHECK: %[[KMB:.*]] = arith.truncf %[[KM]]
// CHECK: %[[KK:.*]] = linalg.contract {{.*}} ins(%[[KP]], %[[KMB]] :
// CHECK: %[[QK:.*]] = linalg.contract {{.*}} ins(%[[QP]], %[[KMB]] :
// CHECK: scf.yield %[[F1]], %[[F2]], %[[KP]], %[[KR]], %[[KK]], %[[QP]], %[[QK]]

// By halves of 16, 8, 4, 2 and 1, and the diagonal: a factor of at most 1, from the end of the earlier half or up to it; of
// the products of each level some pairs are taken, which are added where they stand.
// CHECK: } else {
// CHECK: %[[HALVES:.*]] = gdn_tile.rebase %[[G]] axis 0 block 32 at 15
// CHECK: %[[DISTANCE:.*]] = math.absf %[[HALVES]]
// CHECK: %[[BELOW:.*]] = arith.negf %[[DISTANCE]]
// CHECK: math.exp2 %[[BELOW]]
// CHECK: gdn_tile.rebase %[[G]] axis 0 block 16 at 7
// CHECK: gdn_tile.rebase %[[G]] axis 0 block 8 at 3
// CHECK: gdn_tile.rebase %[[G]] axis 0 block 4 at 1
// CHECK: gdn_tile.rebase %[[G]] axis 0 block 2 at 0
// CHECK: gdn_tile.rebase %[[G]] axis 0 block 1 at 0
// CHECK: linalg.contract
// CHECK: arith.addf {{.*}}gdn_tile.made_here
// CHECK: linalg.contract
// CHECK: %[[QKH:.*]] = arith.addf {{.*}}gdn_tile.made_here
// The state is read at the chunk's start, without a decay.
// CHECK: %[[F2H:.*]] = math.exp2
// CHECK: math.exp2 %[[G]]
// CHECK: scf.yield %[[ONES]], %[[F2H]], {{.*}}, %[[QKH]] :
// CHECK: }

// What lies above the diagonal, infinities included, goes here.
// CHECK: gdn_tile.causal %{{.*}} : tensor<32x32xbf16>
// CHECK: %[[BM:.*]] = arith.mulf %[[TILES]]#4, %
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[BM]] {{.*}} to tensor<32x32xf16>
// CHECK: %[[M:.*]] = gdn_tile.causal strict %[[ROUNDED]]
// CHECK: gdn_tile.tri_inverse %[[M]] merge f16
// To the reference, and from there to the chunk's end.
// CHECK: linalg.broadcast ins(%[[TILES]]#0 {{.*}} dimensions = [0] {gdn_tile.step = "state"}
// CHECK: %[[X:.*]] = arith.mulf %[[S]], %
// CHECK: linalg.broadcast ins(%[[TILES]]#1 {{.*}} dimensions = [0] {gdn_tile.step = "state"}
// CHECK: %[[CARRIED:.*]] = arith.mulf %[[X]], %
// CHECK: %[[XB:.*]] = arith.truncf %[[X]]
// CHECK: linalg.contract {{.*}} ins(%[[XB]], %[[TILES]]#2 :
// CHECK: linalg.contract {{.*}} ins(%[[XB]], %[[TILES]]#5 :
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[TILES]]#3 : {{.*}}) outs(%[[CARRIED]] :
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x64xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      {chunk_size = 32} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}

// A lower bound of -5 keeps every factor in range: nothing to choose.
// CHECK-LABEL: gdn_tile.program @bounded_fused(
// CHECK-NOT: scf.if
// CHECK: gdn_tile.rebase {{.*}} block 32 at 15
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @bounded
func.func @bounded(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4x64xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4x64xf32>)
      {chunk_size = 32, gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0 : f64} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}
