// Forwards that keep states in between: syntax, names, canonical forms, buffers.
// RUN: gdn-opt %s --verify-roundtrip | FileCheck %s
// RUN: gdn-opt %s --gdn-name-arguments | FileCheck %s --check-prefix=NAMES
// RUN: gdn-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL
// RUN: gdn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFERS
// RUN: gdn-opt %s --gdn-plan-stages | FileCheck %s --check-prefix=STAGES

// Kept states have a type of their own, and are updated in place beside the pool. A final state that nobody reads goes.
// CHECK-LABEL: func.func @packed(
// CHECK: gdn.chunk_gated_delta_rule {{.*}} step_states(%{{.*}} : tensor<?x2x64x64xbf16>) step_starts(%{{.*}} : tensor<?xi64>)
// CHECK-SAME: step_intervals(%{{.*}} : tensor<?xi32>) {output_final_state}
// NAMES-LABEL: func.func @packed(
// NAMES-SAME: {gdn.dims = ["R", "H", "K", "V"], gdn.name = "step_states"}
// NAMES-SAME: {gdn.dims = ["N+1"], gdn.name = "step_starts"}
// NAMES-SAME: {gdn.dims = ["N"], gdn.name = "step_intervals"}
// CANONICAL-LABEL: func.func @packed(
// CANONICAL: step_intervals(%{{.*}} : tensor<?xi32>) -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xbf16>
// BUFFERS-LABEL: func.func @packed(
// BUFFERS-SAME: %[[KEPT:[a-z0-9]+]]: memref<?x2x64x64xbf16>
// BUFFERS: gdn.chunk_gated_delta_rule {{.*}} outs(%[[O:.*]], %{{.*}}, %[[KEPT]] :
// BUFFERS: return %[[O]], %[[KEPT]]
// STAGES-LABEL: func.func @packed(
// STAGES: gdn.stage.fused {{.*}} step_states({{.*}}) step_starts({{.*}}) step_intervals({{.*}}) {chunk_size = 32 : i64} ->
func.func @packed(%q: tensor<1x?x2x64xbf16>, %b: tensor<1x?x2xf32>, %cu: tensor<?xi32>, %kept: tensor<?x2x64x64xbf16>,
                  %starts: tensor<?xi64>, %every: tensor<?xi32>) -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xbf16>) {
  %o, %s, %k = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%q : tensor<1x?x2x64xbf16>)
      beta(%b : tensor<1x?x2xf32>) cu_seqlens(%cu : tensor<?xi32>) step_states(%kept : tensor<?x2x64x64xbf16>)
      step_starts(%starts : tensor<?xi64>) step_intervals(%every : tensor<?xi32>)
      {output_final_state} -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>, tensor<?x2x64x64xbf16>
  return %o, %k : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xbf16>
}

// Sequences of a batch, of one token each: they stay chunks, which know what is kept.
// NAMES-LABEL: func.func @rows(
// NAMES-SAME: {gdn.dims = ["B+1"], gdn.name = "step_starts"}
// CANONICAL-LABEL: func.func @rows(
// CANONICAL: gdn.chunk_gated_delta_rule
func.func @rows(%q: tensor<2x1x2x64xbf16>, %b: tensor<2x1x2xf32>, %kept: tensor<5x2x64x64xf32>, %starts: tensor<3xi32>,
                %every: tensor<2xi32>) -> (tensor<2x1x2x64xbf16>, tensor<5x2x64x64xf32>) {
  %o, %k = gdn.chunk_gated_delta_rule q(%q : tensor<2x1x2x64xbf16>) k(%q : tensor<2x1x2x64xbf16>) v(%q : tensor<2x1x2x64xbf16>)
      beta(%b : tensor<2x1x2xf32>) step_states(%kept : tensor<5x2x64x64xf32>) step_starts(%starts : tensor<3xi32>)
      step_intervals(%every : tensor<2xi32>) -> tensor<2x1x2x64xbf16>, tensor<5x2x64x64xf32>
  return %o, %k : tensor<2x1x2x64xbf16>, tensor<5x2x64x64xf32>
}

// The same in rows that are named, of the pool: it is the result, and stays though nobody reads the final states.
// CHECK-LABEL: func.func @named(
// CHECK: step_indices(%{{.*}} : tensor<2x3xi32>) step_intervals(%{{.*}} : tensor<2xi32>) {output_final_state}
// NAMES-LABEL: func.func @named(
// NAMES-SAME: {gdn.dims = ["B", "steps"], gdn.name = "step_indices"}
// CANONICAL-LABEL: func.func @named(
// CANONICAL: gdn.chunk_gated_delta_rule {{.*}} -> tensor<2x80x2x64xbf16>, tensor<9x2x64x64xf32>
// BUFFERS-LABEL: func.func @named(
// BUFFERS-SAME: %[[POOL:[a-z0-9]+]]: memref<9x2x64x64xf32>
// BUFFERS: gdn.chunk_gated_delta_rule {{.*}} outs(%[[O:.*]], %[[POOL]] :
// BUFFERS: return %[[O]]
// STAGES-LABEL: func.func @named(
// STAGES: gdn.stage.fused {{.*}} state_indices({{.*}}) step_indices({{.*}}) step_intervals({{.*}}) {chunk_size = 32 : i64} ->
func.func @named(%q: tensor<2x80x2x64xbf16>, %b: tensor<2x80x2xf32>, %pool: tensor<9x2x64x64xf32>, %rows: tensor<2xi32>,
                 %slots: tensor<2x3xi32>, %every: tensor<2xi32>) -> tensor<2x80x2x64xbf16> {
  %o, %p = gdn.chunk_gated_delta_rule q(%q : tensor<2x80x2x64xbf16>) k(%q : tensor<2x80x2x64xbf16>) v(%q : tensor<2x80x2x64xbf16>)
      beta(%b : tensor<2x80x2xf32>) initial_state(%pool : tensor<9x2x64x64xf32>) state_indices(%rows : tensor<2xi32>)
      step_indices(%slots : tensor<2x3xi32>) step_intervals(%every : tensor<2xi32>)
      {output_final_state} -> tensor<2x80x2x64xbf16>, tensor<9x2x64x64xf32>
  return %o : tensor<2x80x2x64xbf16>
}
