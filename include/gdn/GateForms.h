//===- GateForms.h - What a gate says of the log decay ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of GateForms.inc: for the dialect, and for plain C++, which are the
// reference and the library of calls. In a namespace of its own, since files
// that use namespace mlir call mlir::gdn `gdn`.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_GATEFORMS_H
#define GDN_GATEFORMS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gdn_gates {

/// The form of a gate: what its operand says of the log decay.
enum class GateDomain : uint32_t {
#define GDN_GATE_FORM(name, ...) name,
#include "gdn/GateForms.inc"
};

/// What is true of a form. The functions take x, the rate, and the bound; the
/// last one the gate and its slope by x, too.
struct GateForm {
  enum class Parameters { None, Optional, Rate };
  enum class Bound { None, Promise, Factor };

  GateDomain domain;
  std::string_view word;
  std::optional<double> neutral;
  Parameters parameters;
  Bound bound;
  double (*gate)(double x, double rate, double bound);
  double (*slope)(double x, double rate, double bound);
  double (*rateSlope)(double x, double rate, double bound, double gate,
                      double slope);

  bool hasParameters() const { return parameters != Parameters::None; }
  bool needsRate() const { return parameters == Parameters::Rate; }
  bool mayHaveBound() const { return bound != Bound::None; }
  bool needsBound() const { return bound == Bound::Factor; }
};

//===----------------------------------------------------------------------===//
// What formulas are made of
//===----------------------------------------------------------------------===//

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// log(1 + exp(x)) without overflow.
inline double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

/// factor * slope, but 0 where the slope is: a raw gate of infinite size has a
/// vanishing gradient, and 0 * inf would make it NaN.
inline double timesSlope(double factor, double slope) {
  return slope == 0 ? 0 : factor * slope;
}

/// `factor` times the derivative of sigmoid(x), without the cancellation of
/// s (1 - s).
inline double sigmoidSlope(double x, double factor = 1) {
  return timesSlope(factor, sigmoid(x) * sigmoid(-x));
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

inline constexpr GateForm kGateForms[] = {
#define GDN_GATE_FORM(name, word, neutral, parameters, bound_, gate_, slope_,  \
                      rateSlope_)                                              \
  {GateDomain::name,                                                           \
   word,                                                                       \
   neutral,                                                                    \
   GateForm::Parameters::parameters,                                           \
   GateForm::Bound::bound_,                                                    \
   []([[maybe_unused]] double x, [[maybe_unused]] double rate,                 \
      [[maybe_unused]] double bound) -> double { return gate_; },              \
   []([[maybe_unused]] double x, [[maybe_unused]] double rate,                 \
      [[maybe_unused]] double bound) -> double { return slope_; },             \
   []([[maybe_unused]] double x, [[maybe_unused]] double rate,                 \
      [[maybe_unused]] double bound, [[maybe_unused]] double gate,             \
      [[maybe_unused]] double slope) -> double { return rateSlope_; }},
#include "gdn/GateForms.inc"
};

inline const GateForm &formOf(GateDomain domain) {
  return kGateForms[static_cast<int>(domain)];
}

/// The form of a word; one without any of this for another word.
inline const GateForm &gateFormOf(std::string_view word) {
  static constexpr GateForm none = {};
  for (const GateForm &form : kGateForms)
    if (form.word == word)
      return form;
  return none;
}

} // namespace gdn_gates

#endif // GDN_GATEFORMS_H
