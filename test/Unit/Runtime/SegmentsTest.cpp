//===- SegmentsTest.cpp - Memory of a call in segments --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn-c/Runtime.h"

#include "gtest/gtest.h"

#include <cstdint>
#include <string>

namespace {

GdnSegments makeSegments(int64_t sequences, int64_t tokens, int64_t length,
                         bool packed) {
  return {sizeof(GdnSegments),   packed, sequences, tokens,
          /*heads=*/8,
          /*key_channels=*/128,
          /*value_channels=*/64, length};
}

GdnSegmentsLayout layOut(const GdnSegments &segments) {
  GdnSegmentsLayout layout = {};
  layout.struct_size = sizeof(layout);
  EXPECT_EQ(gdnSegmentsGetLayout(&segments, &layout), GDN_SUCCESS)
      << gdnGetLastErrorMessage();
  return layout;
}

void expectRefusal(const GdnSegments &segments, const std::string &message) {
  GdnSegmentsLayout layout = {};
  layout.struct_size = sizeof(layout);
  EXPECT_EQ(gdnSegmentsGetLayout(&segments, &layout),
            GDN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(gdnGetLastErrorMessage(), message);
}

TEST(Segments, CountsThemWithoutLengths) {
  EXPECT_EQ(layOut(makeSegments(1, 300, 64, true)).count, 5);
  EXPECT_EQ(layOut(makeSegments(4, 300, 64, true)).count, 8);
  EXPECT_EQ(layOut(makeSegments(4, 300, 64, false)).count, 20);
  EXPECT_EQ(layOut(makeSegments(1, 0, 64, true)).count, 0);
  EXPECT_EQ(layOut(makeSegments(0, 300, 64, true)).count, 0);
}

TEST(Segments, PutsArraysOneBehindTheOther) {
  GdnSegmentsLayout layout = layOut(makeSegments(4, 300, 64, true));
  EXPECT_EQ(layout.boundaries, 0u);
  EXPECT_EQ(layout.first_segments, 256u);
  EXPECT_EQ(layout.map, 512u);
  EXPECT_EQ(layout.decay, layout.map + 8 * 8 * 128 * 128 * 2);
  EXPECT_EQ(layout.starts, layout.decay + 256);
  EXPECT_EQ(layout.states, layout.starts + 256);
  EXPECT_EQ(layout.entry_states, layout.states + 8 * 8 * 128 * 64 * 4);
  EXPECT_EQ(layout.sequence_numbers,
            layout.entry_states + 8 * 8 * 128 * 64 * 4);
  EXPECT_EQ(layout.bytes, layout.sequence_numbers + 256);
}

TEST(Segments, RefusesWhatCannotBe) {
  expectRefusal(makeSegments(-1, 300, 64, true),
                "expected sequences of at least 0, got -1");
  expectRefusal(makeSegments(1, 300, 0, true),
                "expected length of at least 1, got 0");
  const char *many = "expected fewer than 2^31 - 1 segments, whose bytes are "
                     "below 2^64, got more";
  expectRefusal(makeSegments(1, INT64_MAX, 32, true), many);
  expectRefusal(makeSegments(INT64_MAX, 300, 32, false), many);
  GdnSegments segments = makeSegments(1, 300, 64, true);
  segments.struct_size = 0;
  expectRefusal(segments,
                "expected segments and a layout with their struct_size");
}

} // namespace
