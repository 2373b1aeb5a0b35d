// A conversion is a launch of a program of its own: copies go by tiles, what computes by rows.
// RUN: gdn-opt %s --convert-gdn-to-tile | FileCheck %s
// RUN: gdn-opt %s --convert-gdn-to-tile --gdn-warp-choose-schedule | FileCheck %s --check-prefix=SCHEDULE

// CHECK-LABEL: gdn_tile.program @transpose_convert(%{{[^:]*}}: memref<?x?x?x?xf32, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK-SAME: outs(%{{[^:]*}}: memref<?x?x?x?xf32, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK-SAME: {gdn_tile.stage = "convert"}
// SCHEDULE-LABEL: gdn_tile.program @transpose_convert(
// SCHEDULE-SAME: persistent = true, min_ctas = 2, roles = [<name = "load", warps = 8, registers = 96
// SCHEDULE-SAME: <name = "tiles", depth = 12
// CHECK: gdn_tile.load {{.*}} axes [3, 2] until(%{{.*}}, dim = 3) {gdn_tile.step = "load"} : {{.*}} -> tensor<64x32xf32>
// CHECK: gdn_tile.store {{.*}} axes [1, 3] until(%{{.*}}, dim = 1) {gdn_tile.step = "store"}
// CHECK-LABEL: func.func @transpose
// CHECK: gdn_tile.launch @transpose_convert grid(
func.func @transpose(%x: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %y = gdn.convert transpose input(%x : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}

// CHECK-LABEL: gdn_tile.program @copy_convert(%{{[^:]*}}: memref<?x?x?x?xbf16, strided<[?, ?, ?, ?], offset: ?>>)
// CHECK-SAME: outs(%{{[^:]*}}: memref<?x?x?x?xbf16, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK: gdn_tile.load {{.*}} axes [1, 3] until(%{{.*}}, dim = 1) {{.*}} -> tensor<64x64xbf16>
func.func @copy(%x: tensor<?x?x?x?xbf16>) -> tensor<?x?x?x?xbf16> {
  %y = gdn.convert copy input(%x : tensor<?x?x?x?xbf16>) -> tensor<?x?x?x?xbf16>
  return %y : tensor<?x?x?x?xbf16>
}

// Rows and channels beyond the input read as zeros, and rows end where the target does.
// CHECK-LABEL: gdn_tile.program @cast_convert(
// SCHEDULE-LABEL: gdn_tile.program @cast_convert(
// SCHEDULE-SAME: chunks_per_iteration = 4, v_tiles = 1, min_ctas = 8, roles = [<name = "rows", warps = 4, registers = 64
// CHECK: %[[WIDTH:.*]] = memref.dim %{{.*}}, %c3
// CHECK: %[[FACTOR:.*]] = tensor.splat
// CHECK: scf.for
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: %[[LIMIT:.*]] = arith.select %[[INSIDE]]
// CHECK: %[[X:.*]] = gdn_tile.load {{.*}} axes [3] until(%[[LIMIT]], dim = 3)
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[FACTOR]] {gdn_tile.step = "cast"} : tensor<128xf32>
// CHECK: gdn_tile.store %[[PRODUCT]], {{.*}} until(%[[WIDTH]], dim = 3)
func.func @cast(%x: tensor<?x?x?x?xbf16>, %like: tensor<?x?x?x?xf32>, %factor: f32) -> tensor<?x?x?x?xf32> {
  %y = gdn.convert cast input(%x : tensor<?x?x?x?xbf16>) like(%like : tensor<?x?x?x?xf32>) factor(%factor : f32) -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}

// Functions are computed in f64, and parameters are read once.
// CHECK-LABEL: gdn_tile.program @log_convert(
// SCHEDULE-LABEL: gdn_tile.program @log_convert(
// SCHEDULE-SAME: chunks_per_iteration = 4, v_tiles = 1, min_ctas = 4, roles = [<name = "rows", warps = 4, registers = 128
// CHECK: %[[RATE:.*]] = math.exp {{.*}} {gdn_tile.step = "activate"} : tensor<128xf64>
// CHECK: scf.for
// CHECK: math.log1p {{.*}} : tensor<128xf64>
// CHECK: arith.mulf %{{.*}}, %[[RATE]]
// CHECK: arith.negf
// CHECK: arith.truncf {{.*}} : tensor<128xf64> to tensor<128xf32>
func.func @log(%x: tensor<?x?x?x?xf16>, %like: tensor<?x?x?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?xf32>) -> tensor<?x?x?x?xf32> {
  %y = gdn.convert softplus_to_log input(%x : tensor<?x?x?x?xf16>) like(%like : tensor<?x?x?x?xf32>) a_log(%a_log : tensor<?xf32>)
      dt_bias(%dt_bias : tensor<?xf32>) -> tensor<?x?x?x?xf32>
  return %y : tensor<?x?x?x?xf32>
}
