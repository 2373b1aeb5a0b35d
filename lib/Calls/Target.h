//===- Target.h - The form that a call is brought to ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_TARGET_H
#define GDN_LIB_CALLS_TARGET_H

#include "Signature.h"

namespace gdn::calls {

/// The form of a call that functions serve: the call's own, or one that
/// conversions bring it to. One of the entries is there.
struct Target {
  Signature form;
  const GdnEntryDesc *chunks = nullptr, *tokens = nullptr;
};

/// Finds the nearest form of a forward that functions of a table serve.
Target findTarget(const GdnCallTable &table, const Call &call);

/// Finds functions of a form but for the types of gates and beta and, of one
/// that is widened, for more channels; says which form that is. Null for none.
const GdnEntryDesc *findNear(const GdnCallTable &table, const Call &call,
                             Signature &form, bool isWidened);

/// A call of a form as the cost model sees it.
cost::Workload describe(const Call &call, const Signature &form);

/// Whether sequences of a call in a form of the entry can be cut.
bool hasSegments(const Call &call, const GdnEntryDesc *chunks);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_TARGET_H
