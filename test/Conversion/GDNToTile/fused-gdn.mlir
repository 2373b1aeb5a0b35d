// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip | FileCheck %s

// One gate a token: the decay-free form of spec 3.7 while G stays in range,
// uniformly for the chunk, and the form of spec 3.3 beyond. Each choice is of one
// step: the triangles with or without the decay, then the chain.

// CHECK-LABEL: gdn_tile.program @layer_fused(
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant -1.000000e+02 : f32
// CHECK-DAG: %[[RESTART:.*]] = arith.constant -2.400000e+01 : f32
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 2.400000e+01 : f32
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[REF:.*]] = %[[NONE]])
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[VIN:.*]] = gdn_tile.load %v
// CHECK: %[[V:.*]] = arith.extf %[[VIN]]
// CHECK: %[[BETA:.*]] = gdn_tile.load %beta
// CHECK: %[[KKF:.*]] = linalg.contract {{.*}}"scores"} ins(%[[K]], %[[K]] :
// CHECK: %[[QK:.*]] = linalg.contract {{.*}}"scores"}
// CHECK: %[[M:.*]] = arith.mulf %[[KKF]], %{{.*}}"scores"}

// G: log2 units, since the chunk's start and since the reference point.
// CHECK: %[[GATE:.*]] = gdn_tile.load %gate[%batch, %{{.*}}, %h] axes [1] until(%end, dim = 1) {gdn_tile.step = "gates"}
// CHECK: %[[LOG2:.*]] = arith.mulf %[[GATE]], %{{.*}}"gates"}
// CHECK: %[[CLAMPED:.*]] = arith.maximumf %[[LOG2]], %{{.*}}"gates"}
// CHECK: %[[GC:.*]] = gdn_tile.scan %[[CLAMPED]] axis 0 {gdn_tile.step = "gates"}
// CHECK: %[[SINCE:.*]] = tensor.splat %[[REF]] {gdn_tile.step = "gates"}
// CHECK: %[[G:.*]] = arith.addf %[[GC]], %[[SINCE]]
// CHECK: %[[LAST:.*]] = tensor.extract %[[G]][
// CHECK: %[[IN_RANGE:.*]] = arith.cmpf oge, %[[LAST]], %[[LOWEST]] : f32
// CHECK: %[[LOW:.*]] = arith.cmpf olt, %[[LAST]], %[[RESTART]] : f32
// One vector for both forms: beta exp2(-G) for values, beta exp2(G) for what keys read.
// CHECK: %[[SIGN:.*]] = arith.select %[[IN_RANGE]], %[[MINUS:.*]], %{{.*}} : f32
// CHECK: %[[SIGNS:.*]] = tensor.splat %[[SIGN]] {gdn_tile.step = "gates"}
// CHECK: %[[SIGNED:.*]] = arith.mulf %[[G]], %[[SIGNS]] {{.*}}"gates"}
// CHECK: %[[EXP:.*]] = math.exp2 %[[SIGNED]] {gdn_tile.step = "gates"}
// CHECK: %[[FACTOR:.*]] = arith.mulf %[[EXP]], %[[BETA]] {{.*}}"gates"}
// CHECK: %[[GAM:.*]] = math.exp2 %[[G]] {gdn_tile.step = "gates"}
// CHECK: %[[OUT:.*]] = arith.mulf %[[GAM]], %{{.*}}"gates"}

// The triangles: as they are, or times D, and cut last, so that what D is above
// them does not matter.
// CHECK: %[[MR:.*]] = scf.if %[[IN_RANGE]]
// CHECK: arith.truncf %[[M]] {gdn_tile.step = "scores"} : tensor<32x32xf32> to tensor<32x32xf16>
// CHECK: } else {
// CHECK: %[[ROWS:.*]] = linalg.broadcast ins(%[[GC]] {{.*}} dimensions = [1]
// CHECK: %[[COLS:.*]] = linalg.broadcast ins(%[[GC]] {{.*}} dimensions = [0]
// CHECK: %[[DIFF:.*]] = arith.subf %[[ROWS]], %[[COLS]]
// CHECK: %[[D:.*]] = math.exp2 %[[DIFF]] {gdn_tile.step = "scores"}
// CHECK: arith.mulf %[[M]], %[[D]] {{.*}}"scores"}
// CHECK: %[[CUT:.*]] = gdn_tile.causal strict %[[MR]] {gdn_tile.step = "scores"} : tensor<32x32xf16>
// CHECK: %[[PR:.*]] = scf.if %[[IN_RANGE]]
// CHECK: arith.truncf %[[QK]] {gdn_tile.step = "scores"} : tensor<32x32xf32> to tensor<32x32xbf16>
// CHECK: } else {
// The scale is in decayed scores.
// CHECK: %[[QKD:.*]] = arith.mulf %[[QK]], %{{.*}}"scores"}
// CHECK: arith.mulf %[[QKD]], %{{.*}}"scores"}
// CHECK: gdn_tile.causal %[[PR]] {gdn_tile.step = "scores"} : tensor<32x32xbf16>
// CHECK: gdn_tile.tri_inverse %[[CUT]] merge f16
// CHECK: %[[WRITE:.*]] = math.exp2 %{{.*}} {gdn_tile.step = "gates"}

// Decay-free: values times beta over gam, the state as it is, the output times gam.
// CHECK: %[[CHAIN:.*]]:2 = scf.if %[[IN_RANGE]]
// CHECK: arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: %[[FREES:.*]] = linalg.broadcast ins(%[[FACTOR]]
// CHECK: arith.mulf %[[V]], %[[FREES]] {{.*}}"state"}
// CHECK: %[[SHAT:.*]] = linalg.contract {{.*}}outs(%[[S]] : tensor<16x64xf32>)
// CHECK: linalg.broadcast ins(%[[OUT]] {{.*}}"state"}
// A new reference point where G is low: G restarts above 0, S^ is S over what it restarts with.
// CHECK: scf.if %[[LOW]] -> (tensor<16x64xf32>)
// CHECK: %[[LESS:.*]] = arith.subf %[[LAST]], %[[FIRST]] : f32
// CHECK: %[[LOWER:.*]] = math.exp2 %[[LESS]] : f32
// CHECK: %[[LOWERS:.*]] = tensor.splat %[[LOWER]]
// CHECK: arith.mulf %[[SHAT]], %[[LOWERS]]
// CHECK: } else {
// CHECK: scf.yield %[[SHAT]]

// Decayed: products read S^, and their factors have the decay since the reference point. The queries' product is
// begun early, because it is multiplied by its factor before scores times writes are added. The state leaves the
// reference point under these products.
// CHECK: } else {
// CHECK: %[[DECAY:.*]] = math.exp2 %[[LAST]] : f32
// CHECK: %[[SROUND:.*]] = arith.truncf %[[S]] {gdn_tile.step = "state"}
// CHECK: %[[DECAYS:.*]] = tensor.splat %[[DECAY]]
// CHECK: %[[KS:.*]] = linalg.contract {{.*}}ins(%[[SROUND]], %[[K]] :
// CHECK: %[[QS:.*]] = linalg.contract {{.*}}ins(%[[SROUND]],
// CHECK: %[[CARRIED:.*]] = arith.mulf %[[S]], %[[DECAYS]]
// CHECK: %[[READS:.*]] = linalg.broadcast ins(%[[FACTOR]]
// CHECK: arith.mulf %[[KS]], %[[READS]] {{.*}}"state"}
// CHECK: linalg.contract {{.*}}"state"}
// CHECK: %[[OUTS:.*]] = linalg.broadcast ins(%[[OUT]]
// CHECK: %[[QSD:.*]] = arith.mulf %[[QS]], %[[OUTS]] {{.*}}"state"}
// CHECK: linalg.contract {{.*}}outs(%[[QSD]] :
// CHECK: linalg.broadcast ins(%[[WRITE]]
// CHECK: linalg.contract {{.*}}outs(%[[CARRIED]] :
// CHECK: gdn_tile.store %[[CHAIN]]#1
// CHECK: %[[KEPT:.*]] = arith.select %[[LOW]], %[[FIRST]], %[[LAST]] : f32
// CHECK: arith.select %[[IN_RANGE]], %[[KEPT]], %[[NONE]] : f32
func.func @layer(%q: tensor<1x64x2x64xbf16>, %k: tensor<1x64x2x64xbf16>, %v: tensor<1x64x4x16xbf16>,
    %beta: tensor<1x64x4xf32>, %gate: tensor<1x64x4xf32>) -> tensor<1x64x4x16xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x64x2x64xbf16>) k(%k : tensor<1x64x2x64xbf16>)
      v(%v : tensor<1x64x4x16xbf16>) beta(%beta : tensor<1x64x4xf32>) gate(%gate : tensor<1x64x4xf32>)
      {chunk_size = 32} -> tensor<1x64x4x16xbf16>
  return %o : tensor<1x64x4x16xbf16>
}
