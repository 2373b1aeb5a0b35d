// Forwards that keep the states after tokens: syntax, names, canonical forms, buffers.
// RUN: gdn-opt %s --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-name-arguments | FileCheck %s --check-prefix=NAMES
// RUN: gdn-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL
// RUN: gdn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS
// RUN: gdn-opt %s --gdn-plan-stages | FileCheck %s --check-prefix=STAGES

// A pool that keeps them is a result for what it keeps, whether somebody reads it here or not.
// CHECK-LABEL: func.func @pool(
// CHECK: gdn.recurrent_gated_delta_rule {{.*}} state_indices(%{{.*}} : tensor<?xi32>) step_indices(%{{.*}} : tensor<?x4xi64>)
// CHECK-SAME: num_accepted(%{{.*}} : tensor<?xi32>) {output_final_state}
// NAMES-LABEL: func.func @pool(
// NAMES-SAME: {gdn.dims = ["B", "steps"], gdn.name = "step_indices"}
// NAMES-SAME: {gdn.dims = ["B"], gdn.name = "num_accepted"}
// CANONICAL-LABEL: func.func @pool(
// CANONICAL: {output_final_state} -> tensor<?x?x2x64xbf16>, tensor<?x2x64x64xf32>
// STAGES-LABEL: func.func @pool(
// STAGES: gdn.stage.recurrent {{.*}} step_indices(%{{.*}} : tensor<?x4xi64>) num_accepted(%{{.*}} : tensor<?xi32>) ->
func.func @pool(%q: tensor<?x?x2x64xbf16>, %b: tensor<?x?x2xf32>, %pool: tensor<?x2x64x64xf32>, %rows: tensor<?xi32>,
                %slots: tensor<?x4xi64>, %accepted: tensor<?xi32>) -> tensor<?x?x2x64xbf16> {
  %o, %s = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x2x64xbf16>) k(%q : tensor<?x?x2x64xbf16>) v(%q : tensor<?x?x2x64xbf16>)
      beta(%b : tensor<?x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>) state_indices(%rows : tensor<?xi32>)
      step_indices(%slots : tensor<?x4xi64>) num_accepted(%accepted : tensor<?xi32>)
      {output_final_state} -> tensor<?x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o : tensor<?x?x2x64xbf16>
}

// Arrays that are updated are among `outs`: the pool, which is not where nobody asks for it, and those beside it.
// CHECK-LABEL: func.func @apart(
// CHECK: step_states(%{{.*}} : tensor<?x2x64x64xf32>) step_indices(%{{.*}} : tensor<?x?xi32>) parents(%{{.*}} : tensor<?x?xi32>)
// NAMES-LABEL: func.func @apart(
// NAMES-SAME: {gdn.dims = ["R", "H", "K", "V"], gdn.name = "step_states"}
// NAMES-SAME: {gdn.dims = ["B", "steps"], gdn.name = "parents"}
// CANONICAL-LABEL: func.func @apart(
// CANONICAL: parents(%{{.*}} : tensor<?x?xi32>) -> tensor<?x?x2x64xbf16>, tensor<?x2x64x64xf32>
// BUFFERS-LABEL: func.func @apart(
// BUFFERS-SAME: %[[POOL:[a-z0-9]+]]: memref<?x2x64x64xf32>, %{{[a-z0-9]+}}: memref<?xi32>, %[[KEPT:[a-z0-9]+]]: memref<?x2x64x64xf32>
// BUFFERS: %[[O:.*]] = memref.alloc(
// BUFFERS-NOT: memref.alloc
// BUFFERS: gdn.recurrent_gated_delta_rule {{.*}} outs(%[[O]], %[[POOL]], %[[KEPT]] :
// BUFFERS: return %[[O]], %[[KEPT]]
// STAGES-LABEL: func.func @apart(
// STAGES: %[[RESULTS:.*]]:3 = gdn.stage.recurrent {{.*}} step_states(%arg4 : tensor<?x2x64x64xf32>)
// STAGES: return %[[RESULTS]]#0, %[[RESULTS]]#2
func.func @apart(%q: tensor<?x?x2x64xbf16>, %b: tensor<?x?x2xf32>, %pool: tensor<?x2x64x64xf32>, %rows: tensor<?xi32>,
                 %kept: tensor<?x2x64x64xf32>, %slots: tensor<?x?xi32>, %parents: tensor<?x?xi32>)
    -> (tensor<?x?x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %s, %k = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x2x64xbf16>) k(%q : tensor<?x?x2x64xbf16>) v(%q : tensor<?x?x2x64xbf16>)
      beta(%b : tensor<?x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>) state_indices(%rows : tensor<?xi32>)
      step_states(%kept : tensor<?x2x64x64xf32>) step_indices(%slots : tensor<?x?xi32>) parents(%parents : tensor<?x?xi32>)
      {output_final_state} -> tensor<?x?x2x64xbf16>, tensor<?x2x64x64xf32>, tensor<?x2x64x64xf32>
  return %o, %k : tensor<?x?x2x64xbf16>, tensor<?x2x64x64xf32>
}
