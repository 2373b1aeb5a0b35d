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
  RankedTensorType type;
  Role role = Role::Other;
  /// The first op that it feeds, through casts; null for Role::Other.
  DeltaRuleOpInterface op;
  /// The type that the op sees: a cast may know more than the argument.
  RankedTensorType operandType;
  /// Names of the dimensions, such as B, T, Hq, K; empty for Role::Other.
  llvm::SmallVector<llvm::StringRef> dimNames;
};

/// The arguments of `func`, or an error if one is not a tensor of a type that
/// the host can make.
llvm::Expected<std::vector<Argument>> getArguments(func::FuncOp func);

/// How random inputs are drawn.
struct RandomOptions {
  uint64_t seed = 0;
  /// Mean of the log gate, at most 0.
  double meanGate = -0.05;
  /// Cosine between the keys of a head; 0 draws them independently.
  double keyCosine = 0;
};

/// What the user said about the inputs.
struct InputOptions {
  /// .npy files by argument.
  std::map<unsigned, std::string> files;
  /// Shapes by argument.
  std::map<unsigned, llvm::SmallVector<int64_t>> shapes;
  /// Sizes by the name of the dimension, for all ops.
  std::map<std::string, int64_t> dims;
  /// Lengths of the packed sequences; absent: one sequence, or equal ones where
  /// their number is known.
  std::optional<std::vector<int64_t>> lengths;
  RandomOptions random;
};

/// Reads or draws every argument; all sizes are known and fit together, and
/// cu_seqlens is sorted from 0 to T, so the function may run on the result.
llvm::Expected<std::vector<HostArray>> makeInputs(func::FuncOp func,
                                                  const InputOptions &options);

/// Values for one argument of the given shape. `lengths` is read for
/// Role::CuSeqlens alone.
std::vector<double> drawRandom(const Argument &argument,
                               llvm::ArrayRef<int64_t> shape,
                               llvm::ArrayRef<int64_t> lengths,
                               const RandomOptions &options);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_ARGUMENTS_H
