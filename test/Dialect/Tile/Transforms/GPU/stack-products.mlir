// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-stack-products),canonicalize)' | FileCheck %s
// RUN: gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-stack-products{rows=32}),canonicalize)' \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: not gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-stack-products{rows=2147483648}))' \
// RUN:   2>&1 | FileCheck %s --check-prefix=BOUND -DGOT=2147483648
// RUN: not gdn-opt %s --split-input-file --pass-pipeline='builtin.module(gdn_tile.program(gdn-tile-stack-products{rows=-1}))' \
// RUN:   2>&1 | FileCheck %s --check-prefix=BOUND -DGOT=-1

// BOUND: error: 'gdn_tile.program' op expected rows to be 1 to 1024, got [[GOT]]

// Tiles that already have the rows of a product are left alone.
// SMALL-NOT: tensor.concat

#rows = affine_map<(i, j, k) -> (i, k)>
#columns = affine_map<(i, j, k) -> (j, k)>
#result = affine_map<(i, j, k) -> (i, j)>

// K K^T and Q K^T are one product of 64 rows; K, its right operand, is rows of the stack.
// CHECK-LABEL: gdn_tile.program @pair(
// CHECK: %[[K:.*]] = gdn_tile.load %k
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[KQ:.*]] = tensor.concat dim(0) %[[K]], %[[Q]] {gdn_tile.step = "load"} : {{.*}} -> tensor<64x128xbf16>
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %[[KQ]][0, 0] [32, 128] [1, 1]
// CHECK: %[[BOTH:.*]] = linalg.contract {{.*}}"scores"} ins(%[[KQ]], %[[ROWS]] : {{.*}} -> tensor<64x32xf32>
// CHECK-DAG: %[[KK:.*]] = tensor.extract_slice %[[BOTH]][0, 0] [32, 32] [1, 1] {gdn_tile.step = "scores"}
// CHECK-DAG: %[[QK:.*]] = tensor.extract_slice %[[BOTH]][32, 0] [32, 32] [1, 1] {gdn_tile.step = "scores"}
// CHECK-NOT: linalg.contract
// CHECK: gdn_tile.store %[[KK]], %x
// CHECK: gdn_tile.store %[[QK]], %y
gdn_tile.program @pair(%k: memref<32x128xbf16>, %q: memref<32x128xbf16>)
    outs(%x: memref<32x32xf32>, %y: memref<32x32xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %qt = gdn_tile.load %q[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %kk = linalg.contract indexing_maps = [#rows, #columns, #result] {gdn_tile.step = "scores"}
      ins(%kt, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %qk = linalg.contract indexing_maps = [#rows, #columns, #result] {gdn_tile.step = "scores"}
      ins(%qt, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  gdn_tile.store %kk, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %qk, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
}

// -----

#rows = affine_map<(i, j, k) -> (i, k)>
#columns = affine_map<(i, j, k) -> (j, k)>
#result = affine_map<(i, j, k) -> (i, j)>

// One product alone fills the rows with its operand again.
// CHECK-LABEL: gdn_tile.program @one(
// CHECK: %[[Q:.*]] = gdn_tile.load %q
// CHECK: %[[QQ:.*]] = tensor.concat dim(0) %[[Q]], %[[Q]]
// CHECK: linalg.contract {{.*}} ins(%[[QQ]], %{{.*}} -> tensor<64x32xf32>
gdn_tile.program @one(%k: memref<32x128xbf16>, %q: memref<32x128xbf16>)
    outs(%x: memref<32x32xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %qt = gdn_tile.load %q[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %qk = linalg.contract indexing_maps = [#rows, #columns, #result] {gdn_tile.step = "scores"}
      ins(%qt, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  gdn_tile.store %qk, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
}

// -----

#rows = affine_map<(i, j, k) -> (i, k)>
#columns = affine_map<(i, j, k) -> (j, k)>
#result = affine_map<(i, j, k) -> (i, j)>

// A product that is added to something, and one whose left operand was computed, stay.
// CHECK-LABEL: gdn_tile.program @others(
// CHECK-NOT: tensor.concat
// CHECK-COUNT-2: linalg.contract {{.*}} -> tensor<32x32xf32>
gdn_tile.program @others(%k: memref<32x128xbf16>)
    outs(%x: memref<32x32xf32>) work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %made = arith.negf %kt {gdn_tile.step = "scores"} : tensor<32x128xbf16>
  %first = linalg.contract indexing_maps = [#rows, #columns, #result] {gdn_tile.step = "scores"}
      ins(%made, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %sum = linalg.contract indexing_maps = [#rows, #columns, #result] {gdn_tile.step = "scores"}
      ins(%kt, %kt : tensor<32x128xbf16>, tensor<32x128xbf16>) outs(%first : tensor<32x32xf32>) -> tensor<32x32xf32>
  gdn_tile.store %sum, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
}

// -----

#left = affine_map<(i, j, k) -> (k, i)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// Turned tiles that the program makes lie side by side. Who else takes them keeps his own.
// CHECK-LABEL: gdn_tile.program @made(
// CHECK: %[[A:.*]] = arith.addf
// CHECK: %[[B:.*]] = arith.mulf
// CHECK: %[[AB:.*]] = tensor.concat dim(1) %[[A]], %[[B]] {gdn_tile.step = "decay"} : {{.*}} -> tensor<128x64xbf16>
// CHECK: %[[BOTH:.*]] = linalg.contract {{.*}} ins(%[[AB]], %{{.*}} : tensor<128x64xbf16>, tensor<128x32xbf16>) {{.*}} -> tensor<64x32xf32>
// CHECK: tensor.extract_slice %[[BOTH]][0, 0] [32, 32]
// CHECK: tensor.extract_slice %[[BOTH]][32, 0] [32, 32]
// CHECK: gdn_tile.store %[[A]]
gdn_tile.program @made(%k: memref<128x32xbf16>) outs(%x: memref<32x32xf32>, %y: memref<32x32xf32>, %z: memref<128x32xbf16>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<128x32xbf16> -> tensor<128x32xbf16>
  %a = arith.addf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
  %b = arith.mulf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
  %c = arith.subf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
  %ac = linalg.contract indexing_maps = [#left, #right, #result] {gdn_tile.step = "scores"}
      ins(%a, %c : tensor<128x32xbf16>, tensor<128x32xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %bc = linalg.contract indexing_maps = [#left, #right, #result] {gdn_tile.step = "scores"}
      ins(%b, %c : tensor<128x32xbf16>, tensor<128x32xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  gdn_tile.store %ac, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %bc, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %a, %z[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<128x32xbf16> -> memref<128x32xbf16>
}

// -----

#left = affine_map<(i, j, k) -> (k, i)>
#right = affine_map<(i, j, k) -> (k, j)>
#state = affine_map<(i, j, k) -> (i, k)>
#result = affine_map<(i, j, k) -> (i, j)>

// A product of another step, which reads shared memory, takes its part of the stack: so the tile lies there once.
// CHECK-LABEL: gdn_tile.program @products_of_other_steps(
// CHECK: %[[AB:.*]] = tensor.concat dim(1)
// CHECK: %[[B:.*]] = tensor.extract_slice %[[AB]][0, 32] [128, 32]
// CHECK: linalg.contract {{.*}} {gdn_tile.step = "state"} ins(%{{.*}}, %[[B]] : tensor<64x128xbf16>, tensor<128x32xbf16>)
gdn_tile.program @products_of_other_steps(%k: memref<128x32xbf16>, %s: memref<64x128xbf16>)
    outs(%x: memref<32x32xf32>, %y: memref<32x32xf32>, %z: memref<64x32xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<128x32xbf16> -> tensor<128x32xbf16>
  %st = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<64x128xbf16> -> tensor<64x128xbf16>
  %a = arith.addf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
  %b = arith.mulf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
  %c = arith.subf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
  %ac = linalg.contract indexing_maps = [#left, #right, #result] {gdn_tile.step = "decay"}
      ins(%a, %c : tensor<128x32xbf16>, tensor<128x32xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %bc = linalg.contract indexing_maps = [#left, #right, #result] {gdn_tile.step = "decay"}
      ins(%b, %c : tensor<128x32xbf16>, tensor<128x32xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  %read = linalg.contract indexing_maps = [#state, #right, #result] {gdn_tile.step = "state"}
      ins(%st, %b : tensor<64x128xbf16>, tensor<128x32xbf16>) outs(%none : tensor<64x32xf32>) -> tensor<64x32xf32>
  gdn_tile.store %ac, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %bc, %y[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %read, %z[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<64x32xf32> -> memref<64x32xf32>
}

// -----

#left = affine_map<(i, j, k) -> (k, i)>
#right = affine_map<(i, j, k) -> (k, j)>
#state = affine_map<(i, j, k) -> (i, k)>
#result = affine_map<(i, j, k) -> (i, j)>

// A branch that hands the parts on to such products hands on the stack, on both sides.
// CHECK-LABEL: gdn_tile.program @branch(
// CHECK: %[[IF:.*]]:2 = scf.if
// CHECK: %[[AB:.*]] = tensor.concat dim(1)
// CHECK: scf.yield %{{.*}}, %[[AB]] :
// CHECK: else
// CHECK: %[[A:.*]] = arith.subf
// CHECK: %[[B:.*]] = arith.addf
// CHECK-NEXT: %[[OTHER:.*]] = tensor.concat dim(1) %[[A]], %[[B]]
// CHECK: scf.yield %{{.*}}, %[[OTHER]] :
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[IF]]#1[0, 32] [128, 32]
// CHECK: linalg.contract {{.*}} {gdn_tile.step = "state"} ins(%{{.*}}, %[[PART]] : tensor<64x128xbf16>, tensor<128x32xbf16>)
gdn_tile.program @branch(%k: memref<128x32xbf16>, %s: memref<64x128xbf16>)
    outs(%x: memref<32x32xf32>, %z: memref<64x32xf32>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %first = arith.cmpi eq, %n, %c0 : index
  %kt = gdn_tile.load %k[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<128x32xbf16> -> tensor<128x32xbf16>
  %st = gdn_tile.load %s[%c0, %c0] axes [0, 1] {gdn_tile.step = "load"} : memref<64x128xbf16> -> tensor<64x128xbf16>
  %made:3 = scf.if %first -> (tensor<128x32xbf16>, tensor<128x32xbf16>, tensor<32x32xf32>) {
    %a = arith.addf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
    %b = arith.mulf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
    %c = arith.subf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
    %ac = linalg.contract indexing_maps = [#left, #right, #result] {gdn_tile.step = "decay"}
        ins(%a, %c : tensor<128x32xbf16>, tensor<128x32xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
    %bc = linalg.contract indexing_maps = [#left, #right, #result] {gdn_tile.step = "decay"}
        ins(%b, %c : tensor<128x32xbf16>, tensor<128x32xbf16>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
    %sum = arith.addf %ac, %bc {gdn_tile.step = "decay"} : tensor<32x32xf32>
    scf.yield %a, %b, %sum : tensor<128x32xbf16>, tensor<128x32xbf16>, tensor<32x32xf32>
  } else {
    %a = arith.subf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
    %b = arith.addf %kt, %kt {gdn_tile.step = "decay"} : tensor<128x32xbf16>
    scf.yield %a, %b, %zero : tensor<128x32xbf16>, tensor<128x32xbf16>, tensor<32x32xf32>
  }
  %read = linalg.contract indexing_maps = [#state, #right, #result] {gdn_tile.step = "state"}
      ins(%st, %made#1 : tensor<64x128xbf16>, tensor<128x32xbf16>) outs(%none : tensor<64x32xf32>) -> tensor<64x32xf32>
  gdn_tile.store %made#2, %x[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<32x32xf32> -> memref<32x32xf32>
  gdn_tile.store %read, %z[%c0, %c0] axes [0, 1] {gdn_tile.step = "store"} : tensor<64x32xf32> -> memref<64x32xf32>
}
