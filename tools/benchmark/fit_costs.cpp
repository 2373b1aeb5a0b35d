//===- fit_costs.cpp - Writes the rows of the cost model ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: gdn-fit-costs docs/data/{forward,state_pass,linear_attention}-h200.csv
//          > lib/CostModel/Rows.inc
//        gdn-fit-costs --floors FILE.csv: a line a row, with its floor in ms
//
//===----------------------------------------------------------------------===//

#include "CostFit.h"

#include <cstdio>
#include <cstring>

using namespace gdn::cost;

/// Writes the rows of the stage that `calls` are of.
static void writeRows(const std::vector<MeasuredCall> &calls) {
  CostDigits digits = fitCosts(calls);
  std::string_view stage = calls.front().workload.stage;
  auto flag = [](bool value) { return value ? "true" : "false"; };
  for (const ScheduleCosts &costs : schedulesOf(stage))
    std::printf("{\"%s\", \"%s\", %s, %s, {%.1fe-6, %.1fe-6}, {%.3fe-6, "
                "%.3fe-6}, %.1fe-6},\n",
                std::string(stage).c_str(), std::string(costs.name).c_str(),
                flag(costs.folds), flag(costs.takesTurns), digits[0] * 0.1,
                digits[1] * 0.1, digits[2] * 0.001, digits[3] * 0.001,
                digits[4] * 0.1);
}

int main(int argc, char **argv) {
  bool asksFloors = argc > 1 && std::strcmp(argv[1], "--floors") == 0;
  int first = asksFloors ? 2 : 1;
  if (argc <= first) {
    std::fprintf(stderr, "expected [--floors] and files of times\n");
    return 2;
  }
  if (!asksFloors)
    std::puts("// Written by gdn-fit-costs (tools/benchmark/fit_costs.cpp) "
              "from docs/data/*-h200.csv; a test compares.\n"
              "// Stage, schedule, whether it folds V tiles and takes turns; "
              "seconds of a work item and of a chunk, each of the\n"
              "// first V tile and of a further one; seconds of a launch.");
  for (int i = first; i < argc; ++i) {
    std::vector<MeasuredCall> calls = readTimes(argv[i]);
    if (calls.empty()) {
      std::fprintf(stderr, "expected times in %s, got none\n", argv[i]);
      return 2;
    }
    for (const MeasuredCall &call : calls)
      if (asksFloors)
        std::printf("%s: %.6g\n", call.lengths.c_str(), countFloor(call) * 1e3);
    if (!asksFloors)
      writeRows(calls);
  }
  return 0;
}
