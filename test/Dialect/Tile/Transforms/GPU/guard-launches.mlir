// RUN: gdn-opt %s --split-input-file --gdn-tile-guard-launches --verify-diagnostics --verify-roundtrip | FileCheck %s

// Both sides are launched. Programs read what the condition follows from, and leave: @f unless it holds, @g if it does.
// What is made inside lies in one place, and so do results.
// CHECK-LABEL: gdn_tile.program @f(
// CHECK-SAME: %condition: memref<?xf32, strided<[1], offset: ?>>) outs(
// CHECK: %[[IS:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : f32
// CHECK: %[[NOT:.*]] = arith.xori %[[IS]], %{{.*}} : i1
// CHECK: gdn_tile.leave %[[NOT]] {unread}
// CHECK-LABEL: gdn_tile.program @g(
// CHECK-SAME: %condition: memref<?xf32, strided<[1], offset: ?>>) outs(
// CHECK: %[[SIZE:.*]] = memref.dim %condition
// CHECK: %[[LAST:.*]] = arith.subi %[[SIZE]], %{{.*}} : index
// CHECK: %[[ENTRY:.*]] = memref.load %condition[%[[LAST]]]
// CHECK: %[[IS:.*]] = arith.cmpf ogt, %[[ENTRY]], %{{.*}} : f32
// CHECK: gdn_tile.leave %[[IS]] {unread}
// CHECK-LABEL: func.func @branch(
// CHECK: %[[SIZES:.*]] = gdn_tile.launch @sizes
// CHECK: %[[A:.*]] = gdn_tile.launch @f_0 {{.*}} ins(%{{.*}}, %[[SIZES]] : {{.*}}) outs(%{{.*}} :
// CHECK: %[[B:.*]] = gdn_tile.launch @f {{.*}} ins(%[[A]], %[[SIZES]] : {{.*}}) outs(%{{.*}} :
// CHECK: %[[C:.*]] = gdn_tile.launch @g_1 {{.*}} ins(%{{.*}}, %[[SIZES]] : {{.*}}) outs(%[[A]] :
// CHECK: %[[D:.*]] = gdn_tile.launch @g {{.*}} ins(%[[C]], %[[SIZES]] : {{.*}}) outs(%[[B]] :
// CHECK-NOT: scf.if
// CHECK: return %[[D]]
gdn_tile.program @sizes(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?xf32, strided<[1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
gdn_tile.program @f(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
gdn_tile.program @g(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
func.func @branch(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%t) : tensor<?xf32>
  %sizes = gdn_tile.launch @sizes grid(%c1, %c1, %c1) tokens(%t) ins(%x : tensor<?x4xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %last = arith.subi %t, %c1 : index
  %size = tensor.extract %sizes[%last] : tensor<?xf32>
  %is = arith.cmpf ogt, %size, %zero : f32
  %y = scf.if %is -> tensor<?x4xf32> {
    %d = tensor.dim %x, %c0 : tensor<?x4xf32>
    %o = tensor.empty(%d) : tensor<?x4xf32>
    %a = gdn_tile.launch @f grid(%c1, %c1, %c1) tokens(%d) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    %b = gdn_tile.launch @f grid(%c1, %c1, %c1) tokens(%d) ins(%a : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %b : tensor<?x4xf32>
  } else {
    %d = tensor.dim %x, %c0 : tensor<?x4xf32>
    %o = tensor.empty(%d) : tensor<?x4xf32>
    %a = gdn_tile.launch @g grid(%c1, %c1, %c1) tokens(%d) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    %b = gdn_tile.launch @g grid(%c1, %c1, %c1) tokens(%d) ins(%a : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %b : tensor<?x4xf32>
  }
  return %y : tensor<?x4xf32>
}

// -----

// Results may be views of what is launched: one array serves both. Arrays of other dimensions are two.
// CHECK-LABEL: func.func @views(
// CHECK: %[[A:.*]] = gdn_tile.launch @rows_0 {{.*}} outs(%{{.*}} :
// CHECK: %[[B:.*]] = gdn_tile.launch @rows {{.*}} outs(%[[A]] :
// CHECK: %[[VIEW:.*]] = tensor.expand_shape %[[B]]
// CHECK: return %[[VIEW]]
gdn_tile.program @rows(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
func.func @views(%x: tensor<?x4xf32>, %choice: tensor<1xi1>) -> tensor<1x?x4xf32> {
  %c0 = arith.constant 0 : index
  %is = tensor.extract %choice[%c0] : tensor<1xi1>
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %y = scf.if %is -> tensor<1x?x4xf32> {
    %o = tensor.empty(%n) : tensor<?x4xf32>
    %a = gdn_tile.launch @rows grid(%c1, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    %view = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, %n, 4] : tensor<?x4xf32> into tensor<1x?x4xf32>
    scf.yield %view : tensor<1x?x4xf32>
  } else {
    %o = tensor.empty(%n) : tensor<?x4xf32>
    %a = gdn_tile.launch @rows grid(%c1, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    %view = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, %n, 4] : tensor<?x4xf32> into tensor<1x?x4xf32>
    scf.yield %view : tensor<1x?x4xf32>
  }
  return %y : tensor<1x?x4xf32>
}

// -----

gdn_tile.program @flat(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?xf32, strided<[1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
gdn_tile.program @rows(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
func.func @dimensions(%x: tensor<?x4xf32>, %choice: tensor<1xi1>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %is = tensor.extract %choice[%c0] : tensor<1xi1>
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  // expected-error@below {{'scf.if' op expected results that launches of both sides make in one array, or in a tensor.empty of equal dimensions, got}}
  %y = scf.if %is -> tensor<?xf32> {
    %o = tensor.empty(%n) : tensor<?xf32>
    %a = gdn_tile.launch @flat grid(%c1, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %a : tensor<?xf32>
  } else {
    %o = tensor.empty(%n) : tensor<?x4xf32>
    %a = gdn_tile.launch @rows grid(%c1, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    %view = tensor.collapse_shape %a [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
    scf.yield %view : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// -----

// Both sides update an array: the second side takes it as the first one left it.
// CHECK-LABEL: func.func @updated(
// CHECK-SAME: %[[POOL:.*]]: tensor<?x4xf32> {bufferization.writable = true}
// CHECK: %[[A:.*]] = gdn_tile.launch @rows_0 {{.*}} ins(%[[POOL]], %{{.*}}) outs(%[[POOL]] :
// CHECK: %[[B:.*]] = gdn_tile.launch @rows {{.*}} ins(%[[A]], %{{.*}}) outs(%[[A]] :
// CHECK: return %[[B]]
gdn_tile.program @rows(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
func.func @updated(%pool: tensor<?x4xf32> {bufferization.writable = true}, %choice: tensor<1xi1>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %is = tensor.extract %choice[%c0] : tensor<1xi1>
  %n = tensor.dim %pool, %c0 : tensor<?x4xf32>
  %y = scf.if %is -> tensor<?x4xf32> {
    %a = gdn_tile.launch @rows grid(%c1, %c1, %c1) tokens(%n) ins(%pool : tensor<?x4xf32>) outs(%pool : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  } else {
    %a = gdn_tile.launch @rows grid(%c1, %c1, %c1) tokens(%n) ins(%pool : tensor<?x4xf32>) outs(%pool : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  }
  return %y : tensor<?x4xf32>
}

// -----

// The host knows sizes. So launches of the side that is not taken have no work items, and their programs stay as they are.
// CHECK-LABEL: gdn_tile.program @f(
// CHECK-NOT: gdn_tile.leave
// CHECK-LABEL: func.func @sizes(
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[X:.*]] = tensor.dim %arg0
// CHECK-DAG: %[[Y:.*]] = tensor.dim %arg1
// CHECK: %[[LEAST:.*]] = arith.minui %[[X]], %[[Y]] : index
// CHECK: %[[MORE:.*]] = arith.addi %[[LEAST]], %[[ONE]]
// CHECK: %[[MOST:.*]] = arith.maxui %[[X]], %[[Y]] : index
// CHECK: %[[EVEN_MORE:.*]] = arith.addi %[[MOST]], %[[ONE]]
// CHECK: %[[YES:.*]] = arith.divui %[[MORE]], %[[EVEN_MORE]]
// CHECK: %[[NO:.*]] = arith.subi %[[ONE]], %[[YES]]
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %[[YES]]
// CHECK: %[[A:.*]] = gdn_tile.launch @f grid(%[[FIRST]], %{{.*}}, %{{.*}}) {{.*}} ins(%arg0 : {{.*}}) outs(%{{.*}} :
// CHECK: %[[SECOND:.*]] = arith.muli %{{.*}}, %[[NO]]
// CHECK: %[[B:.*]] = gdn_tile.launch @f grid(%[[SECOND]], %{{.*}}, %{{.*}}) {{.*}} ins(%arg1 : {{.*}}) outs(%[[A]] :
// CHECK: return %[[B]]
gdn_tile.program @f(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
func.func @sizes(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %m = tensor.dim %y, %c0 : tensor<?x4xf32>
  %is = arith.cmpi eq, %n, %m : index
  %r = scf.if %is -> tensor<?x4xf32> {
    %o = tensor.empty(%n) : tensor<?x4xf32>
    %a = gdn_tile.launch @f grid(%n, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  } else {
    %o = tensor.empty(%n) : tensor<?x4xf32>
    %a = gdn_tile.launch @f grid(%n, %c1, %c1) tokens(%n) ins(%y : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

// One branch in another: all launches make one array.
// CHECK-LABEL: func.func @nested(
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: %[[A:.*]] = gdn_tile.launch @g{{.*}} ins(%arg0, %{{.*}}) outs(%[[E]] :
// CHECK: %[[B:.*]] = gdn_tile.launch @g{{.*}} ins(%arg0, %{{.*}}) outs(%[[A]] :
// CHECK: %[[C:.*]] = gdn_tile.launch @g{{.*}} ins(%arg1, %{{.*}}) outs(%[[B]] :
// CHECK: return %[[C]]
gdn_tile.program @g(%x : memref<?x4xf32, strided<[?, 1], offset: ?>>) outs(%y : memref<?x4xf32, strided<[?, 1], offset: ?>>)
    work_item(%n, %h, %vt) tokens(%batch, %begin, %end) {
}
func.func @nested(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %choice: tensor<1xi1>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %m = tensor.dim %y, %c0 : tensor<?x4xf32>
  %outer = tensor.extract %choice[%c0] : tensor<1xi1>
  %inner = arith.cmpi eq, %n, %m : index
  %r = scf.if %outer -> tensor<?x4xf32> {
    %o = tensor.empty(%n) : tensor<?x4xf32>
    %a = gdn_tile.launch @g grid(%c1, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %a : tensor<?x4xf32>
  } else {
    %s = scf.if %inner -> tensor<?x4xf32> {
      %o = tensor.empty(%n) : tensor<?x4xf32>
      %a = gdn_tile.launch @g grid(%c1, %c1, %c1) tokens(%n) ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
      scf.yield %a : tensor<?x4xf32>
    } else {
      %o = tensor.empty(%n) : tensor<?x4xf32>
      %a = gdn_tile.launch @g grid(%c1, %c1, %c1) tokens(%n) ins(%y : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
      scf.yield %a : tensor<?x4xf32>
    }
    scf.yield %s : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

func.func @order(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %m = tensor.dim %y, %c0 : tensor<?x4xf32>
  %is = arith.cmpi ult, %n, %m : index
  // expected-error@below {{'scf.if' op expected a condition on sizes to compare two by eq, got}}
  %r = scf.if %is -> tensor<?x4xf32> {
    scf.yield %x : tensor<?x4xf32>
  } else {
    scf.yield %y : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

func.func @no_launch(%x: tensor<4xf32>, %choice: tensor<1xi1>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %is = tensor.extract %choice[%c0] : tensor<1xi1>
  // expected-error@below {{'scf.if' op expected results that launches of both sides make in one array, or in a tensor.empty of equal dimensions, got}}
  %y = scf.if %is -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @argument(%x: tensor<4xf32>, %is: i1) -> tensor<4xf32> {
  // expected-error@below {{'scf.if' op expected a condition that follows from arrays alone, got}}
  %y = scf.if %is -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @effects(%x: memref<4xf32>, %is: i1) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@below {{'scf.if' op expected launches and what is pure on both sides, got others}}
  scf.if %is {
    memref.store %zero, %x[%c0] : memref<4xf32>
  } else {
    memref.store %zero, %x[%c0] : memref<4xf32>
  }
  return
}
