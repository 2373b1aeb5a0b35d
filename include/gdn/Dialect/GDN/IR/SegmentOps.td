//===- SegmentOps.td - Stage ops of a split sequence -------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Dialects/Stages.md explains how they fit together.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_SEGMENTOPS_TD
#define GDN_DIALECT_GDN_IR_SEGMENTOPS_TD

// Included by Ops.td, whose operand lists it shares.

def GDN_SegmentBoundariesStageOp : GDN_StageOp<"segment_boundaries"> {
  let summary = "Where sequences are cut into segments";
  let description = [{
    Cuts every sequence into segments of whole chunks: into `segments` of one
    length, of which the last ones may be short or empty, or into as many of
    `segment_length` tokens as it needs. `length` is that number in a call that
    chooses it, a positive multiple of `chunk_size`. Results: `boundaries`
    [S + 1] of the segments, which are `cu_seqlens` to the stages that compute a
    segment as a sequence, and `first_segments` [N + 1], where the segments of
    each sequence begin among them.

    With three results the third one, i32, is `sequence_numbers` [S], of which
    sequence each segment is a part.

    With four or five results, i32, it tells where the segment before each one of
    the same sequence begins, `before` [S + 1]: -1 - n of the first one of sequence
    n, and 2^31 - 1 in the last entry, which counts the work of
    `gdn.stage.segment_scan` down to 0. `closes` [S] is n of the segment with
    which sequence n ends, which is its first one if it has no token, else -1.
    `last_segments` [N], if there are five results, is that segment's number.

    With a `gate` a head, which is its logarithm, `live_heads`, `fewer_segments`
    and `tolerance` a sequence is cut into that many segments instead unless its
    gates call for the shorter ones. They do if `live_heads` = [least, most] of a
    sample of 8 heads keep a state over a segment. A sample of the tokens tells,
    so this chooses nothing but how long it takes. Segments that are not used are
    empty.

    With a `gate` a channel, which is taken for its sizes and is not read, heads
    that keep a state over a segment have whole sequences instead, and
    `fewer_segments` is 1. `gdn.stage.segment_starts` finds out which heads those
    are. For that there are two results more, i32: `whole_begins` [S], where the
    sequence begins that a segment ends, and -1 for others; and `whole_heads` [H],
    zeros.

    With `parts` a segment consists of so many parts of `length` tokens, and all
    results, of which there are at least five, count parts. With a `gate` a head,
    `live_heads`, `longer_length` and `tolerance` the parts of a sequence are
    longer unless its gates call for the shorter ones: equally long, and of that
    length at most. A `longer_length` below `length` counts as `length`. With a
    `gate` a channel heads may have whole sequences if a segment of that length
    has room for all T tokens; else `whole_begins` are 0.

    S is N `segments`. With L tokens of a segment and packed sequences it is
    max(ceil(T / L), 1) + N - 1, the least number that is known without the
    lengths: max(ceil(x / L), 1) segments before token x, and one more for each
    sequence but the first. Of batch rows it is N max(ceil(T / L), 1). With
    `parts` S is so many times as large. Segments that a sequence does not need
    are empty ones at its end, and those that none needs are empty ones of the
    last sequence, behind the last entry of `first_segments`. `k` is taken for its
    sizes and is not read. Without `cu_seqlens` boundaries count tokens through
    all batch rows.

    Example:

    ```mlir
    %boundaries, %first = gdn.stage.segment_boundaries
        k(%k : tensor<1x4096x2x128xbf16>) cu_seqlens(%cu : tensor<3xi32>)
        {chunk_size = 32, segments = 8} -> tensor<17xi32>, tensor<3xi32>
    ```
  }];
  let arguments = (ins GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k,
    GDN_GateOf<TensorRankOf<parameterTypes, [3, 4]>>:$gate,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens,
    Arg<Optional<Index>, "Tokens of a segment, or of a part of one, that a call chooses.">:$length,
    Arg<Optional<Index>, "Parts of a segment.">:$parts,
    Arg<Optional<Index>, "Tokens of a part where shorter ones do not pay.">:$longer_length,
    Arg<OptionalAttr<I64Attr>, "Segments of a sequence.">:$segments,
    Arg<OptionalAttr<I64Attr>, "Tokens of a segment.">:$segment_length,
    Arg<OptionalAttr<I64Attr>, "Segments of a sequence whose gates call for fewer.">:$fewer_segments,
    Arg<OptionalAttr<DenseI64ArrayAttr>, "Heads of the sample that keep a state where segments are short: at least, and at most.">:$live_heads,
    Arg<OptionalAttr<F64Attr>, "What a segment that forgets makes of a state of norm 1.">:$tolerance,
    chunkSizeAttribute:$chunk_size);
  let assemblyFormat = [{
    `k` `(` $k `:` type($k) `)` (`gate` `(` $gate^ `:` type($gate) `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    (`length` `(` $length^ `:` type($length) `)`)?
    (`parts` `(` $parts^ `:` type($parts) `)`)?
    (`longer_length` `(` $longer_length^ `:` type($longer_length) `)`)?
    attr-dict `->` type($results)
  }];
}

def GDN_SegmentStartsStageOp : GDN_StageOp<"segment_starts"> {
  let summary = "From where on a segment forgets the state before it";
  let description = [{
    A segment whose gates from token t on multiply to at most `tolerance` makes
    less than `tolerance` of any state before t (spec 6.3). So the state behind
    it is that of the tokens from t on, run from zero, and M is not needed.

    Results: `starts` [S, H], for each sequence of `cu_seqlens`, which are the
    segments, and head: the last such t that begins a chunk, or the segment's
    first token if no other is one. With a gate a head also `decay` [S, H]: the
    gate's sum over the segment in log2 units, f32; `k` is then taken for its
    sizes and is not read.

    With a gate per channel, one channel may keep its state while all others
    forget theirs. So t is the first token from the end, of the last 96 tokens,
    for which one of two bounds holds: the slowest channels' gates multiply to at
    most `tolerance`, or the product of |I - beta k k^T| Diag(exp g) has columns
    whose sums have a norm of at most `tolerance`. The latter bound reads k and
    `beta`. If neither bound has come a third of its way in 32 tokens, there is no
    such t. With `whole_begins` and `whole_heads`, which the stage updates and
    returns as its second result, `whole_heads` becomes 1 for heads that have no
    such t in a segment with others behind it: these are left whole.

    With `reverse`, of a gate a head, it is the same for gradients, which go back:
    the gradient of the state before a segment is that of the tokens before t
    alone, if the gates of these multiply to at most `tolerance`. One result,
    `ends` [S, H]: the first such t that ends a chunk, or the segment's end.

    Example:

    ```mlir
    %starts, %decay = gdn.stage.segment_starts
        k(%k : tensor<1x4096x2x128xbf16>) gate(%g : tensor<1x4096x4xf32>)
        cu_seqlens(%boundaries : tensor<17xi32>)
        {chunk_size = 32, tolerance = 6.1e-06} -> tensor<16x4xi32>, tensor<16x4xf32>
    ```
  }];
  let arguments = !con((ins GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k,
    Arg<Optional<TensorRankOf<parameterTypes, [3]>>,
      "Write strengths [B, T, H], with a gate a channel alone.">:$beta,
    GDN_GateOf<TensorRankOf<parameterTypes, [3, 4]>>:$gate,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens,
    GDN_ALogOf<TensorRankOf<parameterTypes, [1]>>:$a_log,
    GDN_DtBiasOf<TensorRankOf<parameterTypes, [1, 2]>>:$dt_bias),
    wholeHeadsOperand, wholeBeginsOperand, (ins gateDomainAttribute:$gate_domain,
    lowerBoundAttribute:$lower_bound, l2normAttribute:$qk_l2norm,
    betaDomainAttribute:$beta_domain,
    Arg<F64Attr, "What a segment may make of a state of norm 1, between 0 and 1.">:$tolerance,
    Arg<UnitAttr, "Where segments end, for gradients.">:$reverse,
    chunkSizeAttribute:$chunk_size, besideAttribute:$beside));
  let assemblyFormat = [{
    `k` `(` $k `:` type($k) `)` (`beta` `(` $beta^ `:` type($beta) `)`)?
    (`gate` `(` $gate^ `:` type($gate) `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    (`a_log` `(` $a_log^ `:` type($a_log) `)`)?
    (`dt_bias` `(` $dt_bias^ `:` type($dt_bias) `)`)?
    (`whole_heads` `(` $whole_heads^ `:` type($whole_heads) `)`)?
    (`whole_begins` `(` $whole_begins^ `:` type($whole_begins) `)`)?
    attr-dict `->` type($results)
  }];
}

def GDN_SegmentMapStageOp : GDN_StageOp<"segment_map"> {
  let summary = "What a segment makes of the state before it, as a matrix";
  let description = [{
    A segment takes the state S before it to M S + B (spec 6.1). B is the state
    pass from zero. This stage makes M of each sequence of `cu_seqlens`, which
    are the segments, and head, as the state pass from the identity with values
    of zero. M is kept in parts, so that 16 bits hold it where it is close to
    the decay alone:

    ```
    M = exp2(decay) (I + D)        a gate a head, or none (then decay = 0)
    M = Diag(exp2(decay)) + D      a gate a channel
    ```

    Results: `map`, which is D [S, H, K, K], and, where there is a gate,
    `decay`, its sum over the segment in log2 units, [S, H] or [S, H, K] in f32.
    With a gate a head D does not depend on it.

    With `starts` D is zero where a segment begins behind its first token: it
    makes nothing of the state before it. The decay is that of
    `gdn.stage.segment_starts` then. With `before` and `closes`, too, the maps of
    the first and of the last segment of a sequence are not made, nor those of
    heads that are left whole (`whole_heads`).

    Example:

    ```mlir
    %map, %decay = gdn.stage.segment_map
        k(%k : tensor<1x4096x2x128xbf16>) beta(%beta : tensor<1x4096x4xf32>)
        gate(%g : tensor<1x4096x4xf32>) cu_seqlens(%boundaries : tensor<17xi32>)
        {chunk_size = 32} -> tensor<16x4x128x128xf16>, tensor<16x4xf32>
    ```
  }];
  let arguments = !con((ins GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k, GDN_BetaOf<TensorRankOf<parameterTypes, [3]>>:$beta,
    GDN_GateOf<TensorRankOf<parameterTypes, [3, 4]>>:$gate,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens,
    GDN_ALogOf<TensorRankOf<parameterTypes, [1]>>:$a_log,
    GDN_DtBiasOf<TensorRankOf<parameterTypes, [1, 2]>>:$dt_bias), startsOperand,
    (ins GDN_BeforeOf<"">:$before), closesOperand, wholeHeadsOperand, (ins gateDomainAttribute:$gate_domain,
    lowerBoundAttribute:$lower_bound, l2normAttribute:$qk_l2norm,
    betaDomainAttribute:$beta_domain,
    chunkSizeAttribute:$chunk_size, besideAttribute:$beside));
  let assemblyFormat = [{
    `k` `(` $k `:` type($k) `)` `beta` `(` $beta `:` type($beta) `)`
    (`gate` `(` $gate^ `:` type($gate) `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    (`a_log` `(` $a_log^ `:` type($a_log) `)`)?
    (`dt_bias` `(` $dt_bias^ `:` type($dt_bias) `)`)?
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`before` `(` $before^ `:` type($before) `)`)?
    (`closes` `(` $closes^ `:` type($closes) `)`)?
    (`whole_heads` `(` $whole_heads^ `:` type($whole_heads) `)`)?
    attr-dict `->` type($results)
  }];
}

def GDN_SegmentScanStageOp : GDN_StageOp<"segment_scan"> {
  let summary = "The state before every segment, from the segments' maps";
  let description = [{
    Per sequence and head, over its segments first_segments[n] ..
    first_segments[n + 1] in order, from `initial_state` or zero:

    ```
    entry_states[s] = S
    S <- M_s S + B_s
    ```

    with M_s as `gdn.stage.segment_map` has it in `map` and `decay`, and B_s in
    `states`. Results: `entry_states`, shaped as `states`, and the final state
    if there are two, of the element type of `initial_state`, or f32. With
    `segment_layout` the states of segments lie otherwise than those of
    sequences: [V, K] is as they are computed, and the fastest.

    With `state_indices` the initial and final states lie in a pool, as
    `gdn.chunk_gated_delta_rule` has it. A sequence that has no row begins with
    zero, and its final state is not stored.

    With `reverse` it is the same scan for gradients: from the last segment to
    the first, with M_s^T for M_s. `states` are then what each segment adds to
    the gradient of the state before it, `initial_state` is the gradient of the
    final state, and the results are the gradients of the state behind every
    segment and of the initial state.

    With `starts` and `boundaries` a segment that begins for a head behind its
    first token makes nothing of the state before it, whatever `decay` [S, H, K]
    says. Without `before` they are there with such a decay alone.

    With `before` it is for `gdn.stage.fused` that runs at the same time: the scan
    makes the last entry of `before` 0 when it is done. `states` of a first
    segment are then the state behind it, and states before first segments and
    final states are not made. Nor is any of a head of which all segments of the
    sequence but the last one forget what is before them, or which is left whole
    (`whole_heads`). That stage is launched when all of the scan has begun, or, with
    `beside`, when the maps are done.

    Example:

    ```mlir
    %entry, %final = gdn.stage.segment_scan
        map(%map : tensor<16x4x128x128xf16>) decay(%decay : tensor<16x4xf32>)
        states(%b : tensor<16x4x128x128xf32>)
        first_segments(%first : tensor<3xi32>)
        -> tensor<16x4x128x128xf32>, tensor<2x4x128x128xf32>
    ```
  }];
  let arguments = !con((ins
    Arg<TensorRankOf<dataTypes, [4]>, "The matrices D [S, H, K, K].">:$map,
    Arg<Optional<TensorRankOf<[F32], [2, 3]>>, !strconcat(
      "The gate's sum over each segment in log2 units, [S, H] or [S, H, K]. ",
      "Absent where there is no gate.")>:$decay,
    Arg<TensorRankOf<[F32], [4]>,
      "What each segment adds to the state, [S, H, K, V] or [S, H, V, K].">:$states,
    GDN_InitialStateOf<TensorRankOf<parameterTypes, [4]>>:$initial_state,
    Arg<TensorRankOf<boundaryTypes, [1]>,
      "Where the segments of each sequence begin, [N + 1].">:$first_segments,
    GDN_BeforeOf<" Its last entry is written.">:$before,
    Arg<Optional<TensorRankOf<[I32], [2]>>, !strconcat(
      "The token at which each segment begins for a head, [S, H], from ",
      "gdn.stage.segment_starts.")>:$starts,
    Arg<Optional<TensorRankOf<boundaryTypes, [1]>>,
      "The segments' first tokens, [S + 1].">:$boundaries,
    Arg<Optional<TensorRankOf<[I32], [1]>>, !strconcat(
      "The last segment of each sequence that has tokens, [N]; absent, the last ",
      "one.")>:$last_segments), wholeHeadsOperand, stagePoolOperands,
    (ins Arg<UnitAttr, "From the last segment to the first, for gradients.">:$reverse,
    stateLayoutAttribute:$state_layout,
    Arg<OptionalAttr<GDN_StateLayoutAttr>, "The layout of `states` and `entry_states`; absent, `state_layout`.">:$segment_layout,
    besideAttribute:$beside));
  let assemblyFormat = !strconcat([{
    `map` `(` $map `:` type($map) `)` (`decay` `(` $decay^ `:` type($decay) `)`)?
    `states` `(` $states `:` type($states) `)`
    (`initial_state` `(` $initial_state^ `:` type($initial_state) `)`)?
    `first_segments` `(` $first_segments `:` type($first_segments) `)`
    (`before` `(` $before^ `:` type($before) `)`)?
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`boundaries` `(` $boundaries^ `:` type($boundaries) `)`)?
    (`last_segments` `(` $last_segments^ `:` type($last_segments) `)`)?
    (`whole_heads` `(` $whole_heads^ `:` type($whole_heads) `)`)?
  }], poolFormat, "attr-dict `->` type($results)");
}

#endif // GDN_DIALECT_GDN_IR_SEGMENTOPS_TD
