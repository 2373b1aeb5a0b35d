//===- TestTable.h - A table of entries -------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_UNIT_CALLS_TESTTABLE_H
#define GDN_TEST_UNIT_CALLS_TESTTABLE_H

#include "TestEntries.h"

#include "gtest/gtest.h"

/// Entries for batch rows with states in float32 and in bfloat16, and for
/// packed sequences.
struct Table : ::testing::Test {
  TestEntry rows, halves, packed;
  std::array<const GdnEntryDesc *, 3> entries;
  void *room = nullptr;
  GdnCallTable table = {};
  GdnCallPlan plan = {};

  Table() {
    addVariants(rows, GDN_DTYPE_F32, /*isPacked=*/false);
    addVariants(halves, GDN_DTYPE_BF16, /*isPacked=*/false);
    packed.add("one", "cta_per_head", GDN_DTYPE_F32, /*isPacked=*/true);
    entries = {&rows.desc, &halves.desc, &packed.desc};
    table = {sizeof(table), 3, 0, entries.data(), nullptr, &room, nullptr, 0};
  }

  static void addVariants(TestEntry &entry, int32_t state, bool isPacked) {
    entry.add("per_head", "cta_per_head", state, isPacked);
    entry.add("per_v_tile", "cta_per_v_tile", state, isPacked);
    for (const char *schedule : {"cta_per_head", "cta_per_v_tile"})
      entry.add("waiting", schedule, state, isPacked, {"segment_length"});
  }

  std::string choose(TestCall &call) {
    GdnRuntimeStatus status = gdnCallPlan(&table, &call.get(), &plan);
    if (status == GDN_SUCCESS)
      return plan.variant->function->name;
    return std::string(status == GDN_ERROR_NOT_SERVED ? "not served: " : "") +
           gdnGetLastErrorMessage();
  }
};

#endif // GDN_TEST_UNIT_CALLS_TESTTABLE_H
