//===- GateForms.cpp - What a gate says of the log decay ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GateForms.h"

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace gdn::calls;

static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// `factor` times the derivative of sigmoid(x).
static double sigmoidSlope(double x, double factor) {
  double part = sigmoid(x);
  return factor * part * (1.0 - part);
}

static double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

static const GateForm forms[] = {
#define GDN_GATE_FORM(name, word, neutral, parameters, bound_, gate_, slope_,  \
                      rateSlope_)                                              \
  {word,                                                                       \
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

const GateForm &gdn::calls::gateFormOf(std::string_view word) {
  static constexpr GateForm none = {};
  const GateForm *found =
      std::find_if(std::begin(forms), std::end(forms),
                   [&](const GateForm &form) { return form.word == word; });
  return found == std::end(forms) ? none : *found;
}
