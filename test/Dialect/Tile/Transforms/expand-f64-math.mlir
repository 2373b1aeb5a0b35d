// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-expand-f64-math))' | FileCheck %s --implicit-check-not="math.exp %" --implicit-check-not="math.log"

// CHECK-LABEL: gdn_tile.program @functions
gdn_tile.program @functions(%x: memref<64xf64>, %s: f64) outs(%y: memref<64xf64>, %z: memref<64xf32>)
    work_item(%n, %h, %v) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[X:.*]] = gdn_tile.load
  %a = gdn_tile.load %x[%c0] axes [0] {gdn_tile.step = "load"} : memref<64xf64> -> tensor<64xf64>
  // n = round(x / log 2), r = x - n log 2.
  // CHECK: %[[SHIFT:.*]] = arith.constant dense<0x4338000000000000> : tensor<64xf64>
  // CHECK: %[[SHIFTED:.*]] = math.fma %[[X]], %{{.*}}, %[[SHIFT]] {gdn_tile.step = "gates"} : tensor<64xf64>
  // CHECK: %[[N:.*]] = arith.subf %[[SHIFTED]], %[[SHIFT]] {gdn_tile.step = "gates"} : tensor<64xf64>
  // CHECK: %[[R:.*]] = math.fma %[[N]], %{{.*}}, %[[X]] {gdn_tile.step = "gates"} : tensor<64xf64>
  // CHECK: arith.bitcast %[[SHIFTED]] {gdn_tile.step = "gates"} : tensor<64xf64> to tensor<64xi64>
  // CHECK-COUNT-8: math.fma %{{.*}}, %[[R]], %{{.*}}
  // CHECK: arith.cmpf olt, %[[X]]
  // CHECK: arith.cmpf ugt, %[[X]]
  // CHECK: %[[E:.*]] = arith.select
  %e = math.exp %a {gdn_tile.step = "gates"} : tensor<64xf64>
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[E]]
  // CHECK: arith.shrsi
  // CHECK: arith.sitofp
  // CHECK: arith.divf
  // CHECK-COUNT-5: math.fma
  // CHECK: arith.cmpf oeq, %[[E]]
  // CHECK: arith.cmpf ueq, %[[E]]
  // CHECK: arith.cmpf olt, %[[E]]
  // CHECK: %[[L:.*]] = arith.select
  %l = math.log %e {gdn_tile.step = "gates"} : tensor<64xf64>
  // x itself is 1 + x - 1, with the digits that 1 + x has lost.
  // CHECK: %[[U:.*]] = arith.addf %[[L]]
  // CHECK: %[[SMALL:.*]] = arith.cmpf oeq
  // CHECK: arith.select %[[SMALL]], %[[L]]
  // CHECK: arith.cmpf olt, %[[U]]
  %p = math.log1p %l {gdn_tile.step = "gates"} : tensor<64xf64>
  // A number has no step.
  // CHECK: arith.bitcast {{.*}} : f64 to i64
  // CHECK: %[[T:.*]] = arith.select {{.*}} : f64
  // CHECK: tensor.splat
  %t = math.exp %s : f64
  %b = tensor.splat %t {gdn_tile.step = "gates"} : tensor<64xf64>
  %o = arith.mulf %p, %b {gdn_tile.step = "gates"} : tensor<64xf64>
  // Functions of f32 stay.
  %f = arith.truncf %o {gdn_tile.step = "gates"} : tensor<64xf64> to tensor<64xf32>
  // CHECK: math.exp2 %{{.*}} : tensor<64xf32>
  %g = math.exp2 %f {gdn_tile.step = "gates"} : tensor<64xf32>
  gdn_tile.store %o, %y[%c0] axes [0] {gdn_tile.step = "store"} : tensor<64xf64> -> memref<64xf64>
  gdn_tile.store %g, %z[%c0] axes [0] {gdn_tile.step = "store"} : tensor<64xf32> -> memref<64xf32>
}
