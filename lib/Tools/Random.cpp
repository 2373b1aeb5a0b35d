//===- Random.cpp - Seeded inputs that suit the operand they feed ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Random.h"

#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

namespace {
/// splitmix64 and Box-Muller: the standard library's distributions differ
/// between implementations, and a failing case must be the same everywhere.
class Generator {
public:
  Generator(uint64_t seed, uint64_t stream)
      : state(seed * 0x9e3779b97f4a7c15 + stream * 0xd1342543de82ef95) {
    next();
  }

  /// Uniform in (0, 1].
  double uniform() { return ((next() >> 11) + 1) * 0x1p-53; }

  double normal() {
    if (hasSpare) {
      hasSpare = false;
      return spare;
    }
    double radius = std::sqrt(-2 * std::log(uniform()));
    double angle = 2 * llvm::numbers::pi * uniform();
    spare = radius * std::sin(angle);
    hasSpare = true;
    return radius * std::cos(angle);
  }

private:
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state;
  double spare = 0;
  bool hasSpare = false;
};
} // namespace

/// E[softplus(z)] for normal z.
static constexpr double meanSoftplus = 0.8061;

static void scaleTo(llvm::MutableArrayRef<double> row, double length) {
  double squares = 0;
  for (double x : row)
    squares += x * x;
  double factor = squares > 0 ? length / std::sqrt(squares) : 0;
  for (double &x : row)
    x *= factor;
}

/// Rows over the last dimension, of length 1, or sqrt(size) where the op
/// normalises them itself. With a cosine c, every row is sqrt(c) times the
/// head's common direction plus sqrt(1 - c) times its own.
static void drawRows(llvm::MutableArrayRef<double> values,
                     llvm::ArrayRef<int64_t> shape, bool normalised,
                     double cosine, Generator &generator) {
  int64_t size = shape.back(), heads = shape[shape.size() - 2];
  if (size == 0 || heads == 0)
    return;
  std::vector<double> common(heads * size);
  if (cosine > 0)
    for (int64_t h = 0; h < heads; ++h) {
      llvm::MutableArrayRef<double> row(&common[h * size], size);
      for (double &x : row)
        x = generator.normal();
      scaleTo(row, std::sqrt(cosine));
    }
  for (int64_t r = 0, e = values.size() / size; r < e; ++r) {
    llvm::MutableArrayRef<double> row = values.slice(r * size, size);
    for (double &x : row)
      x = generator.normal();
    if (cosine > 0) {
      scaleTo(row, std::sqrt(1 - cosine));
      for (int64_t i = 0; i < size; ++i)
        row[i] += common[(r % heads) * size + i];
    }
    scaleTo(row, normalised ? 1 : std::sqrt(double(size)));
  }
}

/// The same of rows that are sums of `rank` directions of their head.
static void drawRowsOfRank(llvm::MutableArrayRef<double> values,
                           llvm::ArrayRef<int64_t> shape, bool normalised,
                           int64_t rank, Generator &generator) {
  int64_t size = shape.back(), heads = shape[shape.size() - 2];
  if (size == 0 || heads == 0)
    return;
  std::vector<double> directions(heads * rank * size);
  for (double &x : directions)
    x = generator.normal();
  for (int64_t r = 0, e = values.size() / size; r < e; ++r) {
    llvm::MutableArrayRef<double> row = values.slice(r * size, size);
    const double *direction = &directions[(r % heads) * rank * size];
    for (int64_t n = 0; n < rank; ++n, direction += size) {
      double part = generator.normal();
      for (int64_t i = 0; i < size; ++i)
        row[i] += part * direction[i];
    }
    scaleTo(row, normalised ? 1 : std::sqrt(double(size)));
  }
}

/// The value of a + dt_bias at which a bounded gate is the wished mean.
static double boundedOffset(DeltaRuleOpInterface op, double meanGate) {
  double bound =
      op.getLowerBoundAttr() ? op.getLowerBoundAttr().getValueAsDouble() : -5.0;
  double part = std::min(std::max(meanGate / bound, 1e-6), 0.98);
  return std::log(part / (1 - part));
}

static double drawGate(DeltaRuleOpInterface op, double meanGate,
                       Generator &generator) {
  double z = generator.normal();
  const GateForm &form = formOf(op.getGateDomain());
  if (form.hasParameters())
    return form.needsBound() && !op.getDtBias()
               ? z + boundedOffset(op, meanGate)
               : z;
  double log = meanGate * gdn_gates::softplus(z) / meanSoftplus;
  return form.domain == GateDomain::Linear ? std::exp(log) : log;
}

/// A_log such that the mean of -exp(A_log) softplus(a + dt_bias) is the wish;
/// a mean of 0 cannot be had, exp(-30) is 0 for every type. A form with a bound
/// has its mean from the bias.
static double drawALog(DeltaRuleOpInterface op, double meanGate,
                       Generator &generator) {
  double spread = 0.1 * generator.normal();
  if (formOf(op.getGateDomain()).needsBound())
    return spread;
  return meanGate < 0 ? std::log(-meanGate / meanSoftplus) + spread : -30;
}

static double drawDtBias(DeltaRuleOpInterface op, double meanGate,
                         Generator &generator) {
  double spread = 0.1 * generator.normal();
  return formOf(op.getGateDomain()).needsBound()
             ? boundedOffset(op, meanGate) + spread
             : spread;
}

static void drawElements(const Argument &argument,
                         llvm::MutableArrayRef<double> values,
                         const RandomOptions &options, Generator &generator) {
  DeltaRuleOpInterface op = argument.op;
  for (double &x : values)
    switch (argument.role) {
    case Role::Beta:
      x = generator.normal();
      if (op.getBetaDomain() == BetaDomain::Value)
        x = gdn_gates::sigmoid(x);
      break;
    case Role::Gate:
      x = drawGate(op, options.meanGate, generator);
      break;
    case Role::ALog:
      x = drawALog(op, options.meanGate, generator);
      break;
    case Role::DtBias:
      x = drawDtBias(op, options.meanGate, generator);
      break;
    case Role::HasInitialState:
      x = generator.uniform() < 0.5;
      break;
    // Some are none that a sequence may have.
    case Role::NumAccepted:
    case Role::Parents:
      x = std::floor(generator.uniform() * 6) - 1;
      break;
    // Some keep nothing.
    case Role::StepIntervals:
      x = std::floor(generator.uniform() * 4) * 64;
      break;
    case Role::DFinalState:
      // A state's gradient meets every token; at full size it would drown d_o.
      x = generator.normal() / 8;
      break;
    default:
      x = generator.normal();
    }
}

std::vector<double> tools::drawRandom(const Argument &argument,
                                      llvm::ArrayRef<int64_t> shape,
                                      llvm::ArrayRef<int64_t> lengths,
                                      const RandomOptions &options) {
  std::vector<double> values(countElements(shape).value_or(0));
  Generator generator(options.seed, argument.index);
  DeltaRuleOpInterface op = argument.op;
  switch (argument.role) {
  case Role::Q:
  case Role::K:
    if (argument.role == Role::K && options.keyRank > 0) {
      drawRowsOfRank(values, shape, !op.getQkL2norm(), options.keyRank,
                     generator);
      break;
    }
    drawRows(values, shape, !op.getQkL2norm(),
             argument.role == Role::K ? options.keyCosine : 0, generator);
    break;
  case Role::CuSeqlens:
    for (size_t i = 0; i < lengths.size() && i + 1 < values.size(); ++i)
      values[i + 1] = values[i] + lengths[i];
    break;
  // Three rows each.
  case Role::StepStarts:
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = 3.0 * static_cast<double>(i);
    break;
  default:
    drawElements(argument, values, options, generator);
  }
  return values;
}

std::vector<double> tools::drawStateIndices(const Argument &argument,
                                            int64_t count, int64_t states,
                                            const RandomOptions &options) {
  Generator generator(options.seed, argument.index);
  std::vector<double> rows(states + 1);
  std::iota(rows.begin(), rows.end(), 0.0);
  for (int64_t left = states + 1; left > 1; --left) {
    auto other = static_cast<int64_t>(generator.uniform() * left) % left;
    std::swap(rows[left - 1], rows[other]);
  }
  rows.resize(count, -1.0);
  return rows;
}
