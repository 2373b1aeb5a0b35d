//===- Processors.h - When CTAs of kernels begin and end --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_COSTMODEL_PROCESSORS_H
#define GDN_LIB_COSTMODEL_PROCESSORS_H

#include "gdn/CostModel/CostModel.h"

#include <algorithm>
#include <cassert>

namespace gdn::cost {

/// From the begin of a kernel's last CTA, or its end, to the first instruction
/// of the next.
inline constexpr double kHopSeconds = 0.8e-6;

/// CTAs of kernels that take a multiprocessor each, in the order in which they
/// are handed out. A kernel begins when every CTA of the one before has begun.
class Processors {
public:
  Processors(const Chip &chip, double seconds) : launched(seconds) {
    insert({seconds, std::max<int64_t>(chip.multiprocessors, 1)});
  }

  /// `count` CTAs of `seconds` from `ready` on, which they wait for. Returns
  /// when the last one ends.
  double add(int64_t count, double seconds, double ready = 0) {
    double end = launched;
    while (count > 0) {
      count = addRounds(count, seconds, ready);
      Group first = takeFirst();
      int64_t taken = std::min(count, first.count);
      if (first.count > taken)
        insert({first.seconds, first.count - taken});
      begun = std::max(begun, first.seconds);
      end = std::max(first.seconds, ready) + seconds;
      insert({end, taken});
      count -= taken;
    }
    return end;
  }

  /// What follows is of the next kernel, which does not begin before `ready`.
  void launch(double ready = 0) {
    launched = std::max({launched, begun, ready}) + kHopSeconds;
    // Who is free before is free then.
    int64_t early = 0;
    while (groups > 0 && free[groups - 1].seconds <= launched)
      early += takeFirst().count;
    if (early)
      insert({launched, early});
  }

private:
  /// So many multiprocessors that are free from then on.
  struct Group {
    double seconds;
    int64_t count;
  };

  /// Lets the multiprocessors that are free first take rounds of such CTAs, a
  /// CTA each, as long as no other one is free by then. Returns how many CTAs
  /// are left, one at least.
  int64_t addRounds(int64_t count, double seconds, double ready) {
    double first = free[groups - 1].seconds;
    if (first < ready)
      return count;
    int32_t place = groups;
    int64_t together = 0;
    while (place > 0 && free[place - 1].seconds <= first + seconds)
      together += free[--place].count;
    int64_t rounds = (count - 1) / together;
    if (place > 0 && rounds > 0)
      rounds = std::min(rounds, static_cast<int64_t>((free[place - 1].seconds -
                                                      free[place].seconds) /
                                                     seconds));
    for (int32_t i = place; i < groups && rounds > 0; ++i)
      free[i].seconds += static_cast<double>(rounds) * seconds;
    return count - rounds * together;
  }

  Group takeFirst() { return free[--groups]; }

  void insert(Group group) {
    int32_t place = groups;
    while (place > 0 && free[place - 1].seconds < group.seconds)
      --place;
    if (place > 0 && free[place - 1].seconds == group.seconds) {
      free[place - 1].count += group.count;
      return;
    }
    assert(groups < kMostGroups && "more kinds of CTAs than expected");
    std::copy_backward(free + place, free + groups, free + groups + 1);
    free[place] = group;
    ++groups;
  }

  /// Each kind of CTA splits one group at most.
  static constexpr int32_t kMostGroups = 16;
  /// The first ones to be free are last.
  Group free[kMostGroups];
  int32_t groups = 0;
  double launched, begun = 0;
};

} // namespace gdn::cost

#endif // GDN_LIB_COSTMODEL_PROCESSORS_H
