//===- Interfaces.td - The interface of all delta rule ops -*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_INTERFACES_TD
#define GDN_DIALECT_GDN_IR_INTERFACES_TD

include "mlir/IR/OpBase.td"

def GDN_DeltaRuleOpInterface : OpInterface<"DeltaRuleOpInterface"> {
  let cppNamespace = "::mlir::gdn";
  let description = [{
    The operands and attributes that the forward, backward, recurrent and stage
    ops have in common, so that verification, planning and evaluation are
    written once. Absent operands are null values.
  }];
  let methods = [
    InterfaceMethod<"Queries [B, T, Hq, K], null where the op has none.", "::mlir::Value", "getQ">,
    InterfaceMethod<"Keys [B, T, Hq, K].", "::mlir::Value", "getK">,
    InterfaceMethod<"Values [B, T, H, V].", "::mlir::Value", "getV">,
    InterfaceMethod<"Write strengths [B, T, H].", "::mlir::Value", "getBeta">,
    InterfaceMethod<"Gate [B, T, H] or [B, T, H, K], or null.", "::mlir::Value", "getGate">,
    InterfaceMethod<"Initial state, or null.", "::mlir::Value", "getInitialState">,
    InterfaceMethod<"Sequence boundaries [N + 1], or null.", "::mlir::Value", "getCuSeqlens">,
    InterfaceMethod<"Gate parameter A_log [H], or null.", "::mlir::Value", "getALog">,
    InterfaceMethod<"Gate parameter dt_bias [H] or [H, K], or null.", "::mlir::Value", "getDtBias">,
    InterfaceMethod<"Rows [N] of a pool of states, or null; only forwards may have them.",
      "::mlir::Value", "getStateIndices", (ins), "", "return {};">,
    InterfaceMethod<"The first row of the pool that a sequence may have, or null for 0.",
      "::mlir::Value", "getFirstState", (ins), "", "return {};">,
    InterfaceMethod<"Which sequences begin with their row [N], or null for all.",
      "::mlir::Value", "getHasInitialState", (ins), "", "return {};">,
    InterfaceMethod<"Where the states after tokens are kept [R, ...], or null for the pool.",
      "::mlir::Value", "getStepStates", (ins), "", "return {};">,
    InterfaceMethod<"The row that keeps the state after each token [N, steps], or null.",
      "::mlir::Value", "getStepIndices", (ins), "", "return {};">,
    InterfaceMethod<"How many tokens each sequence has accepted [N], or null.",
      "::mlir::Value", "getNumAccepted", (ins), "", "return {};">,
    InterfaceMethod<"The token that each one follows [N, steps], or null.",
      "::mlir::Value", "getParents", (ins), "", "return {};">,
    InterfaceMethod<"Where the rows of kept states of each sequence begin [N + 1], or null.",
      "::mlir::Value", "getStepStarts", (ins), "", "return {};">,
    InterfaceMethod<"Tokens between the kept states of each sequence [N], or null.",
      "::mlir::Value", "getStepIntervals", (ins), "", "return {};">,
    InterfaceMethod<"Factor of the read-out, null for K^(-1/2).", "::mlir::FloatAttr", "getScaleAttr">,
    InterfaceMethod<"How the gate is to be read.", "::mlir::gdn::GateDomain", "getGateDomain">,
    InterfaceMethod<"Lower bound of the bounded gate, null otherwise.", "::mlir::FloatAttr", "getLowerBoundAttr">,
    InterfaceMethod<"Whether q and k are l2-normalised first.", "bool", "getQkL2norm">,
    InterfaceMethod<"How beta is to be read.", "::mlir::gdn::BetaDomain", "getBetaDomain">,
    InterfaceMethod<"Order of the channels of a state.", "::mlir::gdn::StateLayout", "getStateLayout">,
  ];
}

#endif // GDN_DIALECT_GDN_IR_INTERFACES_TD
