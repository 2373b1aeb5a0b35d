// RUN: gdn-opt %s --gdn-warp-outline-linalg --canonicalize --cse --split-input-file | FileCheck %s
// Work on whole tensors becomes programs. The scalars of a body become tiles, with a row a token.

// Elementwise, in one role. What is left of the function are sizes and the launch.
// CHECK-LABEL: gdn_tile.program @scale_map
// CHECK-SAME: (%x0: memref<?x?x4x128xbf16, strided<[?, ?, ?, 1], offset: ?>>, %x1: memref<4xf32, strided<[1], offset: ?>>)
// CHECK-SAME: outs(%y: memref<?x?x4x128xbf16, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK-SAME: work_item(%[[N:.*]], %[[H:.*]], %[[PART:.*]]) tokens(%[[B:.*]], %[[BEGIN:.*]], %[[END:.*]])
// CHECK-SAME: roles = [<name = "rows", warps = 4, registers = 240, steps = ["state"]>], channels = []
// CHECK: %[[ONE:.*]] = gdn_tile.load %x1[%[[H]]] axes [0]
// CHECK: %[[RATE:.*]] = tensor.extract %[[ONE]]
// The parts of a head take its chunks in turn.
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %c64
// CHECK: %[[LOWER:.*]] = arith.addi %[[BEGIN]], %[[FIRST]]
// CHECK: scf.for %[[T:.*]] = %[[LOWER]] to %[[END]] step %c1024
// CHECK:   %[[X:.*]] = gdn_tile.load %x0[%[[B]], %[[T]], %[[H]], %c0] axes [1, 3] until(%[[END]], dim = 1)
// CHECK-SAME: -> tensor<64x128xbf16>
// CHECK:   %[[R:.*]] = tensor.splat %[[RATE]] {{.*}}: tensor<64x128xf32>
// CHECK:   %[[W:.*]] = arith.extf %[[X]] {{.*}}: tensor<64x128xbf16> to tensor<64x128xf32>
// CHECK:   %[[M:.*]] = arith.mulf %[[W]], %[[R]]
// CHECK:   %[[O:.*]] = arith.truncf %[[M]]
// CHECK:   gdn_tile.store %[[O]], %y[%[[B]], %[[T]], %[[H]], %c0] axes [1, 3] until(%[[END]], dim = 1)
// CHECK-LABEL: func.func @scale
// CHECK: %[[BATCH:.*]] = tensor.dim %arg0, %c0
// CHECK: %[[TOKENS:.*]] = tensor.dim %arg0, %c1
// CHECK: %[[E:.*]] = tensor.empty(%[[BATCH]], %[[TOKENS]])
// CHECK: %[[Y:.*]] = gdn_tile.launch @scale_map grid(%[[BATCH]], %c4, %c16) tokens(%[[TOKENS]])
// CHECK-SAME: ins(%arg0, %arg1 : tensor<?x?x4x128xbf16>, tensor<4xf32>) outs(%[[E]] : tensor<?x?x4x128xbf16>)
// CHECK-NEXT: return %[[Y]]
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#head = affine_map<(b, t, h, k) -> (h)>
func.func @scale(%x: tensor<?x?x4x128xbf16>, %rate: tensor<4xf32>) -> tensor<?x?x4x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x4x128xbf16>
  %t = tensor.dim %x, %c1 : tensor<?x?x4x128xbf16>
  %e = tensor.empty(%b, %t) : tensor<?x?x4x128xbf16>
  %y = linalg.generic {indexing_maps = [#bthk, #head, #bthk], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %rate : tensor<?x?x4x128xbf16>, tensor<4xf32>) outs(%e : tensor<?x?x4x128xbf16>) {
  ^bb0(%a: bf16, %r: f32, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %m = arith.mulf %w, %r : f32
    %o = arith.truncf %m : f32 to bf16
    linalg.yield %o : bf16
  } -> tensor<?x?x4x128xbf16>
  return %y : tensor<?x?x4x128xbf16>
}

// -----

// Sums of rows, times a number a token: a second role has the vectors.
// CHECK-LABEL: gdn_tile.program @sums_map
// CHECK-SAME: roles = [<name = "vectors", warps = 1, registers = 96, steps = ["gates", "store"]>,
// CHECK-SAME: <name = "rest", warps = 3, registers = 96, steps = []>,
// CHECK-SAME: <name = "rows", warps = 4, registers = 240, steps = ["state"]>]
// CHECK-SAME: channels = [<name = "in", depth = 2, from = ["gates"], to = ["rows"]>,
// CHECK-SAME: <name = "out", depth = 2, from = ["state"], to = ["vectors"]>]
// CHECK: %[[V:.*]] = gdn_tile.load %x1{{.*}} axes [1] {{.*}}gdn_tile.step = "gates"{{.*}} -> tensor<64xf32>
// CHECK: linalg.broadcast ins(%[[V]] : tensor<64xf32>) {{.*}} dimensions = [1]
// CHECK: %[[S:.*]] = linalg.reduce {{.*}} dimensions = [1]
// CHECK: gdn_tile.store %[[S]], %y{{.*}} axes [1] {{.*}}gdn_tile.step = "store"
#bthk = affine_map<(b, t, h, k) -> (b, t, h, k)>
#row = affine_map<(b, t, h, k) -> (b, t, h)>
func.func @sums(%x: tensor<1x256x4x64xf32>, %s: tensor<1x256x4xf32>) -> tensor<1x256x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  %y = linalg.generic {indexing_maps = [#bthk, #row, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %s : tensor<1x256x4x64xf32>, tensor<1x256x4xf32>) outs(%z : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %f: f32, %acc: f32):
    %m = arith.mulf %a, %f : f32
    %r = arith.addf %m, %acc : f32
    linalg.yield %r : f32
  } -> tensor<1x256x4xf32>
  return %y : tensor<1x256x4xf32>
}

// -----

// The value heads of a q/k head: 3 h, 3 h + 1 and 3 h + 2.
// CHECK-LABEL: gdn_tile.program @group_map
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c3
// CHECK: gdn_tile.load %x0[%{{.*}}, %{{.*}}, %[[FIRST]], %c0]
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c1
// CHECK: %[[B:.*]] = gdn_tile.load %x0[%{{.*}}, %{{.*}}, %[[SECOND]], %c0]
// CHECK: %[[TWO:.*]] = arith.addf %{{.*}}, %[[B]]
// CHECK: %[[C:.*]] = gdn_tile.load %x0
// CHECK: arith.addf %[[TWO]], %[[C]]
// CHECK: gdn_tile.launch @group_map grid(%c1, %c2, %c16) tokens(%c256) ins(%arg0 : tensor<1x256x6x64xf32>)
#grouped = affine_map<(b, t, h, k, g) -> (b, t, h, g, k)>
#summed = affine_map<(b, t, h, k, g) -> (b, t, h, k)>
func.func @group(%x: tensor<1x256x6x64xf32>) -> tensor<1x256x2x64xf32> {
  %zero = arith.constant 0.0 : f32
  %view = tensor.expand_shape %x [[0], [1], [2, 3], [4]] output_shape [1, 256, 2, 3, 64]
      : tensor<1x256x6x64xf32> into tensor<1x256x2x3x64xf32>
  %e = tensor.empty() : tensor<1x256x2x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x2x64xf32>) -> tensor<1x256x2x64xf32>
  %y = linalg.generic {indexing_maps = [#grouped, #summed],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%view : tensor<1x256x2x3x64xf32>) outs(%z : tensor<1x256x2x64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x256x2x64xf32>
  return %y : tensor<1x256x2x64xf32>
}

// -----

// An array of zeros that a launch reads has a program. Zeros that a sum begins at have none.
// CHECK: gdn_tile.program @take()
// CHECK-LABEL: gdn_tile.program @zeros_map() outs(%y: memref<?x4x128x64xf32,
// CHECK: %[[ZEROS:.*]] = arith.constant {gdn_tile.step = "state"} dense<0.000000e+00> : tensor<64x64xf32>
// CHECK: scf.for
// CHECK-NEXT: gdn_tile.store %[[ZEROS]], %y
// CHECK-LABEL: gdn_tile.program @zeros_map_0(%x0
// CHECK: linalg.reduce
// CHECK-LABEL: func.func @zeros
// CHECK: %[[FILLED:.*]] = gdn_tile.launch @zeros_map grid({{.*}}, %c128, %c16) tokens(%c4) outs(
// CHECK: gdn_tile.launch @zeros_map_0
// CHECK: gdn_tile.launch @take {{.*}} outs(%[[FILLED]]
#rows = affine_map<(b, t, h, k) -> (b, t, h, k)>
#sums = affine_map<(b, t, h, k) -> (b, t, h)>
gdn_tile.program @take() outs(%s: memref<?x4x128x64xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {}
func.func @zeros(%x: tensor<1x256x4x64xf32>, %n: index) -> (tensor<?x4x128x64xf32>, tensor<1x256x4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x4x128x64xf32>
  %f = tensor.empty() : tensor<1x256x4xf32>
  %state = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4x128x64xf32>) -> tensor<?x4x128x64xf32>
  %none = linalg.fill ins(%zero : f32) outs(%f : tensor<1x256x4xf32>) -> tensor<1x256x4xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x256x4x64xf32>) outs(%none : tensor<1x256x4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<1x256x4xf32>
  %taken = gdn_tile.launch @take grid(%n, %c4, %c1) tokens(%c4) outs(%state : tensor<?x4x128x64xf32>) -> tensor<?x4x128x64xf32>
  return %taken, %sum : tensor<?x4x128x64xf32>, tensor<1x256x4xf32>
}
