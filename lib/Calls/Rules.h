//===- Rules.h - What a forward must be, and what it hears ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_RULES_H
#define GDN_LIB_CALLS_RULES_H

#include "Signature.h"

namespace gdn::calls {

/// What the functions' arithmetic relies on.
GdnRuntimeStatus checkSizes(const Call &call);
/// Without conversions the scale is the functions' own, parameters are float32,
/// and both states are of one type.
GdnRuntimeStatus checkTypes(const Call &call);
/// States in a pool are read and written in place.
GdnRuntimeStatus checkPool(const Call &call);

/// Whether functions that want rows of states side by side read a call's pool,
/// which nobody copies.
bool hasPoolOfRows(const Call &call);

/// Whether a call has so many tokens a sequence that it is taken in chunks, if
/// functions of chunks can be had by a conversion.
bool hasLongSequences(const Call &call);
/// Whether functions of chunks serve a call of long sequences but for the type
/// of its states, or once gates and beta are converted.
bool hasNearChunks(const GdnCallTable &table, const Signature &form,
                   bool &ofStates);
/// Says that functions of chunks are near, whether but for states or not.
GdnRuntimeStatus explainLength(const Call &call, const Signature &form,
                               bool ofStates);

/// What a call says that asks for segments, as messages call it.
std::string sayOfSplit(const Call &call, const char *what);
/// Says that a form of the call has no functions that cut.
GdnRuntimeStatus explainNoSegments(const Call &call);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_RULES_H
