//===- Segments.cpp - Memory of a call in segments ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include "gdn-c/Runtime.h"

#include <initializer_list>

using namespace gdn::runtime;

namespace {
/// Gives arrays their places, one behind the other.
struct Places {
  uint64_t bytes = 0;
  bool overflows = false;

  /// Where an array of these extents begins.
  uint64_t add(uint64_t elementBytes, std::initializer_list<int64_t> extents) {
    uint64_t size = elementBytes, begin = bytes;
    for (int64_t extent : extents)
      overflows |= __builtin_mul_overflow(size, extent, &size);
    overflows |=
        __builtin_add_overflow(size, GDN_WORKSPACE_ALIGNMENT - 1, &size);
    size -= size % GDN_WORKSPACE_ALIGNMENT;
    overflows |= __builtin_add_overflow(bytes, size, &bytes);
    return begin;
  }
};
} // namespace

static GdnRuntimeStatus check(const GdnSegments &segments) {
  struct Rule {
    const char *name;
    int64_t value, least;
  };
  for (const Rule &rule :
       {Rule{"sequences", segments.sequences, 0},
        Rule{"tokens", segments.tokens, 0}, Rule{"heads", segments.heads, 0},
        Rule{"key_channels", segments.key_channels, 1},
        Rule{"value_channels", segments.value_channels, 1},
        Rule{"length", segments.length, 1}})
    if (rule.value < rule.least)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected %s of at least %lld, got %lld", rule.name,
                  static_cast<long long>(rule.least),
                  static_cast<long long>(rule.value));
  return GDN_SUCCESS;
}

extern "C" GdnRuntimeStatus gdnSegmentsGetLayout(const GdnSegments *segments,
                                                 GdnSegmentsLayout *layout) {
  if (!segments || segments->struct_size != sizeof(GdnSegments) || !layout ||
      layout->struct_size != sizeof(GdnSegmentsLayout))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected segments and a layout with their struct_size");
  if (GdnRuntimeStatus status = check(*segments))
    return status;
  int64_t N = segments->sequences, H = segments->heads,
          K = segments->key_channels, V = segments->value_channels;
  int64_t pieces = segments->tokens / segments->length +
                   (segments->tokens % segments->length != 0);
  Places places;
  int64_t S = 0;
  if (segments->packed)
    places.overflows |= __builtin_add_overflow(pieces, N ? N - 1 : 0, &S);
  else
    places.overflows |= __builtin_mul_overflow(pieces, N, &S);
  GdnSegmentsLayout result = {};
  result.struct_size = sizeof(result);
  result.count = N ? S : 0;
  constexpr uint64_t two = 2, four = 4;
  result.boundaries = places.add(four, {result.count + 1});
  result.first_segments = places.add(four, {N + 1});
  result.map = places.add(two, {result.count, H, K, K});
  result.decay = places.add(four, {result.count, H});
  result.starts = places.add(four, {result.count, H});
  result.states = places.add(four, {result.count, H, K, V});
  result.entry_states = places.add(four, {result.count, H, K, V});
  result.sequence_numbers = places.add(four, {result.count});
  result.bytes = places.bytes;
  if (places.overflows || result.count >= INT32_MAX)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected fewer than 2^31 - 1 segments, whose bytes are below "
                "2^64, got more");
  *layout = result;
  return GDN_SUCCESS;
}
