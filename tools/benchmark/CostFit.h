//===- CostFit.h - Rows of the cost model from measured times ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads docs/data/<stage>-h200.csv (that of the stage fused is
// forward-h200.csv) and finds the constants whose greatest error is least. The
// schedules of a stage share them: the work items of one have a second V tile,
// which costs what is fitted for it.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_BENCHMARK_COSTFIT_H
#define GDN_TOOLS_BENCHMARK_COSTFIT_H

#include "gdn/CostModel/CostModel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

namespace gdn::cost {

/// A row of docs/data/<stage>-h200.csv.
struct MeasuredCall {
  std::string lengths;
  Workload workload;
  Schedule schedule = Schedule::CtaPerHead;
  double seconds = 0;
  /// The larger of FLOP and bytes over what the chip does in a second, as the
  /// file says.
  double floorSeconds = 0;
  bool isShipped = false;
};

/// "8192x4" or "28672+4096": the sequences of a workload.
inline void readLengths(const std::string &text, Workload &workload) {
  std::stringstream parts(text);
  int64_t sequences = 0, tokens = 0, longest = 0;
  for (std::string part; std::getline(parts, part, '+');) {
    size_t times = part.find('x');
    int64_t length = std::stoll(part),
            count = times == part.npos ? 1 : std::stoll(part.substr(times + 1));
    sequences += count;
    tokens += count * length;
    longest = std::max(longest, length);
  }
  workload.packed = true;
  workload.sequences = sequences;
  workload.tokens = tokens;
  workload.longest = longest;
}

/// The stage that a file of times is of: the text before the first '-' of its
/// name, and fused for the forward.
inline std::string_view findStage(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.find('-'));
  for (std::string_view stage : {"state_pass", "linear_attention"})
    if (name == stage)
      return stage;
  return "fused";
}

/// The measured calls: f32 states before and after, f32 gates.
inline std::vector<MeasuredCall> readTimes(const char *path) {
  std::ifstream file(path);
  std::vector<MeasuredCall> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line.find("lengths,") == 0)
      continue;
    std::stringstream fields(line);
    std::string lengths, keyHeads, heads, schedule, time, peer, other, wanted,
        floor;
    for (std::string *field : {&lengths, &keyHeads, &heads, &schedule, &time,
                               &peer, &other, &wanted, &floor})
      std::getline(fields, *field, ',');
    MeasuredCall row;
    row.lengths = lengths + " of " + heads + " heads, " + schedule;
    readLengths(lengths, row.workload);
    row.workload.stage = findStage(path);
    row.workload.keyHeads = std::stoll(keyHeads);
    row.workload.heads = std::stoll(heads);
    row.workload.stateBytes = 8;
    row.schedule = findSchedule(schedule).value_or(Schedule::CtaPerHead);
    row.seconds = std::stod(time) * 1e-3;
    row.floorSeconds = floor.empty() ? 0 : std::stod(floor) * 1e-3;
    row.isShipped = !peer.empty();
    rows.push_back(row);
  }
  return rows;
}

/// What the floor of a call is.
inline double countFloor(const MeasuredCall &call) {
  return choose(call.workload, getDefaultChip()).floorSeconds;
}

/// Seconds of a work item and a chunk, of the first V tile and a further one,
/// and of a launch, in units of the last digit that is written.
using CostDigits = std::array<int, 5>;
inline constexpr std::array<double, 5> kDigit = {1e-7, 1e-7, 1e-9, 1e-9, 1e-7};

inline ScheduleCosts withDigits(ScheduleCosts costs, const CostDigits &digits) {
  auto value = [&](int i) { return digits[i] * kDigit[i]; };
  costs.item = {value(0), value(1)};
  costs.chunk = {value(2), value(3)};
  costs.launchSeconds = value(4);
  return costs;
}

/// The greatest error of the calls, as a part of 1; where that is the same, the
/// mean square decides.
inline double errorOf(const std::vector<MeasuredCall> &calls,
                      const CostDigits &digits) {
  double greatest = 0, squares = 0;
  for (const MeasuredCall &call : calls) {
    double predicted =
        estimate(
            call.workload, getDefaultChip(),
            withDigits(costsOf(call.schedule, call.workload.stage), digits))
            .seconds;
    double error = std::abs(predicted / call.seconds - 1);
    greatest = std::max(greatest, error);
    squares += error * error;
  }
  return greatest + 0.1 * squares / static_cast<double>(calls.size());
}

/// What a work item costs besides its chunks is held at 3 us and 1.8 us for the
/// second V tile, of the first loads, states and stores that were measured
/// (docs/experiments/work-items.md): these calls do not tell it from a launch.
///
/// Takes the best of the steps of one or two constants for as long as one is
/// better, with steps that halve. The same every time.
inline CostDigits fitCosts(const std::vector<MeasuredCall> &calls) {
  CostDigits best = {30, 18, 600, 300, 80};
  double error = errorOf(calls, best);
  for (int step = 64; step >= 1; step /= 2)
    for (bool improves = true; improves;) {
      improves = false;
      CostDigits from = best;
      for (int a = 2; a < 5; ++a)
        for (int b = a; b < 5; ++b)
          for (int da : {-step, step})
            for (int db : {-step, 0, step}) {
              CostDigits now = from;
              now[a] += da;
              if (b != a)
                now[b] += db;
              bool isPositive = std::all_of(
                  now.begin(), now.end(), [](int digit) { return digit > 0; });
              if (!isPositive)
                continue;
              double next = errorOf(calls, now);
              if (next < error - 1e-12) {
                error = next;
                best = now;
                improves = true;
              }
            }
    }
  return best;
}

} // namespace gdn::cost

#endif // GDN_TOOLS_BENCHMARK_COSTFIT_H
