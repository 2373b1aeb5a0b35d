//===- Sizes.cpp - Rules between the sizes of a function's inputs ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

llvm::Error tools::checkSizes(DeltaRuleOpInterface op, const Sizes &sizes) {
  if (!op)
    return llvm::Error::success();
  int64_t batch = sizes.get(op, "B").value_or(1);
  int64_t count = sizes.get(op, "N").value_or(1);
  int64_t heads = sizes.get(op, "H").value_or(1);
  int64_t queryHeads = sizes.get(op, "Hq").value_or(1);
  if (op.getCuSeqlens() && batch != 1)
    return fail("expected B = 1 with cu_seqlens, got {0}", batch);
  if (!op.getCuSeqlens() && batch != count)
    return fail("expected N = B = {0} without cu_seqlens, got {1}", batch,
                count);
  if (queryHeads < 1 || heads < 1 || heads % queryHeads != 0)
    return fail("expected H to be a multiple of Hq = {0}, got {1}", queryHeads,
                heads);
  return llvm::Error::success();
}

llvm::Error tools::checkBoundaries(unsigned index, const HostArray &cu,
                                   int64_t tokens) {
  if (cu[0] != 0)
    return fail("expected cu_seqlens to start at 0, got {0} in argument {1}",
                int64_t(cu[0]), index);
  for (int64_t i = 1; i < cu.size(); ++i)
    if (cu[i] < cu[i - 1])
      return fail("expected sorted cu_seqlens, got {0} after {1} in argument "
                  "{2}",
                  int64_t(cu[i]), int64_t(cu[i - 1]), index);
  if (cu[cu.size() - 1] != static_cast<double>(tokens))
    return fail("expected cu_seqlens to end at T = {0}, got {1} in argument "
                "{2}",
                tokens, int64_t(cu[cu.size() - 1]), index);
  return llvm::Error::success();
}
