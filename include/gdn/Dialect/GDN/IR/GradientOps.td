//===- GradientOps.td - Stage ops of a backward in three kernels -*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Dialects/Stages.md explains how they fit together.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GRADIENTOPS_TD
#define GDN_DIALECT_GDN_IR_GRADIENTOPS_TD

// Included by Ops.td, whose operand lists it shares.

defvar keptSegmentAttribute = Arg<I64Attr,
  "Tokens between the states that are kept, a multiple of `chunk_size`.">;

def GDN_ReplayStageOp : GDN_ForwardStageOp<"replay",
    (ins chunkSizeAttribute:$chunk_size, keptSegmentAttribute:$segment_length,
      besideAttribute:$beside)> {
  let summary = "The forward once more, for what its backward reads";
  let description = [{
    The state recurrence of the forward (spec 3.3). Results: `writes`
    [B, T, H, V], what each token adds to the state, beta e of spec 3.3, and
    `states` [S, H, V, K], the state before every segment of `segment_length`
    tokens. The segments of sequence n, counted from its first token b (among
    the tokens of all batch rows), begin at floor(b / segment_length) + n;
    S = floor(B T / segment_length) + N. `q` is taken for the sake of one
    operand list and is not read.

    Beta is raised to 2^-40 (f16: 2^-12), so that the gradient of a beta of zero
    can be had from what the token writes.

    Example:

    ```mlir
    %writes, %states = gdn.stage.replay
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        {chunk_size = 32, segment_length = 64}
        -> tensor<1x256x4x128xbf16>, tensor<5x4x128x128xbf16>
    ```
  }];
}

class GDN_BackwardPartOp<string name, dag ownOperands, string ownFormat,
    dag ownAttributes = (ins)>
    : GDN_StageOp<name, [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let arguments = !con(ruleOperands, (ins GDN_DOOf<TensorRankOf<dataTypes, [4]>>:$d_o),
    ownOperands, ruleAttributes,
    (ins chunkSizeAttribute:$chunk_size, keptSegmentAttribute:$segment_length),
    ownAttributes);
  let assemblyFormat = !strconcat(ruleFormat,
    "`d_o` `(` $d_o `:` type($d_o) `)`", ownFormat,
    "attr-dict `->` type($results)");
}

def GDN_ExpandStageOp : GDN_StageOp<"expand",
    [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let summary = "The states between those that a forward saved";
  let description = [{
    The state before every segment of `segment_length` tokens, from that before
    every `state_interval` tokens and from what tokens write: S' = decay S +
    k^T r (spec 3.3), which takes no solve. Intervals do not depend on each
    other. `v` holds the `writes` of a forward that saves. The result is that of
    `gdn.stage.replay`. `q`, `beta` and `initial_state` are not read.

    Example:

    ```mlir
    %all = gdn.stage.expand
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%r : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        states(%s : tensor<2x4x128x128xbf16>)
        {chunk_size = 64, segment_length = 64, state_interval = 256}
        -> tensor<5x4x128x128xbf16>
    ```
  }];
  let arguments = !con(ruleOperands,
    (ins Arg<TensorRankOf<dataTypes, [4]>, "`states` of a forward that saves.">:$states),
    ruleAttributes,
    (ins chunkSizeAttribute:$chunk_size, keptSegmentAttribute:$segment_length,
      Arg<I64Attr, "Tokens between `states`, a multiple of `segment_length`.">:$state_interval,
      besideAttribute:$beside));
  let assemblyFormat = !strconcat(ruleFormat,
    "`states` `(` $states `:` type($states) `)` attr-dict `->` type($results)");
}

def GDN_AdjointStageOp : GDN_BackwardPartOp<"adjoint",
    (ins GDN_DFinalStateOf<TensorRankOf<parameterTypes, [4]>>:$d_final_state),
    "(`d_final_state` `(` $d_final_state^ `:` type($d_final_state) `)`)?",
    (ins besideAttribute:$beside, Arg<OptionalAttr<I64Attr>, !strconcat(
      "V tiles that report how far they are, to gradients that run at the same ",
      "time. Absent, nothing is reported.")>:$reporting_tiles)> {
  let summary = "The recurrence of the state's gradient, from the last chunk to the first";
  let description = [{
    The time-reversed twin of the forward (spec 5.7 b, in the form for gates of
    any strength). Results: `dv`; `d_states` [S, H, V, K], the gradient of the
    state behind every segment of `segment_length` tokens, segments numbered as
    in `gdn.stage.replay`; if there is one more, the gradient of the initial
    state; and with `reporting_tiles` = Tv at last `progress` [N, H, Tv], i32: how
    many tokens, counted from a sequence's end, each V tile is done with.
    `v` and `initial_state` are not read. In 16 bits `d_states` are
    divided by the op's scale over its power of two, sqrt(2) for K = 128.

    Example:

    ```mlir
    %dv, %d_states = gdn.stage.adjoint
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        d_o(%do : tensor<1x256x4x128xbf16>) {chunk_size = 32, segment_length = 64}
        -> tensor<1x256x4x128xbf16>, tensor<5x4x128x128xbf16>
    ```
  }];
}

def GDN_AdjointPassStageOp : GDN_StageOp<"adjoint_pass",
    [DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>]> {
  let summary = "The recurrence of the state's gradient, from zero, for the gradient of the initial state";
  let description = [{
    `gdn.stage.adjoint` without what it stores: one result, the gradient of the
    initial state, where that of the final state is zero. `v` and
    `initial_state` are not read. With `ends` tokens of a sequence from its end
    on are left out.

    Example:

    ```mlir
    %dh0 = gdn.stage.adjoint_pass
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        d_o(%do : tensor<1x256x4x128xbf16>) {chunk_size = 32}
        -> tensor<1x4x128x128xf32>
    ```
  }];
  let arguments = !con(ruleOperands, (ins GDN_DOOf<TensorRankOf<dataTypes, [4]>>:$d_o,
      Arg<Optional<TensorRankOf<[I32], [2]>>, !strconcat(
        "The token before which each sequence ends for a head, [N, H], from ",
        "gdn.stage.segment_starts with `reverse`; absent, behind its last one.")>:$ends),
    ruleAttributes,
    (ins chunkSizeAttribute:$chunk_size, besideAttribute:$beside));
  let assemblyFormat = !strconcat(ruleFormat, [{
    `d_o` `(` $d_o `:` type($d_o) `)` (`ends` `(` $ends^ `:` type($ends) `)`)?
    attr-dict `->` type($results)
  }]);
}

def GDN_GradientsStageOp : GDN_BackwardPartOp<"gradients",
    (ins Arg<TensorRankOf<dataTypes, [4]>, "`writes` of `gdn.stage.replay`.">:$writes,
      Arg<TensorRankOf<dataTypes, [4]>, "Gradient [B, T, H, V] of v.">:$dv,
      Arg<TensorRankOf<dataTypes, [4]>, "`states` of `gdn.stage.replay`.">:$states,
      Arg<TensorRankOf<dataTypes, [4]>, "`d_states` of `gdn.stage.adjoint`.">:$d_states,
      Arg<Optional<TensorRankOf<[I32], [3]>>, "`progress` of `gdn.stage.adjoint`.">:$progress,
      sequenceNumbersArgument:$sequence_numbers,
      Arg<Optional<TensorRankOf<[F32], [3]>>, !strconcat(
        "The reciprocal lengths [B, T, Hq] that rows of q had before their norm. ",
        "With these dq is the gradient of the rows in front of it.")>:$q_rstd,
      Arg<Optional<TensorRankOf<[F32], [3]>>, "The same of k and dk.">:$k_rstd),
    [{`writes` `(` $writes `:` type($writes) `)` `dv` `(` $dv `:` type($dv) `)`
      `states` `(` $states `:` type($states) `)` `d_states` `(` $d_states `:` type($d_states) `)`
      (`progress` `(` $progress^ `:` type($progress) `)`)?
      (`sequence_numbers` `(` $sequence_numbers^ `:` type($sequence_numbers) `)`)?
      (`q_rstd` `(` $q_rstd^ `:` type($q_rstd) `)`)? (`k_rstd` `(` $k_rstd^ `:` type($k_rstd) `)`)?}],
    (ins sequenceSegmentsAttribute:$sequence_segments,
      Arg<OptionalAttr<I64Attr>, !strconcat(
      "Tokens between the states of `states`, a multiple of `segment_length`. ",
      "Absent, those between the gradients.")>:$state_interval,
      Arg<UnitAttr, "Each query/key head has one value head: H = Hq.">:$single_heads)> {
  let summary = "Gradients of a segment from the states at its ends";
  let description = [{
    The gradients of causal linear attention (spec 5.7 c, in the form for gates
    of any strength): nothing is solved, and segments do not depend on each
    other. A chunk is a segment. Results: dq and dk [B, T, Hq, K], summed over
    the value heads of a group, each of any type; dbeta with respect to beta's
    value and, where there is a gate, dg with respect to the log gate, or to the
    gate itself where that is linear, in f32. `v` and `initial_state` are not
    read. One more result, f32 [B, T, H, K], is memory in which dq and dk are
    summed before they are rounded; nobody reads that result. Where H and Hq are
    open, `single_heads` says that they are equal: then nothing is summed. With
    `sequence_segments` or `sequence_numbers` the states are those of a forward
    that saves, and the gradients of states those of segments.

    With `state_interval` = L there are fewer states than gradients of states:
    those before every L-th token of a sequence. The states between them are made
    again from the writes, in f32.

    With `progress` it may run at the same time as the adjoint: it takes chunks
    from the end of sequences, and waits for each block of them.

    Example:

    ```mlir
    %dq, %dk, %dbeta = gdn.stage.gradients
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        d_o(%do : tensor<1x256x4x128xbf16>) writes(%r : tensor<1x256x4x128xbf16>)
        dv(%dv : tensor<1x256x4x128xbf16>) states(%s : tensor<5x4x128x128xbf16>)
        d_states(%ds : tensor<5x4x128x128xbf16>)
        {chunk_size = 64, segment_length = 64}
        -> tensor<1x256x2x128xbf16>, tensor<1x256x2x128xbf16>, tensor<1x256x4xf32>
    ```
  }];
}

#endif // GDN_DIALECT_GDN_IR_GRADIENTOPS_TD
