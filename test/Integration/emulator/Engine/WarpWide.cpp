//===- WarpWide.cpp - What the lanes of a warp do together ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

using namespace gdn::emulator;

/// shfl.sync of the value `a` by `b` with the clamp `c`, in the mode `i` (up,
/// down, bfly, idx); the predicate `j`, where it is none of -1, says which
/// lanes had a source.
static Status shuffle(Warp &w, const Instruction &x) {
  const uint32_t *a = w.slot<uint32_t>(x.a), *b = w.slot<uint32_t>(x.b);
  const uint32_t c = *w.slot<uint32_t>(x.c);
  const int clamp = c & 31, segment = c >> 8 & 31;
  uint32_t values[lanes];
  Mask valid = 0;
  for (int l = 0; l < lanes; ++l) {
    const int by = b[l] & 31, bottom = l & segment,
              top = bottom | (clamp & ~segment);
    const int source = x.i == 0   ? l - by
                       : x.i == 1 ? l + by
                       : x.i == 2 ? l ^ by
                                  : bottom | (by & ~segment);
    const bool there = x.i == 0 ? source >= top : source <= top;
    values[l] = a[there ? source : l];
    valid |= Mask(there) << l;
  }
  w.set(x.d, values);
  if (x.j >= 0)
    w.setPredicate(x.j, valid);
  return Status::Running;
}

/// redux.sync of `a` by the operation `i`: add, min, max, signed min and max,
/// and, or, xor.
static Status reduce(Warp &w, const Instruction &x) {
  const uint32_t *a = w.slot<uint32_t>(x.a), *b = w.slot<uint32_t>(x.b);
  uint32_t result = a[0], values[lanes];
  for (int l = 0; l < lanes; ++l) {
    if (b[l] != allLanes)
      return w.fail(x.line, "no emulation of redux of some lanes");
    if (!l)
      continue;
    const uint32_t v = a[l];
    switch (x.i) {
    case 0:
      result += v;
      break;
    case 1:
      result = v < result ? v : result;
      break;
    case 2:
      result = v > result ? v : result;
      break;
    case 3:
      result = int32_t(v) < int32_t(result) ? v : result;
      break;
    case 4:
      result = int32_t(v) > int32_t(result) ? v : result;
      break;
    case 5:
      result &= v;
      break;
    case 6:
      result |= v;
      break;
    default:
      result ^= v;
    }
  }
  for (uint32_t &v : values)
    v = result;
  w.set(x.d, values);
  return Status::Running;
}

static Status spread(Warp &w, int slot, uint32_t value) {
  uint32_t values[lanes];
  for (uint32_t &v : values)
    v = value;
  w.set(slot, values);
  return Status::Running;
}

static Status ballot(Warp &w, const Instruction &x) {
  return spread(w, x.d, w.predicate(x.a));
}

/// vote.sync of the predicate `a` by `i`: any, all, uni.
static Status vote(Warp &w, const Instruction &x) {
  const Mask a = w.predicate(x.a);
  const bool all = a == allLanes;
  const bool result = x.i == 0 ? a != 0 : x.i == 1 ? all : all || !a;
  w.setPredicate(x.d, result ? allLanes : 0);
  return Status::Running;
}

static Status activeMask(Warp &w, const Instruction &x) {
  return spread(w, x.d, w.active);
}

/// elect.sync: lane 0 leads.
static Status elect(Warp &w, const Instruction &x) {
  w.setPredicate(x.d, 1);
  return x.a >= 0 ? spread(w, x.a, 0) : Status::Running;
}

void gdn::emulator::addWarpWide(Operations &all) {
  const Operation table[] = {{"shfl", shuffle},          {"redux", reduce},
                             {"ballot", ballot},         {"vote", vote},
                             {"activemask", activeMask}, {"elect", elect}};
  all.insert(all.end(), std::begin(table), std::end(table));
}
