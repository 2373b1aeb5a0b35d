//===- GateForms.h - What a gate says of the log decay ----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_GATEFORMS_H
#define GDN_LIB_CALLS_GATEFORMS_H

#include <optional>
#include <string_view>

namespace gdn::calls {

/// A form of gates (gdn/GateForms.inc). The functions take x, the rate, and the
/// bound; the last one the gate and its slope by x, too.
struct GateForm {
  enum class Parameters { None, Optional, Rate };
  enum class Bound { None, Promise, Factor };

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
  bool needsBound() const { return bound == Bound::Factor; }
};

/// The form of a fact's word; one without any of this for another word.
const GateForm &gateFormOf(std::string_view word);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_GATEFORMS_H
