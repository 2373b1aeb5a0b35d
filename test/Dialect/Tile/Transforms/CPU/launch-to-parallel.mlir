// RUN: gdn-opt %s --gdn-tile-launch-to-parallel | FileCheck %s

func.func private @f(%x : memref<?xf32, strided<[1], offset: ?>>, %y : memref<?xf32>, %n : index, %h : index,
    %p : index, %batch : index, %begin : index, %end : index) attributes {gdn_tile.program} {
  return
}

// Without boundaries a sequence is one of the batch, from 0 to the end.
// CHECK-LABEL: func.func @batch
// CHECK-SAME: (%[[X:[^:]*]]: memref<?xf32>, %{{.*}}: memref<?xf32>, %[[N:[^:]*]]: index, %[[T:[^:]*]]: index)
// CHECK: %[[CAST:.*]] = memref.cast %[[X]]
// CHECK: scf.parallel (%[[I:.*]], %[[H:.*]], %[[P:.*]]) = {{.*}} to (%[[N]], %[[N]], %[[N]])
// CHECK:   func.call @f(%[[CAST]], %{{[^,]*}}, %[[I]], %[[H]], %[[P]], %[[I]], %c0{{.*}}, %[[T]])
func.func @batch(%x : memref<?xf32>, %y : memref<?xf32>, %n : index, %t : index) {
  gdn_tile.launch @f grid(%n, %n, %n) tokens(%t) ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// Boundaries come from the caller: 0 <= begin <= end <= tokens holds whatever
// they are.
// CHECK-LABEL: func.func @packed
// CHECK-SAME: %[[T:[^:]*]]: index, %[[CU:[^:]*]]: memref<?xi32>)
// CHECK: scf.parallel (%[[I:.*]], %[[H:.*]], %[[P:.*]]) =
// CHECK:   memref.load %[[CU]][%[[I]]]
// CHECK:   %[[NONNEGATIVE:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK:   %[[BEGIN:.*]] = arith.minsi %[[NONNEGATIVE]], %[[T]]
// CHECK:   %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK:   memref.load %[[CU]][%[[NEXT]]]
// CHECK:   %[[ATLEAST:.*]] = arith.maxsi %{{.*}}, %[[BEGIN]]
// CHECK:   %[[END:.*]] = arith.minsi %[[ATLEAST]], %[[T]]
// CHECK:   func.call @f(%{{[^,]*}}, %{{[^,]*}}, %[[I]], %[[H]], %[[P]], %c0{{.*}}, %[[BEGIN]], %[[END]])
func.func @packed(%x : memref<?xf32>, %y : memref<?xf32>, %n : index, %t : index, %cu : memref<?xi32>) {
  gdn_tile.launch @f grid(%n, %n, %n) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
