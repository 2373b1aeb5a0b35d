//===- WorkItems.h - When the last work item is done ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_COSTMODEL_WORKITEMS_H
#define GDN_LIB_COSTMODEL_WORKITEMS_H

#include <cstdint>

namespace gdn::cost {

/// Work items that take the same time.
struct Items {
  int64_t count;
  double seconds;
};

/// When all work items are done, if each starts where a processor becomes free,
/// the long ones before the short ones.
double scheduleWorkItems(int64_t processors, Items longer, Items shorter);

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_WORKITEMS_H
