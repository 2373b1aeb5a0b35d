//===- Check.h - What the arrays of a call must be --------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_CHECK_H
#define GDN_LIB_CALLS_CHECK_H

#include "Arguments.h"
#include "Signature.h"

namespace gdn::calls {

/// The arrays of a call by what they are, or their gradients, which a backward
/// writes. One that a call does not have is absent. Those of a backward that
/// are called d_o and d_final_state are `o` and `finalState`.
struct CallArrays {
  CallArrays() = default;
  explicit CallArrays(const Call &call, bool areGradients = false);

  View q{}, k{}, v{}, gate{}, beta{}, aLog{}, dtBias{}, initialState{},
      cuSeqlens{}, o{}, finalState{}, stateIndices{}, hasInitialState{},
      stepStates{}, stepIndices{}, numAccepted{}, parents{}, stepStarts{},
      stepIntervals{};

  /// Whether it keeps the states after every so many tokens.
  bool keepsEvery() const { return stepIntervals.isPresent(); }
};

/// Compares the arrays and options of a call with its rules, whatever functions
/// of the table serve it. No address is read. This and the next two throw.
void check(const GdnCallTable &table, const Call &call,
           const CallArrays &arrays);

/// Looks at addresses, as far as they are known. An output is written once, by
/// one thread, while others read: it lies on no input and on no other output.
/// Boundaries and rows of states on a CPU are read.
void checkAddresses(const Call &call);
/// Refuses arrays with elements and no address.
void checkMemory(const Call &call);

//===----------------------------------------------------------------------===//
// Forwards on a GPU
//===----------------------------------------------------------------------===//

/// What the functions' arithmetic relies on.
void checkSizes(const Call &call);
/// Without conversions the scale is the functions' own, parameters are float32,
/// and both states are of one type.
void checkTypes(const Call &call);
/// States in a pool are read and written in place.
void checkPool(const Call &call);

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
[[noreturn]] void explainLength(const Call &call, const Signature &form,
                                bool ofStates);

/// What a call says that asks for segments, as messages call it.
std::string sayOfSplit(const Call &call, const char *what);
/// Says that a form of the call has no functions that cut.
[[noreturn]] void explainNoSegments(const Call &call);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_CHECK_H
