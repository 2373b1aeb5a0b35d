// RUN: gdn-opt %s -split-input-file --one-shot-bufferize="bufferize-function-boundaries \
// RUN:   function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops" \
// RUN:   | FileCheck %s

// Results get buffers of their own: inputs are only read, none is copied.
// CHECK-LABEL: @forward
// CHECK-SAME: (%[[Q:.*]]: memref<1x64x2x32xf32>, %[[V:.*]]: memref<1x64x4x16xf32>, %[[B:.*]]: memref<1x64x4xf32>
func.func @forward(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x4x16xf32>,
                   %b: tensor<1x64x4xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x4x32x16xf32>) {
  // CHECK-NOT: memref.copy
  // CHECK-DAG: %[[O:.*]] = memref.alloc() {{.*}} : memref<1x64x4x16xf32>
  // CHECK-DAG: %[[S:.*]] = memref.alloc() {{.*}} : memref<1x4x32x16xf32>
  // CHECK: gdn.chunk_gated_delta_rule q(%[[Q]] : {{[^)]*}}) k(%[[Q]] : {{[^)]*}})
  // CHECK-SAME: v(%[[V]] : {{[^)]*}}) beta(%[[B]] : {{[^)]*}})
  // CHECK-SAME: outs(%[[O]], %[[S]] : {{[^)]*}}) {output_final_state}
  // CHECK: return %[[O]], %[[S]]
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x4x16xf32>)
      beta(%b : tensor<1x64x4xf32>) {output_final_state}
      -> tensor<1x64x4x16xf32>, tensor<1x4x32x16xf32>
  return %o, %s : tensor<1x64x4x16xf32>, tensor<1x4x32x16xf32>
}

// -----

// Sizes known when running come from the operands; N from the boundaries.
// CHECK-LABEL: @dynamic
// CHECK-SAME: (%[[Q:.*]]: memref<1x?x2x32xf32>, {{.*}}, %[[CU:.*]]: memref<?xi32>)
func.func @dynamic(%q: tensor<1x?x2x32xf32>, %v: tensor<1x?x4x16xf32>,
                   %b: tensor<1x?x4xf32>, %cu: tensor<?xi32>)
    -> (tensor<1x?x4x16xf32>, tensor<?x4x32x16xf32>) {
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[T:.*]] = memref.dim %[[Q]], %[[ONE]]
  // CHECK-DAG: %[[BOUNDARIES:.*]] = memref.dim %[[CU]]
  // CHECK-DAG: %[[N:.*]] = arith.subi %[[BOUNDARIES]], %{{.*}}
  // CHECK-DAG: %[[O:.*]] = memref.alloc(%[[T]]) {{.*}} : memref<1x?x4x16xf32>
  // CHECK-DAG: %[[S:.*]] = memref.alloc(%[[N]]) {{.*}} : memref<?x4x32x16xf32>
  // CHECK: gdn.chunk_gated_delta_rule {{.*}}) outs(%[[O]], %[[S]] :
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x32xf32>)
      k(%q : tensor<1x?x2x32xf32>) v(%v : tensor<1x?x4x16xf32>)
      beta(%b : tensor<1x?x4xf32>) cu_seqlens(%cu : tensor<?xi32>)
      {output_final_state} -> tensor<1x?x4x16xf32>, tensor<?x4x32x16xf32>
  return %o, %s : tensor<1x?x4x16xf32>, tensor<?x4x32x16xf32>
}

// -----

// Every gradient is an output.
// CHECK-LABEL: @backward
func.func @backward(%q: tensor<1x64x2x32xf32>, %v: tensor<1x64x2x16xf32>,
                    %b: tensor<1x64x2xf32>)
    -> (tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x16xf32>,
        tensor<1x64x2xf32>) {
  // CHECK-DAG: %[[DV:.*]] = memref.alloc() {{.*}} : memref<1x64x2x16xf32>
  // CHECK-DAG: %[[DB:.*]] = memref.alloc() {{.*}} : memref<1x64x2xf32>
  // CHECK: gdn.chunk_gated_delta_rule_bwd
  // CHECK-SAME: outs(%[[DQ:.*]], %[[DK:.*]], %[[DV]], %[[DB]] :
  // CHECK: return %[[DQ]], %[[DK]], %[[DV]], %[[DB]]
  %r:4 = gdn.chunk_gated_delta_rule_bwd q(%q : tensor<1x64x2x32xf32>)
      k(%q : tensor<1x64x2x32xf32>) v(%v : tensor<1x64x2x16xf32>)
      beta(%b : tensor<1x64x2xf32>) d_o(%v : tensor<1x64x2x16xf32>)
      -> tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>, tensor<1x64x2x16xf32>,
         tensor<1x64x2xf32>
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x64x2x32xf32>, tensor<1x64x2x32xf32>,
      tensor<1x64x2x16xf32>, tensor<1x64x2xf32>
}

// -----

// Decoding: the state goes round a loop. The op reads one buffer and writes
// another, so the loop carries whichever was written last.
// CHECK-LABEL: @decode
func.func @decode(%q: tensor<1x1x2x32xf32>, %v: tensor<1x1x2x16xf32>,
                  %b: tensor<1x1x2xf32>, %h: tensor<1x2x32x16xf32>,
                  %n: index) -> tensor<1x2x32x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[END:.*]] = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}})
  // CHECK: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<1x2x32x16xf32>
  // CHECK: gdn.recurrent_gated_delta_rule {{.*}} initial_state(%[[OLD]] :
  // CHECK-SAME: outs(%{{.*}}, %[[NEW]] :
  // CHECK: scf.yield %[[NEW]]
  // CHECK: return %[[END]]
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%s = %h)
      -> tensor<1x2x32x16xf32> {
    %o, %next = gdn.recurrent_gated_delta_rule q(%q : tensor<1x1x2x32xf32>)
        k(%q : tensor<1x1x2x32xf32>) v(%v : tensor<1x1x2x16xf32>)
        beta(%b : tensor<1x1x2xf32>) initial_state(%s : tensor<1x2x32x16xf32>)
        {output_final_state} -> tensor<1x1x2x16xf32>, tensor<1x2x32x16xf32>
    scf.yield %next : tensor<1x2x32x16xf32>
  }
  return %end : tensor<1x2x32x16xf32>
}

// -----

// The op reads v: a later write to v has to go to a copy if it comes first.
// CHECK-LABEL: @write_before_read
// CHECK-SAME: %[[V:[a-z0-9]+]]: memref<1x1x2x16xf32>
func.func @write_before_read(%q: tensor<1x1x2x32xf32>, %v: tensor<1x1x2x16xf32>,
                             %b: tensor<1x1x2xf32>, %x: f32)
    -> (tensor<1x1x2x16xf32>, tensor<1x1x2x16xf32>) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[COPY:.*]] = memref.alloc()
  // CHECK: memref.copy %[[V]], %[[COPY]]
  // CHECK: memref.store %{{.*}}, %[[COPY]]
  // CHECK: gdn.recurrent_gated_delta_rule {{.*}} v(%[[V]] :
  %w = tensor.insert %x into %v[%c0, %c0, %c0, %c0] : tensor<1x1x2x16xf32>
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<1x1x2x32xf32>)
      k(%q : tensor<1x1x2x32xf32>) v(%v : tensor<1x1x2x16xf32>)
      beta(%b : tensor<1x1x2xf32>) -> tensor<1x1x2x16xf32>
  return %o, %w : tensor<1x1x2x16xf32>, tensor<1x1x2x16xf32>
}
