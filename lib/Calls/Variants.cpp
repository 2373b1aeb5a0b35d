//===- Variants.cpp - How the functions of an entry cut sequences ---------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

using namespace gdn::calls;

CutKind gdn::calls::cutOf(const GdnVariantDesc &variant) {
  CutKind kind;
  kind.isLate = variant.is_late;
  const GdnFunctionDesc &function = *variant.function;
  for (int32_t i = 0; i < function.num_args; ++i) {
    std::string_view name = function.args[i].name;
    kind.isCut |= name == "segment_length";
    kind.hasParts |= name == "segment_parts";
    kind.isSampled |= name == "longer_segment_length";
  }
  return kind;
}

const GdnVariantDesc *gdn::calls::findVariant(const GdnEntryDesc *entry,
                                              std::string_view schedule,
                                              CutKind cut) {
  for (int32_t i = 0; entry && i < entry->num_variants; ++i)
    if (entry->variants[i].schedule == schedule &&
        cutOf(entry->variants[i]) == cut)
      return &entry->variants[i];
  return nullptr;
}
