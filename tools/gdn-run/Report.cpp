//===- Report.cpp - What gdn-run tells ------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "gdn/Tools/Error.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace mlir::gdn;
using namespace mlir::gdn::tools;
using llvm::format;

double RunReport::seconds() const {
  std::vector<double> sorted = runSeconds;
  llvm::sort(sorted);
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle]
                           : (sorted[middle - 1] + sorted[middle]) / 2;
}

bool RunReport::pass() const {
  return repeatable && llvm::all_of(checks, [](const OutputCheck &check) {
           return check.pass;
         });
}

/// "tensor<1x4xf32>": the type that an array came from.
static std::string typeOf(const HostArray &array) {
  std::string shape =
      array.getShape().empty() ? "" : describe(array.getShape()) + "x";
  return "tensor<" + shape + name(array.getElement()).str() + ">";
}

/// The largest error in the measure of its tolerance: a part of max |ref|.
static double maxError(const OutputCheck &check) {
  const auto &error = check.error;
  return error.maxAbs == 0 ? 0 : error.maxAbs / error.maxRef;
}

static void printText(const RunReport &report, llvm::raw_ostream &os) {
  double seconds = report.seconds();
  os << "@" << report.entry << ": compiled in "
     << format("%.3f s, ran in %.4g s", report.compileSeconds, seconds);
  if (report.runSeconds.size() > 1)
    os << " (median of " << report.runSeconds.size()
       << format(", minimum %.4g s)", *llvm::min_element(report.runSeconds));
  if (report.flop > 0)
    os << format(", %.4g GFLOP/s", report.flop / seconds * 1e-9);
  if (!report.device.empty())
    os << " on " << report.device << ", workspace " << report.workspaceBytes
       << " bytes";
  os << "\n";
  if (!report.repeatable)
    os << "  FAIL: expected the same bits of every call, got others\n";
  size_t width = 6;
  for (const HostArray &output : report.outputs)
    width = std::max(width, typeOf(output).size());
  if (!report.checks.empty())
    os << "  " << llvm::left_justify("output", 17)
       << llvm::left_justify("type", width)
       << "  rms error  max error  tolerance (rms, max)  result\n";
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    os << llvm::format("%3d ", int(i));
    if (report.checks.empty()) {
      os << typeOf(report.outputs[i]);
    } else {
      const OutputCheck &check = report.checks[i];
      os << llvm::left_justify(check.name, 15)
         << llvm::left_justify(typeOf(report.outputs[i]), width)
         << format("   %.2e   %.2e    %.0e, %.0e         %s",
                   check.error.relRms, maxError(check), check.tolerance.relRms,
                   check.tolerance.maxNorm, check.pass ? "pass" : "FAIL");
    }
    if (!report.paths.empty())
      os << "  " << report.paths[i];
    os << "\n";
  }
}

static llvm::json::Value number(double value) {
  return std::isfinite(value) ? llvm::json::Value(value)
                              : llvm::json::Value(nullptr);
}

static llvm::json::Object describeOutput(const RunReport &report, size_t i) {
  const HostArray &output = report.outputs[i];
  llvm::json::Object entry{{"index", i},
                           {"shape", llvm::json::Array(output.getShape())},
                           {"type", name(output.getElement())}};
  if (!report.paths.empty())
    entry["file"] = report.paths[i];
  if (report.checks.empty())
    return entry;
  const OutputCheck &check = report.checks[i];
  entry["name"] = check.name;
  entry["rms_error"] = number(check.error.relRms);
  entry["max_error"] = number(maxError(check));
  entry["rms_tolerance"] = check.tolerance.relRms;
  entry["max_tolerance"] = check.tolerance.maxNorm;
  entry["pass"] = check.pass;
  return entry;
}

static void printJson(const RunReport &report, llvm::raw_ostream &os) {
  llvm::json::Array outputs;
  for (size_t i = 0; i < report.outputs.size(); ++i)
    outputs.push_back(describeOutput(report, i));
  llvm::json::Object object{
      {"file", report.file},
      {"entry", report.entry},
      {"compile_seconds", report.compileSeconds},
      {"run_seconds", report.seconds()},
      {"min_run_seconds", *llvm::min_element(report.runSeconds)},
      {"all_run_seconds", llvm::json::Array(report.runSeconds)},
      {"flop", report.flop},
      {"gflops", number(report.flop / report.seconds() * 1e-9)},
      {"outputs", std::move(outputs)}};
  if (!report.device.empty()) {
    object["device"] = report.device;
    object["workspace_bytes"] = report.workspaceBytes;
    object["repeatable"] = report.repeatable;
  }
  if (!report.checks.empty())
    object["pass"] = report.pass();
  os << llvm::formatv("{0:2}", llvm::json::Value(std::move(object))) << "\n";
}

llvm::Error tools::print(const RunReport &report, bool asJson) {
  llvm::raw_ostream &os = llvm::outs();
  if (asJson)
    printJson(report, os);
  else
    printText(report, os);
  os.flush();
  // What was not written would end the process behind main.
  if (!llvm::outs().has_error())
    return llvm::Error::success();
  std::string reason = llvm::outs().error().message();
  llvm::outs().clear_error();
  return fail("expected a standard output that can be written, got '{0}'",
              reason);
}
