// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-delay-conversions))' | FileCheck %s

#spread = #gdn_warp.spread<rows = 1, columns = 8, axis = 1, lanes = 16, warps = 1>
#columns = #gdn_warp.slice<of = <rows = 1, columns = 8, axis = 1, lanes = 16, warps = 1>, axis = 1>

// A tile that is converted before the loop is carried to the first op that takes it, behind the iteration's own loads. A
// loop without iterations gives the tile.
// CHECK-LABEL: gdn_warp.kernel @state(
// CHECK: %[[LOADED:.*]] = gdn_warp.array_load %states
// CHECK-NOT: arith.extf
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0, %[[COUNT:.*]] : index
// CHECK: %[[STATE:.*]] = scf.if %[[ANY]] -> (tensor<2x128xf32, #[[SPREAD:.*]]>) {
// CHECK: %[[POISON:.*]] = ub.poison : tensor<2x128xf32, #[[SPREAD]]>
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[TOKEN:.*]] = %c0 to %[[COUNT]] step %c1 iter_args(%[[CARRIED:.*]] = %[[POISON]], %[[STORED:.*]] = %[[LOADED]])
// CHECK: %[[KEY:.*]] = gdn_warp.array_load %k
// CHECK: %[[TILE:.*]] = linalg.broadcast ins(%[[KEY]]
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TOKEN]], %c0 : index
// CHECK: %[[NOW:.*]] = scf.if %[[FIRST]]
// CHECK: %[[CONVERTED:.*]] = arith.extf %[[STORED]]
// CHECK: scf.yield %[[CONVERTED]]
// CHECK: } else {
// CHECK: scf.yield %[[CARRIED]]
// CHECK: } {gdn_warp.likely = true}
// CHECK: %[[NEXT:.*]] = arith.mulf %[[NOW]], %[[TILE]]
// CHECK: %[[LATER:.*]] = arith.truncf %[[NEXT]]
// CHECK: scf.yield %[[NEXT]], %[[LATER]]
// CHECK: scf.yield %[[LOOP]]#0
// CHECK: } else {
// CHECK: %[[WHOLE:.*]] = arith.extf %[[LOADED]]
// CHECK: scf.yield %[[WHOLE]]
// CHECK: gdn_warp.array_store %[[STATE]], %results
gdn_warp.kernel @state(%states: memref<2x128xbf16>, %k: memref<?x128xf32>, %results: memref<2x128xf32>, %n: i64) threads(32) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i64 to index
  gdn_warp.role "state" warps(0, 1) {
    %loaded = gdn_warp.array_load %states[%c0, %c0] axes [0, 1] : memref<2x128xbf16> -> tensor<2x128xbf16, #spread>
    %state = arith.extf %loaded : tensor<2x128xbf16, #spread> to tensor<2x128xf32, #spread>
    %last = scf.for %token = %c0 to %count step %c1 iter_args(%carried = %state) -> (tensor<2x128xf32, #spread>) {
      %key = gdn_warp.array_load %k[%token, %c0] axes [1] : memref<?x128xf32> -> tensor<128xf32, #columns>
      %empty = tensor.empty() : tensor<2x128xf32, #spread>
      %keys = linalg.broadcast ins(%key : tensor<128xf32, #columns>) outs(%empty : tensor<2x128xf32, #spread>) dimensions = [0]
      %next = arith.mulf %carried, %keys : tensor<2x128xf32, #spread>
      scf.yield %next : tensor<2x128xf32, #spread>
    }
    gdn_warp.array_store %last, %results[%c0, %c0] axes [0, 1] : tensor<2x128xf32, #spread> -> memref<2x128xf32>
  }
}

// What something else takes, too, is converted where it is.
// CHECK-LABEL: gdn_warp.kernel @taken(
// CHECK: %[[STATE:.*]] = arith.extf
// CHECK: gdn_warp.array_store %[[STATE]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[STATE]])
// CHECK-NOT: scf.if
gdn_warp.kernel @taken(%states: memref<2x128xbf16>, %results: memref<2x128xf32>, %n: i64) threads(32) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i64 to index
  gdn_warp.role "state" warps(0, 1) {
    %loaded = gdn_warp.array_load %states[%c0, %c0] axes [0, 1] : memref<2x128xbf16> -> tensor<2x128xbf16, #spread>
    %state = arith.extf %loaded : tensor<2x128xbf16, #spread> to tensor<2x128xf32, #spread>
    gdn_warp.array_store %state, %results[%c0, %c0] axes [0, 1] : tensor<2x128xf32, #spread> -> memref<2x128xf32>
    %last = scf.for %token = %c0 to %count step %c1 iter_args(%carried = %state) -> (tensor<2x128xf32, #spread>) {
      %next = arith.addf %carried, %carried : tensor<2x128xf32, #spread>
      scf.yield %next : tensor<2x128xf32, #spread>
    }
    gdn_warp.array_store %last, %results[%c0, %c0] axes [0, 1] : tensor<2x128xf32, #spread> -> memref<2x128xf32>
  }
}
