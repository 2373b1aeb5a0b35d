// RUN: gdn-opt %s --gdn-warp-merge-branches --split-input-file | FileCheck %s

// One branch for three: what stands between them and has no effects goes before it, also of their other sides.
// CHECK-LABEL: func.func @merged(
// CHECK: %[[SUM:.*]] = arith.addi
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK-NEXT: memref.store %{{.*}}[%{{.*}}]
// CHECK-NEXT: memref.store %[[SUM]]
// CHECK-NEXT: memref.store
// CHECK-NEXT: } else {
// CHECK-NEXT: memref.store %[[SUM]]
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @merged(%c: i1, %x: i32, %m: memref<4xi32>, %i: index) {
  scf.if %c {
    memref.store %x, %m[%i] : memref<4xi32>
  }
  %s = arith.addi %x, %x : i32
  scf.if %c {
    memref.store %s, %m[%i] : memref<4xi32>
  } else {
    memref.store %s, %m[%i] : memref<4xi32>
  }
  scf.if %c {
    memref.store %x, %m[%i] : memref<4xi32>
  }
  return
}

// -----

// Branches that a branch takes in stand side by side in it.
// CHECK-LABEL: func.func @nested(
// CHECK-COUNT-2: scf.if
// CHECK-NOT: scf.if
func.func @nested(%c: i1, %d: i1, %x: i32, %m: memref<4xi32>, %i: index) {
  scf.if %c {
    scf.if %d {
      memref.store %x, %m[%i] : memref<4xi32>
    }
  }
  scf.if %c {
    scf.if %d {
      memref.store %x, %m[%i] : memref<4xi32>
    }
  }
  return
}

// -----

// What is read between them may be what the first one wrote; other conditions and results stay as well.
// CHECK-LABEL: func.func @kept(
// CHECK-COUNT-4: scf.if
func.func @kept(%c: i1, %d: i1, %x: i32, %m: memref<4xi32>, %i: index) -> i32 {
  scf.if %c {
    memref.store %x, %m[%i] : memref<4xi32>
  }
  %y = memref.load %m[%i] : memref<4xi32>
  scf.if %c {
    memref.store %y, %m[%i] : memref<4xi32>
  }
  scf.if %d {
    memref.store %y, %m[%i] : memref<4xi32>
  }
  %r = scf.if %d -> (i32) {
    memref.store %x, %m[%i] : memref<4xi32>
    scf.yield %x : i32
  } else {
    scf.yield %y : i32
  }
  return %r : i32
}
