// Forwards with states in a pool: syntax, names, canonical forms, buffers.
// RUN: gdn-opt %s --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-name-arguments | FileCheck %s --check-prefix=NAMES
// RUN: gdn-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL
// RUN: gdn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS

// The pool is updated where it is: in the buffer form it is among `outs`.
// CHECK-LABEL: func.func @chunk(
// CHECK: gdn.chunk_gated_delta_rule {{.*}} state_indices(%{{.*}} : tensor<?xi32>) first_state(%{{.*}} : index)
// CHECK-SAME: has_initial_state(%{{.*}} : tensor<?xi8>) {output_final_state}
// NAMES-LABEL: func.func @chunk(
// NAMES-SAME: {gdn.dims = ["P", "H", "K", "V"], gdn.name = "initial_state"}
// NAMES-SAME: {gdn.dims = ["N"], gdn.name = "state_indices"}, %{{.*}}: index {gdn.name = "first_state"},
// NAMES-SAME: tensor<?xi8> {gdn.dims = ["N"], gdn.name = "has_initial_state"})
// NAMES-SAME: {gdn.dims = ["P", "H", "K", "V"], gdn.name = "final_state"}
// BUFFERS-LABEL: func.func @chunk(
// BUFFERS-SAME: %[[POOL:[a-z0-9]+]]: memref<?x2x64x64xf32>
// BUFFERS: %[[O:.*]] = memref.alloc(
// BUFFERS-NOT: memref.alloc
// BUFFERS: gdn.chunk_gated_delta_rule {{.*}} outs(%[[O]], %[[POOL]] : memref<1x?x2x64xbf16>, memref<?x2x64x64xf32>)
// BUFFERS: return %[[O]], %[[POOL]]
func.func @chunk(%q: tensor<1x?x2x64xbf16>, %b: tensor<1x?x2xf32>, %pool: tensor<?x2x64x64xf32>, %cu: tensor<?xi32>,
                 %rows: tensor<?xi32>, %first: index, %flags: tensor<?xi8>) -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%q : tensor<1x?x2x64xbf16>)
      beta(%b : tensor<1x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      state_indices(%rows : tensor<?xi32>) first_state(%first : index) has_initial_state(%flags : tensor<?xi8>)
      {output_final_state} -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %s : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
}

// A pool that is still read is copied first.
// BUFFERS-LABEL: func.func @kept(
// BUFFERS-SAME: %[[OLD:[a-z0-9]+]]: memref<?x2x64x64xf32>
// BUFFERS: memref.copy %[[OLD]], %[[COPY:.*]] :
// BUFFERS: gdn.recurrent_gated_delta_rule {{.*}} outs(%{{.*}}, %[[COPY]] :
func.func @kept(%q: tensor<2x1x2x64xbf16>, %b: tensor<2x1x2xf32>, %pool: tensor<?x2x64x64xf32>, %rows: tensor<2xi32>)
    -> (tensor<?x2x64x64xf32>, tensor<?x2x64x64xf32>) {
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<2x1x2x64xbf16>) k(%q : tensor<2x1x2x64xbf16>) v(%q : tensor<2x1x2x64xbf16>)
      beta(%b : tensor<2x1x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>) state_indices(%rows : tensor<2xi32>)
      {output_final_state} -> tensor<2x1x2x64xbf16>, tensor<?x2x64x64xf32>
  return %pool, %s : tensor<?x2x64x64xf32>, tensor<?x2x64x64xf32>
}

// A pool of zeros is still one of which rows may be missing. One token needs no chunks, and casts go away.
// CANONICAL-LABEL: func.func @zeros(
// CANONICAL: gdn.recurrent_gated_delta_rule {{.*}} initial_state(%{{.*}} : tensor<3x2x64x64xf32>) state_indices(%arg2 : tensor<1xi64>)
func.func @zeros(%q: tensor<1x1x2x64xbf16>, %b: tensor<1x1x2xf32>, %rows: tensor<1xi64>) -> tensor<1x1x2x64xbf16> {
  %pool = arith.constant dense<0.0> : tensor<3x2x64x64xf32>
  %cast = tensor.cast %rows : tensor<1xi64> to tensor<?xi64>
  %o = gdn.chunk_gated_delta_rule q(%q : tensor<1x1x2x64xbf16>) k(%q : tensor<1x1x2x64xbf16>) v(%q : tensor<1x1x2x64xbf16>)
      beta(%b : tensor<1x1x2xf32>) initial_state(%pool : tensor<3x2x64x64xf32>) state_indices(%cast : tensor<?xi64>)
      -> tensor<1x1x2x64xbf16>
  return %o : tensor<1x1x2x64xbf16>
}
