//===- Report.h - What gdn-run tells --------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_GDN_RUN_REPORT_H
#define GDN_TOOLS_GDN_RUN_REPORT_H

#include "gdn/Tools/Check.h"
#include "llvm/Support/Error.h"

namespace mlir::gdn::tools {

/// Everything that a run has to say.
struct RunReport {
  std::string file;
  std::string entry;
  double compileSeconds = 0;
  /// Seconds of each call.
  std::vector<double> runSeconds;
  double flop = 0;
  std::vector<HostArray> outputs;
  /// Where each output was written; empty if nowhere.
  std::vector<std::string> paths;
  /// One for each output, or none without --check.
  std::vector<OutputCheck> checks;
  /// The GPU that ran it; empty for this CPU.
  std::string device;
  uint64_t workspaceBytes = 0;
  /// Whether calls with the same inputs gave the same bits.
  bool repeatable = true;

  /// Median of runSeconds.
  double seconds() const;
  bool pass() const;
};

/// Prints one line for the run and one for each output; or, `asJson`, one JSON
/// object, in which a number that JSON cannot hold is null. Fails if standard
/// output cannot be written.
llvm::Error print(const RunReport &report, bool asJson);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_GDN_RUN_REPORT_H
