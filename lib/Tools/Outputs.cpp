//===- Outputs.cpp - What the results of layer ops are --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Evaluate.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;
using ::gdn::reference::Output;

llvm::StringRef tools::name(Output output) {
  switch (output) {
  case Output::O:
    return "o";
  case Output::FinalState:
    return "final_state";
  case Output::DQ:
    return "dq";
  case Output::DK:
    return "dk";
  case Output::DV:
    return "dv";
  case Output::DBeta:
    return "dbeta";
  case Output::DGate:
    return "dgate";
  case Output::DInitialState:
    return "dinitial_state";
  case Output::DALog:
    return "da_log";
  case Output::DDtBias:
    return "ddt_bias";
  }
  llvm_unreachable("covered switch");
}

llvm::SmallVector<Output> tools::outputsOf(Operation *op) {
  if (isa<StatePassStageOp>(op))
    return {Output::FinalState};
  auto rule = dyn_cast<DeltaRuleOpInterface>(op);
  if (rule && rule.getStepStates())
    return {Output::O, Output::FinalState, Output::FinalState};
  if (!isa<ChunkGatedDeltaRuleBwdOp>(op))
    return {Output::O, Output::FinalState};
  llvm::SmallVector<Output> outputs = {Output::DQ, Output::DK, Output::DV,
                                       Output::DBeta};
  if (rule.getGate())
    outputs.push_back(Output::DGate);
  if (rule.getInitialState())
    outputs.push_back(Output::DInitialState);
  if (rule.getALog())
    outputs.push_back(Output::DALog);
  if (rule.getDtBias())
    outputs.push_back(Output::DDtBias);
  return outputs;
}
