//===- gdn-c/Runtime/Segments.h - Memory of a call in segments ----*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arrays between the kernels that compute segments of sequences side by
// side (docs/Python.md, Segments). Their number of segments is chosen by each
// call, so no function's table has their sizes. Include gdn-c/Runtime.h.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_RUNTIME_SEGMENTS_H
#define GDN_C_RUNTIME_SEGMENTS_H

#include "gdn-c/Runtime/Status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A call in segments: all that its workspace depends on.
typedef struct GdnSegments {
  /// sizeof(GdnSegments).
  uint32_t struct_size;
  /// Not 0 where sequences lie one behind the other and may differ in length.
  int32_t packed;
  int64_t sequences;
  /// Of a sequence, or of all packed ones together.
  int64_t tokens;
  /// Value heads, and channels of a head.
  int64_t heads, key_channels, value_channels;
  /// Tokens of a segment, a multiple of the kernels' chunks.
  int64_t length;
} GdnSegments;

/// The workspace: how many segments it holds, and where its arrays begin, in
/// bytes.
typedef struct GdnSegmentsLayout {
  /// sizeof(GdnSegmentsLayout).
  uint32_t struct_size;
  /// S: sequences * ceil(tokens / length), or ceil(tokens / length) + sequences
  /// - 1 of packed sequences, whatever their lengths are.
  int64_t count;
  /// i32 [S + 1], in tokens; i32 [sequences + 1], in segments.
  uint64_t boundaries, first_segments;
  /// f16 [S, heads, K, K]; f32 [S, heads]; i32 [S, heads].
  uint64_t map, decay, starts;
  /// f32 [S, heads, V, K] each.
  uint64_t states, entry_states;
  /// i32 [S]: the number of the sequence that each segment is a part of.
  uint64_t sequence_numbers;
  uint64_t bytes;
} GdnSegmentsLayout;

/// Lays out the workspace of a call in segments. `layout->struct_size` is set
/// by the caller.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnSegmentsGetLayout(const GdnSegments *segments, GdnSegmentsLayout *layout);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_RUNTIME_SEGMENTS_H
