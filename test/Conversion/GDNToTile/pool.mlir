// States in a pool: the program takes it once, as what it writes. A sequence without a row touches no state, its loop has no
// token, and its outputs are zeros.
// RUN: gdn-opt %s --convert-gdn-to-tile -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: gdn_tile.program @decode_recurrent(
// CHECK-SAME: %state_indices: memref<?xi32, strided<[?], offset: ?>>, %first_state: index) outs(
// CHECK-SAME: %final_state: memref<?x2x64x64xf32, strided<[?, ?, ?, ?], offset: ?>>)
// CHECK-DAG: %[[ROWS:.*]] = memref.dim %final_state, %{{.*}}
// CHECK-DAG: %[[NUMBER:.*]] = memref.load %state_indices[%n]
// CHECK-DAG: %[[ROW:.*]] = arith.index_cast %[[NUMBER]]
// CHECK-DAG: %[[BELOW:.*]] = arith.cmpi ult, %[[ROW]], %[[ROWS]] : index
// CHECK-DAG: %[[ABOVE:.*]] = arith.cmpi sge, %[[ROW]], %first_state : index
// CHECK: %[[NAMED:.*]] = arith.andi %[[BELOW]], %[[ABOVE]] : i1
// CHECK: %[[SKIPPED:.*]] = arith.xori %[[NAMED]], %true
// CHECK: gdn_tile.clear %o[%batch, %begin, %h, %c0] until(%end, dim = 1) columns 64 if %[[SKIPPED]]
// CHECK: %[[BEGIN:.*]] = arith.select %[[NAMED]], %begin, %end : index
// CHECK: %[[STATE:.*]] = scf.if %[[NAMED]] -> (tensor<64x64xf32>) {
// CHECK:   %[[LOADED:.*]] = gdn_tile.load %final_state[%[[ROW]], %h, %c0, %c0] axes [3, 2]
// CHECK:   scf.yield %[[LOADED]]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %end {{.*}} iter_args(%{{.*}} = %[[STATE]])
// CHECK: scf.if %[[NAMED]] {
// CHECK-NEXT: gdn_tile.store %{{.*}}, %final_state[%[[ROW]], %h, %c0, %c0] axes [3, 2]
// CHECK-LABEL: func.func @decode(
// CHECK: gdn_tile.launch @decode_recurrent {{.*}} outs(%{{.*}}, %arg3 : tensor<?x1x2x64xbf16>, tensor<?x2x64x64xf32>)
func.func @decode(%q: tensor<?x1x1x64xbf16>, %v: tensor<?x1x2x64xbf16>, %b: tensor<?x1x2xf32>, %pool: tensor<?x2x64x64xf32> {gdn.strided},
                  %rows: tensor<?xi32>, %first: index) -> (tensor<?x1x2x64xbf16>, tensor<?x2x64x64xf32>) {
  %o, %s = gdn.stage.recurrent q(%q : tensor<?x1x1x64xbf16>) k(%q : tensor<?x1x1x64xbf16>) v(%v : tensor<?x1x2x64xbf16>)
      beta(%b : tensor<?x1x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>)
      state_indices(%rows : tensor<?xi32>) first_state(%first : index) -> tensor<?x1x2x64xbf16>, tensor<?x2x64x64xf32>
  return %o, %s : tensor<?x1x2x64xbf16>, tensor<?x2x64x64xf32>
}

// -----

// A pool that is only read is an input. Without a first row there is one comparison.
// CHECK-LABEL: gdn_tile.program @read_fused(
// CHECK-SAME: %initial_state: memref<?x2x64x64xf32, {{[^:]*}}: ?>>, %state_indices: memref<?xi64, {{[^:]*}}: ?>>) outs(%o: {{[^%]*}}) work_item
// CHECK: %[[NAMED:.*]] = arith.cmpi ult
// CHECK-NOT: arith.cmpi sge
// CHECK: gdn_tile.clear %o[%batch, %begin, %h, %c0] until(%end, dim = 1) columns 64
// CHECK: scf.if %[[NAMED]]
// CHECK: gdn_tile.load %initial_state[%{{.*}}, %h, %c0, %c0] axes [2, 3]
func.func @read(%q: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %b: tensor<1x?x2xf32>, %pool: tensor<?x2x64x64xf32>,
                %cu: tensor<?xi32>, %rows: tensor<?xi64>) -> tensor<1x?x2x64xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%b : tensor<1x?x2xf32>) initial_state(%pool : tensor<?x2x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      state_indices(%rows : tensor<?xi64>) {chunk_size = 32, state_layout = #gdn.state_layout<vk>} -> tensor<1x?x2x64xbf16>
  return %o : tensor<1x?x2x64xbf16>
}

// -----

// Segments read the index of their sequence, and states of their own.
// CHECK-LABEL: gdn_tile.program @segments_fused(
// CHECK-SAME: %state_indices: {{[^%]*}}, %sequence_numbers: {{[^%]*}}, %num_states: index)
// CHECK: %[[NUMBER:.*]] = memref.load %sequence_numbers[%n]
// CHECK: %[[N:.*]] = arith.index_cast %[[NUMBER]]
// CHECK: %[[INDEX:.*]] = memref.load %state_indices[%[[N]]]
// CHECK: %[[ROW:.*]] = arith.index_cast %[[INDEX]]
// CHECK: arith.cmpi ult, %[[ROW]], %num_states
// CHECK: gdn_tile.clear %o
// CHECK-NOT: scf.if
// CHECK: gdn_tile.load %initial_state[%n, %h, %c0, %c0]
func.func @segments(%q: tensor<1x?x1x64xbf16>, %v: tensor<1x?x2x64xbf16>, %b: tensor<1x?x2xf32>, %entry: tensor<?x2x64x64xf32>,
                    %cu: tensor<?xi32>, %rows: tensor<?xi32>, %numbers: tensor<?xi32>, %count: index) -> tensor<1x?x2x64xbf16> {
  %o = gdn.stage.fused q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%v : tensor<1x?x2x64xbf16>)
      beta(%b : tensor<1x?x2xf32>) initial_state(%entry : tensor<?x2x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      state_indices(%rows : tensor<?xi32>) sequence_numbers(%numbers : tensor<?xi32>) num_states(%count : index)
      {chunk_size = 32} -> tensor<1x?x2x64xbf16>
  return %o : tensor<1x?x2x64xbf16>
}

// -----

// With flags the load asks for one more thing, and the store does not. A call without them has an array of no entries.
// CHECK-LABEL: gdn_tile.program @flags_recurrent(
// CHECK-SAME: %has_initial_state: memref<?xi8, strided<[?], offset: ?>>) outs(
// CHECK: %[[NAMED:.*]] = arith.cmpi ult
// CHECK: %[[COUNT:.*]] = memref.dim %has_initial_state, %c0
// CHECK: %[[TURNS:.*]] = arith.minui %[[COUNT]], %c1
// CHECK: %[[HAS:.*]] = scf.for %{{.*}} = %c0{{.*}} to %[[TURNS]] step %c1{{.*}} iter_args(%{{.*}} = %true{{.*}}) -> (i1) {
// CHECK:   %[[FLAG:.*]] = memref.load %has_initial_state[%n]
// CHECK:   %[[IS:.*]] = arith.cmpi ne, %[[FLAG]], %c0_i8
// CHECK:   scf.yield %[[IS]]
// CHECK: %[[BEGINS:.*]] = arith.andi %[[NAMED]], %[[HAS]]
// CHECK: scf.if %[[BEGINS]] -> (tensor<64x64xf32>) {
// CHECK-NEXT: gdn_tile.load %final_state
// CHECK: scf.if %[[NAMED]] {
// CHECK-NEXT: gdn_tile.store %{{.*}}, %final_state
func.func @flags(%q: tensor<?x1x1x64xbf16>, %b: tensor<?x1x1xf32>, %pool: tensor<?x1x64x64xf32> {gdn.strided}, %rows: tensor<?xi32>,
                 %has: tensor<?xi8> {gdn.optional}) -> (tensor<?x1x1x64xbf16>, tensor<?x1x64x64xf32>) {
  %o, %s = gdn.stage.recurrent q(%q : tensor<?x1x1x64xbf16>) k(%q : tensor<?x1x1x64xbf16>) v(%q : tensor<?x1x1x64xbf16>)
      beta(%b : tensor<?x1x1xf32>) initial_state(%pool : tensor<?x1x64x64xf32>)
      state_indices(%rows : tensor<?xi32>) has_initial_state(%has : tensor<?xi8>) -> tensor<?x1x1x64xbf16>, tensor<?x1x64x64xf32>
  return %o, %s : tensor<?x1x1x64xbf16>, tensor<?x1x64x64xf32>
}

// -----

// An index is of a row of what is there.
func.func @optional(%q: tensor<?x1x1x64xbf16>, %b: tensor<?x1x1xf32>, %pool: tensor<?x1x64x64xf32> {gdn.optional}, %rows: tensor<?xi32>)
    -> tensor<?x1x1x64xbf16> {
  // expected-error @below {{expected a pool of states that each call has beside state_indices, got gdn.optional on initial_state}}
  %o = gdn.stage.recurrent q(%q : tensor<?x1x1x64xbf16>) k(%q : tensor<?x1x1x64xbf16>) v(%q : tensor<?x1x1x64xbf16>)
      beta(%b : tensor<?x1x1xf32>) initial_state(%pool : tensor<?x1x64x64xf32>) state_indices(%rows : tensor<?xi32>)
      -> tensor<?x1x1x64xbf16>
  return %o : tensor<?x1x1x64xbf16>
}
