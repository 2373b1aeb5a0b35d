//===- GateForms.h - How a gate is to be read -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GATEFORMS_H
#define GDN_DIALECT_GDN_IR_GATEFORMS_H

#include "mlir/IR/OpImplementation.h"

#include <optional>
#include <string>

namespace mlir::gdn {

/// The form of a gate: what its operand says of the log decay.
enum class GateDomain : uint32_t {
#define GDN_GATE_FORM(name, ...) name,
#include "gdn/GateForms.inc"
};

/// What is true of a form (GateForms.inc).
struct GateForm {
  enum class Parameters { None, Optional, Rate };
  enum class Bound { None, Promise, Factor };

  GateDomain domain;
  StringRef word;
  std::optional<double> neutral;
  Parameters parameters;
  Bound bound;

  bool hasParameters() const { return parameters != Parameters::None; }
  bool needsRate() const { return parameters == Parameters::Rate; }
  bool mayHaveBound() const { return bound != Bound::None; }
  bool needsBound() const { return bound == Bound::Factor; }
};

const GateForm &formOf(GateDomain domain);
/// The words of the forms of which `isOne` is true: "softplus or bounded".
std::string listGateForms(function_ref<bool(const GateForm &)> isOne);

StringRef stringifyGateDomain(GateDomain domain);
/// Parses the word of a form.
FailureOr<GateDomain> parseGateDomain(AsmParser &parser);

} // namespace mlir::gdn

#endif // GDN_DIALECT_GDN_IR_GATEFORMS_H
