//===- KnownCalls.h - Calls that were planned lately ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_KNOWNCALLS_H
#define GDN_LIB_CALLS_KNOWNCALLS_H

#include "gdn-c/Calls.h"

namespace gdn::calls {

/// The plan of a call of a table that the thread has planned lately and that
/// was like this one; null for none.
const GdnCallPlan *recallPlan(const GdnCallTable &table, const GdnCall &call);

/// Makes a plan one of the thread's last few.
void rememberPlan(const GdnCallTable &table, const GdnCall &call,
                  const GdnCallPlan &plan);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_KNOWNCALLS_H
