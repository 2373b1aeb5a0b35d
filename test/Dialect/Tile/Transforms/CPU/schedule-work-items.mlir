// RUN: gdn-opt %s --gdn-tile-schedule-work-items | FileCheck %s

// Sequences differ in length, so threads take work items as they become free.
// CHECK-LABEL: func.func @items
// CHECK: omp.wsloop schedule(dynamic
func.func @items(%n : index, %y : memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  omp.parallel {
    omp.wsloop {
      omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
        memref.store %i, %y[%i] : memref<?xindex>
        omp.yield
      }
    }
    omp.terminator
  }
  return
}
