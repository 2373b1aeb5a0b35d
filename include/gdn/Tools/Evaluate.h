//===- Evaluate.h - Layer functions in float64 ------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_EVALUATE_H
#define GDN_TOOLS_EVALUATE_H

#include "gdn/Reference/Reference.h"
#include "gdn/Tools/HostArray.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <functional>
#include <memory>

namespace mlir::gdn::tools {

/// A value of a function in float64.
struct Evaluated {
  llvm::SmallVector<int64_t> shape;
  std::shared_ptr<std::vector<double>> values;
  /// Which output of a delta rule it is; nothing for a value that no arithmetic
  /// has touched.
  std::optional<::gdn::reference::Output> output;
  /// Element type of v of the delta rule, which is what `auto` rounds to.
  Element dataType = Element::F32;
  /// Of a sum over all tokens: how large its terms are (Reference.h).
  std::vector<double> spread = {};
};

/// Evaluates a function of layer ops by walking it: every layer op is computed
/// by the float64 reference, on inputs that are exactly those of the compiled
/// function. Fails where the function holds an op that it does not know, and
/// says which it does.
llvm::Expected<std::vector<Evaluated>>
evaluate(func::FuncOp func, llvm::ArrayRef<HostArray> inputs,
         const std::function<void(double)> &progress = {});

/// The name of an output for people: o, final_state, dq, ...
llvm::StringRef name(::gdn::reference::Output output);

/// The outputs that the results of a layer op are, in the op's order.
llvm::SmallVector<::gdn::reference::Output> outputsOf(Operation *op);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_EVALUATE_H
