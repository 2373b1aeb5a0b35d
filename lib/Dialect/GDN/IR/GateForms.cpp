//===- GateForms.cpp - How a gate is to be read ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GateForms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::gdn;

std::string gdn::listGateForms(function_ref<bool(const GateForm &)> isOne) {
  auto words = llvm::map_range(
      llvm::make_filter_range(gdn_gates::kGateForms, isOne),
      [](const GateForm &form) { return StringRef(form.word); });
  return llvm::join(words, " or ");
}

StringRef gdn::stringifyGateDomain(GateDomain domain) {
  return formOf(domain).word;
}

FailureOr<GateDomain> gdn::parseGateDomain(AsmParser &parser) {
  SMLoc place = parser.getCurrentLocation();
  std::string word;
  if (succeeded(parser.parseOptionalKeywordOrString(&word)))
    for (const GateForm &form : gdn_gates::kGateForms)
      if (form.word == word)
        return form.domain;
  return parser.emitError(place, "expected ")
         << listGateForms([](const GateForm &) { return true; });
}
