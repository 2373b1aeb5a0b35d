//===- Arguments.h - Inputs of a layer function -----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_ARGUMENTS_H
#define GDN_TOOLS_ARGUMENTS_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Tools/HostArray.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace mlir::gdn::tools {

/// The operand of a delta rule that an argument feeds.
enum class Role {
  Q,
  K,
  V,
  Beta,
  Gate,
  InitialState,
  CuSeqlens,
  ALog,
  DtBias,
  StateIndices,
  HasInitialState,
  StepStates,
  StepIndices,
  NumAccepted,
  Parents,
  StepStarts,
  StepIntervals,
  DOut,
  DFinalState,
  Other
};

/// The operands of a delta rule with their roles; null where it has none.
llvm::SmallVector<std::pair<Value, Role>> operandsOf(DeltaRuleOpInterface op);

/// Names of the dimensions of an operand, as the ops' descriptions write them;
/// of cu_seqlens "N+1".
llvm::SmallVector<llvm::StringRef> dimNamesOf(DeltaRuleOpInterface op,
                                              Role role, int64_t rank);

/// An argument of a function and what is known of it from the IR.
struct Argument {
  unsigned index = 0;
  /// A scalar's is one of rank 0; an index has 64 bits.
  RankedTensorType type;
  bool isScalar = false;
  /// What a scalar says of the segments of a call (gdn.cut); else empty.
  llvm::StringRef cut;
  /// The numbers of which a scalar must be a positive multiple.
  llvm::SmallVector<int64_t, 1> multiples;
  /// Whether a call may be without it.
  bool isOptional = false;
  Role role = Role::Other;
  /// The first op that it feeds, through casts; null for Role::Other.
  DeltaRuleOpInterface op;
  /// The type that the op sees: a cast may know more than the argument.
  RankedTensorType operandType;
  /// Names of the dimensions, such as B, T, Hq, K; empty for Role::Other.
  llvm::SmallVector<llvm::StringRef> dimNames;
};

/// What a scalar argument of this type is on the host; nothing for another
/// type.
std::optional<Element> scalarOf(Type type);

/// The arguments of `func`, or an error if one is neither a tensor nor a scalar
/// of a type that the host can make.
llvm::Expected<std::vector<Argument>> getArguments(func::FuncOp func);

/// Segments have whole parts: what says how many tokens they have must be a
/// multiple of their number, which is among the scalars of a call.
void noteParts(llvm::MutableArrayRef<Argument> arguments,
               const std::map<unsigned, double> &scalars);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_ARGUMENTS_H
