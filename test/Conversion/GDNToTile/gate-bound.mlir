// RUN: gdn-opt %s --convert-gdn-to-tile | FileCheck %s

// Work items share the tokens of a sequence: one for 64 of a sequence of mean length. One that begins when a strong block is
// known leaves.

// CHECK-LABEL: gdn_tile.program @logs_gate_bound
// CHECK-SAME: %part_count: index
// CHECK: %[[FOUND:.*]] = memref.load %found[%c0, %c0, %c0]
// CHECK: %[[IS:.*]] = arith.cmpf ogt, %[[FOUND]]
// CHECK: gdn_tile.leave %[[IS]]
// CHECK: %[[FIRST:.*]] = arith.minui %{{.*}}, %end : index
// CHECK: %[[END:.*]] = arith.minui %{{.*}}, %end : index
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c8
// A token past the end is the last one, which does not count again.
// CHECK-COUNT-8: gdn_tile.load %gate[%batch, %{{.*}}, %h, %c0] axes [3]
// CHECK-NOT: gdn_tile.load
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[END]]
// CHECK: arith.select %[[INSIDE]], %{{.*}}, %{{.*}} {{.*}}: tensor<128xf32>
// CHECK: math.absf
// CHECK: %[[LIMIT:.*]] = tensor.splat %cst{{.*}} : tensor<128xf32>
// CHECK: arith.cmpf ugt, %{{.*}}, %[[LIMIT]] {{.*}}: tensor<128xf32>
// CHECK: scf.if
// CHECK: gdn_tile.store %{{.*}}, %strong[%c0, %c0, %c0]
// CHECK-LABEL: func.func @logs
// CHECK: %[[SHARED:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[ITEMS:.*]] = arith.ceildivui %{{.*}}, %{{.*}}
// CHECK: %[[AT_LEAST:.*]] = arith.maxui %[[ITEMS]], %c1
// CHECK: gdn_tile.launch @logs_gate_bound grid(%{{.*}}, %{{.*}}, %c1{{.*}}, %[[AT_LEAST]]) {{.*}} ins(%arg0, %arg1, %arg3, %[[AT_LEAST]] : {{.*}}) outs(%arg3 : tensor<1x1x1xf32>)
func.func @logs(%k: tensor<1x?x2x128xbf16>, %g: tensor<1x?x?x128xf32>, %cu: tensor<?xi32>, %none: tensor<1x1x1xf32>) -> tensor<1x1x1xf32> {
  %r = gdn.stage.gate_bound k(%k : tensor<1x?x2x128xbf16>) gate(%g : tensor<1x?x?x128xf32>) cu_seqlens(%cu : tensor<?xi32>)
      none(%none : tensor<1x1x1xf32>) {lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}

// The logarithms of raw gates have one logarithm for all of a block. That has not the digits for a large exp(A_log).
// CHECK-LABEL: gdn_tile.program @raw_gate_bound
// CHECK: %[[RATE:.*]] = math.exp2
// CHECK: %[[IS_EXACT:.*]] = arith.cmpf ole, %[[RATE]], %{{.*}} : f32
// CHECK: %[[MOST:.*]] = arith.select %[[IS_EXACT]], %{{.*}}, %{{.*}} : f32
// CHECK: scf.for {{.*}} step %c8
// CHECK-COUNT-8: gdn_tile.load %gate[%batch, %{{.*}}, %h, %c0] axes [3]
// CHECK-COUNT-8: math.exp2
// CHECK: math.log2
// CHECK: arith.cmpf ugt
func.func @raw(%k: tensor<2x64x2x128xbf16>, %g: tensor<2x64x4x128xbf16>, %a: tensor<4xf32>, %b: tensor<4x128xf32>, %none: tensor<1x1x1xf32>)
    -> tensor<1x1x1xf32> {
  %r = gdn.stage.gate_bound k(%k : tensor<2x64x2x128xbf16>) gate(%g : tensor<2x64x4x128xbf16>) a_log(%a : tensor<4xf32>)
      dt_bias(%b : tensor<4x128xf32>) none(%none : tensor<1x1x1xf32>)
      {gate_domain = #gdn.gate_domain<softplus>, lower_bound = -5.0 : f64} -> tensor<1x1x1xf32>
  return %r : tensor<1x1x1xf32>
}
