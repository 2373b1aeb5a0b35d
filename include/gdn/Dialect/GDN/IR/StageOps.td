//===- StageOps.td - Stage ops: one op, one kernel ---------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_STAGEOPS_TD
#define GDN_DIALECT_GDN_IR_STAGEOPS_TD

// Included by Ops.td, whose operand lists it shares.

/// A stage takes tensors, returns tensors and becomes exactly one tile program.
class GDN_StageOp<string name, list<Trait> traits = []>
    : GDN_Op<"stage." # name, [AttrSizedOperandSegments, Pure] # traits>;

class GDN_ForwardStageOp<string name, dag ownAttributes, dag ownOperands = (ins), string ownFormat = "">
    : GDN_StageOp<name, [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let arguments = !con(ruleOperands, ownOperands, ruleAttributes, ownAttributes);
  let assemblyFormat = !strconcat(ruleFormat, ownFormat, "attr-dict `->` type($results)");
}

def GDN_FusedStageOp : GDN_StageOp<"fused",
    [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let summary = "The whole chunked forward as one kernel";
  let description = [{
    Gate, scores, solve, state recurrence and read-out of
    `gdn.chunk_gated_delta_rule` in one kernel, `chunk_size` tokens a step.
    Results: `o`, the final state if there are two or four beside `step_states`,
    which is the last one if these are operands, and with `state_interval` the
    `writes` and `states` of `gdn.stage.replay`, whose segments have that many
    tokens.

    With `starts`, `before` and `closes` the sequences are segments. If the
    previous segment's state decays to nothing, a segment recomputes the previous
    segment's last tokens, the warm-up tokens, from a zero state and without
    output. The first segment of a sequence loads `sequence_state`. Other segments
    load `initial_state` after the scan, which signals completion by clearing the
    last entry of `before`: so this stage may overlap with the scan. The final
    state is that of the sequences that were cut, which `first_segments` counts.
    With `whole_heads` and `whole_begins` the segment that ends a sequence has all of its
    tokens for heads that keep a state, and the others have none.

    With `state_indices` states lie in a pool, as `gdn.chunk_gated_delta_rule` has
    it. Of segments the states do not, but the outputs of a sequence that has no
    row are zeros, too: then `state_indices` [sequences] are those of the
    sequences that were cut, and `num_states` is P.

    Example:

    ```mlir
    %o = gdn.stage.fused
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        gate(%g : tensor<1x256x4xf32>) {chunk_size = 32}
        -> tensor<1x256x4x128xbf16>
    ```
  }];
  let arguments = !con(ruleOperands, stagePoolOperands, stageIntervalOperands, startsOperand,
    (ins GDN_BeforeOf<"">:$before), closesOperand, wholeHeadsOperand, wholeBeginsOperand,
    sequenceStateOperand,
    (ins Arg<Optional<TensorRankOf<boundaryTypes, [1]>>,
      "Where the segments of each sequence begin, [N + 1]. Read for its size.">:$first_segments),
    (ins sequenceNumbersArgument:$sequence_numbers, Arg<Optional<Index>, !strconcat(
      "Rows of the pool, where the sequences here are segments, which know their sequences ",
      "by `sequence_numbers`: `initial_state` is no pool then.")>:$num_states), ruleAttributes,
    (ins chunkSizeAttribute:$chunk_size, stateIntervalAttribute:$state_interval,
      sequenceSegmentsAttribute:$sequence_segments,
      sequenceLayoutAttribute:$sequence_layout));
  let assemblyFormat = !strconcat(ruleFormat, poolFormat, intervalFormat, [{
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`before` `(` $before^ `:` type($before) `)`)?
    (`closes` `(` $closes^ `:` type($closes) `)`)?
    (`whole_heads` `(` $whole_heads^ `:` type($whole_heads) `)`)?
    (`whole_begins` `(` $whole_begins^ `:` type($whole_begins) `)`)?
    (`sequence_state` `(` $sequence_state^ `:` type($sequence_state) `)`)?
    (`first_segments` `(` $first_segments^ `:` type($first_segments) `)`)?
    (`sequence_numbers` `(` $sequence_numbers^ `:` type($sequence_numbers) `)`)?
    (`num_states` `(` $num_states^ `:` type($num_states) `)`)?
    attr-dict `->` type($results)
  }]);
}

def GDN_RecurrentStageOp : GDN_ForwardStageOp<"recurrent", (ins),
    !con(stagePoolOperands, stageStepOperands), !strconcat(poolFormat, stepFormat)> {
  let summary = "The token by token forward as one kernel";
  let description = [{
    `gdn.recurrent_gated_delta_rule` as one kernel. Results: `o`; the final
    state, or the pool of states, if there is one result more; `step_states`, if
    these are operands.

    Example:

    ```mlir
    %o = gdn.stage.recurrent
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        -> tensor<1x256x4x128xbf16>
    ```
  }];
}

def GDN_StatePassStageOp : GDN_StageOp<"state_pass",
    [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let summary = "The chunked forward without read-out";
  let description = [{
    Only the state recurrence: one result, the final state. `q` is taken for the
    sake of one operand list and is not read. With `starts` tokens of a sequence
    before its start are left out. With `before` and `closes`, too, the
    sequences are segments. The first segment of a sequence loads
    `sequence_state`, unless it forgets that. The state is made neither for
    segments that end a sequence, nor for segments that forget their history if
    the next one does too; for those it is zero. Nor is it made for heads that
    are left whole (`whole_heads`).

    Example:

    ```mlir
    %ht = gdn.stage.state_pass
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        {chunk_size = 32} -> tensor<1x4x128x128xf32>
    ```
  }];
  let arguments = !con(ruleOperands, startsOperand,
    (ins GDN_BeforeOf<"">:$before), closesOperand, wholeHeadsOperand, sequenceStateOperand,
    ruleAttributes,
    (ins chunkSizeAttribute:$chunk_size,
      sequenceLayoutAttribute:$sequence_layout, besideAttribute:$beside));
  let assemblyFormat = !strconcat(ruleFormat, [{
    (`starts` `(` $starts^ `:` type($starts) `)`)?
    (`before` `(` $before^ `:` type($before) `)`)?
    (`closes` `(` $closes^ `:` type($closes) `)`)?
    (`whole_heads` `(` $whole_heads^ `:` type($whole_heads) `)`)?
    (`sequence_state` `(` $sequence_state^ `:` type($sequence_state) `)`)?
    attr-dict `->` type($results)
  }]);
}

def GDN_GateBoundStageOp : GDN_StageOp<"gate_bound"> {
  let summary = "Whether the gates of a call break a bound";
  let description = [{
    Gates a channel keep `lower_bound` if the sizes of the log gates of 8 tokens,
    from a multiple of 8 in their sequence on, sum up to 8 times the bound's size
    at most, in every channel. Sizes, so that no gate above 0 hides another one.
    Gates that are no numbers break the bound, and so do raw ones of a head whose
    exp(A_log) is above 1024. Tokens of no sequence do not count.

    Result: `strong` [1, 1, 1], f32: 1 if the bound is broken, and else what
    `none` has, which are zeros. A work item that begins when another one has
    found that out leaves. `k` is taken for its sizes and is not read.

    Example:

    ```mlir
    %strong = gdn.stage.gate_bound
        k(%k : tensor<1x4096x2x128xbf16>) gate(%g : tensor<1x4096x4x128xf32>)
        none(%zeros : tensor<1x1x1xf32>) {lower_bound = -5.0} -> tensor<1x1x1xf32>
    ```
  }];
  let arguments = (ins GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k,
    Arg<TensorRankOf<parameterTypes, [4]>, "Gates a channel, [B, T, H, K].">:$gate,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens,
    GDN_ALogOf<TensorRankOf<parameterTypes, [1]>>:$a_log,
    GDN_DtBiasOf<TensorRankOf<parameterTypes, [1, 2]>>:$dt_bias,
    Arg<TensorRankOf<[F32], [3]>, "Zeros.">:$none,
    gateDomainAttribute:$gate_domain,
    Arg<F64Attr, "The bound of the mean of 8 log gates.">:$lower_bound);
  let assemblyFormat = [{
    `k` `(` $k `:` type($k) `)` `gate` `(` $gate `:` type($gate) `)`
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    (`a_log` `(` $a_log^ `:` type($a_log) `)`)?
    (`dt_bias` `(` $dt_bias^ `:` type($dt_bias) `)`)?
    `none` `(` $none `:` type($none) `)` attr-dict `->` type($results)
  }];
}

def GDN_PrepareStageOp : GDN_StageOp<"prepare"> {
  let summary = "What a chunk needs before it sees the state";
  let description = [{
    Per chunk of `chunk_size` tokens (the chunk grid of a sequence starts at its
    first token): the cumulated log2 gate and the solve of spec 3.3,

    ```
    (I + Kk Diag(beta)) Bm = Kk,   Kk = tril(K K^T, -1) with the chunk's decay
    ```

    Results: `bm` [B, T, H, C], row t of a chunk in row t of the array, without
    beta, as the backward needs it; and, where there is a gate, its sum `decay`
    since the start of the chunk, in log2 units, shaped as `gate`: f32, or f64
    beside f32 keys, where the rounding of large sums would show.

    Example:

    ```mlir
    %bm, %decay = gdn.stage.prepare
        k(%k : tensor<1x256x2x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        gate(%g : tensor<1x256x4xf32>) {chunk_size = 32}
        -> tensor<1x256x4x32xbf16>, tensor<1x256x4xf32>
    ```
  }];
  let arguments = (ins GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k, GDN_BetaOf<TensorRankOf<parameterTypes, [3]>>:$beta,
    GDN_GateOf<TensorRankOf<parameterTypes, [3, 4]>>:$gate,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens,
    GDN_ALogOf<TensorRankOf<parameterTypes, [1]>>:$a_log,
    GDN_DtBiasOf<TensorRankOf<parameterTypes, [1, 2]>>:$dt_bias,
    gateDomainAttribute:$gate_domain,
    lowerBoundAttribute:$lower_bound, l2normAttribute:$qk_l2norm,
    betaDomainAttribute:$beta_domain,
    chunkSizeAttribute:$chunk_size);
  let assemblyFormat = [{
    `k` `(` $k `:` type($k) `)` `beta` `(` $beta `:` type($beta) `)`
    (`gate` `(` $gate^ `:` type($gate) `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    (`a_log` `(` $a_log^ `:` type($a_log) `)`)?
    (`dt_bias` `(` $dt_bias^ `:` type($dt_bias) `)`)?
    attr-dict `->` type($results)
  }];
}

def GDN_RunStageOp : GDN_StageOp<"run"> {
  let summary = "The chunk recurrence with output, after prepare";
  let description = [{
    The state recurrence and read-out of spec 3.3 from `bm` and `decay` of
    `gdn.stage.prepare`. Results: `o`, and the final state, or the pool of states,
    if there are two.

    Example:

    ```mlir
    %o = gdn.stage.run
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        bm(%bm : tensor<1x256x4x32xbf16>) decay(%decay : tensor<1x256x4xf32>)
        {chunk_size = 32} -> tensor<1x256x4x128xbf16>
    ```
  }];
  let arguments = !con((ins GDN_QOf<TensorRankOf<dataTypes, [4]>>:$q, GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k,
    GDN_VOf<TensorRankOf<dataTypes, [4]>>:$v, GDN_BetaOf<TensorRankOf<parameterTypes, [3]>>:$beta,
    Arg<TensorRankOf<dataTypes, [4]>, "The solved chunks [B, T, H, C].">:$bm,
    Arg<Optional<TensorRankOf<[F32, F64], [3, 4]>>, !strconcat("The gate's sum since the start of the chunk ",
      "in log2 units. Absent where there is no gate.")>:$decay,
    GDN_InitialStateOf<TensorRankOf<parameterTypes, [4]>>:$initial_state,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens), stagePoolOperands,
    (ins scaleAttribute:$scale, l2normAttribute:$qk_l2norm,
    betaDomainAttribute:$beta_domain,
    stateLayoutAttribute:$state_layout,
    chunkSizeAttribute:$chunk_size));
  let assemblyFormat = !strconcat([{
    `q` `(` $q `:` type($q) `)` `k` `(` $k `:` type($k) `)`
    `v` `(` $v `:` type($v) `)` `beta` `(` $beta `:` type($beta) `)`
    `bm` `(` $bm `:` type($bm) `)` (`decay` `(` $decay^ `:` type($decay) `)`)?
    (`initial_state` `(` $initial_state^ `:` type($initial_state) `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
  }], poolFormat, "attr-dict `->` type($results)");
}

def GDN_BackwardStageOp : GDN_StageOp<"backward",
    [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let summary = "The chunked backward as one kernel, a value head at a time";
  let description = [{
    Spec 5.1 to 5.4. Results, in this order: dq and dk [B, T, H, K] of every
    *value* head, before the l2 norm's chain rule and the sum over a group; dv;
    dbeta with respect to beta's value; where there is a gate dg with respect to
    the log gate, or to the gate itself where that is linear; where there is an
    initial state dh0. All are f32 but dv and dh0, which have their operand's
    type. The chain rules of spec 5.5 stand around this op.

    Example:

    ```mlir
    %dq, %dk, %dv, %dbeta = gdn.stage.backward
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        d_o(%do : tensor<1x256x4x128xbf16>) {chunk_size = 32}
        -> tensor<1x256x4x128xf32>, tensor<1x256x4x128xf32>,
           tensor<1x256x4x128xbf16>, tensor<1x256x4xf32>
    ```
  }];
  let arguments = !con(ruleOperands,
    (ins GDN_DOOf<TensorRankOf<dataTypes, [4]>>:$d_o,
      GDN_DFinalStateOf<TensorRankOf<parameterTypes, [4]>>:$d_final_state),
    ruleAttributes, (ins chunkSizeAttribute:$chunk_size));
  let assemblyFormat = !strconcat(ruleFormat, [{
    `d_o` `(` $d_o `:` type($d_o) `)`
    (`d_final_state` `(` $d_final_state^ `:` type($d_final_state) `)`)?
    attr-dict `->` type($results)
  }]);
}

def GDN_LinearAttentionStageOp : GDN_StageOp<"linear_attention"> {
  let summary = "Plain causal linear attention as one kernel";
  let description = [{
    S_t = S_{t-1} + k_t v_t^T, o_t = scale S_t^T q_t: no gate, no delta rule.
    Not part of any plan; it keeps the levels below honest (they must not know
    the delta rule by name). Results: `o`, and the final state if there are two.

    Example:

    ```mlir
    %o = gdn.stage.linear_attention
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) {chunk_size = 32}
        -> tensor<1x256x4x128xbf16>
    ```
  }];
  let arguments = (ins GDN_QOf<TensorRankOf<dataTypes, [4]>>:$q, GDN_KOf<TensorRankOf<dataTypes, [4]>>:$k,
    GDN_VOf<TensorRankOf<dataTypes, [4]>>:$v, GDN_InitialStateOf<TensorRankOf<parameterTypes, [4]>>:$initial_state,
    GDN_CuSeqlensOf<TensorRankOf<boundaryTypes, [1]>>:$cu_seqlens,
    scaleAttribute:$scale, l2normAttribute:$qk_l2norm,
    stateLayoutAttribute:$state_layout,
    chunkSizeAttribute:$chunk_size);
  let assemblyFormat = [{
    `q` `(` $q `:` type($q) `)` `k` `(` $k `:` type($k) `)` `v` `(` $v `:` type($v) `)`
    (`initial_state` `(` $initial_state^ `:` type($initial_state) `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
    attr-dict `->` type($results)
  }];
}

#endif // GDN_DIALECT_GDN_IR_STAGEOPS_TD
