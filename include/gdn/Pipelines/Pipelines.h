//===- Pipelines.h - The ways down, as pass pipelines -----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface of a compiled function. Every public function `f` of a module
// that went through `gdn-tile-to-llvm` is called as
//
//   void _mlir_ciface_f(result *, argument0 *, argument1 *, ...)
//
// where an array is a pointer to a descriptor
//
//   struct { T *allocated; T *aligned; int64_t offset;
//            int64_t sizes[rank]; int64_t strides[rank]; }
//
// whose strides are those of a dense row-major array, and a scalar is itself.
// Arguments are only read. `result` points to room for the descriptors of the
// results, one after the other, and is absent if there is none; the function
// fills them in. Results are fresh arrays of their own: the caller frees
// `allocated` of each with free().
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PIPELINES_PIPELINES_H
#define GDN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;

namespace gdn {

/// Options of the way from the tile level to the LLVM dialect for a CPU.
struct CPULoweringOptions : PassPipelineOptions<CPULoweringOptions> {
  PassOptions::Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc("Width of the target's vector registers in bits; 0 is "
                     "that of the host"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> parallel{
      *this, "parallel",
      llvm::cl::desc("Run the items of a grid on all cores (OpenMP)"),
      llvm::cl::init(true)};
};

/// Tile programs and the functions that launch them --> the LLVM dialect.
void buildTileToLLVMPipeline(OpPassManager &manager,
                             const CPULoweringOptions &options);

/// Registers the pipelines under their names (`gdn-tile-to-llvm`).
void registerPipelines();

} // namespace gdn
} // namespace mlir

#endif // GDN_PIPELINES_PIPELINES_H
