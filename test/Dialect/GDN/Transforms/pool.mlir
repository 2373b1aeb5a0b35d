// The stage that has the initial and the final states gets the pool. Where sequences are cut that is the scan, and segments
// know which of their sequences have a row.
// RUN: gdn-opt %s --gdn-plan-stages | FileCheck %s
// RUN: gdn-opt %s --gdn-plan-stages=plan=separate | FileCheck %s --check-prefix=SEPARATE
// RUN: gdn-opt %s --gdn-plan-stages '--gdn-cp-split=segments=4 side-by-side own-starts' | FileCheck %s --check-prefix=SPLIT
// RUN: gdn-opt %s --gdn-to-tile --gdn-tile-to-llvm -o /dev/null

// CHECK-LABEL: func.func @chunk(
// CHECK: gdn.stage.fused {{.*}} initial_state(%arg4 : tensor<?x2x64x64xf32>) cu_seqlens(%arg5 : tensor<?xi32>)
// CHECK-SAME: state_indices(%arg6 : tensor<?xi32>) first_state(%arg7 : index) has_initial_state(%arg8 : tensor<?xi8>) {chunk_size
// SEPARATE-LABEL: func.func @chunk(
// SEPARATE: gdn.stage.run {{.*}} initial_state(%arg4 : tensor<?x2x64x64xf32>) cu_seqlens(%arg5 : tensor<?xi32>)
// SEPARATE-SAME: state_indices(%arg6 : tensor<?xi32>) first_state(%arg7 : index) has_initial_state(%arg8 : tensor<?xi8>) {chunk_size
// SPLIT-LABEL: func.func @chunk(
// SPLIT: %[[CUT:.*]]:3 = gdn.stage.segment_boundaries
// SPLIT: %[[SCAN:.*]]:2 = gdn.stage.segment_scan {{.*}} initial_state(%arg4 : tensor<?x2x64x64xf32>)
// SPLIT-SAME: state_indices(%arg6 : tensor<?xi32>) first_state(%arg7 : index) has_initial_state(%arg8 : tensor<?xi8>)
// SPLIT: %[[ROWS:.*]] = tensor.dim %arg4, %{{.*}}
// SPLIT: %[[O:.*]] = gdn.stage.fused {{.*}} initial_state(%[[SCAN]]#0 : tensor<?x2x64x64xf32>) cu_seqlens(%[[CUT]]#0 : tensor<?xi32>)
// SPLIT-SAME: state_indices(%arg6 : tensor<?xi32>) first_state(%arg7 : index) sequence_numbers(%[[CUT]]#2 : tensor<?xi32>)
// SPLIT-SAME: num_states(%[[ROWS]] : index)
// SPLIT: return %[[O]], %[[SCAN]]#1
func.func @chunk(%q: tensor<1x?x2x64xbf16>, %v: tensor<1x?x2x64xbf16>, %b: tensor<1x?x2xf32>, %g: tensor<1x?x2xf32>,
                 %pool: tensor<?x2x64x64xf32>, %cu: tensor<?xi32>, %rows: tensor<?xi32>, %first: index, %flags: tensor<?xi8>)
    -> (tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x64xbf16>) k(%q : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%b : tensor<1x?x2xf32>) gate(%g : tensor<1x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>)
      cu_seqlens(%cu : tensor<?xi32>) state_indices(%rows : tensor<?xi32>) first_state(%first : index)
      has_initial_state(%flags : tensor<?xi8>) {output_final_state} -> tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %s : tensor<1x?x2x64xbf16>, tensor<?x2x64x64xf32>
}

// CHECK-LABEL: func.func @recurrent(
// CHECK: gdn.stage.recurrent {{.*}} initial_state(%arg2 : tensor<?x2x64x64xf32>) state_indices(%arg3 : tensor<?xi64>) ->
func.func @recurrent(%q: tensor<?x?x2x64xbf16>, %b: tensor<?x?x2xf32>, %pool: tensor<?x2x64x64xf32>, %rows: tensor<?xi64>)
    -> tensor<?x?x2x64xbf16> {
  %o = gdn.recurrent_gated_delta_rule q(%q : tensor<?x?x2x64xbf16>) k(%q : tensor<?x?x2x64xbf16>) v(%q : tensor<?x?x2x64xbf16>)
      beta(%b : tensor<?x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>) state_indices(%rows : tensor<?xi64>)
      -> tensor<?x?x2x64xbf16>
  return %o : tensor<?x?x2x64xbf16>
}
