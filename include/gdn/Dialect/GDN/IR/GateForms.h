//===- GateForms.h - How a gate is to be read -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GATEFORMS_H
#define GDN_DIALECT_GDN_IR_GATEFORMS_H

#include "gdn/GateForms.h"

#include "mlir/IR/OpImplementation.h"

#include <string>

namespace mlir::gdn {

using gdn_gates::formOf;
using gdn_gates::GateDomain;
using gdn_gates::GateForm;

/// The words of the forms of which `isOne` is true: "softplus or bounded".
std::string listGateForms(function_ref<bool(const GateForm &)> isOne);

StringRef stringifyGateDomain(GateDomain domain);
/// Parses the word of a form.
FailureOr<GateDomain> parseGateDomain(AsmParser &parser);

} // namespace mlir::gdn

#endif // GDN_DIALECT_GDN_IR_GATEFORMS_H
