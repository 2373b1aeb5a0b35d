// RUN: gdn-opt %s --convert-gdn-to-tile --canonicalize --cse --gdn-tile-verify-form --verify-roundtrip --split-input-file | FileCheck %s
// RUN: gdn-opt %s --convert-gdn-to-tile=v-tiles=2 --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=TILES

// A work item cuts a sequence into a number of segments of whole chunks. Boundaries count through the batch rows.

// CHECK-LABEL: gdn_tile.program @count_segment_boundaries
// CHECK-SAME: outs(%boundaries: memref<9xi64, {{.*}}>, %first_segments: memref<3xi64, {{.*}}>) work_item(%n, %h, %{{.*}}) tokens(%batch, %begin, %end)
// CHECK: %[[TOKENS:.*]] = arith.subi %end, %begin
// CHECK: %[[BEFORE:.*]] = arith.muli %batch, %[[TOKENS]]
// CHECK: %[[BEGIN:.*]] = arith.addi %begin, %[[BEFORE]]
// CHECK: %[[END:.*]] = arith.addi %end, %[[BEFORE]]
// CHECK: %[[CHUNKS:.*]] = arith.ceildivui %[[TOKENS]], %c32
// CHECK: %[[PART:.*]] = arith.ceildivui %[[CHUNKS]], %c4
// CHECK: %[[LENGTH:.*]] = arith.muli %[[PART]], %c32
// CHECK: %[[FIRST:.*]] = arith.muli %n, %c4
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %c4
// CHECK: gdn_tile.store %{{.*}}, %first_segments[%n]
// CHECK: scf.for %[[S:.*]] = %[[FIRST]] to %[[NEXT]]
// CHECK: %[[NUMBER:.*]] = arith.subi %[[S]], %[[FIRST]]
// CHECK: %[[FROM:.*]] = arith.muli %[[NUMBER]], %[[LENGTH]]
// CHECK: %[[AT:.*]] = arith.addi %[[BEGIN]], %[[FROM]]
// CHECK: arith.minui %[[AT]], %[[END]]
// CHECK: gdn_tile.store %{{.*}}, %boundaries[%[[S]]]
// The last sequence has the last entries, too.
// CHECK: %[[LAST:.*]] = arith.cmpi eq
// CHECK: scf.if %[[LAST]]
// CHECK: gdn_tile.store %{{.*}}, %first_segments[
// CHECK: gdn_tile.store %{{.*}}, %boundaries[%[[NEXT]]]
// CHECK: gdn_tile.launch @count_segment_boundaries grid(%c2, %c1, %c1) tokens(%c256) ins(%arg0 : {{.*}}) outs(
func.func @count(%k: tensor<2x256x2x64xbf16>) -> (tensor<9xi64>, tensor<3xi64>) {
  %b, %f = gdn.stage.segment_boundaries k(%k : tensor<2x256x2x64xbf16>) {chunk_size = 32, segments = 4} -> tensor<9xi64>, tensor<3xi64>
  return %b, %f : tensor<9xi64>, tensor<3xi64>
}

// -----

// Into segments of a length: their numbers depend on a sequence's own boundaries alone.

// CHECK-LABEL: gdn_tile.program @length_segment_boundaries
// CHECK: %[[OTHERS:.*]] = arith.subi %n, %c1
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %n, %c0
// CHECK: %[[FULL:.*]] = arith.ceildivui %begin, %c64
// CHECK: %[[BEFORE:.*]] = arith.maxui %[[FULL]], %c1
// CHECK: %[[LATER:.*]] = arith.addi %[[BEFORE]], %[[OTHERS]]
// CHECK: %[[FIRST:.*]] = arith.select %[[IS_FIRST]], %c0, %[[LATER]]
// CHECK: %[[FULL_END:.*]] = arith.ceildivui %end, %c64
// CHECK: %[[THROUGH:.*]] = arith.maxui %[[FULL_END]], %c1
// CHECK: %[[NEXT:.*]] = arith.addi %[[THROUGH]], %n
// The last sequence also has what none needs.
// CHECK: %[[SLOTS:.*]] = memref.dim %boundaries, %c0
// CHECK: %[[ALL:.*]] = arith.subi %[[SLOTS]], %c1
// CHECK: %[[UPTO:.*]] = arith.select %[[IS_LAST:.*]], %[[ALL]], %[[NEXT]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[UPTO]]
// CHECK: scf.if %[[IS_LAST]]
// CHECK: gdn_tile.store %{{.*}}, %boundaries[%[[UPTO]]]
// S + 1 entries: max(ceil(T / 64), 1) + N.
// CHECK-LABEL: func.func @length
// CHECK: %[[ENTRIES:.*]] = tensor.dim %arg1
// CHECK: %[[N:.*]] = arith.subi %[[ENTRIES]], %c1
// CHECK: %[[T:.*]] = tensor.dim %arg0, %c1
// CHECK: %[[WHOLE:.*]] = arith.ceildivui %[[T]], %c64
// CHECK: %[[PIECES:.*]] = arith.maxui %[[WHOLE]], %c1
// CHECK: %[[COUNT:.*]] = arith.addi %[[PIECES]], %[[N]]
// CHECK: tensor.empty(%[[COUNT]]) : tensor<?xi32>
// CHECK: gdn_tile.launch @length_segment_boundaries grid(%[[N]], %c1, %c1) tokens(%[[T]]) cu_seqlens(%arg1 : tensor<?xi32>)
func.func @length(%k: tensor<1x?x2x64xbf16>, %cu: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %b, %f = gdn.stage.segment_boundaries k(%k : tensor<1x?x2x64xbf16>) cu_seqlens(%cu : tensor<?xi32>)
      {chunk_size = 32, segment_length = 64} -> tensor<?xi32>, tensor<?xi32>
  return %b, %f : tensor<?xi32>, tensor<?xi32>
}

// -----

// A length that a call chooses is a number of the program; batch rows are all cut alike. Each segment has the number of its
// sequence.

// CHECK-LABEL: gdn_tile.program @chosen_segment_boundaries(
// CHECK-SAME: %length: index) outs(
// CHECK: %[[FULL:.*]] = arith.ceildivui %end, %length
// CHECK: %[[PIECES:.*]] = arith.maxui %[[FULL]], %c1
// CHECK: %[[FIRST:.*]] = arith.muli %n, %[[PIECES]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[PIECES]]
// CHECK: scf.for %[[S:.*]] = %[[FIRST]] to %[[NEXT]]
// CHECK: gdn_tile.store %{{.*}}, %boundaries[%[[S]]]
// CHECK: gdn_tile.store %{{.*}}, %sequence_numbers[%[[S]]]
// CHECK-LABEL: func.func @chosen
// CHECK: %[[FULL:.*]] = arith.ceildivui %{{.*}}, %arg1
// CHECK: %[[PIECES:.*]] = arith.maxui %[[FULL]], %c1
// CHECK: %[[S:.*]] = arith.muli %[[B:.*]], %[[PIECES]]
// CHECK: tensor.empty(%[[S]]) : tensor<?xi32>
// CHECK: gdn_tile.launch @chosen_segment_boundaries grid(%[[B]], %c1, %c1) {{.*}} ins(%arg0, %arg1 : tensor<?x?x2x64xbf16>, index)
func.func @chosen(%k: tensor<?x?x2x64xbf16>, %length: index) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %b:3 = gdn.stage.segment_boundaries k(%k : tensor<?x?x2x64xbf16>) length(%length : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return %b#0, %b#1, %b#2 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

// -----

// The ungated rule with values of zero, from the identity. Its decay is beside it.

// CHECK-LABEL: gdn_tile.program @map_segment_map(%k: {{.*}} %beta: {{.*}} %gate: {{[^%]*}}) outs(%map: memref<3x4x64x64xf16, {{.*}}>, %decay: memref<3x4xf32, {{.*}}>)
// CHECK: %[[IS:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : tensor<64x64xi32>
// CHECK: %[[IDENTITY:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[M:.*]] = %[[IDENTITY]], %[[SUM:.*]] = %cst{{.*}}) -> (tensor<64x64xf32>, f32)
// CHECK-NOT: gdn_tile.load %v
// CHECK: %[[G:.*]] = gdn_tile.scan
// CHECK: %[[KM:.*]] = linalg.contract {{.*}}"state"} ins(%{{.*}}, %{{.*}} : tensor<64x64xbf16>, tensor<32x64xbf16>)
// CHECK: %[[READ:.*]] = arith.mulf %[[KM]]
// CHECK: %[[W:.*]] = arith.negf %[[READ]]
// CHECK: linalg.contract {{.*}}"state"} {{.*}} outs(%[[W]] : tensor<64x32xf32>)
// CHECK: linalg.contract {{.*}}"state"} {{.*}} outs(%[[M]] : tensor<64x64xf32>)
// CHECK: %[[LAST:.*]] = tensor.extract %[[G]][%c31]
// CHECK: arith.addf %[[SUM]], %[[LAST]]
// CHECK: %[[D:.*]] = arith.subf %[[LOOP]]#0, %[[IDENTITY]]
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[D]] {{.*}} to tensor<64x64xf16>
// Row v of M^T is column v of M.
// CHECK: gdn_tile.store %[[ROUNDED]], %map[%n, %h, %c0, %c0] axes [3, 2]
// CHECK: %[[DECAY:.*]] = tensor.splat %[[LOOP]]#1
// CHECK: gdn_tile.store %[[DECAY]], %decay[%n, %h] axes [1]
// CHECK: gdn_tile.launch @map_segment_map grid(%c3, %c4, %c1) {{.*}} cu_seqlens(%arg3 : tensor<4xi32>)

// Columns of M are split as those of V.
// TILES-LABEL: gdn_tile.program @map_segment_map
// TILES: %[[FIRST:.*]] = arith.muli %{{[a-z]+}}, %c32
// TILES: tensor.splat %{{.*}} : tensor<32x64xi32>
// TILES: gdn_tile.store %{{.*}}, %map[%n, %h, %c0, %[[FIRST]]] axes [3, 2]
// TILES: gdn_tile.launch @map_segment_map grid(%c3, %c4, %c2)
func.func @map(%k: tensor<1x256x2x64xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4xf32>, %cu: tensor<4xi32>)
    -> (tensor<3x4x64x64xf16>, tensor<3x4xf32>) {
  %m, %d = gdn.stage.segment_map k(%k : tensor<1x256x2x64xbf16>) beta(%beta : tensor<1x256x4xf32>)
      gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>) {chunk_size = 32}
      -> tensor<3x4x64x64xf16>, tensor<3x4xf32>
  return %m, %d : tensor<3x4x64x64xf16>, tensor<3x4xf32>
}

// -----

// A gate a channel is inside M; what is taken off is its decay.

// CHECK-LABEL: gdn_tile.program @channels_segment_map
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} -> (tensor<64x64xf32>, tensor<64xf32>)
// CHECK: {{^    }}}
// CHECK: %[[DECAY:.*]] = math.exp2 %[[LOOP]]#1
// CHECK: %[[OF:.*]] = linalg.broadcast ins(%[[DECAY]] : {{.*}} dimensions = [0]
// CHECK: %[[OWN:.*]] = arith.select %{{.*}}, %[[OF]], %{{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: arith.subf %[[LOOP]]#0, %[[OWN]]
// CHECK: gdn_tile.store %[[LOOP]]#1, %decay[%n, %h, %c0] axes [2]
func.func @channels(%k: tensor<1x256x4x64xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4x64xf32>, %cu: tensor<4xi32>)
    -> (tensor<3x4x64x64xf16>, tensor<3x4x64xf32>) {
  %m, %d = gdn.stage.segment_map k(%k : tensor<1x256x4x64xbf16>) beta(%beta : tensor<1x256x4xf32>)
      gate(%gate : tensor<1x256x4x64xf32>) cu_seqlens(%cu : tensor<4xi32>) {chunk_size = 32}
      -> tensor<3x4x64x64xf16>, tensor<3x4x64xf32>
  return %m, %d : tensor<3x4x64x64xf16>, tensor<3x4x64xf32>
}

// -----

// The segments of a sequence are the scan's tokens. D and the state, its columns over their largest entries, are f16; D is the
// left operand. What needs no product stands between the product and what does.

// CHECK-LABEL: gdn_tile.program @scan_segment_scan(%map: {{.*}}, %decay: {{.*}}, %states: {{.*}}, %initial_state: {{[^%]*}}) outs(%entry_states: {{.*}}, %final_state: memref<2x4x32x64xbf16, {{.*}}>)
// CHECK: %[[H0:.*]] = gdn_tile.load %initial_state[%n, %h, %c0, %c0] axes [3, 2]
// CHECK: %[[S0:.*]] = arith.extf %[[H0]]
// CHECK: %[[END:.*]] = scf.for %[[I:.*]] = %begin to %end step %c1 iter_args(%[[S:.*]] = %[[S0]]) -> (tensor<64x32xf32>)
// CHECK: %[[D:.*]] = gdn_tile.load %map[%[[I]], %h, %c0, %c0] axes [2, 3]
// CHECK: %[[B:.*]] = gdn_tile.load %states[%[[I]], %h, %c0, %c0] axes [3, 2]
// CHECK: %[[DECAY:.*]] = gdn_tile.load %decay[%[[I]], %h] axes [1]
// CHECK: math.exp2 %[[DECAY]]
// CHECK: math.absf %[[S]]
// CHECK: linalg.reduce {{.*}} dimensions = [0]
// CHECK: %[[ROUNDED:.*]] = arith.truncf {{.*}} to tensor<64x32xf16>
// CHECK: %[[PRODUCT:.*]] = linalg.contract indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}] {{.*}} ins(%[[D]], %[[ROUNDED]] : tensor<64x64xf16>, tensor<64x32xf16>)
// CHECK: %[[ENTRY:.*]] = arith.addf %[[S]], %{{.*}} {{.*}}{gdn_tile.step = "state"}
// CHECK: gdn_tile.store %[[ENTRY]], %entry_states[%[[I]], %h, %c0, %c0] axes [3, 2] {gdn_tile.step = "store"}
// CHECK: %[[DECAYED:.*]] = arith.mulf %[[ENTRY]]
// CHECK: %[[KEPT:.*]] = arith.addf %[[DECAYED]], %[[B]]
// CHECK: %[[CHANGE:.*]] = arith.mulf %[[PRODUCT]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[KEPT]], %[[CHANGE]]
// CHECK: scf.yield %[[NEXT]]
// CHECK-NOT: neutral_past_end
// CHECK: %[[LAST:.*]] = arith.truncf %[[END]]
// CHECK: gdn_tile.store %[[LAST]], %final_state[%n, %h, %c0, %c0] axes [3, 2]
// CHECK: gdn_tile.launch @scan_segment_scan grid(%c2, %c4, %c1) tokens(%c16) cu_seqlens(%arg4 : tensor<3xi32>)
func.func @scan(%map: tensor<16x4x64x64xf16>, %decay: tensor<16x4xf32>, %b: tensor<16x4x32x64xf32>, %h0: tensor<2x4x32x64xbf16>,
    %first: tensor<3xi32>) -> (tensor<16x4x32x64xf32>, tensor<2x4x32x64xbf16>) {
  %e, %f = gdn.stage.segment_scan map(%map : tensor<16x4x64x64xf16>) decay(%decay : tensor<16x4xf32>)
      states(%b : tensor<16x4x32x64xf32>) initial_state(%h0 : tensor<2x4x32x64xbf16>) first_segments(%first : tensor<3xi32>)
      {state_layout = #gdn.state_layout<vk>} -> tensor<16x4x32x64xf32>, tensor<2x4x32x64xbf16>
  return %e, %f : tensor<16x4x32x64xf32>, tensor<2x4x32x64xbf16>
}

// -----

// Gradients go from the last segment to the first, through M^T. Maps in f32 round nothing.

// CHECK-DAG: #[[$JK:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[$JV:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: gdn_tile.program @gradient_segment_scan
// CHECK: scf.for %[[I:.*]] = %begin to %end
// CHECK: %[[LAST:.*]] = arith.subi %end, %c1
// CHECK: %[[DONE:.*]] = arith.subi %[[I]], %begin
// CHECK: %[[AT:.*]] = arith.subi %[[LAST]], %[[DONE]]
// CHECK: gdn_tile.load %map[%[[AT]], %h, %c0, %c0] axes [2, 3]
// CHECK-NOT: arith.truncf
// CHECK: linalg.contract indexing_maps = [#[[$JK]], #[[$JV]], #{{.*}}]
func.func @gradient(%map: tensor<16x4x64x64xf32>, %decay: tensor<16x4x64xf32>, %b: tensor<16x4x64x32xf32>, %first: tensor<3xi32>)
    -> tensor<16x4x64x32xf32> {
  %e = gdn.stage.segment_scan map(%map : tensor<16x4x64x64xf32>) decay(%decay : tensor<16x4x64xf32>)
      states(%b : tensor<16x4x64x32xf32>) first_segments(%first : tensor<3xi32>) {reverse} -> tensor<16x4x64x32xf32>
  return %e : tensor<16x4x64x32xf32>
}

// -----

// From the last chunk on: as long as the gates behind a chunk do not decay to the tolerance, the segment begins with it. The
// sums are made by a step of their own, of eight chunks at a time: each from its chunk to the end of the eight.

// CHECK-LABEL: gdn_tile.program @starts_segment_starts(%k: {{.*}}, %gate: {{[^%]*}}) outs(%starts: memref<3x4xi32, {{.*}}>, %decay: memref<3x4xf32, {{.*}}>)
// CHECK: %[[BOUND:.*]] = arith.constant dense<-1.000000e+01> : tensor<1xf32>
// CHECK: %[[TO:.*]] = arith.index_cast %end
// CHECK: %[[END:.*]] = tensor.splat %[[TO]]
// CHECK: %[[WALK:.*]]:2 = scf.for {{.*}} step %c256 iter_args(%[[SUM:.*]] = %{{.*}}, %[[START:.*]] = %[[END]]) -> (tensor<1xf32>, tensor<1xi32>)
// CHECK: gdn_tile.load %gate{{.*}} -> tensor<256xf32>
// CHECK: %[[SUMS:.*]] = gdn_tile.scan %{{.*}} axis 0 reverse {gdn_tile.step = "gates"}
// CHECK: %[[FIRST:.*]] = tensor.extract %[[SUMS]][%c0]
// CHECK: %[[LAST:.*]] = tensor.extract %[[SUMS]][%c224]
// CHECK: %[[ALIVE:.*]] = arith.cmpf ogt, %[[SUM]], %[[BOUND]] {gdn_tile.step = "state"}
// CHECK: %[[NEXT:.*]] = arith.select %[[ALIVE]], %{{.*}}, %[[START]]
// CHECK: %[[OWN:.*]] = tensor.splat %[[LAST]] {
// CHECK: %[[MORE:.*]] = arith.addf %[[SUM]], %[[OWN]]
// CHECK: arith.cmpf ogt, %[[MORE]], %[[BOUND]]
// CHECK: %[[PLACE:.*]] = arith.select
// CHECK: %[[WHOLE:.*]] = tensor.splat %[[FIRST]] {
// CHECK: %[[TOTAL:.*]] = arith.addf %[[SUM]], %[[WHOLE]]
// CHECK: scf.yield %[[TOTAL]], %{{.*}}
// CHECK: gdn_tile.store %[[WALK]]#1, %starts[%n, %h] axes [1]
// CHECK: gdn_tile.store %[[WALK]]#0, %decay[%n, %h] axes [1]
func.func @starts(%k: tensor<1x256x2x64xbf16>, %gate: tensor<1x256x4xf32>, %cu: tensor<4xi32>) -> (tensor<3x4xi32>, tensor<3x4xf32>) {
  %s, %d = gdn.stage.segment_starts k(%k : tensor<1x256x2x64xbf16>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      {chunk_size = 32, tolerance = 9.765625e-04} -> tensor<3x4xi32>, tensor<3x4xf32>
  return %s, %d : tensor<3x4xi32>, tensor<3x4xf32>
}

// -----

// A segment that begins behind its first token needs no map: it has no chunk.

// CHECK-LABEL: gdn_tile.program @forgotten_segment_map(%k: {{.*}}, %beta: {{.*}}, %starts: {{[^%]*}}) outs(%map:
// CHECK: %[[NUMBER:.*]] = memref.load %starts[%n, %h]
// CHECK: %[[START:.*]] = arith.index_cast %[[NUMBER]]
// CHECK: %[[FORGOTTEN:.*]] = arith.cmpi ugt, %[[START]], %begin
// CHECK: %[[FROM:.*]] = arith.select %[[FORGOTTEN]], %end, %begin
// CHECK: scf.for %{{.*}} = %[[FROM]] to %end
// B is that of the tokens from its start on.
// CHECK-LABEL: gdn_tile.program @forgotten_state_pass
// CHECK: %[[NUMBER:.*]] = memref.load %starts[%n, %h]
// CHECK: %[[START:.*]] = arith.index_cast %[[NUMBER]]
// CHECK: scf.for %{{.*}} = %[[START]] to %end
func.func @forgotten(%q: tensor<1x256x2x64xbf16>, %k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>,
    %gate: tensor<1x256x4xf32>, %cu: tensor<4xi32>, %starts: tensor<3x4xi32>) -> (tensor<3x4x64x64xf16>, tensor<3x4x64x32xf32>) {
  %m = gdn.stage.segment_map k(%k : tensor<1x256x2x64xbf16>) beta(%beta : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      starts(%starts : tensor<3x4xi32>) {chunk_size = 32} -> tensor<3x4x64x64xf16>
  %b = gdn.stage.state_pass q(%q : tensor<1x256x2x64xbf16>) k(%k : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      starts(%starts : tensor<3x4xi32>) {chunk_size = 32} -> tensor<3x4x64x32xf32>
  return %m, %b : tensor<3x4x64x64xf16>, tensor<3x4x64x32xf32>
}

// -----

// For gradients the same from the first chunk on: to where the gates of what is before decay to the tolerance.

// CHECK-LABEL: gdn_tile.program @ends_segment_starts(%k: {{.*}}, %gate: {{[^%]*}}) outs(%ends: memref<3x4xi32, {{[^%]*}}>)
// CHECK: %[[BOUND:.*]] = arith.constant dense<-1.000000e+01> : tensor<1xf32>
// CHECK: %[[FROM:.*]] = arith.index_cast %begin
// CHECK: %[[BEGIN:.*]] = tensor.splat %[[FROM]]
// CHECK: %[[WALK:.*]]:2 = scf.for %[[T:.*]] = %begin to %end step %c256 iter_args(%[[SUM:.*]] = %{{.*}}, %[[END:.*]] = %[[BEGIN]]) -> (tensor<1xf32>, tensor<1xi32>)
// CHECK: %[[SUMS:.*]] = gdn_tile.scan %{{.*}} axis 0 {gdn_tile.step = "gates"}
// CHECK: tensor.extract %[[SUMS]][%c31]
// CHECK: %[[BEHIND:.*]] = arith.addi %[[T]], %c32
// CHECK: %[[PLACE:.*]] = arith.minui %[[BEHIND]], %end
// CHECK: %[[ALIVE:.*]] = arith.cmpf ogt, %[[SUM]], %[[BOUND]]
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[PLACE]]
// CHECK: %[[AT:.*]] = tensor.splat %[[NUMBER]]
// CHECK: arith.select %[[ALIVE]], %[[AT]], %[[END]]
// CHECK: gdn_tile.store %[[WALK]]#1, %ends[%n, %h] axes [1]
// What a segment adds to the gradient of the state before it is that of the tokens before its end. Accesses end with the
// segment.
// CHECK-LABEL: gdn_tile.program @ends_adjoint_pass(
// CHECK-SAME: outs(%d_initial_state: memref<3x4x64x32xf32, {{[^%]*}}>)
// CHECK: %[[NUMBER:.*]] = memref.load %ends[%n, %h]
// CHECK: %[[END:.*]] = arith.index_cast %[[NUMBER]]
// CHECK: %[[TOKENS:.*]] = arith.subi %[[END]], %begin
// CHECK: %[[CHUNKS:.*]] = arith.ceildivui %[[TOKENS]], %c32
// CHECK: %[[UPPER:.*]] = arith.muli %[[CHUNKS]], %c32
// CHECK: scf.for %{{.*}} = %c0 to %[[UPPER]]
// CHECK: gdn_tile.load %q[{{.*}} until(%end, dim = 1)
// CHECK-NOT: gdn_tile.store
// CHECK: scf.yield
// CHECK: gdn_tile.store %{{.*}}, %d_initial_state
func.func @ends(%q: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4xf32>,
    %cu: tensor<4xi32>) -> tensor<3x4x64x32xf32> {
  %ends = gdn.stage.segment_starts k(%q : tensor<1x256x2x64xbf16>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      {chunk_size = 32, tolerance = 9.765625e-04, reverse} -> tensor<3x4xi32>
  %dh0 = gdn.stage.adjoint_pass q(%q : tensor<1x256x2x64xbf16>) k(%q : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      d_o(%v : tensor<1x256x4x32xbf16>) ends(%ends : tensor<3x4xi32>) {chunk_size = 32} -> tensor<3x4x64x32xf32>
  return %dh0 : tensor<3x4x64x32xf32>
}

// -----

// The second of two launches begins beside the first. A third one does not where it takes what the first makes.

// CHECK-LABEL: func.func @chain(
// CHECK: gdn_tile.launch @chain_state_pass
// CHECK-SAME: gdn_tile.first_of_two
// CHECK: gdn_tile.launch @chain_segment_map
// CHECK-SAME: gdn_tile.beside
// CHECK-NOT: gdn_tile.first_of_two
// CHECK: gdn_tile.launch @chain_segment_scan
// CHECK-NOT: gdn_tile.beside
// CHECK: return
func.func @chain(%k: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4xf32>,
    %cu: tensor<4xi32>, %old: tensor<3x4x64x64xf16>, %decay: tensor<3x4xf32>, %first: tensor<2xi32>)
    -> (tensor<3x4x32x64xf32>, tensor<3x4x64x64xf16>) {
  %b = gdn.stage.state_pass q(%k : tensor<1x256x2x64xbf16>) k(%k : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      {beside, chunk_size = 32, state_layout = #gdn.state_layout<vk>} -> tensor<3x4x32x64xf32>
  %m, %d = gdn.stage.segment_map k(%k : tensor<1x256x2x64xbf16>) beta(%beta : tensor<1x256x4xf32>)
      gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>) {beside, chunk_size = 32} -> tensor<3x4x64x64xf16>, tensor<3x4xf32>
  %e = gdn.stage.segment_scan map(%old : tensor<3x4x64x64xf16>) decay(%decay : tensor<3x4xf32>)
      states(%b : tensor<3x4x32x64xf32>) first_segments(%first : tensor<2xi32>)
      {state_layout = #gdn.state_layout<vk>} -> tensor<3x4x32x64xf32>
  return %e, %m : tensor<3x4x32x64xf32>, tensor<3x4x64x64xf16>
}

// -----

// A forward whose segments run what is before them themselves. Boundaries tell where the segment before each one begins,
// -1 - n of the first one of sequence n, and with which segment a sequence ends.

// Where some of a sample of heads, but fewer than half, keep a state over a segment, segments are shorter than elsewhere.
// CHECK-LABEL: gdn_tile.program @before_segment_boundaries
// CHECK: %[[SHORT:.*]] = arith.muli %{{.*}}, %c32
// CHECK: %[[SOME:.*]] = scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args(%{{.*}} = %false) -> (i1) {
// CHECK-COUNT-32: memref.load %sampled_gate[
// CHECK: %[[BEHIND:.*]] = arith.subi %{{.*}}, %c1_i32
// CHECK: arith.cmpi ult, %[[BEHIND]], %c3_i32
// CHECK: %[[LONG:.*]] = arith.muli %{{.*}}, %c32
// CHECK: arith.select %[[SOME]], %[[SHORT]], %[[LONG]] : index
// CHECK: gdn_tile.store %{{.*}}, %last_segments[%n]
// CHECK: scf.for %[[S:.*]] = %[[FIRST:.*]] to
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[S]], %[[FIRST]]
// CHECK: %[[NONE:.*]] = arith.subi %c-1, %n
// CHECK: %[[BEFORE:.*]] = arith.select %[[IS_FIRST]], %[[NONE]], %{{.*}} : index
// CHECK: gdn_tile.store %{{.*}}, %before[%[[S]]]
// CHECK: %[[NUMBER:.*]] = arith.subi %[[S]], %{{.*}} : index
// CHECK: %[[CLOSES:.*]] = arith.cmpi ult, %[[NUMBER]], %c1
// CHECK: arith.select %[[CLOSES]], %n, %c-1
// CHECK: gdn_tile.store %{{.*}}, %closes[%[[S]]]
// CHECK: gdn_tile.store %{{.*}}, %before[

// Nobody needs B of the last segment of a sequence, nor where this segment forgets and the next one is the last or forgets.
// A first segment begins with the state of its sequence unless it forgets that.
// CHECK-LABEL: gdn_tile.program @before_state_pass
// CHECK: %[[KEEPS:.*]] = arith.cmpi sle
// CHECK: %[[ENTERS:.*]] = arith.andi %{{.*}}, %[[KEEPS]]
// CHECK: memref.load %closes[%[[NEXT:.*]]]
// CHECK: %[[UNNEEDED:.*]] = arith.andi
// CHECK: memref.load %closes[%n]
// CHECK: %[[LAST:.*]] = arith.cmpi sge
// CHECK: %[[UNREAD:.*]] = arith.ori %[[UNNEEDED]], %[[LAST]]
// CHECK: %[[EMPTY:.*]] = arith.cmpi uge, %begin, %end
// CHECK: %[[NONE:.*]] = arith.ori %[[UNREAD]], %[[EMPTY]]
// CHECK: %[[BEGIN:.*]] = arith.select %[[NONE]], %end, %{{.*}} : index
// CHECK: gdn_tile.leave %[[NONE]]{{$}}
// CHECK: %[[SEQUENCE:.*]] = arith.subi %c-1, %{{.*}}
// CHECK: scf.if %[[ENTERS]] -> (tensor<32x64xf32>) {
// CHECK-NEXT: gdn_tile.load %sequence_state[%[[SEQUENCE]], %h
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %end

// Maps of first and last segments are not made, nor are those of segments that forget.
// CHECK-LABEL: gdn_tile.program @before_segment_map
// CHECK: %[[FIRST:.*]] = arith.cmpi slt
// CHECK: %[[LAST:.*]] = arith.cmpi sge
// CHECK: %[[END:.*]] = arith.ori %[[FIRST]], %[[LAST]]
// CHECK: %[[EMPTY:.*]] = arith.cmpi uge, %begin, %end
// CHECK: %[[UNREAD:.*]] = arith.ori %[[END]], %{{.*}}
// CHECK: %[[NONE:.*]] = arith.ori %[[UNREAD]], %[[EMPTY]]
// CHECK: gdn_tile.leave %[[NONE]]{{$}}

// The scan goes from the state behind the first segment to that before the last. Where all segments but the last forget,
// its CTA ends before it waits. It keeps nothing of a state, or of a map that nobody made, where a segment forgets.
// CHECK-LABEL: gdn_tile.program @before_segment_scan
// CHECK: memref.load %last_segments[%n]
// CHECK: %[[NEEDS:.*]] = scf.for %[[S:.*]] = %begin to %[[LAST:.*]] step %c1 iter_args(%{{.*}} = %false) -> (i1) {
// CHECK: memref.load %starts[%[[S]], %h]
// CHECK: memref.load %boundaries[%[[S]]]
// CHECK: %[[IDLE:.*]] = arith.xori %[[NEEDS]], %true
// CHECK: gdn_tile.leave %[[IDLE]] {early}
// CHECK: %[[ALL:.*]] = arith.subi %end, %begin
// CHECK: %[[LONGER:.*]] = arith.cmpi ult
// CHECK: gdn_tile.hold_back if %[[LONGER]]
// CHECK: gdn_tile.load %states[
// CHECK: %[[SECOND:.*]] = arith.addi %begin, %c1
// CHECK: %[[STATE:.*]] = scf.for %{{.*}} = %[[SECOND]] to %[[LAST]]
// CHECK: %[[FORGETS:.*]] = arith.cmpi sgt
// CHECK: arith.select %[[FORGETS]], %{{.*}}, %{{.*}} : tensor<1xf32>
// CHECK: %[[NOTHING:.*]] = arith.cmpf olt
// CHECK: arith.select %[[NOTHING]], %{{.*}}, %{{.*}} : tensor<64x32xf32>
// CHECK: arith.select %{{.*}} : tensor<64x32xf32>
// CHECK: scf.if
// CHECK-NEXT: gdn_tile.store %[[STATE]], %entry_states[%[[LAST]], %h
// CHECK: gdn_tile.count_down %before

// The caller's states may lie either way, and arrays of segments may be views of those of their parts.
// CHECK-LABEL: gdn_tile.program @before_fused
// CHECK-SAME: %before: memref<9xi32, strided<[?], offset: ?>>, %closes: memref<8xi32, strided<[?], offset: ?>>
// CHECK-SAME: %sequence_state: memref<?x4x64x32xf32, strided<[?, ?, ?, ?], offset: ?>>
// CHECK-SAME: outs({{.*}}, %final_state: memref<?x4x64x32xf32, strided<[?, ?, ?, ?], offset: ?>>)
// CHECK-SAME: work_item(%n, %h, %{{.*}}, %[[TURN:.*]]) tokens(
// CHECK: %[[PREVIOUS:.*]] = arith.subi %{{.*}}, %c1
// CHECK: %[[FIRST:.*]] = arith.cmpi slt
// CHECK: memref.load %starts[%[[PREVIOUS]], %h]
// CHECK: %[[OWN:.*]] = arith.andi
// CHECK: %[[WAITS:.*]] = arith.xori %{{.*}}, %[[OWN]]
// CHECK: arith.cmpi ne, %[[TURN]], %c0
// CHECK: gdn_tile.leave %[[IDLE:[^ ]*]]
// CHECK: gdn_tile.await %before if %[[WAITS]]
// CHECK: scf.if %[[FIRST]] -> (tensor<32x64xf32>) {
// CHECK-NEXT: gdn_tile.load %sequence_state[
// CHECK: scf.if %[[WAITS]] -> (tensor<32x64xf32>) {
// CHECK-NEXT: gdn_tile.load %initial_state[%n
// CHECK: scf.for %[[T:[^ ]*]] =
// CHECK: %[[STORED:.*]] = arith.cmpi uge, %[[T]], %begin
// CHECK: scf.if %[[STORED]] {
// CHECK-NEXT: gdn_tile.store %{{.*}}, %o[
// CHECK: %[[CLOSES:.*]] = memref.load %closes[%n]
// CHECK: %[[SEQUENCE:.*]] = arith.index_cast %[[CLOSES]]
// CHECK: scf.if
// CHECK-NEXT: gdn_tile.store %{{.*}}, %final_state[%[[SEQUENCE]], %h
// CHECK: gdn_tile.launch @before_fused grid(%{{.*}}, %c4, %c1, %c2) {{.*}} {gdn_tile.beside, gdn_tile.in_order, gdn_tile.in_turns}
func.func @before(%x: tensor<1x256x2x64xbf16>, %v: tensor<1x256x4x32xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4xf32>,
    %h0: tensor<?x4x64x32xf32>) -> (tensor<1x256x4x32xbf16>, tensor<?x4x64x32xf32>) {
  %b:5 = gdn.stage.segment_boundaries k(%x : tensor<1x256x2x64xbf16>) gate(%gate : tensor<1x256x4xf32>)
      {chunk_size = 32, fewer_segments = 3, live_heads = array<i64: 1, 3>, segments = 8, tolerance = 1.0e-05}
      -> tensor<9xi64>, tensor<2xi64>, tensor<9xi32>, tensor<8xi32>, tensor<1xi32>
  %s:2 = gdn.stage.segment_starts k(%x : tensor<1x256x2x64xbf16>) gate(%gate : tensor<1x256x4xf32>)
      cu_seqlens(%b#0 : tensor<9xi64>) {chunk_size = 32, tolerance = 1.0e-05} -> tensor<8x4xi32>, tensor<8x4xf32>
  %added = gdn.stage.state_pass q(%x : tensor<1x256x2x64xbf16>) k(%x : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%b#0 : tensor<9xi64>)
      starts(%s#0 : tensor<8x4xi32>) before(%b#2 : tensor<9xi32>) closes(%b#3 : tensor<8xi32>)
      sequence_state(%h0 : tensor<?x4x64x32xf32>)
      {beside, chunk_size = 32, sequence_layout = #gdn.state_layout<kv>, state_layout = #gdn.state_layout<vk>}
      -> tensor<8x4x32x64xf32>
  %map = gdn.stage.segment_map k(%x : tensor<1x256x2x64xbf16>) beta(%beta : tensor<1x256x4xf32>) cu_seqlens(%b#0 : tensor<9xi64>)
      starts(%s#0 : tensor<8x4xi32>) before(%b#2 : tensor<9xi32>) closes(%b#3 : tensor<8xi32>) {chunk_size = 32}
      -> tensor<8x4x64x64xf16>
  %entry = gdn.stage.segment_scan map(%map : tensor<8x4x64x64xf16>) decay(%s#1 : tensor<8x4xf32>)
      states(%added : tensor<8x4x32x64xf32>) first_segments(%b#1 : tensor<2xi64>) before(%b#2 : tensor<9xi32>)
      starts(%s#0 : tensor<8x4xi32>) boundaries(%b#0 : tensor<9xi64>) last_segments(%b#4 : tensor<1xi32>)
      {state_layout = #gdn.state_layout<vk>} -> tensor<8x4x32x64xf32>
  %o, %ht = gdn.stage.fused q(%x : tensor<1x256x2x64xbf16>) k(%x : tensor<1x256x2x64xbf16>) v(%v : tensor<1x256x4x32xbf16>)
      beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4xf32>) initial_state(%entry : tensor<8x4x32x64xf32>)
      cu_seqlens(%b#0 : tensor<9xi64>) starts(%s#0 : tensor<8x4xi32>) before(%b#2 : tensor<9xi32>) closes(%b#3 : tensor<8xi32>)
      sequence_state(%h0 : tensor<?x4x64x32xf32>) first_segments(%b#1 : tensor<2xi64>)
      {chunk_size = 32, sequence_layout = #gdn.state_layout<kv>, state_layout = #gdn.state_layout<vk>}
      -> tensor<1x256x4x32xbf16>, tensor<?x4x64x32xf32>
  return %o, %ht : tensor<1x256x4x32xbf16>, tensor<?x4x64x32xf32>
}

// -----

// The forward behind this scan is launched when the maps are done.
// CHECK-LABEL: gdn_tile.program @late_segment_scan
// CHECK: gdn_tile.launch @late_segment_scan {{.*}} {gdn_tile.first_of_two}
func.func @late(%map: tensor<8x4x64x64xf16>, %decay: tensor<8x4xf32>, %added: tensor<8x4x32x64xf32>, %first: tensor<2xi32>,
    %before: tensor<9xi32>, %starts: tensor<8x4xi32>, %boundaries: tensor<9xi32>) -> tensor<8x4x32x64xf32> {
  %entry = gdn.stage.segment_scan map(%map : tensor<8x4x64x64xf16>) decay(%decay : tensor<8x4xf32>)
      states(%added : tensor<8x4x32x64xf32>) first_segments(%first : tensor<2xi32>) before(%before : tensor<9xi32>)
      starts(%starts : tensor<8x4xi32>) boundaries(%boundaries : tensor<9xi32>)
      {beside, state_layout = #gdn.state_layout<vk>} -> tensor<8x4x32x64xf32>
  return %entry : tensor<8x4x32x64xf32>
}

// -----

// With a gate a channel two bounds of what is left of a state, from the last token back: the slowest channels' decays, and
// sums over columns of |I - beta k k^T| and the decays behind it. Eight tokens are loaded at a time, until a bound is met.

// CHECK-LABEL: gdn_tile.program @channel_starts_segment_starts(%k: {{.*}}, %beta: {{.*}}, %gate: {{[^%]*}}) outs(%starts: memref<3x4xi32, {{[^%]*}}>)
// CHECK: %[[LENGTH:.*]] = arith.subi %end, %begin
// CHECK: %[[WALKED:.*]] = arith.minui %[[LENGTH]], %c96
// CHECK: %[[FROM:.*]] = arith.index_cast %begin
// CHECK: %[[BEGIN:.*]] = tensor.splat %[[FROM]]
// CHECK: %[[WALK:.*]]:3 = scf.for %[[I:.*]] = %c0 to %[[WALKED]] step %c8 iter_args(%[[Y:.*]] = %cst{{.*}}, %[[SLOWEST:.*]] = %cst{{.*}}, %[[PLACE:.*]] = %[[BEGIN]]) -> (tensor<64xf32>, tensor<1xf32>, tensor<1xi32>)
// CHECK: scf.if %{{.*}} -> (tensor<64xf32>, tensor<1xf32>, tensor<1xi32>) {
// CHECK-NEXT: scf.yield %[[Y]], %[[SLOWEST]], %[[PLACE]]
// CHECK: %[[BACK:.*]] = arith.addi %[[I]], %c1
// CHECK: %[[HELD:.*]] = arith.minui %[[BACK]], %[[LENGTH]]
// CHECK: %[[AT:.*]] = arith.subi %[[LENGTH]], %[[HELD]]
// CHECK: %[[NUMBER:.*]] = arith.divui %[[AT]], %c32
// CHECK: %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %c32
// CHECK: %[[T:.*]] = arith.addi %begin, %[[AT]]
// CHECK: gdn_tile.load %k[%{{.*}}, %[[T]],
// CHECK: gdn_tile.load %gate[%{{.*}}, %[[T]],
// CHECK: gdn_tile.load %beta[%{{.*}}, %[[T]],
// CHECK: %[[CHUNK:.*]] = arith.addi %begin, %[[OFFSET]]
// CHECK-COUNT-7: gdn_tile.load %k
// CHECK-NOT: gdn_tile.load %k
// CHECK: %[[K:.*]] = math.absf
// CHECK: %[[BETA:.*]] = math.absf
// CHECK: %[[DECAY:.*]] = math.exp2
// CHECK: %[[BETAS:.*]] = tensor.splat %[[BETA]]
// CHECK: %[[WRITTEN:.*]] = arith.mulf %[[K]], %[[BETAS]]
// CHECK: %[[READ:.*]] = arith.mulf %[[K]], %[[Y]]
// CHECK: %[[SUM:.*]] = linalg.reduce {{.*}}ins(%[[READ]]
// CHECK: %[[ALL:.*]] = tensor.splat
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[WRITTEN]], %[[K]]
// CHECK: %[[LEFT:.*]] = arith.subf %cst{{.*}}, %[[SQUARE]]
// CHECK: %[[OWN:.*]] = math.absf %[[LEFT]]
// CHECK: %[[OTHERS:.*]] = arith.subf %[[ALL]], %[[READ]]
// CHECK: %[[NEXT:.*]] = arith.mulf %[[DECAY]], %
// CHECK: linalg.reduce {{.*}}ins(%[[DECAY]]
// CHECK: arith.mulf %[[SLOWEST]], %
// CHECK: %[[FOUND:.*]] = arith.maxsi %[[PLACE]], %
// CHECK: arith.select %{{.*}}, %[[FOUND]], %[[PLACE]]
// CHECK: gdn_tile.store %[[WALK]]#2, %starts[%n, %h] axes [1]
func.func @channel_starts(%k: tensor<1x256x2x64xbf16>, %beta: tensor<1x256x4xf32>, %gate: tensor<1x256x4x64xf32>, %cu: tensor<4xi32>)
    -> tensor<3x4xi32> {
  %s = gdn.stage.segment_starts k(%k : tensor<1x256x2x64xbf16>) beta(%beta : tensor<1x256x4xf32>) gate(%gate : tensor<1x256x4x64xf32>)
      cu_seqlens(%cu : tensor<4xi32>) {chunk_size = 32, tolerance = 9.765625e-04} -> tensor<3x4xi32>
  return %s : tensor<3x4xi32>
}

// -----

// The scan keeps nothing of a state where a segment forgets, whatever was left for the decays of its channels and its map.

// CHECK-LABEL: gdn_tile.program @channel_scan_segment_scan
// CHECK: scf.for %[[S:.*]] = %begin to %end
// CHECK: gdn_tile.load %decay[%[[S]], %h, %c0] axes [2]
// CHECK: %[[FACTOR:.*]] = math.exp2
// CHECK: %[[START:.*]] = memref.load %starts[%[[S]], %h]
// CHECK: %[[FROM:.*]] = memref.load %boundaries[%[[S]]]
// CHECK: %[[FORGETS:.*]] = arith.cmpi sgt
// CHECK: %[[KEPT:.*]] = arith.select %[[FORGETS]], %cst{{.*}}, %[[FACTOR]] {gdn_tile.step = "gates"} : tensor<64xf32>
// CHECK: linalg.contract
// CHECK: %[[MARK:.*]] = linalg.broadcast ins(%[[KEPT]] : tensor<64xf32>) outs(%{{.*}} : tensor<64x32xf32>) dimensions = [1]
// CHECK: arith.cmpf olt, %[[MARK]], %
// CHECK-COUNT-2: arith.select %{{.*}}, %{{.*}}, %{{.*}} {gdn_tile.step = "state"} : tensor<64x32xi1>, tensor<64x32xf32>
func.func @channel_scan(%map: tensor<8x4x64x64xf16>, %decay: tensor<8x4x64xf32>, %added: tensor<8x4x32x64xf32>, %first: tensor<2xi32>,
    %starts: tensor<8x4xi32>, %boundaries: tensor<9xi32>) -> (tensor<8x4x32x64xf32>, tensor<1x4x32x64xf32>) {
  %entry, %last = gdn.stage.segment_scan map(%map : tensor<8x4x64x64xf16>) decay(%decay : tensor<8x4x64xf32>)
      states(%added : tensor<8x4x32x64xf32>) first_segments(%first : tensor<2xi32>) starts(%starts : tensor<8x4xi32>)
      boundaries(%boundaries : tensor<9xi32>) {state_layout = #gdn.state_layout<vk>}
      -> tensor<8x4x32x64xf32>, tensor<1x4x32x64xf32>
  return %entry, %last : tensor<8x4x32x64xf32>, tensor<1x4x32x64xf32>
}

// -----

// Where gradients of segments end, found beside where segments begin.
// CHECK-LABEL: func.func @both_ends(
// CHECK: gdn_tile.launch @both_ends_segment_starts grid{{.*}} {gdn_tile.first_of_two}
// CHECK: gdn_tile.launch @both_ends_segment_starts_0 grid{{.*}} {gdn_tile.beside}
func.func @both_ends(%k: tensor<1x256x2x64xbf16>, %gate: tensor<1x256x4xf32>, %cu: tensor<4xi32>)
    -> (tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>) {
  %ends = gdn.stage.segment_starts k(%k : tensor<1x256x2x64xbf16>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      {beside, chunk_size = 32, reverse, tolerance = 6.0e-06} -> tensor<3x4xi32>
  %s, %d = gdn.stage.segment_starts k(%k : tensor<1x256x2x64xbf16>) gate(%gate : tensor<1x256x4xf32>) cu_seqlens(%cu : tensor<4xi32>)
      {chunk_size = 32, tolerance = 6.0e-06} -> tensor<3x4xi32>, tensor<3x4xf32>
  return %ends, %s, %d : tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>
}

// -----

// Heads with a gate a channel that keep a state have whole sequences if a segment of the longer length has room for all tokens.
// The first sequence clears what heads keep.
// CHECK-LABEL: gdn_tile.program @whole_segment_boundaries
// CHECK-SAME: %longer_length: index) outs({{.*}}%whole_begins: memref<?xi32, {{[^%]*}}>, %whole_heads: memref<?xi32,
// CHECK: %[[HEADS:.*]] = memref.dim %whole_heads, %c0
// CHECK: %[[CLEARED:.*]] = arith.select %{{.*}}, %[[HEADS]], %c0
// CHECK: scf.for %[[H:.*]] = %{{.*}} to %[[CLEARED]] step %c8
// CHECK: gdn_tile.store %{{.*}}, %whole_heads[%[[H]]]
// CHECK: %[[LONGEST:.*]] = arith.muli %longer_length, %parts
// CHECK: %[[ALL:.*]] = memref.dim %k, %c1
// CHECK: %[[ROOM:.*]] = arith.cmpi uge, %[[LONGEST]], %[[ALL]]
// CHECK: %[[BEGIN:.*]] = arith.select %[[ROOM]], %{{.*}}, %c0
// CHECK: %[[OTHERS:.*]] = arith.select %[[ROOM]], %c-1, %c0
// CHECK: %[[CLOSES:.*]] = arith.cmpi ult, %{{.*}}, %parts
// CHECK: %[[TOLD:.*]] = arith.select %[[CLOSES]], %[[BEGIN]], %[[OTHERS]]
// CHECK: gdn_tile.store %{{.*}}, %whole_begins[
// A segment with others behind it says that the head keeps a state, unless its place is behind its first token.
// CHECK-LABEL: gdn_tile.program @whole_segment_starts
// CHECK-SAME: %whole_begins: {{[^%]*}}) outs(%starts: {{[^%]*}}, %whole_heads: memref<?xi32,
// CHECK: gdn_tile.store %[[PLACES:[^,]*]], %starts
// CHECK: %[[PLACE:.*]] = tensor.extract %[[PLACES]]
// CHECK: %[[KEEPS:.*]] = arith.cmpi sle, %[[PLACE]], %
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %begin, %end
// CHECK: memref.load %whole_begins[%n]
// CHECK: %[[FOLLOWED:.*]] = arith.cmpi slt, %{{.*}}, %c0
// CHECK: %[[BOTH:.*]] = arith.andi %[[SOME]], %[[FOLLOWED]]
// CHECK: %[[NOTES:.*]] = arith.andi %[[KEEPS]], %[[BOTH]]
// CHECK: scf.if %[[NOTES]]
// CHECK-NEXT: gdn_tile.store %{{.*}}, %whole_heads[%h] axes [0]
// Such a head needs nothing of its segments: no B, no map, no scan.
// CHECK-LABEL: gdn_tile.program @whole_state_pass
// CHECK: memref.load %whole_heads[%h]
// CHECK: %[[IS:.*]] = arith.cmpi ne, %{{.*}}, %c0
// CHECK: %[[NONE:.*]] = arith.ori %{{.*}}, %[[IS]]
// CHECK: gdn_tile.leave %[[NONE]]
// CHECK-LABEL: gdn_tile.program @whole_segment_map
// CHECK: memref.load %whole_heads[%h]
// CHECK: %[[IS:.*]] = arith.cmpi ne, %{{.*}}, %c0
// CHECK: %[[NONE:.*]] = arith.ori %{{.*}}, %[[IS]]
// CHECK: gdn_tile.leave %[[NONE]]
// CHECK-LABEL: gdn_tile.program @whole_segment_scan
// CHECK: memref.load %whole_heads[%h]
// CHECK: %[[IS:.*]] = arith.cmpi ne, %{{.*}}, %c0
// CHECK: %[[NONE:.*]] = arith.ori %{{.*}}, %[[IS]]
// CHECK: gdn_tile.leave %[[NONE]] {early}
// The segment that ends its sequence has all tokens, and the others have none.
// CHECK-LABEL: gdn_tile.program @whole_fused
// CHECK: memref.load %whole_heads[%h]
// CHECK: %[[IS:.*]] = arith.cmpi ne, %{{.*}}, %c0
// CHECK: memref.load %whole_begins[%n]
// CHECK: %[[BEGIN:.*]] = arith.select %[[IS]], %{{.*}}, %begin
// CHECK: %[[ENTERS:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : i1
// CHECK: %[[LATER:.*]] = arith.xori %[[ENTERS]], %true
// CHECK: %[[OTHER:.*]] = arith.andi %[[IS]], %[[LATER]]
// CHECK: %[[IDLE:.*]] = arith.ori %{{.*}}, %[[OTHER]]
// CHECK: gdn_tile.leave %[[IDLE]]
// CHECK-LABEL: func.func @whole(
// CHECK: %[[HEADS:.*]] = tensor.dim %arg1, %c2
// CHECK: tensor.empty(%[[HEADS]]) : tensor<?xi32>
// CHECK: %[[CUT:.*]]:7 = gdn_tile.launch @whole_segment_boundaries
// CHECK: gdn_tile.launch @whole_segment_starts {{.*}} outs(%{{.*}}, %[[CUT]]#6 :
func.func @whole(%k: tensor<1x?x2x64xbf16>, %gate: tensor<1x?x?x64xbf16>, %beta: tensor<1x?x?xf32>, %v: tensor<1x?x?x64xbf16>, %cu: tensor<?xi32>,
    %length: index, %parts: index, %longer: index) -> (tensor<1x?x?x64xbf16>, tensor<?x?x64x64xf32>) {
  %b:7 = gdn.stage.segment_boundaries k(%k : tensor<1x?x2x64xbf16>) gate(%gate : tensor<1x?x?x64xbf16>) cu_seqlens(%cu : tensor<?xi32>)
      length(%length : index) parts(%parts : index) longer_length(%longer : index) {chunk_size = 32}
      -> tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  %s:2 = gdn.stage.segment_starts k(%k : tensor<1x?x2x64xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x64xbf16>)
      cu_seqlens(%b#0 : tensor<?xi32>) whole_heads(%b#6 : tensor<?xi32>) whole_begins(%b#5 : tensor<?xi32>) {chunk_size = 32, tolerance = 1.0e-05}
      -> tensor<?x?xi32>, tensor<?xi32>
  %states = gdn.stage.state_pass q(%k : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x?x64xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x64xbf16>) cu_seqlens(%b#0 : tensor<?xi32>) starts(%s#0 : tensor<?x?xi32>)
      before(%b#2 : tensor<?xi32>) closes(%b#3 : tensor<?xi32>) whole_heads(%s#1 : tensor<?xi32>)
      {chunk_size = 32, state_layout = #gdn.state_layout<vk>} -> tensor<?x?x64x64xf32>
  %map, %decay = gdn.stage.segment_map k(%k : tensor<1x?x2x64xbf16>) beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x64xbf16>)
      cu_seqlens(%b#0 : tensor<?xi32>) starts(%s#0 : tensor<?x?xi32>) before(%b#2 : tensor<?xi32>) closes(%b#3 : tensor<?xi32>)
      whole_heads(%s#1 : tensor<?xi32>) {chunk_size = 32} -> tensor<?x?x64x64xf16>, tensor<?x?x64xf32>
  %entry = gdn.stage.segment_scan map(%map : tensor<?x?x64x64xf16>) decay(%decay : tensor<?x?x64xf32>) states(%states : tensor<?x?x64x64xf32>)
      first_segments(%b#1 : tensor<?xi32>) before(%b#2 : tensor<?xi32>) starts(%s#0 : tensor<?x?xi32>) boundaries(%b#0 : tensor<?xi32>)
      last_segments(%b#4 : tensor<?xi32>) whole_heads(%s#1 : tensor<?xi32>) {state_layout = #gdn.state_layout<vk>} -> tensor<?x?x64x64xf32>
  %o, %last = gdn.stage.fused q(%k : tensor<1x?x2x64xbf16>) k(%k : tensor<1x?x2x64xbf16>) v(%v : tensor<1x?x?x64xbf16>)
      beta(%beta : tensor<1x?x?xf32>) gate(%gate : tensor<1x?x?x64xbf16>) initial_state(%entry : tensor<?x?x64x64xf32>)
      cu_seqlens(%b#0 : tensor<?xi32>) starts(%s#0 : tensor<?x?xi32>) before(%b#2 : tensor<?xi32>) closes(%b#3 : tensor<?xi32>)
      whole_heads(%s#1 : tensor<?xi32>) whole_begins(%b#5 : tensor<?xi32>) first_segments(%b#1 : tensor<?xi32>)
      {chunk_size = 32, state_layout = #gdn.state_layout<vk>} -> tensor<1x?x?x64xbf16>, tensor<?x?x64x64xf32>
  return %o, %last : tensor<1x?x?x64xbf16>, tensor<?x?x64x64xf32>
}
