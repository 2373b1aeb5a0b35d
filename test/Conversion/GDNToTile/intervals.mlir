// The state before a chunk that begins at a multiple of 64 tokens is stored if its sequence keeps it, and so is the last one.
// RUN: gdn-opt %s --convert-gdn-to-tile -split-input-file | FileCheck %s

// Of two chunks of 32 tokens one is asked. An interval that is no multiple of 64 is none; rows end where those of the next
// sequence begin, or the array. In the decay-free form the state is multiplied by its factor where it is kept alone.
// CHECK-LABEL: gdn_tile.program @scalar_fused(
// CHECK-SAME: %step_starts: memref<?xi32, strided<[?], offset: ?>>, %step_intervals: memref<?xi32, strided<[?], offset: ?>>)
// CHECK-SAME: %step_states: memref<?x1x64x64xbf16, {{[^:]*}}: ?>>)
// CHECK: %[[LOADED:.*]] = memref.load %step_intervals[%n]
// CHECK: %[[GIVEN:.*]] = arith.index_cast %[[LOADED]]
// CHECK: %[[REST:.*]] = arith.andi %[[GIVEN]], %c63
// CHECK: arith.cmpi sgt, %[[GIVEN]], %c0
// CHECK: arith.cmpi eq, %[[REST]], %c0
// CHECK: arith.select %[[IS:[^,]*]], %[[GIVEN]], %c64
// CHECK: %[[NEXT:.*]] = arith.addi %n, %c1
// CHECK: %[[ROWS:.*]] = memref.dim %step_states, %c0
// CHECK: memref.load %step_starts[%[[NEXT]]]
// CHECK: arith.minsi %{{.*}}, %[[ROWS]]
// CHECK: memref.load %step_starts[%n]
// CHECK: arith.select %[[IS]], %{{.*}}, %c0
// CHECK: %[[COUNT:.*]] = arith.minui {{.*}} {gdn_tile.before_loops}
// CHECK: scf.for %[[T:.*]] = %begin to %end step %{{.*}} iter_args(%[[STATE:.*]] = %{{.*}}, %[[G:.*]] = %{{.*}})
// CHECK:   %[[TOKENS:.*]] = arith.subi %[[T]], %begin
// CHECK:   arith.remui %[[TOKENS]], %c64
// CHECK:   scf.if %{{.*}} {
// CHECK-NOT: arith.divui {{.*}}before_loops
// CHECK:     %[[REST:.*]] = arith.remui %[[BLOCK:.*]], %[[BLOCKS:.*]] : i32
// CHECK:     %[[NUMBER:.*]] = arith.divui %[[BLOCK]], %[[BLOCKS]] : i32
// CHECK:     %[[IS_END:.*]] = arith.cmpi eq, %[[REST]], %c0_i32
// CHECK:     scf.if %[[IS_END]] {
// CHECK:       arith.cmpi ule, %[[NUMBER]], %[[COUNT]]
// CHECK:       scf.if %{{.*}} {
// CHECK:         arith.cmpi sge, %[[ROW:.*]], %c0
// CHECK:         scf.if %{{.*}} {
// CHECK:           math.exp2 %[[G]]
// CHECK:           arith.mulf %[[STATE]]
// CHECK:           gdn_tile.store %{{.*}}, %step_states[%[[ROW]], %h, %c0, %c0] axes [3, 2]
// CHECK-COUNT-3: } {gdn_tile.likely = false, gdn_tile.seldom}
// CHECK: } {gdn_tile.every = 2 : i64}
// CHECK:   scf.yield
// CHECK: %[[LENGTH:.*]] = arith.subi %end, %begin
// CHECK: scf.if %{{.*}} {
// CHECK: gdn_tile.store %{{.*}}, %step_states[
// CHECK-LABEL: func.func @scalar(
// CHECK: gdn_tile.launch @scalar_fused {{.*}} outs(%{{.*}}, %arg3 :
func.func @scalar(%q: tensor<1x?x1x64xbf16>, %b: tensor<1x?x1xf32>, %cu: tensor<?xi32>, %kept: tensor<?x1x64x64xbf16>,
                  %starts: tensor<?xi32>, %every: tensor<?xi32>) -> (tensor<1x?x1x64xbf16>, tensor<?x1x64x64xbf16>) {
  %o, %k = gdn.stage.fused q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%q : tensor<1x?x1x64xbf16>)
      beta(%b : tensor<1x?x1xf32>) gate(%b : tensor<1x?x1xf32>) cu_seqlens(%cu : tensor<?xi32>) step_states(%kept : tensor<?x1x64x64xbf16>)
      step_starts(%starts : tensor<?xi32>) step_intervals(%every : tensor<?xi32>) {chunk_size = 32 : i64}
      -> tensor<1x?x1x64xbf16>, tensor<?x1x64x64xbf16>
  return %o, %k : tensor<1x?x1x64xbf16>, tensor<?x1x64x64xbf16>
}

// -----

// Chunks of 64 tokens are all asked. A sequence without a row of the pool has no tokens here, and so keeps nothing.
// CHECK-LABEL: gdn_tile.program @pool_fused(
// CHECK: %[[FIRST:.*]] = arith.select %{{.*}}, %begin, %end
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %end
// CHECK:   arith.subi %[[T]], %[[FIRST]]
// CHECK-NOT: gdn_tile.every
// CHECK:   gdn_tile.store %{{.*}}, %step_states[%{{.*}}, %h, %c0, %c0] axes [2, 3]
// CHECK: scf.yield
// CHECK: arith.subi %end, %[[FIRST]]
func.func @pool(%q: tensor<?x?x1x64xf32>, %b: tensor<?x?x1xf32>, %pool: tensor<?x1x64x64xf32>, %rows: tensor<?xi32>,
                %kept: tensor<?x1x64x64xf32>, %numbers: tensor<?xi64>)
    -> (tensor<?x?x1x64xf32>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>) {
  %o, %s, %k = gdn.stage.fused q(%q : tensor<?x?x1x64xf32>) k(%q : tensor<?x?x1x64xf32>) v(%q : tensor<?x?x1x64xf32>)
      beta(%b : tensor<?x?x1xf32>) initial_state(%pool : tensor<?x1x64x64xf32>) state_indices(%rows : tensor<?xi32>)
      step_states(%kept : tensor<?x1x64x64xf32>) step_starts(%numbers : tensor<?xi64>) step_intervals(%numbers : tensor<?xi64>)
      {chunk_size = 64 : i64, state_layout = #gdn.state_layout<vk>}
      -> tensor<?x?x1x64xf32>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>
  return %o, %s, %k : tensor<?x?x1x64xf32>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>
}

// -----

// Rows that a sequence names, of the pool. A call may have rows that follow each other instead: the one that is absent is not
// read. With a gate a channel intervals are multiples of 16: one that ends within a block of 64 tokens cuts its chunks.
// CHECK-LABEL: gdn_tile.program @named_fused(
// CHECK: memref.load %step_intervals[%n]
// CHECK-NEXT: %[[GIVEN:.*]] = arith.index_cast
// CHECK: arith.andi %[[GIVEN]], %c15
// CHECK: %[[INTERVAL:.*]] = arith.index_castui
// CHECK: arith.addi %[[INTERVAL]], %c63_i32
// CHECK: %[[BLOCKS:.*]] = arith.divui
// CHECK: memref.dim %step_starts, %c0
// CHECK: memref.dim %step_indices, %c0
// CHECK: memref.dim %step_indices, %c1
// CHECK: %[[COUNT:.*]] = arith.minui
// CHECK: %[[INLOOP:.*]] = arith.muli %[[BLOCKS]], %c64_i32
// CHECK: %[[GAP:.*]] = arith.subi %[[INLOOP]], %[[INTERVAL]]
// CHECK: arith.muli %[[COUNT]], %[[GAP]]
// CHECK: %[[UPPER:.*]] = arith.addi %end,
// CHECK: scf.for %[[PLACE:.*]] = %{{.*}} to %[[UPPER]]
// CHECK:   scf.if
// CHECK:     scf.if
// CHECK:       memref.load %step_indices[%n,
// CHECK:       arith.cmpi sge, %{{.*}}, %first_state
// CHECK:       gdn_tile.store %{{.*}}, %step_states[
// CHECK:   } {gdn_tile.every = 2 : i64}
// CHECK:   %[[CUT:.*]] = arith.minsi %end,
// CHECK:   %[[T:.*]] = arith.subi %[[PLACE]],
// CHECK:   gdn_tile.load %k[%batch, %[[T]], %h, %c0] axes [1, 3] until(%[[CUT]], dim = 1)
// CHECK:   gdn_tile.store %{{.*}}, %o[%batch, %[[T]], %h, %c0] axes [3, 1] until(%[[CUT]], dim = 1)
// CHECK: } {gdn_tile.cut_past_end, gdn_tile.neutral_past_end}
func.func @named(%q: tensor<1x?x1x64xbf16>, %b: tensor<1x?x1xf32>, %g: tensor<1x?x1x64xf32>, %cu: tensor<?xi32>,
                 %pool: tensor<?x1x64x64xf32>, %rows: tensor<?xi32>, %first: index, %kept: tensor<?x1x64x64xf32>,
                 %slots: tensor<?x?xi32> {gdn.optional}, %starts: tensor<?xi32> {gdn.optional}, %every: tensor<?xi32>)
    -> (tensor<1x?x1x64xbf16>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>) {
  %o, %p, %k = gdn.stage.fused q(%q : tensor<1x?x1x64xbf16>) k(%q : tensor<1x?x1x64xbf16>) v(%q : tensor<1x?x1x64xbf16>)
      beta(%b : tensor<1x?x1xf32>) gate(%g : tensor<1x?x1x64xf32>) initial_state(%pool : tensor<?x1x64x64xf32>) cu_seqlens(%cu : tensor<?xi32>)
      state_indices(%rows : tensor<?xi32>) first_state(%first : index) step_states(%kept : tensor<?x1x64x64xf32>)
      step_indices(%slots : tensor<?x?xi32>) step_starts(%starts : tensor<?xi32>) step_intervals(%every : tensor<?xi32>)
      {chunk_size = 32 : i64} -> tensor<1x?x1x64xbf16>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>
  return %o, %p, %k : tensor<1x?x1x64xbf16>, tensor<?x1x64x64xf32>, tensor<?x1x64x64xf32>
}

// -----

// What a call has always is not optional.
// RUN: sed -e 's/%kept: tensor<?x1x64x64xbf16>/%kept: tensor<?x1x64x64xbf16> {gdn.optional}/' %s \
// RUN:   | not gdn-opt --convert-gdn-to-tile -split-input-file 2>&1 | FileCheck %s --check-prefix=OPTIONAL
// OPTIONAL: error: {{.*}} expected states after tokens in each call, got gdn.optional on step_states
