// RUN: gdn-opt %s --pass-pipeline='builtin.module(gdn_warp.kernel(gdn-warp-carry-quotients,canonicalize,cse))' -split-input-file | FileCheck %s

// Iterations have 64 tokens, in two chunks, and their number is divided. What an iteration makes of the quotient alone changes
// with it, but the unlikely branch multiplies for itself. The count of the next iteration is what that of the current one becomes;
// that of two iterations ago, which the first two have not, begins below zero.
// CHECK-LABEL: gdn_warp.kernel @blocks(
// CHECK: %[[BLOCKS:.*]] = arith.divui %interval, %c64_i32
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %n step %c1_i32 iter_args(
// CHECK-SAME: %[[OLD_REST:[^ ]*]] = %c-2_i32, %[[OLD:[^ ]*]] = %c0_i32, %{{[^ ]*}} = %c0_i32,
// CHECK-SAME: %[[REST:[^ ]*]] = %c0_i32, %[[NUMBER:[^ ]*]] = %c0_i32, %[[GAPS:[^ ]*]] = %c0_i32)
// CHECK-NOT: divui
// CHECK: %[[MORE:.*]] = arith.addi %[[REST]], %c1_i32
// CHECK: %[[OVER:.*]] = arith.cmpi eq, %[[MORE]], %[[BLOCKS]]
// CHECK: %[[NEXT_REST:.*]] = arith.select %[[OVER]], %c0_i32, %[[MORE]]
// CHECK: %[[NEXT:.*]]:2 = scf.if %[[OVER]] -> (i32, i32) {
// CHECK-NEXT: %[[CHANGED:.*]] = arith.addi %[[NUMBER]], %c1_i32
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.muli %[[CHANGED]], %gap
// CHECK-NEXT: scf.yield %[[CHANGED]], %[[PRODUCT]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[NUMBER]], %[[GAPS]]
// CHECK-NEXT: } {gdn_warp.likely = false}
// CHECK: scf.for
// CHECK:   arith.index_castui %[[GAPS]]
// CHECK:   memref.store %[[NUMBER]],
// CHECK:   %[[IS_END:.*]] = arith.cmpi eq, %[[REST]], %c0_i32
// CHECK:   scf.if %[[IS_END]] {
// CHECK:     arith.muli %[[NUMBER]], %[[NUMBER]]
// CHECK: arith.index_castui %[[NEXT]]#1
// CHECK: scf.if
// CHECK:   memref.store %[[OLD]],
// CHECK: %[[OLD_MORE:.*]] = arith.addi %[[OLD_REST]], %c1_i32
// CHECK: arith.cmpi eq, %[[OLD_MORE]], %[[BLOCKS]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT_REST]], %[[NEXT]]#0, %[[NEXT]]#1
gdn_warp.kernel @blocks(%n: i32, %interval: i32, %gap: i32, %m: memref<?xi32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %c2_i32 = arith.constant 2 : i32
  %c64_i32 = arith.constant 64 : i32
  %blocks = arith.divui %interval, %c64_i32 : i32
  gdn_warp.role "state" warps(0, 4) {
    scf.for %i = %c0_i32 to %n step %c1_i32 : i32 {
      %iteration = arith.index_castui %i : i32 to index
      %place = arith.muli %iteration, %c64 : index
      scf.for %chunk = %c0 to %c2 step %c1 {
        %more = arith.muli %chunk, %c32 : index
        %token = arith.addi %place, %more : index
        %block = arith.divui %token, %c64 : index
        %number = arith.index_castui %block : index to i32
        %quotient = arith.divui %number, %blocks : i32
        %gaps = arith.muli %quotient, %gap : i32
        %wide = arith.index_castui %gaps : i32 to index
        %first = arith.subi %token, %wide : index
        memref.store %quotient, %m[%first] : memref<?xi32>
        %rest = arith.remui %number, %blocks : i32
        %is = arith.cmpi eq, %rest, %c0_i32 : i32
        scf.if %is {
          %square = arith.muli %quotient, %quotient : i32
          %at = arith.index_castui %square : i32 to index
          memref.store %square, %m[%at] : memref<?xi32>
        } {gdn_warp.likely = false}
      }
      %later = arith.addi %i, %c1_i32 : i32
      %next = arith.divui %later, %blocks : i32
      %nextGaps = arith.muli %next, %gap : i32
      %nextAt = arith.index_castui %nextGaps : i32 to index
      memref.store %later, %m[%nextAt] : memref<?xi32>
      %has = arith.cmpi uge, %i, %c2_i32 : i32
      scf.if %has {
        %earlier = arith.subi %i, %c2_i32 : i32
        %last = arith.divui %earlier, %blocks : i32
        %lastAt = arith.index_castui %last : i32 to index
        memref.store %last, %m[%lastAt] : memref<?xi32>
      }
    }
  }
}

// -----

// Numbers are those of iterations since the first one. A quotient that nothing else is made of changes without a branch.
// CHECK-LABEL: gdn_warp.kernel @first(
// CHECK: scf.for %{{.*}} = %first to %n step %c1_i32 iter_args(
// CHECK-SAME: %[[REST:[^ ]*]] = %c0_i32, %[[NUMBER:[^ ]*]] = %c0_i32)
// CHECK-NOT: divui
// CHECK-NOT: scf.if
// CHECK: memref.store %[[NUMBER]]
// CHECK: %[[OVER:.*]] = arith.cmpi eq, %{{.*}}, %by
// CHECK: arith.select %[[OVER]], %{{.*}}, %[[NUMBER]]
gdn_warp.kernel @first(%first: i32, %n: i32, %by: i32, %m: memref<?xi32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c1_i32 = arith.constant 1 : i32
  gdn_warp.role "state" warps(0, 4) {
    scf.for %i = %first to %n step %c1_i32 : i32 {
      %number = arith.subi %i, %first : i32
      %quotient = arith.divui %number, %by : i32
      memref.store %quotient, %m[%c0] : memref<?xi32>
    }
  }
}

// -----

// These stay: a number that is not of a first iteration, a divisor that changes, one that is a constant, an iteration that may
// not be there, one before the current one by a number that may have 32 bits, and tokens that are more than an iteration's.
// CHECK-LABEL: gdn_warp.kernel @others(
// CHECK-COUNT-6: arith.divui %{{.*}} : i32
gdn_warp.kernel @others(%first: i32, %n: i32, %by: i32, %m: memref<?xi32>) threads(128) shared(0) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c1_i32 = arith.constant 1 : i32
  %c5_i32 = arith.constant 5 : i32
  %half = arith.divui %by, %c5_i32 : i32
  gdn_warp.role "state" warps(0, 4) {
    scf.for %i = %first to %n step %c1_i32 : i32 {
      %absolute = arith.divui %i, %by : i32
      memref.store %absolute, %m[%c0] : memref<?xi32>
      %number = arith.subi %i, %first : i32
      %changes = arith.divui %by, %number : i32
      memref.store %changes, %m[%c0] : memref<?xi32>
      %constant = arith.divui %number, %c5_i32 : i32
      memref.store %constant, %m[%c0] : memref<?xi32>
      %before = arith.subi %number, %c1_i32 : i32
      %none = arith.divui %before, %half : i32
      memref.store %none, %m[%c0] : memref<?xi32>
      %has = arith.cmpi uge, %number, %c1_i32 : i32
      scf.if %has {
        %wide = arith.divui %before, %by : i32
        memref.store %wide, %m[%c0] : memref<?xi32>
      }
      %iteration = arith.index_castui %number : i32 to index
      %place = arith.muli %iteration, %c64 : index
      %behind = arith.addi %place, %c64 : index
      %block = arith.divui %behind, %c64 : index
      %next = arith.index_castui %block : index to i32
      %later = arith.divui %next, %by : i32
      memref.store %later, %m[%c0] : memref<?xi32>
    }
  }
}
