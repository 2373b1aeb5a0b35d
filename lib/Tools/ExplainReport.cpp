//===- ExplainReport.cpp - Tables and JSON of what layers will run --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Explain.h"

#include "gdn/Dialect/GDN/IR/Support.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir::gdn;
using namespace mlir::gdn::tools;
namespace cost = ::gdn::cost;

/// "0.123 ms", with three digits.
static std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

static std::string approximate(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g", value);
  return text;
}

static std::string describeSizes(const LayerChoice &layer) {
  std::string text;
  for (llvm::StringRef name : {"B", "T", "N", "Hq", "H", "K", "V"})
    text += llvm::formatv("{0}{1} = {2}", text.empty() ? "" : ", ", name,
                          layer.sizes.at(name.str()));
  return text;
}

using Rows = llvm::SmallVector<std::pair<std::string, std::string>>;

static void addCommonRows(const LayerChoice &layer, Rows &rows) {
  rows.emplace_back("chunk", layer.chunkSize == 1
                                 ? "token by token"
                                 : std::to_string(layer.chunkSize) + " tokens");
  rows.emplace_back("FLOP", approximate(layer.choice.flop));
  rows.emplace_back("bytes", approximate(layer.choice.bytes));
}

static void addGPURows(const LayerChoice &layer, const CompileOptions &options,
                       Rows &rows) {
  const cost::Choice &choice = layer.choice;
  const cost::Estimate &chosen = choice.chosen();
  if (layer.workload.packed)
    rows.emplace_back("longest",
                      std::to_string(choice.longest) + " tokens" +
                          (choice.knowsLongest
                               ? ""
                               : ", guessed (--lengths or --max-seqlen say "
                                 "it)"));
  rows.emplace_back(
      "schedule",
      llvm::formatv("{0}: {1} CTAs on {2} multiprocessors{3}{4}",
                    llvm::StringRef(choice.schedule.name), chosen.ctas,
                    cost::getDefaultChip().multiprocessors,
                    chosen.waves > 1
                        ? llvm::formatv(", up to {0} {1}", chosen.waves,
                                        chosen.inTurn ? "items in turn"
                                                      : "one after the other")
                              .str()
                        : "",
                    options.schedule == "auto" ? ""
                                               : "; --schedule asks for it"));
  addCommonRows(layer, rows);
  rows.emplace_back("floor", milliseconds(choice.floorSeconds) +
                                 llvm::formatv(", {0:F0} % of the prediction",
                                               100 * choice.utilisation())
                                     .str());
  rows.emplace_back(
      "predicted", milliseconds(chosen.seconds) +
                       (chosen.predicted ? ", from the forward by FLOP: nobody "
                                           "has measured this kind of kernel"
                                         : ""));
  for (const cost::Estimate &estimate : choice.estimates)
    if (estimate.schedule != choice.schedule)
      rows.emplace_back("not " + std::string(estimate.schedule.name),
                        choice.whyNot(estimate));
  if (!layer.scheduleTemplate.empty())
    rows.emplace_back("template", layer.scheduleTemplate);
  for (auto &[name, reason] : layer.otherTemplates)
    rows.emplace_back("not " + name, reason);
}

static void addCPURows(const LayerChoice &layer, const CompileOptions &options,
                       Rows &rows) {
  rows.emplace_back("schedule",
                    llvm::formatv("{0} items (sequence x value head) on {1}",
                                  layer.sizes.at("N") * layer.sizes.at("H"),
                                  options.parallel ? "all cores" : "one core"));
  addCommonRows(layer, rows);
  rows.emplace_back("predicted", milliseconds(layer.coreSeconds) +
                                     " on one core, shared out over cores");
}

void tools::printText(llvm::ArrayRef<LayerChoice> layers,
                      const CompileOptions &options, llvm::raw_ostream &os) {
  bool onGPU = options.device == Device::GPU;
  for (const LayerChoice &layer : layers) {
    os << "@" << layer.function << ": " << layer.op << " on "
       << (onGPU ? support::gpuTarget : support::cpuTarget) << "\n";
    Rows rows = {{"sizes", describeSizes(layer)}};
    onGPU ? addGPURows(layer, options, rows) : addCPURows(layer, options, rows);
    size_t width = 0;
    for (auto &[name, text] : rows)
      width = std::max(width, name.size());
    for (auto &[name, text] : rows)
      os << "  " << llvm::left_justify(name, width) << "  " << text << "\n";
  }
}

static llvm::json::Object describeEstimate(const cost::Choice &choice,
                                           const cost::Estimate &estimate) {
  llvm::json::Object entry{{"name", llvm::StringRef(estimate.schedule.name)},
                           {"ctas", estimate.ctas},
                           {"waves", estimate.waves},
                           {"seconds", estimate.seconds},
                           {"predicted", estimate.predicted}};
  if (estimate.schedule != choice.schedule)
    entry["lost"] = choice.whyNot(estimate);
  return entry;
}

static llvm::json::Object describeLayer(const LayerChoice &layer, bool onGPU,
                                        const CompileOptions &options) {
  const cost::Choice &choice = layer.choice;
  llvm::json::Object sizes;
  for (auto &[name, size] : layer.sizes)
    sizes[name] = size;
  llvm::json::Object entry{
      {"function", layer.function}, {"op", layer.op},
      {"sizes", std::move(sizes)},  {"chunk_size", layer.chunkSize},
      {"flop", choice.flop},        {"bytes", choice.bytes}};
  if (!onGPU) {
    entry["core_seconds"] = layer.coreSeconds;
    return entry;
  }
  llvm::json::Array schedules;
  for (const cost::Estimate &estimate : choice.estimates)
    schedules.push_back(describeEstimate(choice, estimate));
  llvm::json::Array others;
  for (auto &[name, reason] : layer.otherTemplates)
    others.push_back(llvm::json::Object{{"name", name}, {"lost", reason}});
  entry["template"] = layer.scheduleTemplate;
  entry["other_templates"] = std::move(others);
  entry["longest"] = choice.longest;
  entry["knows_longest"] = choice.knowsLongest;
  entry["schedule"] = llvm::StringRef(choice.schedule.name);
  entry["forced"] = options.schedule != "auto";
  entry["seconds"] = choice.chosen().seconds;
  entry["floor_seconds"] = choice.floorSeconds;
  entry["utilisation"] = choice.utilisation();
  entry["schedules"] = std::move(schedules);
  return entry;
}

void tools::printJson(llvm::ArrayRef<LayerChoice> layers,
                      const CompileOptions &options, llvm::StringRef file,
                      llvm::raw_ostream &os) {
  bool onGPU = options.device == Device::GPU;
  llvm::json::Array entries;
  for (const LayerChoice &layer : layers)
    entries.push_back(describeLayer(layer, onGPU, options));
  llvm::json::Object object{
      {"file", file},
      {"target", onGPU ? support::gpuTarget : support::cpuTarget},
      {"layers", std::move(entries)}};
  os << llvm::formatv("{0:2}", llvm::json::Value(std::move(object))) << "\n";
}
