//===- Options.cpp - Values of options that no pass takes -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Pipelines/Pipelines.h"

#include "gdn/Dialect/GDN/IR/Support.h"
#include "gdn/Dialect/Tile/Transforms/CPU/CPUArch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// Collects the first message.
class OptionCheck {
public:
  explicit OptionCheck(StringRef prefix) : prefix(prefix) {}

  void expect(bool holds, StringRef option, StringRef rule,
              const std::string &got) {
    if (!holds && message.empty())
      message =
          ("expected " + prefix + option + " " + rule + ", got " + got).str();
  }

  void expect(bool holds, StringRef option, StringRef rule, int64_t value) {
    expect(holds, option, rule, std::to_string(value));
  }

  void expectOneOf(ArrayRef<StringRef> names, StringRef option, StringRef rule,
                   const std::string &value) {
    expect(llvm::is_contained(names, value), option, rule, "'" + value + "'");
  }

  std::string take() { return std::move(message); }

private:
  StringRef prefix;
  std::string message;
};
} // namespace

/// How layers become kernels.
static void checkKernels(OptionCheck &check, const LoweringOptions &options) {
  check.expectOneOf({"fused", "separate"}, "plan", "of fused or separate",
                    options.plan);
  check.expectOneOf({"auto", "one", "three"}, "backward",
                    "of auto, one or three", options.backward);
  check.expect(support::isChunkSize(options.chunkSize), "chunk-size",
               "of 16, 32 or 64", options.chunkSize);
  check.expect(std::isfinite(options.gateBound) && options.gateBound <= 0,
               "gate-bound", "of at most 0",
               llvm::formatv("{0}", options.gateBound.getValue()).str());
  check.expectOneOf({"auto", "bf16", "f16", "f32"}, "operand-type",
                    "of auto, bf16, f16 or f32", options.operandType);
  check.expect(options.vTiles >= 0, "v-tiles", "of at least 0", options.vTiles);
  check.expect(options.stateInterval >= 1 &&
                   options.stateInterval % support::savedStateMultiple == 0,
               "state-interval", "of a positive multiple of 64",
               options.stateInterval);
}

static void checkSegments(OptionCheck &check, const LoweringOptions &options) {
  check.expect(options.segments >= 0, "segments", "of at least 0",
               options.segments);
  check.expect(options.segmentLength >= 0, "segment-length", "of at least 0",
               options.segmentLength);
  check.expect(options.segments == 0 || options.segmentLength == 0,
               "segment-length", "alone", std::string("segments beside it"));
  check.expect(options.fewerSegments >= 0 &&
                   options.fewerSegments <= options.segments,
               "fewer-segments", "of 0 to segments", options.fewerSegments);
  double tolerance = options.decayTolerance;
  check.expect(tolerance >= 0 && tolerance < 1, "decay-tolerance",
               "of at least 0 and below 1",
               llvm::formatv("{0:e}", tolerance).str());
}

std::string gdn::findWrongOption(const LoweringOptions &options,
                                 StringRef prefix) {
  static_assert(support::savedStateMultiple == 64, "said in a message");
  OptionCheck check(prefix);
  checkKernels(check, options);
  checkSegments(check, options);
  check.expect(options.sequences >= 0, "sequences", "of at least 0",
               options.sequences);
  check.expect(options.tokens >= 0, "tokens", "of at least 0", options.tokens);
  check.expect(options.longest >= 0, "longest", "of at least 0",
               options.longest);
  int64_t bits = options.vectorBits;
  check.expect(bits == 0 || tile::isVectorBits(bits), "vector-bits",
               "of 0, 128, 256 or 512", bits);
  return check.take();
}
