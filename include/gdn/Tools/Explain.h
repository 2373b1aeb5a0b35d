//===- Explain.h - What a file's layers will run and cost -------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_EXPLAIN_H
#define GDN_TOOLS_EXPLAIN_H

#include "gdn/CostModel/CostModel.h"
#include "gdn/Tools/Compile.h"

namespace mlir::gdn::tools {

/// A layer of a file: one launch.
struct LayerChoice {
  std::string function;
  /// The op's name.
  std::string op;
  /// B, T, N, Hq, H, K, V.
  std::map<std::string, int64_t> sizes;
  /// Tokens of a chunk; 1 token by token.
  int64_t chunkSize = 1;
  ::gdn::cost::Workload workload;
  /// On a GPU the schedules; on a CPU its work alone.
  ::gdn::cost::Choice choice;
  /// On a GPU: the schedule template, and why others of its stage are not
  /// taken.
  std::string scheduleTemplate;
  std::vector<std::pair<std::string, std::string>> otherTemplates;
  /// On a CPU: predicted seconds on one core.
  double coreSeconds = 0;
};

/// What compiling `module` for `options` makes of each of its forward layers,
/// in the order of the file. Fails where a size is missing, where there is no
/// such layer, and, for a GPU, where the module cannot be compiled (with
/// diagnostics).
llvm::Expected<std::vector<LayerChoice>> explain(ModuleOp module,
                                                 const CompileOptions &options);

/// A table for each layer.
void printText(llvm::ArrayRef<LayerChoice> layers,
               const CompileOptions &options, llvm::raw_ostream &os);
/// One JSON object.
void printJson(llvm::ArrayRef<LayerChoice> layers,
               const CompileOptions &options, llvm::StringRef file,
               llvm::raw_ostream &os);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_EXPLAIN_H
