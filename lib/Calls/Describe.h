//===- Describe.h - Calls as JSON -------------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_DESCRIBE_H
#define GDN_LIB_CALLS_DESCRIBE_H

#include "Conversions.h"

namespace gdn::calls {

/// What was chosen for a call, and what is predicted of it, as JSON.
std::string describeChoice(const Call &call, const Choice &chosen,
                           const Conversions &conversions,
                           uint64_t workspaceBytes);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_DESCRIBE_H
