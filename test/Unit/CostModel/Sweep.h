//===- Sweep.h - Choices of segments against a sweep of times ---*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_COSTMODEL_SWEEP_H
#define GDN_TEST_COSTMODEL_SWEEP_H

#include "gdn/CostModel/Segments.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace gdn::cost {

/// How a sequence was cut: into so many segments, each of them in so many
/// parts.
using CutCounts = std::pair<int64_t, int64_t>;

/// What a file of times has of a sequence with one kind of gates: the best time
/// without segments, and times of cuts.
struct Sweep {
  int64_t heads, tokens;
  std::string gates;
  double whole;
  std::map<CutCounts, double> split;

  double best() const {
    double least = whole;
    for (const auto &[cut, seconds] : split)
      least = std::min(least, seconds);
    return least;
  }

  std::string name() const {
    return std::to_string(heads) + " heads, " + std::to_string(tokens) +
           " tokens, gates " + gates;
  }
};

/// The fields of each row of a file of times that begins with key_heads.
inline std::vector<std::vector<std::string>> readRows(const char *path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#' || line.find("key_heads,") == 0)
      continue;
    std::stringstream stream(line);
    rows.emplace_back();
    for (std::string field; std::getline(stream, field, ',');)
      rows.back().push_back(field);
  }
  return rows;
}

/// Reads rows of key_heads,heads,tokens,gates,schedule,segments[,parts],us.
inline std::vector<Sweep> readSweep(const char *path, bool hasParts) {
  std::map<std::pair<int64_t, int64_t>, double> whole;
  std::map<std::tuple<int64_t, int64_t, std::string>, Sweep> found;
  for (const std::vector<std::string> &fields : readRows(path)) {
    int64_t heads = std::stoll(fields.at(1)), tokens = std::stoll(fields.at(2));
    int64_t segments = std::stoll(fields.at(5));
    int64_t parts = hasParts ? std::stoll(fields.at(6)) : 1;
    double seconds = std::stod(fields.at(hasParts ? 7 : 6)) * 1e-6;
    if (segments == 0) {
      double &least = whole.try_emplace({heads, tokens}, seconds).first->second;
      least = std::min(least, seconds);
      continue;
    }
    Sweep &sweep = found[{heads, tokens, fields.at(3)}];
    sweep.heads = heads, sweep.tokens = tokens, sweep.gates = fields.at(3);
    sweep.split[{segments, parts}] = seconds;
  }
  EXPECT_FALSE(found.empty()) << path;
  std::vector<Sweep> sweeps;
  for (auto &[key, sweep] : found) {
    sweep.whole = whole.at({sweep.heads, sweep.tokens});
    sweeps.push_back(sweep);
  }
  return sweeps;
}

/// What the cost model says of the kernels that a sweep measured.
class SweepModel {
public:
  explicit SweepModel(SplitRequest request) : request(request) {}

  SplitChoice choose(const Sweep &sweep) const {
    Workload p = workloadOf(sweep);
    return chooseSplit(p, chip, cost::choose(p, chip), request);
  }

  /// Seconds of segments of one length, all kernels with a CTA a head.
  double predict(const Sweep &sweep, CutCounts cut) const {
    Workload p = workloadOf(sweep);
    auto [segments, parts] = cut;
    Choice whole = cost::choose(p, chip);
    int64_t pieces = segments * parts, chunks = (sweep.tokens + 31) / 32;
    int64_t length = (chunks + pieces - 1) / pieces * parts * 32;
    return predictedSeconds(
        sweep, estimateSplit(p, chip, whole, {length, parts}, request));
  }

  /// The time of `choice`. It is that of the nearest number of segments in as
  /// many parts, over or times what the model says of both: those of the sweep
  /// are not all. Nothing where none is near.
  std::optional<double> measure(const Sweep &sweep,
                                const SplitChoice &choice) const {
    if (!choice.splits)
      return sweep.whole;
    auto n = static_cast<double>(choice.best->ofLongest);
    auto farness = [&](CutCounts cut) {
      return std::pair(cut.second != choice.best->parts,
                       std::abs(std::log(static_cast<double>(cut.first) / n)));
    };
    auto nearest = std::min_element(
        sweep.split.begin(), sweep.split.end(),
        [&](auto &a, auto &b) { return farness(a.first) < farness(b.first); });
    auto there = static_cast<double>(nearest->first.first);
    if (std::max(n / there, there / n) > 2)
      return std::nullopt;
    return nearest->second * predictedSeconds(sweep, *choice.best) /
           predict(sweep, nearest->first);
  }

  /// Choices take at most 5 % over the best of the sweep, but for `exceptions`,
  /// which do.
  void expectNearTheBest(const std::vector<Sweep> &sweeps,
                         const std::set<std::string> &exceptions) const {
    for (const Sweep &sweep : sweeps) {
      SplitChoice choice = choose(sweep);
      std::optional<double> seconds = measure(sweep, choice);
      ASSERT_TRUE(seconds) << sweep.name() << ": " << choice.best->ofLongest
                           << " segments were not measured";
      double ratio = *seconds / sweep.best();
      EXPECT_EQ(ratio > 1.05, exceptions.count(sweep.name()) == 1)
          << sweep.name() << ": "
          << (choice.splits ? choice.best->ofLongest : 0) << " segments take "
          << ratio << " of the best";
    }
  }

  /// Choices take at most `most(sweep)` of whole sequences.
  template <typename Most>
  void expectNoLoss(const std::vector<Sweep> &sweeps, Most most) const {
    for (const Sweep &sweep : sweeps) {
      std::optional<double> seconds = measure(sweep, choose(sweep));
      ASSERT_TRUE(seconds) << sweep.name();
      EXPECT_LE(*seconds, most(sweep) * sweep.whole) << sweep.name();
    }
  }

private:
  static Workload workloadOf(const Sweep &sweep) {
    Workload p;
    p.sequences = 1;
    p.packed = true;
    p.tokens = sweep.tokens;
    p.keyHeads = p.heads = sweep.heads;
    return p;
  }

  static double predictedSeconds(const Sweep &sweep,
                                 const SplitEstimate &estimate) {
    if (sweep.gates == "0")
      return estimate.seconds() + estimate.noDecaySeconds;
    return sweep.gates == "qla" ? estimate.seconds() : estimate.slowSeconds();
  }

  SplitRequest request;
  Chip chip = getDefaultChip();
};

} // namespace gdn::cost

#endif // GDN_TEST_COSTMODEL_SWEEP_H
