//===- WorkItems.cpp - When the last work item is done --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkItems.h"

#include <algorithm>
#include <cmath>

using namespace gdn::cost;

double gdn::cost::scheduleWorkItems(int64_t processors, Items longer,
                                    Items shorter) {
  int64_t rounds = longer.count / processors, rest = longer.count % processors;
  double start = static_cast<double>(rounds) * longer.seconds;
  if (rest == 0)
    return start + static_cast<double>(divideCeil(shorter.count, processors)) *
                       shorter.seconds;
  // The last long ones leave processors free, which take short ones meanwhile.
  int64_t free = processors - rest;
  double beside = std::floor(longer.seconds / shorter.seconds);
  if (static_cast<double>(shorter.count) <= static_cast<double>(free) * beside)
    return start +
           std::max(longer.seconds,
                    static_cast<double>(divideCeil(shorter.count, free)) *
                        shorter.seconds);
  // The others go to all in turn, first to those that were free.
  int64_t left = shorter.count - free * static_cast<int64_t>(beside);
  int64_t full = (left - 1) / processors, last = left - full * processors;
  double end = last <= free
                   ? std::max(longer.seconds, (beside + 1) * shorter.seconds)
                   : longer.seconds + shorter.seconds;
  return start + static_cast<double>(full) * shorter.seconds + end;
}
