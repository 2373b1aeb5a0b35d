//===- Segments.cpp - Calls whose sequences are cut -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Segments.h"

#include <cstdio>
#include <utility>

using namespace gdn::hopper;
using gdn::cpu::Array;

/// Whether an array's batch rows lie one behind the other.
static bool areRowsJoined(const Array &array) {
  // What strides rows of one token or none have is of no account.
  return !array.isPresent() || array.sizes[0] == 1 || array.sizes[1] <= 1 ||
         array.strides[0] == array.sizes[1] * array.strides[1];
}

/// The argument by which a caller may ask for segments.
static std::string keywordOf(const Problem &p) {
  return p.hasFixedKernels() ? "segment_length" : "context_parallel";
}

Error gdn::hopper::checkSegments(const Problem &p) {
  for (auto [name, array] : {std::pair("q", &p.q),
                             {"k", &p.k},
                             {"v", &p.v},
                             {"g", &p.gate},
                             {"beta", &p.beta},
                             {"out", &p.o}})
    if (!areRowsJoined(*array))
      return {"NotImplementedError",
              keywordOf(p) + ": expected batch rows of " + name +
                  " that lie one behind the other on a GPU in this version, "
                  "got rows with gaps"};
  return {};
}

Error gdn::hopper::explainNoSegments(const Problem &p) {
  return {"NotImplementedError",
          keywordOf(p) +
              ": expected a form of q, v, g, beta and states with kernels of "
              "segments on a GPU in this version, got one without; pass " +
              (p.hasFixedKernels() ? "None" : "False")};
}

std::string gdn::hopper::splitToJson(const KernelChoice &chosen) {
  const cost::SplitChoice &split = chosen.split;
  if (!split.best)
    return "null";
  const cost::SplitEstimate &best = *split.best;
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  char text[640];
  std::snprintf(
      text, sizeof(text),
      "{\"splits\": %s, \"forced\": %s, \"length\": %lld, "
      "\"longer_length\": %lld, \"parts\": %lld, \"late\": %s, \"longest\": "
      "%lld, \"segments\": %lld, \"schedule\": \"%s\", \"map_seconds\": "
      "%.9g, \"scan_seconds\": %.9g, \"forward_seconds\": %.9g, "
      "\"slow_gate_seconds\": %.9g, \"whole_seconds\": %.9g}",
      split.splits ? "true" : "false", split.isForced ? "true" : "false",
      number(best.length), number(best.longerLength), number(best.parts),
      best.isLate ? "true" : "false", number(best.ofLongest),
      number(best.segments), std::string(best.schedule.name).c_str(),
      best.mapSeconds, best.scanSeconds, best.forwardSeconds,
      best.slowGateSeconds, split.wholeSeconds);
  return text;
}
