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

// Boundaries come from the caller: sequences lie in [0, tokens] and share no
// token, whatever they are. A level of the tree over them bounds a sequence from
// below and from above.
// CHECK-LABEL: func.func @packed
// CHECK-SAME: %[[T:[^:]*]]: index, %[[CU:[^:]*]]: memref<?xi32>)
// CHECK: scf.parallel (%[[I:.*]], %[[H:.*]], %[[P:.*]]) =
// CHECK:   %[[BLOCK:.*]] = arith.shrui %[[I]], %[[LEVEL:.*]] : index
// CHECK:   %[[LOW:.*]] = arith.shli %[[BLOCK]], %[[LEVEL]]
// CHECK:   %[[NEXT:.*]] = arith.addi %[[BLOCK]], %c1
// CHECK:   %[[SHIFTED:.*]] = arith.shli %[[NEXT]], %[[LEVEL]]
// CHECK:   %[[HIGH:.*]] = arith.minui %[[SHIFTED]], %{{.*}}
// CHECK:   memref.load %[[CU]][%[[LOW]]]
// CHECK:   %[[NONNEGATIVE:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK:   %[[CLAMPED:.*]] = arith.minsi %[[NONNEGATIVE]], %[[T]]
// CHECK:   arith.maxsi %{{.*}}, %[[CLAMPED]]
// CHECK:   memref.load %[[CU]][%[[HIGH]]]
// CHECK:   arith.minsi %[[T]], %{{.*}}
// CHECK-COUNT-62: memref.load %[[CU]]
// CHECK-NOT: memref.load
// CHECK:   %[[ATMOST:.*]] = arith.minsi %{{.*}}, %[[T]]
// CHECK:   %[[END:.*]] = arith.minsi %{{.*}}, %[[ATMOST]]
// CHECK:   %[[BEGIN:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK:   func.call @f(%{{[^,]*}}, %{{[^,]*}}, %[[I]], %[[H]], %[[P]], %c0{{.*}}, %[[BEGIN]], %[[END]])
func.func @packed(%x : memref<?xf32>, %y : memref<?xf32>, %n : index, %t : index, %cu : memref<?xi32>) {
  gdn_tile.launch @f grid(%n, %n, %n) tokens(%t) cu_seqlens(%cu : memref<?xi32>)
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
