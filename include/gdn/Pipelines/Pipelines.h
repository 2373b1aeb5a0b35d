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

#include "gdn/Dialect/Warp/IR/Arch.h"

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;

namespace gdn {

/// Options of the whole way; each pipeline reads those of its own steps.
struct LoweringOptions : PassPipelineOptions<LoweringOptions> {
  PassOptions::Option<std::string> plan{
      *this, "plan",
      llvm::cl::desc("Kernels of a forward: 'fused' or 'separate'"),
      llvm::cl::init("fused")};
  PassOptions::Option<std::string> backward{
      *this, "backward",
      llvm::cl::desc(
          "Kernels of a backward: 'one', 'three' or 'auto' (three on "
          "a GPU)"),
      llvm::cl::init("auto")};
  PassOptions::Option<int64_t> chunkSize{
      *this, "chunk-size",
      llvm::cl::desc("Tokens a chunk where the op does not say: 16, 32 or 64"),
      llvm::cl::init(32)};
  PassOptions::Option<double> gateBound{
      *this, "gate-bound",
      llvm::cl::desc("Bound of gates a channel whose kernels run where all "
                     "gates of a call are above it; 0 for none"),
      llvm::cl::init(0)};
  PassOptions::Option<int64_t> segments{
      *this, "segments",
      llvm::cl::desc("Segments of a sequence that a forward computes side by "
                     "side; 0 is the whole sequence"),
      llvm::cl::init(0)};
  PassOptions::Option<double> decayTolerance{
      *this, "decay-tolerance",
      llvm::cl::desc("Norm of a segment's map below which it is zero (16-bit "
                     "layers with a gate); 0 keeps all"),
      llvm::cl::init(6.1442123533282e-06)};
  PassOptions::Option<int64_t> fewerSegments{
      *this, "fewer-segments",
      llvm::cl::desc(
          "Number of segments of a sequence whose gates, by a sample "
          "on the device, do not call for so many; 0 for segments. "
          "Needs own-starts"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> ownStarts{
      *this, "own-starts",
      llvm::cl::desc("Let a segment recompute the tail of a predecessor whose "
                     "state decays (warm-up tokens), overlapped with the scan"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> sideBySide{
      *this, "side-by-side",
      llvm::cl::desc("Let the recurrences of a backward run at the same time, "
                     "whatever their schedules are"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> followAdjoint{
      *this, "follow-adjoint",
      llvm::cl::desc("Let the gradients of saved states begin while the "
                     "recurrence of the state's gradient runs"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> stateInterval{
      *this, "state-interval",
      llvm::cl::desc("Tokens between the states that the gradients of a "
                     "backward in three kernels read, a multiple of 64"),
      llvm::cl::init(64)};
  PassOptions::Option<bool> clusterHeads{
      *this, "cluster-heads",
      llvm::cl::desc("Gradients that carry the state compute the value heads "
                     "of a group in a cluster (GPU)"),
      llvm::cl::init(false)};
  PassOptions::Option<int64_t> workItems{
      *this, "work-items",
      llvm::cl::desc("Work items that the device computes at a time; 0 if that "
                     "is not known"),
      llvm::cl::init(0)};
  PassOptions::Option<int64_t> segmentLength{
      *this, "segment-length",
      llvm::cl::desc("Tokens of such a segment instead, a multiple of the "
                     "chunk size; 0 leaves it to segments"),
      llvm::cl::init(0)};
  PassOptions::Option<std::string> operandType{
      *this, "operand-type",
      llvm::cl::desc("Type that product operands are rounded to: bf16, f16, "
                     "f32, or auto (the type of v)"),
      llvm::cl::init("auto")};
  PassOptions::Option<int64_t> vTiles{
      *this, "v-tiles",
      llvm::cl::desc("Tiles that the V channels of a head are split into"),
      llvm::cl::init(1)};
  PassOptions::Option<bool> twoProductChain{
      *this, "two-product-chain",
      llvm::cl::desc("Fold the solve into keys and scores: closer to exact "
                     "where keys are alike"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> lanesArrive{
      *this, "lanes-arrive",
      llvm::cl::desc("Every lane arrives at the barriers of a GPU kernel for "
                     "itself: slower, for tools that look for races"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> serialProducts{
      *this, "serial-products",
      llvm::cl::desc("Each product of a GPU kernel begins and ends by itself: "
                     "slower, for kernels that ptxas remarks on"),
      llvm::cl::init(false)};
  PassOptions::Option<std::string> chip{
      *this, "chip", llvm::cl::desc("Chip of a GPU kernel"),
      llvm::cl::init(std::string(warp::getDefaultArch().chip))};
  PassOptions::Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Parts of a head on a GPU: 'cta_per_head' (in one CTA), "
                     "'cta_per_v_tile' "
                     "(a CTA each) or 'auto'"),
      llvm::cl::init("auto")};
  PassOptions::Option<std::string> scheduleFile{
      *this, "schedule-file",
      llvm::cl::desc("File of schedule templates for GPU kernels, which are "
                     "tried before the project's own"),
      llvm::cl::init("")};
  PassOptions::Option<int64_t> sequences{
      *this, "sequences",
      llvm::cl::desc("Sequences to choose a schedule for where the module does "
                     "not say; 0 is many"),
      llvm::cl::init(0)};
  PassOptions::Option<int64_t> tokens{
      *this, "tokens",
      llvm::cl::desc("Tokens (T) to choose a schedule for where the module "
                     "does not say; 0 is many"),
      llvm::cl::init(0)};
  PassOptions::Option<int64_t> longest{
      *this, "longest",
      llvm::cl::desc("Tokens of the longest packed sequence to choose a "
                     "schedule for; 0 is unknown"),
      llvm::cl::init(0)};
  PassOptions::Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc("Width of the target's vector registers in bits; 0 is "
                     "that of the host"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> bf16Dot{
      *this, "bf16-dot",
      llvm::cl::desc("Products of bf16 by the target's AVX512_BF16"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> amx{
      *this, "amx",
      llvm::cl::desc("With bf16-dot: products that fill the tile registers of "
                     "the target's AMX_BF16 by them"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> bf16Rounding{
      *this, "bf16-rounding",
      llvm::cl::desc("Round to bf16 by the target's AVX512_BF16"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> parallel{
      *this, "parallel",
      llvm::cl::desc("Run the work items of a grid on all cores (OpenMP)"),
      llvm::cl::init(true)};
};

/// What is wrong with the first value that no pass takes, as "expected
/// <prefix>segments of at least 0, got -1"; empty if nothing is. It looks at
/// all options: a pipeline without the pass of one would take anything for it.
std::string findWrongOption(const LoweringOptions &options,
                            StringRef prefix = "");

/// `gdn-to-stages`: layer ops --> stage ops.
void buildGDNToStagesPipeline(OpPassManager &manager,
                              const LoweringOptions &options);

/// `gdn-to-tile`: layer ops --> tile programs and their launches.
void buildGDNToTilePipeline(OpPassManager &manager,
                            const LoweringOptions &options);

/// Stage ops --> tile programs and their launches.
void buildStagesToTilePipeline(OpPassManager &manager,
                               const LoweringOptions &options);

/// `gdn-tile-to-llvm`: tile programs and the functions that launch them --> the
/// LLVM dialect (and `omp`).
void buildTileToLLVMPipeline(OpPassManager &manager,
                             const LoweringOptions &options);

/// `gdn-to-llvm`: layer ops --> the LLVM dialect.
void buildGDNToLLVMPipeline(OpPassManager &manager,
                            const LoweringOptions &options);

/// `gdn-tile-to-warp`: tile programs --> kernels of the explicit form. The
/// functions around them stay as they are from here on, launches and all: the
/// host side is made from them (Target/Host.h).
void buildTileToWarpPipeline(OpPassManager &manager,
                             const LoweringOptions &options);

/// What the host's side of a GPU asks for, in front of all: functions of calls
/// --> an entry with a function for each variant; names of arguments.
void buildCallsPipeline(OpPassManager &manager);

/// `gdn-to-warp`: layer ops --> kernels of the explicit form.
void buildGDNToWarpPipeline(OpPassManager &manager,
                            const LoweringOptions &options);

/// `gdn-warp-to-llvm`: kernels of the explicit form --> the LLVM and nvvm
/// dialects.
void buildWarpToLLVMPipeline(OpPassManager &manager);

/// `gdn-to-nvvm`: layer ops --> kernels in the LLVM and nvvm dialects.
void buildGDNToNVVMPipeline(OpPassManager &manager,
                            const LoweringOptions &options);

/// Registers the pipelines under their names.
void registerPipelines();

} // namespace gdn
} // namespace mlir

#endif // GDN_PIPELINES_PIPELINES_H
