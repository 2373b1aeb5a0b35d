//===- Compare.cpp - Error measures and the tolerance table -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace gdn::reference;

Error gdn::reference::compare(const std::vector<double> &actual,
                              const std::vector<double> &expected,
                              const std::vector<double> &spread) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (actual.size() != expected.size() ||
      (!spread.empty() && spread.size() != expected.size()))
    return {infinity, infinity, 0};

  double differenceSquares = 0, referenceSquares = 0, maxAbs = 0, maxRef = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    double difference = actual[i] - expected[i];
    // Also NaN for two infinities of one sign. max() would drop a NaN silently.
    if (!std::isfinite(difference))
      return {infinity, infinity, maxRef};
    differenceSquares += difference * difference;
    double size = std::abs(expected[i]);
    if (!spread.empty())
      size = std::max(size, spread[i]);
    referenceSquares += size * size;
    maxAbs = std::max(maxAbs, std::abs(difference));
    maxRef = std::max(maxRef, size);
  }
  if (maxAbs == 0)
    return {0, 0, maxRef};
  return {referenceSquares > 0 ? std::sqrt(differenceSquares / referenceSquares)
                               : infinity,
          maxAbs, maxRef};
}

namespace {

/// A row of the table in spec 9.
struct Row {
  Output output;
  Tolerance accept;
};

/// Max norms are 2e-2 for outputs and 4e-2 for gradients. spec 9 has no row for
/// the gate parameters: they are sums of dg and take its row.
constexpr Row rows[] = {
    {Output::O, {6e-3, 2e-2}},     {Output::FinalState, {6e-3, 2e-2}},
    {Output::DQ, {8e-3, 4e-2}},    {Output::DK, {8e-3, 4e-2}},
    {Output::DV, {8e-3, 4e-2}},    {Output::DBeta, {8e-3, 4e-2}},
    {Output::DGate, {1e-2, 4e-2}}, {Output::DInitialState, {8e-3, 4e-2}},
    {Output::DALog, {1e-2, 4e-2}}, {Output::DDtBias, {1e-2, 4e-2}},
};

/// Final state with 16-bit states between chunks (spec 9).
constexpr double roundedFinalStateRms = 1e-2;

/// What a split sequence may add (spec 9, last row).
constexpr double splitSequenceRms = 2e-3;

/// fp32 operands throughout. The max norm keeps the ratio to the rms that the
/// gradients have above, 5.
constexpr Tolerance float32Tolerance = {1e-5, 5e-5};

} // namespace

Tolerance gdn::reference::tolerance(Output output, const Numerics &numerics) {
  if (numerics.float32Operands)
    return float32Tolerance;
  const Row *row =
      std::find_if(std::begin(rows), std::end(rows), [&](const Row &candidate) {
        return candidate.output == output;
      });
  // A value outside the enumeration gets the tolerance that accepts equality.
  if (row == std::end(rows))
    return {0, 0};
  Tolerance accept = row->accept;
  if (numerics.roundedState && output == Output::FinalState)
    accept.relRms = roundedFinalStateRms;
  if (numerics.splitSequence)
    accept.relRms += splitSequenceRms;
  return accept;
}

bool gdn::reference::accepts(const Tolerance &tolerance, const Error &error) {
  return error.relRms <= tolerance.relRms &&
         error.maxAbs <= tolerance.maxNorm * error.maxRef;
}
