//===- EntryTable.cpp - Entries with their variants -----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// "-5", "0.1".
static std::string printed(const APFloat &number) {
  SmallString<16> text;
  number.toString(text);
  return text.str().str();
}

/// What a function computes, without what its variants may differ in: the
/// layout of states, and a scale, which is the default one.
static SmallVector<std::pair<std::string, std::string>>
readFacts(DictionaryAttr source) {
  SmallVector<std::pair<std::string, std::string>> facts;
  for (NamedAttribute fact : source) {
    StringRef name = fact.getName().getValue();
    if (name == "state_layout" || name == "scale")
      continue;
    std::string value = "true";
    if (auto text = dyn_cast<StringAttr>(fact.getValue()))
      value = text.str();
    else if (auto number = dyn_cast<IntegerAttr>(fact.getValue()))
      value = std::to_string(number.getInt());
    else if (auto number = dyn_cast<FloatAttr>(fact.getValue()))
      value = printed(number.getValue());
    facts.emplace_back(name.str(), value);
  }
  return facts;
}

FailureOr<EntryTable> host::describeEntry(EntryOp entry,
                                          ArrayRef<FunctionTable> functions) {
  EntryTable table;
  table.name = entry.getSymName().str();
  auto module = entry->getParentOfType<ModuleOp>();
  for (auto variant : entry.getVariants().getOps<VariantOp>()) {
    StringRef name = variant.getFunction();
    const auto *found = llvm::find_if(
        functions, [&](const FunctionTable &one) { return one.name == name; });
    auto function = module.lookupSymbol<func::FuncOp>(name);
    auto source = function ? function->getAttrOfType<DictionaryAttr>(
                                 GDNDialect::getSourceAttrName())
                           : DictionaryAttr();
    if (found == functions.end() || !source)
      return variant.emitOpError("expected a public function of one layer op, "
                                 "which takes all of its arguments");
    auto facts = readFacts(source);
    if (!table.variants.empty() && facts != table.facts)
      return variant.emitOpError("expected the same computation as that of the "
                                 "first variant, got ")
             << source;
    table.facts = std::move(facts);
    table.variants.push_back(
        {static_cast<size_t>(found - functions.begin()),
         variant.getSchedule().str(),
         source.getAs<StringAttr>("state_layout").str(),
         function->hasAttr(GDNDialect::getLateForwardAttrName()),
         function->hasAttr(GDNDialect::getGateBoundAttrName())});
  }
  return table;
}
