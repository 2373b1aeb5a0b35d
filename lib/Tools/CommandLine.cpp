//===- CommandLine.cpp - Options that the tools share ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/CommandLine.h"
#include "gdn/Tools/Error.h"

#include "gdn/Version.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;
namespace cl = llvm::cl;

CompileFlags::CompileFlags(cl::OptionCategory &category)
    : plan("plan",
           cl::desc("Kernels of a forward: fused (one; the default) "
                    "or separate (prepare, run)"),
           cl::init(CompileOptions().plan), cl::cat(category)),
      backward("backward",
               cl::desc("Kernels of a backward: one, three or auto (three on a "
                        "GPU; the default)"),
               cl::init(CompileOptions().backward), cl::cat(category)),
      chunkSize("chunk-size",
                cl::desc("Tokens a chunk where the op does not say: 16, 32 "
                         "(the default) or 64"),
                cl::init(CompileOptions().chunkSize), cl::cat(category)),
      gateBound("gate-bound",
                cl::desc("Least log gate a channel of the kernels that run "
                         "where all gates of a call are above it: -5; 0 (the "
                         "default) makes none"),
                cl::init(CompileOptions().gateBound), cl::cat(category)),
      segments("segments",
               cl::desc("Segments of a sequence that a forward computes side "
                        "by side (0: the whole sequence)"),
               cl::init(CompileOptions().segments), cl::cat(category)),
      segmentLength("segment-length",
                    cl::desc("Tokens of such a segment instead, a multiple of "
                             "the chunk size: results of a sequence then do "
                             "not depend on its neighbours"),
                    cl::init(CompileOptions().segmentLength),
                    cl::cat(category)),
      fewerSegments("fewer-segments",
                    cl::desc("Number of segments of a sequence whose gates, "
                             "by a sample on the device, do not call for "
                             "--segments; 0 for --segments. Needs "
                             "--own-starts"),
                    cl::cat(category)),
      decayTolerance("decay-tolerance",
                     cl::desc("Norm of a segment's map below which it is zero "
                              "(16-bit layers with a gate); 0 keeps "
                              "all"),
                     cl::init(CompileOptions().decayTolerance),
                     cl::cat(category)),
      ownStarts("own-starts",
                cl::desc("Let a segment recompute the tail of a predecessor "
                         "whose state decays (warm-up tokens), overlapped with "
                         "the scan"),
                cl::cat(category)),
      sideBySide("side-by-side",
                 cl::desc("Let the recurrences of a backward run at the same "
                          "time, whatever their schedules are"),
                 cl::cat(category)),
      followAdjoint("follow-adjoint",
                    cl::desc("Let the gradients of saved states begin while "
                             "the recurrence of the state's gradient runs"),
                    cl::cat(category)),
      stateInterval("state-interval",
                    cl::desc("Tokens between the states that the gradients of "
                             "a backward in three kernels read, a multiple of "
                             "64; those between are made again"),
                    cl::init(CompileOptions().stateInterval),
                    cl::cat(category)),
      operandType("operand-type",
                  cl::desc("Type that operands of products are rounded to: "
                           "bf16, f16, f32 or auto (that of v; the default)"),
                  cl::init(CompileOptions().operandType), cl::cat(category)),
      vTiles("v-tiles",
             cl::desc("Parts that the V channels of a head are split into (1)"),
             cl::init(CompileOptions().vTiles), cl::cat(category)),
      schedule("schedule",
               cl::desc("Parts of a head on a GPU: cta_per_head (in one CTA), "
                        "cta_per_v_tile (a "
                        "CTA each) or auto (by the grid; the default)"),
               cl::init(CompileOptions().schedule), cl::cat(category)),
      scheduleFile("schedule-file",
                   cl::desc("Schedule templates for a GPU, tried before the "
                            "project's own (docs/Schedules.md)"),
                   cl::value_desc("file"), cl::cat(category)),
      lanesArrive("lanes-arrive",
                  cl::desc("Every lane arrives at the barriers of a GPU kernel "
                           "for itself: slower, for compute-sanitizer's "
                           "racecheck"),
                  cl::init(CompileOptions().lanesArrive), cl::cat(category)),
      serialProducts(
          "serial-products",
          cl::desc("Each product of a GPU kernel begins and ends by itself: "
                   "slower, for kernels that ptxas remarks on (C75xx)"),
          cl::init(CompileOptions().serialProducts), cl::cat(category)),
      parallel("parallel",
               cl::desc("Run the items of a grid on all cores by OpenMP (the "
                        "default); without, the code needs no libomp"),
               cl::init(CompileOptions().parallel), cl::cat(category)),
      twoProductChain("two-product-chain",
                      cl::desc("Fold the solve into keys and scores: closer "
                               "to exact where keys are alike"),
                      cl::init(CompileOptions().twoProductChain),
                      cl::cat(category)),
      verifyEach("verify-each",
                 cl::desc("Verify what every pass makes (the default), or, "
                          "with =false, what stands at the end of a level"),
                 cl::init(CompileOptions().verifyEach), cl::cat(category)),
      printOps("mlir-print-op-on-diagnostic",
               cl::desc("Print the op that an error is about behind it"),
               cl::cat(category)),
      cpu("cpu", cl::desc("LLVM's name of the CPU to compile for (this one)"),
          cl::value_desc("name"), cl::cat(category)),
      features("features",
               cl::desc("CPU features to add or take away: +avx2,-avx512f"),
               cl::value_desc("list"), cl::cat(category)),
      optLevel("opt-level", cl::desc("How much LLVM optimises code for CPUs:"),
               cl::values(clEnumValN(llvm::CodeGenOptLevel::None, "0",
                                     "compiles in half the time"),
                          clEnumValN(llvm::CodeGenOptLevel::Less, "1", ""),
                          clEnumValN(llvm::CodeGenOptLevel::Default, "2", ""),
                          clEnumValN(llvm::CodeGenOptLevel::Aggressive, "3",
                                     "runs fastest; without the option")),
               cl::init(llvm::CodeGenOptLevel::Aggressive), cl::cat(category)) {
}

SizeFlags::SizeFlags(cl::OptionCategory &category)
    : dims("dim",
           cl::desc(
               "Size of a dynamic dimension: B, T, N, P, R, steps, Hq or H"),
           cl::value_desc("T=4096"), cl::CommaSeparated, cl::cat(category)),
      lengths("lengths",
              cl::desc("Lengths of the packed sequences (cu_seqlens)"),
              cl::value_desc("0,1,63"), cl::CommaSeparated, cl::cat(category)) {
}

llvm::Expected<SizeHints> SizeFlags::get() const {
  SizeHints sizes;
  for (llvm::StringRef text : dims) {
    auto [name, size] = text.split('=');
    std::optional<int64_t> value = parseInteger<int64_t>(size);
    if (!value)
      return fail("expected --dim <name>=<size>, got '{0}'", text);
    // The other sizes of a layer are static.
    constexpr llvm::StringRef names[] = {"B", "T",     "N",  "P",
                                         "R", "steps", "Hq", "H"};
    if (!llvm::is_contained(names, name))
      return fail("expected --dim of B, T, N, P, R, steps, Hq or H, got '{0}'",
                  name);
    if (*value < 0)
      return fail("expected --dim {0} of at least 0, got {1}", name, *value);
    sizes.dims[name.str()] = *value;
  }
  std::vector<int64_t> values;
  int64_t sum = 0;
  for (llvm::StringRef text : lengths) {
    std::optional<int64_t> length = parseInteger<int64_t>(text);
    if (!length || *length < 0)
      return fail("expected --lengths of integers from 0, got '{0}'", text);
    if (llvm::AddOverflow(sum, *length, sum))
      return fail("expected --lengths with a sum below 2^63, got '{0}'", text);
    values.push_back(*length);
  }
  if (!values.empty())
    sizes.lengths = std::move(values);
  return sizes;
}

CompileOptions CompileFlags::get() const {
  CompileOptions options;
  options.plan = plan;
  options.backward = backward;
  options.chunkSize = chunkSize;
  options.gateBound = gateBound;
  options.segments = segments;
  options.segmentLength = segmentLength;
  options.decayTolerance = decayTolerance;
  options.ownStarts = ownStarts;
  options.fewerSegments = fewerSegments;
  options.sideBySide = sideBySide;
  options.followAdjoint = followAdjoint;
  options.stateInterval = stateInterval;
  options.operandType = operandType;
  options.vTiles = vTiles;
  options.schedule = schedule;
  options.scheduleFile = scheduleFile;
  options.lanesArrive = lanesArrive;
  options.serialProducts = serialProducts;
  options.parallel = parallel;
  options.twoProductChain = twoProductChain;
  options.verifyEach = verifyEach;
  options.target.cpu = cpu;
  options.target.features = features;
  options.target.optLevel = static_cast<unsigned>(optLevel.getValue());
  return options;
}

void tools::parseCommandLine(int argc, char **argv,
                             cl::OptionCategory &category,
                             llvm::StringRef overview) {
  setVersionPrinter();
  // libLLVM brings hundreds of options of its own.
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, overview);
}

int tools::reportError(llvm::StringRef tool, llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    llvm::WithColor::error(llvm::errs(), tool) << info.message() << "\n";
  });
  return 1;
}
