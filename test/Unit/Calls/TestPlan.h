//===- TestPlan.h - A call with a plan --------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_CALLS_TESTPLAN_H
#define GDN_TEST_UNIT_CALLS_TESTPLAN_H

#include "Choice.h"
#include "Conversions.h"
#include "TestEntries.h"

#include "gtest/gtest.h"

using namespace gdn::calls;

/// A call with a plan for one variant.
struct Planned : ::testing::Test {
  TestCall given{512};
  TestEntry entry;
  GdnCallPlan plan = {};

  void choose(std::vector<const char *> scalars = {}, bool isPacked = false,
              const char *schedule = "cta_per_head") {
    entry.add("layer", schedule, GDN_DTYPE_F32, isPacked, std::move(scalars));
    plan.variant = &entry.variants.back();
    plan.entry = &entry.desc;
    Call call(given.get());
    ASSERT_EQ(findPlaces(call, plan), nullptr);
    placeConversions(call, plan);
  }

  void addStates() {
    for (const char *name : {"initial_state", "final_state"})
      given.add(name, GDN_DTYPE_F32, {1, 8, 128, 128});
  }
};

/// What a plan's functions take, once its conversions are planned.
struct Converted {
  Call call;
  Arguments arguments;
  Conversions conversions;

  Converted(const GdnCall &given, GdnCallPlan &plan)
      : call(given), arguments(call, plan) {
    conversions.plan(arguments, call, plan);
  }
};

#endif // GDN_TEST_UNIT_CALLS_TESTPLAN_H
