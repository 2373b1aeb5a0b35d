// RUN: gdn-opt %s --gdn-raise-buffers --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-raise-buffers --one-shot-bufferize | FileCheck %s --check-prefix=BACK

// Each buffer is wrapped once, also where it is two operands.
// CHECK-LABEL: @forward
// CHECK-SAME: (%[[Q:[a-z0-9]+]]: {{[^%]*}}, %[[V:[a-z0-9]+]]: {{[^%]*}}, %[[B:[a-z0-9]+]]: {{[^%]*}}, %[[O:[a-z0-9]+]]: {{[^%]*}}, %[[S:[a-z0-9]+]]:
// BACK-LABEL: @forward
// BACK-SAME: (%[[Q:[a-z0-9]+]]: {{[^%]*}}, %[[V:[a-z0-9]+]]: {{[^%]*}}, %{{.*}}: {{[^%]*}}, %[[O:[a-z0-9]+]]: {{[^%]*}}, %[[S:[a-z0-9]+]]:
func.func @forward(%q: memref<1x?x2x32xf32, strided<[?, ?, ?, 1], offset: ?>>,
                   %v: memref<1x?x2x16xf32>, %b: memref<1x?x2xf32>,
                   %o: memref<1x?x2x16xf32>, %s: memref<1x2x32x16xf32>) {
  // CHECK-DAG: %[[QT:.*]] = bufferization.to_tensor %[[Q]] restrict :
  // CHECK-DAG: %[[VT:.*]] = bufferization.to_tensor %[[V]] restrict :
  // CHECK-DAG: %[[BT:.*]] = bufferization.to_tensor %[[B]] restrict :
  // CHECK: %[[R:.*]]:2 = gdn.chunk_gated_delta_rule
  // CHECK-SAME: q(%[[QT]] : tensor<1x?x2x32xf32>) k(%[[QT]] : tensor<1x?x2x32xf32>)
  // CHECK-SAME: v(%[[VT]] : tensor<1x?x2x16xf32>) beta(%[[BT]] : tensor<1x?x2xf32>)
  // CHECK-SAME: {chunk_size = 16 : i64, output_final_state}
  // CHECK-SAME: -> tensor<1x?x2x16xf32>, tensor<1x2x32x16xf32>
  // CHECK-DAG: materialize_in_destination %[[R]]#0 in restrict writable %[[O]]
  // CHECK-DAG: materialize_in_destination %[[R]]#1 in restrict writable %[[S]]
  // CHECK-NOT: gdn.chunk_gated_delta_rule
  // BACK: gdn.chunk_gated_delta_rule q(%[[Q]] : {{[^)]*}}) k(%[[Q]] : {{[^)]*}}) v(%[[V]] :
  // BACK-DAG: memref.copy %{{.*}}, %[[O]]
  // BACK-DAG: memref.copy %{{.*}}, %[[S]]
  // BACK-NOT: bufferization
  // BACK: return
  gdn.chunk_gated_delta_rule
      q(%q : memref<1x?x2x32xf32, strided<[?, ?, ?, 1], offset: ?>>)
      k(%q : memref<1x?x2x32xf32, strided<[?, ?, ?, 1], offset: ?>>)
      v(%v : memref<1x?x2x16xf32>) beta(%b : memref<1x?x2xf32>)
      outs(%o, %s : memref<1x?x2x16xf32>, memref<1x2x32x16xf32>)
      {output_final_state, chunk_size = 16}
  return
}

// Ops on tensors stay as they are.
// CHECK-LABEL: @tensors
// BACK-LABEL: @tensors
func.func @tensors(%q: tensor<1x64x2x32xf32>, %b: tensor<1x64x2xf32>)
    -> tensor<1x64x2x32xf32> {
  // CHECK-NOT: bufferization
  // CHECK: gdn.chunk_gated_delta_rule
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%q : tensor<1x64x2x32xf32>)
      beta(%b : tensor<1x64x2xf32>) -> tensor<1x64x2x32xf32>
  return %o : tensor<1x64x2x32xf32>
}

// A pool, which is among `outs` too, may be written where it is.
// CHECK-LABEL: @pool
// CHECK: %[[POOL:.*]] = bufferization.to_tensor %arg2 restrict writable : memref<9x2x32x16xf32>
// CHECK: %[[R:.*]]:2 = gdn.recurrent_gated_delta_rule {{.*}} initial_state(%[[POOL]] : {{[^)]*}}) state_indices(%{{.*}} : tensor<1xi32>) first_state(%arg4 : index)
// CHECK: materialize_in_destination %[[R]]#1 in restrict writable %arg2
// BACK-LABEL: @pool
// BACK-NOT: memref.copy %{{.*}}, %arg2
// BACK: gdn.recurrent_gated_delta_rule {{.*}} outs(%{{.*}}, %arg2 : memref<1x1x2x16xf32>, memref<9x2x32x16xf32>)
// BACK: return
func.func @pool(%q: memref<1x1x2x32xf32>, %v: memref<1x1x2x16xf32>, %pool: memref<9x2x32x16xf32>, %rows: memref<1xi32>, %first: index,
                %b: memref<1x1x2xf32>, %o: memref<1x1x2x16xf32>) {
  gdn.recurrent_gated_delta_rule q(%q : memref<1x1x2x32xf32>) k(%q : memref<1x1x2x32xf32>) v(%v : memref<1x1x2x16xf32>)
      beta(%b : memref<1x1x2xf32>) initial_state(%pool : memref<9x2x32x16xf32>) state_indices(%rows : memref<1xi32>)
      first_state(%first : index) outs(%o, %pool : memref<1x1x2x16xf32>, memref<9x2x32x16xf32>) {output_final_state}
  return
}
