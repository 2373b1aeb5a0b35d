//===- Choice.h - Which function a call runs, and why -----------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_CHOICE_H
#define GDN_LIB_CALLS_CHOICE_H

#include "Signature.h"

#include "gdn/CostModel/Training.h"

namespace gdn::calls {

/// Tokens of a chunk of a forward; lengths of its segments are multiples.
inline constexpr int64_t kChunkTokens = 32;

/// A plan with what speaks for it.
struct Choice {
  /// The call's device.
  cost::Chip chip;
  GdnCallPlan plan = {};
  /// What a forward's function computes.
  Signature form;
  cost::Choice whole;
  cost::SplitChoice split;
  /// Of calls that save states, or read them.
  cost::SavingChoice saving;
};

/// The cost model's chip of a device, which is one that functions run on. What
/// follows refuses calls, too.
cost::Chip readChip(int32_t device);

/// Chooses the function of a forward on `chosen.chip`, and how it cuts.
void chooseForward(const GdnCallTable &table, const Call &call, Choice &chosen);

/// The same for a forward that saves states, and for a backward.
void chooseSavingForward(const GdnCallTable &table, const Call &call,
                         Choice &chosen);
void chooseBackward(const GdnCallTable &table, const Call &call,
                    Choice &chosen);

/// Predicts how forward and backward of a call that saves are cut: the same for
/// both passes, whatever states the call has.
cost::SavingChoice chooseSaving(const Call &call, bool hasSegments,
                                const cost::Chip &chip);

/// Makes a plan one of the thread's last few (gdnCallRecall).
void rememberPlan(const GdnCallTable &table, const GdnCall &call,
                  const GdnCallPlan &plan);

/// A way that lost, with the reason, as an element of a description.
[[gnu::format(printf, 2, 3)]] std::string alternative(std::string_view name,
                                                      const char *reason, ...);

/// Finds the call's array for each argument of the plan's function. The first
/// one gives the name of an argument that the call has no array for, or null.
const char *findPlaces(const Call &call, GdnCallPlan &plan);
void placeArguments(const Call &call, GdnCallPlan &plan);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_CHOICE_H
