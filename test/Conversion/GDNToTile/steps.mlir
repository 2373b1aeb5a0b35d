// States after tokens are stored to rows of the pool, or of an array beside it, if there are such rows. Whatever the numbers
// are, no other row of numbers is read.
// RUN: gdn-opt %s --convert-gdn-to-tile -split-input-file | FileCheck %s

// Without a number of accepted tokens a sequence begins with its own row: of such a call the array has no entries.
// CHECK-LABEL: gdn_tile.program @chain_recurrent(
// CHECK-SAME: %step_indices: memref<?x?xi32, strided<[?, ?], offset: ?>>, %num_accepted: memref<?xi32, strided<[?], offset: ?>>) outs(
// CHECK-SAME: %final_state: memref<?x1x64x64xbf16, {{[^:]*}}: ?>>)
// CHECK: %[[OWN:.*]] = memref.load %state_indices[%n]
// CHECK: scf.for {{.*}} -> (index) {
// CHECK:   %[[GIVEN:.*]] = memref.load %num_accepted[%n]
// CHECK:   %[[STEPS:.*]] = memref.dim %step_indices, %c1
// CHECK:   %[[MOST:.*]] = arith.minsi %{{.*}}, %[[STEPS]]
// CHECK:   %[[LAST:.*]] = arith.subi %[[MOST]], %c1
// CHECK:   %[[STEP:.*]] = arith.maxsi %[[LAST]], %c0
// CHECK:   memref.load %step_indices[%n, %[[STEP]]]
// CHECK: gdn_tile.clear
// CHECK: scf.for %[[T:.*]] = %[[BEGIN:.*]] to %end step
// CHECK:   %[[NUMBER:.*]] = arith.subi %[[T]], %[[BEGIN]]
// CHECK:   %[[IS:.*]] = arith.cmpi slt, %[[NUMBER]], %{{.*}}
// CHECK:   %[[COLUMN:.*]] = arith.select %[[IS]], %[[NUMBER]], %c0
// CHECK:   memref.load %step_indices[%n, %[[COLUMN]]]
// CHECK:   %[[KEPT:.*]] = arith.truncf {{.*}} : tensor<64x64xf32> to tensor<64x64xbf16>
// CHECK:   scf.if %{{.*}} {
// CHECK-NEXT: gdn_tile.store %[[KEPT]], %final_state[{{.*}}gdn_tile.own_rows
// CHECK:   %[[READ:.*]] = arith.extf %[[KEPT]]
// CHECK:   scf.yield %[[READ]]
// CHECK-NOT: gdn_tile.store {{.*}} %final_state
// CHECK-LABEL: func.func @chain(
func.func @chain(%q: tensor<?x?x1x64xbf16>, %b: tensor<?x?x1xf32>, %pool: tensor<?x1x64x64xbf16>, %rows: tensor<?xi32>,
                 %slots: tensor<?x?xi32>, %accepted: tensor<?xi32> {gdn.optional}) -> (tensor<?x?x1x64xbf16>, tensor<?x1x64x64xbf16>) {
  %o, %s = gdn.stage.recurrent q(%q : tensor<?x?x1x64xbf16>) k(%q : tensor<?x?x1x64xbf16>) v(%q : tensor<?x?x1x64xbf16>)
      beta(%b : tensor<?x?x1xf32>) initial_state(%pool : tensor<?x1x64x64xbf16>) state_indices(%rows : tensor<?xi32>)
      step_indices(%slots : tensor<?x?xi32>) num_accepted(%accepted : tensor<?xi32>) -> tensor<?x?x1x64xbf16>, tensor<?x1x64x64xbf16>
  return %o, %s : tensor<?x?x1x64xbf16>, tensor<?x1x64x64xbf16>
}

// -----

// A pool that is only read is an input. In f32 nothing is rounded. A token that follows another one than the one before loads
// the state from where it was stored.
// CHECK-LABEL: gdn_tile.program @tree_recurrent(
// CHECK-SAME: %initial_state: {{.*}} outs(%o: {{.*}}, %step_states: memref<?x1x64x64xf32
// CHECK: gdn_tile.load %initial_state
// CHECK: scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<64x64xf32>) {
// CHECK:   %[[PARENT:.*]] = memref.load %parents[%n, %{{.*}}]
// CHECK:   scf.if %{{.*}} -> (tensor<64x64xf32>) {
// CHECK-NEXT: %[[LOADED:.*]] = gdn_tile.load %step_states
// CHECK-NEXT: scf.yield %[[LOADED]]
// CHECK:   } else {
// CHECK-NEXT: scf.yield %[[CARRIED]]
// CHECK-NOT: arith.truncf {{.*}} tensor<64x64x
// CHECK:   gdn_tile.store %[[STATE:.*]], %step_states[{{.*}}gdn_tile.own_rows
// CHECK:   scf.yield %[[STATE]]
// CHECK-LABEL: func.func @tree(
// CHECK: gdn_tile.launch @tree_recurrent {{.*}} outs(%{{.*}}, %arg4 : tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>)
func.func @tree(%q: tensor<?x?x1x64xbf16>, %b: tensor<?x?x1xf32>, %pool: tensor<?x1x64x64xf32>, %rows: tensor<?xi32>,
                %kept: tensor<?x1x64x64xf32>, %slots: tensor<?x?xi32>, %parents: tensor<?x?xi64>) -> (tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>) {
  %o, %s = gdn.stage.recurrent q(%q : tensor<?x?x1x64xbf16>) k(%q : tensor<?x?x1x64xbf16>) v(%q : tensor<?x?x1x64xbf16>)
      beta(%b : tensor<?x?x1xf32>) initial_state(%pool : tensor<?x1x64x64xf32>) state_indices(%rows : tensor<?xi32>)
      step_states(%kept : tensor<?x1x64x64xf32>) step_indices(%slots : tensor<?x?xi32>) parents(%parents : tensor<?x?xi64>)
      -> tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>
  return %o, %s : tensor<?x?x1x64xbf16>, tensor<?x1x64x64xf32>
}
