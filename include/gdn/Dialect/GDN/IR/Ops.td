//===- Ops.td - The layer ops of the gdn dialect -----------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_OPS_TD
#define GDN_DIALECT_GDN_IR_OPS_TD

include "gdn/Dialect/GDN/IR/Attributes.td"
include "gdn/Dialect/GDN/IR/Interfaces.td"
include "gdn/Dialect/KnownAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

//===----------------------------------------------------------------------===//
// Types and shared operands
//===----------------------------------------------------------------------===//

// The predicates ask the one table of what is supported (Support.h).
defvar dataTypes = [Type<CPred<"::mlir::gdn::support::isDataType($_self)">,
  "bf16, f16 or f32">];
defvar parameterTypes = [Type<CPred<"::mlir::gdn::support::isParameterType($_self)">,
  "f32, bf16 or f16">];
defvar boundaryTypes = [Type<CPred<"::mlir::gdn::support::isBoundaryType($_self)">,
  "i32 or i64">];
defvar flagTypes = [I8];

/// A whole array: a tensor, or a memref in the buffer form of an op.
class GDN_Array<list<Type> elements, list<int> ranks>
    : AnyTypeOf<[TensorRankOf<elements, ranks>, MemRefRankOf<elements, ranks>]>;
def GDN_Data : GDN_Array<dataTypes, [4]>;
def GDN_Beta : GDN_Array<parameterTypes, [3]>;
def GDN_Gate : GDN_Array<parameterTypes, [3, 4]>;
def GDN_State : GDN_Array<parameterTypes, [4]>;
def GDN_Boundaries : GDN_Array<boundaryTypes, [1]>;
def GDN_StateIndices : GDN_Array<boundaryTypes, [1]>;
def GDN_Flags : GDN_Array<flagTypes, [1]>;
def GDN_StepIndices : GDN_Array<boundaryTypes, [2]>;
def GDN_GateParameter : GDN_Array<parameterTypes, [1, 2]>;

// What operands and attributes are, in a sentence each, whatever holds them.
class GDN_QOf<Type type> : Arg<type, "Queries [B, T, Hq, K].">;
class GDN_KOf<Type type> : Arg<type, "Keys [B, T, Hq, K].">;
class GDN_VOf<Type type> : Arg<type,
  "Values [B, T, H, V]. Value head h reads q/k head h / (H / Hq).">;
class GDN_BetaOf<Type type> : Arg<type, "Write strengths [B, T, H].">;
class GDN_GateOf<Type type> : Arg<Optional<type>, !strconcat(
  "Decay of the state. Its rank is the variant: [B, T, H] is Gated DeltaNet, ",
  "[B, T, H, K] is Kimi Delta Attention, absent is DeltaNet.")>;
class GDN_InitialStateOf<Type type> : Arg<Optional<type>, !strconcat(
  "State before the first token of each sequence, [N, H, K, V] or [N, H, V, K]. ",
  "Absent is zero.")>;
class GDN_CuSeqlensOf<Type type> : Arg<Optional<type>, !strconcat(
  "Boundaries [N + 1] of packed sequences, ascending from 0 to T; then B = 1. ",
  "Absent, each row of the batch is a sequence.")>;
class GDN_ALogOf<Type type> : Arg<Optional<type>,
  "Parameter A_log [H] of a raw gate.">;
class GDN_DtBiasOf<Type type> : Arg<Optional<type>,
  "Parameter dt_bias of a raw gate, [H] or [H, K] as the gate is.">;
class GDN_DOOf<Type type> : Arg<type, "Gradient [B, T, H, V] of o.">;
class GDN_DFinalStateOf<Type type> : Arg<Optional<type>,
  "Gradient of the final state, shaped as a state. Absent is zero.">;
class GDN_WritesOf<Type type> : Arg<Optional<type>, !strconcat(
  "What each token added to the state, [B, T, H, V], from a forward with ",
  "`state_interval`. v is not read then and may be this array.")>;
class GDN_SavedStatesOf<Type type> : Arg<Optional<type>,
  "States [S, H, V, K] from the same forward.">;
defvar outsOperands = (ins Arg<Variadic<AnyMemRef>,
  "What the buffer form writes, an array for each result.">:$outs);

defvar scaleAttribute = Arg<OptionalAttr<F64Attr>,
  "Factor of the read-out. Absent is K^(-1/2).">;
defvar gateDomainAttribute = Arg<
  DefaultValuedAttr<GDN_GateDomainAttr, "::mlir::gdn::GateDomain::Log">,
  "How `gate` is to be read: `log` (the default), `linear`, `softplus` or `bounded`.">;
defvar lowerBoundAttribute = Arg<OptionalAttr<F64Attr>,
  !strconcat("The bound of a `bounded` gate; of others a promise, which lets faster kernels serve them: in a ",
  "sequence, the gates of 8 tokens from each multiple of 8 on sum up to 8 times that at least.")>;
defvar l2normAttribute = Arg<UnitAttr, "q and k are l2-normalised first.">;
defvar betaDomainAttribute = Arg<
  DefaultValuedAttr<GDN_BetaDomainAttr, "::mlir::gdn::BetaDomain::Value">,
  "How `beta` is to be read: `value` (the default), `logit` or `doubled_logit`.">;
defvar stateLayoutAttribute = Arg<
  DefaultValuedAttr<GDN_StateLayoutAttr, "::mlir::gdn::StateLayout::KV">,
  "Order of the channels of states: `kv` (the default) or `vk`.">;
defvar chunkSizeAttribute = Arg<I64Attr, "Tokens of a chunk.">;
defvar chunkSizeWish = Arg<OptionalAttr<I64Attr>,
  "Tokens of a chunk, a wish to the compiler. Results do not depend on it.">;

defvar stateIntervalAttribute = Arg<OptionalAttr<I64Attr>,
  "Tokens between the states that are saved for a backward, a multiple of 64. Absent, nothing is saved.">;

defvar sequenceSegmentsAttribute = Arg<OptionalAttr<I64Attr>, !strconcat(
  "Segments of each sequence, where those are the sequences here. States of a ",
  "forward that saves are numbered by the sequences that were cut.")>;

/// The same where the segments of sequences are not equally many.
defvar sequenceNumbersArgument = Arg<Optional<TensorRankOf<[I32], [1]>>, !strconcat(
  "The number of the sequence that each segment is a part of, [N], where the ",
  "sequences here are segments. Saved states are numbered by these sequences.")>;

/// What every delta rule takes, in this order.
defvar ruleOperands = (ins
  GDN_QOf<GDN_Data>:$q, GDN_KOf<GDN_Data>:$k, GDN_VOf<GDN_Data>:$v,
  GDN_BetaOf<GDN_Beta>:$beta, GDN_GateOf<GDN_Gate>:$gate,
  GDN_InitialStateOf<GDN_State>:$initial_state,
  GDN_CuSeqlensOf<GDN_Boundaries>:$cu_seqlens,
  GDN_ALogOf<GDN_GateParameter>:$a_log, GDN_DtBiasOf<GDN_GateParameter>:$dt_bias);
defvar ruleAttributes = (ins
  scaleAttribute:$scale, gateDomainAttribute:$gate_domain,
  lowerBoundAttribute:$lower_bound, l2normAttribute:$qk_l2norm,
  betaDomainAttribute:$beta_domain, stateLayoutAttribute:$state_layout);

include "gdn/Dialect/GDN/IR/PoolOperands.td"

defvar besideAttribute = Arg<UnitAttr,
  "The next stage does not depend on this one, so the two may overlap.">;

/// Of stages that may skip what a segment forgets.
defvar startsOperand = (ins Arg<Optional<TensorRankOf<[I32], [2]>>, !strconcat(
  "The token at which each sequence begins for a head, [N, H], from ",
  "gdn.stage.segment_starts; absent, its first one.")>:$starts);

/// Of stages of a forward whose segments run what is before them themselves.
class GDN_BeforeOf<string more> : Arg<Optional<TensorRankOf<[I32], [1]>>, !strconcat(
  "Where the segment before each one begins, [S + 1], from ",
  "gdn.stage.segment_boundaries.", more)>;

/// Of the same stages, and of what comes between: which segments end sequences.
defvar closesOperand = (ins Arg<Optional<TensorRankOf<[I32], [1]>>, !strconcat(
  "The sequence that ends with a segment, or -1, [S], from ",
  "gdn.stage.segment_boundaries.")>:$closes);
/// Of the same stages, with a gate a channel: which heads are left whole.
defvar wholeHeadsOperand = (ins Arg<Optional<TensorRankOf<[I32], [1]>>, !strconcat(
  "Not 0 for heads whose sequences are left whole, since they keep a state, [H], ",
  "from gdn.stage.segment_starts.")>:$whole_heads);
defvar wholeBeginsOperand = (ins Arg<Optional<TensorRankOf<[I32], [1]>>, !strconcat(
  "Where the sequence begins that each segment ends, -1 of other segments, [S], from ",
  "gdn.stage.segment_boundaries; 0 if no head is left whole.")>:$whole_begins);
defvar sequenceStateOperand = (ins Arg<Optional<TensorRankOf<parameterTypes, [4]>>, !strconcat(
  "State before the first token of each sequence that was cut, [N, H, K, V] or ",
  "[N, H, V, K]. Absent is zero.")>:$sequence_state);
defvar sequenceLayoutAttribute = Arg<OptionalAttr<GDN_StateLayoutAttr>,
  "The layout of the states of sequences that were cut; absent, `state_layout`.">;

defvar outsDescription = [{
    The tensor form returns its results. The buffer form, which bufferization
    makes, takes memrefs, writes the results to `outs` and returns nothing.
}];
defvar ruleFormat = [{
  `q` `(` $q `:` type($q) `)` `k` `(` $k `:` type($k) `)`
  `v` `(` $v `:` type($v) `)` `beta` `(` $beta `:` type($beta) `)`
  (`gate` `(` $gate^ `:` type($gate) `)`)?
  (`initial_state` `(` $initial_state^ `:` type($initial_state) `)`)?
  (`cu_seqlens` `(` $cu_seqlens^ `:` type($cu_seqlens) `)`)?
  (`a_log` `(` $a_log^ `:` type($a_log) `)`)?
  (`dt_bias` `(` $dt_bias^ `:` type($dt_bias) `)`)?
}];
// Results may be absent, so an operand out of order would end the op.
defvar resultFormat = [{
  (`outs` `(` $outs^ `:` type($outs) `)`)? `` custom<NoMoreOperands>(ref($q)) attr-dict (`->` type($results)^)?
}];

class GDN_Op<string mnemonic, list<Trait> traits = []>
    : Op<GDN_Dialect, mnemonic, !listconcat(traits, [OnlyKnownAttributes])> {
  let results = (outs Res<Variadic<AnyRankedTensor>,
    "The arrays that the description names, in its order.">:$results);
  // One verifier reads all ops through one form of their operands.
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return ::mlir::gdn::detail::verifyRule(*this);
    }
  }];
}

class GDN_RuleOp<string mnemonic, list<Trait> traits = []>
    : GDN_Op<mnemonic, [AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<GDN_DeltaRuleOpInterface>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<InferTypeOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>] # traits> {
  code forwardDeclaration = "";
  let extraClassDeclaration = !strconcat([{
    /// Whether results of these types may stand for each other: shapes agree
    /// where both are static.
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs);
  }], forwardDeclaration);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

defvar forwardResults = [{
    Results: `o` [B, T, H, V] and, if asked for, the final state, of the element
    type of `initial_state`, or f32.

    With `state_indices` [N], i32 or i64, `initial_state` is a pool [P, H, K, V] or
    [P, H, V, K]: sequence n begins with row state_indices[n] of it, and the
    second result is the pool with the final states in the same rows. All other
    rows are as they were. If nothing else reads `initial_state`, and the caller
    lets it be written (`bufferization.writable`), the pool is updated in place.
    An index below `first_state`, or of P or more, names no row: no state is
    read or written, and the outputs of this sequence's tokens are zeros. The
    final state of a row that several sequences name is any mixture of theirs.
    It needs an `initial_state`, and nothing may be saved for a backward.
    With `has_initial_state` [N], i8, a sequence whose entry is 0 begins with
    zeros, whatever its row holds, and ends in that row.

}];

class GDN_ForwardOp<string mnemonic, dag ownAttributes, dag ownOperands = (ins), string ownFormat = "">
    : GDN_RuleOp<mnemonic, [DeclareOpInterfaceMethods<TilingInterface,
        ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
         "getResultTilePosition"]>]> {
  let arguments = !con(ruleOperands, layerPoolOperands, ownOperands, outsOperands, ruleAttributes,
    (ins Arg<UnitAttr, "The state after the last token is the second result.">:$output_final_state),
    ownAttributes);
  let assemblyFormat = !strconcat(ruleFormat, poolFormat, ownFormat, resultFormat);
  let forwardDeclaration = [{
    /// Outputs [B, T, H, V]: the first result, null in the buffer form.
    ::mlir::Value getO() { return getResults().empty() ? nullptr : getResults()[0]; }
    /// State after the last token, null where it was not asked for.
    ::mlir::Value getFinalState() {
      return getOutputFinalState() && !getResults().empty() ? getResults()[1] : nullptr;
    }
  }];
}

def GDN_ChunkGatedDeltaRuleOp : GDN_ForwardOp<"chunk_gated_delta_rule",
    (ins chunkSizeWish:$chunk_size, stateIntervalAttribute:$state_interval), layerIntervalOperands, intervalFormat> {
  let summary = "Gated delta rule over whole sequences, computed in chunks";
  let description = !strconcat([{
    Per value head, with the state S in R^{K x V} that starts at `initial_state`
    (or zero) at the first token of each sequence (spec 1):

    ```
    Sbar_t = Diag(exp g_t) S_{t-1}
    u_t    = beta_t (v_t - Sbar_t^T k_t)
    S_t    = Sbar_t + k_t u_t^T
    o_t    = scale S_t^T q_t
    ```
  }], forwardResults, [{
    With `state_interval` = L there are two more for the backward, in the type of
    v, so that it need not compute them again: `writes` [B, T, H, V], u_t, and
    `states` [S, H, V, K], the state before every L-th token of a sequence.
    Those of sequence n, whose first token is b among the tokens of all batch
    rows, begin at floor(b / L) + n; S = floor(B T / L) + N. A token and head
    has 2 V and 2 K V / L bytes of them in 16 bits; the backward needs no v
    then. Beta is raised to 2^-40 (f16: 2^-12), as in `gdn.stage.replay`.

    With `step_intervals` [N] the states of sequence n after multiples of
    step_intervals[n] tokens are kept, too, that after the last token among
    them. An interval is a multiple of 64, or with a gate a channel of 16. Any
    other one, 0 and less, keeps nothing, nor does a sequence without a row of
    the pool. With `step_starts` [N + 1] their rows are step_starts[n],
    step_starts[n] + 1, ... before step_starts[n + 1] of `step_states` [R, ...],
    which is then the last result with these rows. It has its own element type.
    With `step_indices` [N, steps] their rows are step_indices[n, 0],
    step_indices[n, 1], ... of `step_states`, or without it of the pool; an index
    below `first_state`, and of R and more, names no row. With both,
    `step_indices` count.

  }], outsDescription, [{
    Example:

    ```mlir
    %o, %ht = gdn.chunk_gated_delta_rule
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        gate(%g : tensor<1x256x4xf32>) {output_final_state}
        -> tensor<1x256x4x128xbf16>, tensor<1x4x128x128xf32>
    ```
  }]);
}

def GDN_RecurrentGatedDeltaRuleOp : GDN_ForwardOp<"recurrent_gated_delta_rule", (ins), layerStepOperands, stepFormat> {
  let summary = "Gated delta rule token by token, the op of decoding";
  let description = !strconcat([{
    The same function of the same operands as `gdn.chunk_gated_delta_rule`,
    computed token by token in fp32 (spec 1). T = 1 is the common case.
  }], forwardResults, [{
    With `step_indices` [N, steps] a call verifies speculated tokens. The state
    after token t of sequence n is kept in row step_indices[n, t], of
    `step_states` [R, ...] if that is there, which is then the last result with
    these rows, else of the pool, whose row `state_indices` names stays as it
    was. An index that names no row keeps nothing, and so does a token of `steps`
    and more. The state is rounded to the type that it is kept in before the next
    token. With `num_accepted` [N] sequence n begins with row
    step_indices[n, a - 1] of `initial_state` instead, where a is its entry,
    taken for 1 below that and for `steps` above that. With `parents` [N, steps]
    token t begins with the state that was kept after token parents[n, t], if
    that is a token before t - 1 whose state was kept; other tokens follow the
    one before.

  }], outsDescription, [{
    Example:

    ```mlir
    %o, %ht = gdn.recurrent_gated_delta_rule
        q(%q : tensor<8x1x2x128xbf16>) k(%k : tensor<8x1x2x128xbf16>)
        v(%v : tensor<8x1x4x128xbf16>) beta(%beta : tensor<8x1x4xf32>)
        gate(%g : tensor<8x1x4xf32>)
        initial_state(%h : tensor<8x4x128x128xf32>) {output_final_state}
        -> tensor<8x1x4x128xbf16>, tensor<8x4x128x128xf32>
    ```

    The same with states in a pool:

    ```mlir
    %o, %updated = gdn.recurrent_gated_delta_rule
        q(%q : tensor<8x1x2x128xbf16>) k(%k : tensor<8x1x2x128xbf16>)
        v(%v : tensor<8x1x4x128xbf16>) beta(%beta : tensor<8x1x4xf32>)
        gate(%g : tensor<8x1x4xf32>)
        initial_state(%pool : tensor<?x4x128x128xf32>)
        state_indices(%rows : tensor<8xi32>) first_state(%one : index)
        {output_final_state}
        -> tensor<8x1x4x128xbf16>, tensor<?x4x128x128xf32>
    ```

    The same of 4 speculated tokens each:

    ```mlir
    %o, %updated = gdn.recurrent_gated_delta_rule
        q(%q : tensor<8x4x2x128xbf16>) k(%k : tensor<8x4x2x128xbf16>)
        v(%v : tensor<8x4x4x128xbf16>) beta(%beta : tensor<8x4x4xf32>)
        gate(%g : tensor<8x4x4xf32>)
        initial_state(%pool : tensor<?x4x128x128xf32>)
        state_indices(%rows : tensor<8xi32>) first_state(%one : index)
        step_indices(%slots : tensor<8x4xi32>) num_accepted(%n : tensor<8xi32>)
        {output_final_state}
        -> tensor<8x4x4x128xbf16>, tensor<?x4x128x128xf32>
    ```
  }]);
}

def GDN_ChunkGatedDeltaRuleBwdOp : GDN_RuleOp<"chunk_gated_delta_rule_bwd"> {
  let summary = "Gradients of gdn.chunk_gated_delta_rule";
  let description = !strconcat([{
    Returns the gradients with respect to the operands of the forward op,
    through all its input transforms (spec 5): dq, dk, dv, dbeta, and, each where
    the forward operand is present and in this order, dgate, dinitial_state,
    da_log and ddt_bias. Each has the shape and the element type of its operand.
    The gradient of a linear gate holds at gates of 0.

    With `writes` and `states` of a forward with the same `state_interval` the
    state recurrence is not computed again.
  }], outsDescription, [{
    Example:

    ```mlir
    %dq, %dk, %dv, %dbeta, %dg = gdn.chunk_gated_delta_rule_bwd
        q(%q : tensor<1x256x2x128xbf16>) k(%k : tensor<1x256x2x128xbf16>)
        v(%v : tensor<1x256x4x128xbf16>) beta(%beta : tensor<1x256x4xf32>)
        gate(%g : tensor<1x256x4xf32>)
        d_o(%do : tensor<1x256x4x128xbf16>)
        -> tensor<1x256x2x128xbf16>, tensor<1x256x2x128xbf16>,
           tensor<1x256x4x128xbf16>, tensor<1x256x4xf32>, tensor<1x256x4xf32>
    ```
  }]);
  let arguments = !con(ruleOperands,
    (ins GDN_DOOf<GDN_Data>:$d_o, GDN_DFinalStateOf<GDN_State>:$d_final_state,
      GDN_WritesOf<GDN_Data>:$writes, GDN_SavedStatesOf<GDN_Data>:$states),
    outsOperands, ruleAttributes,
    (ins chunkSizeWish:$chunk_size, stateIntervalAttribute:$state_interval));
  let assemblyFormat = !strconcat(ruleFormat, [{
    `` custom<NoPool>(ref($q)) `d_o` `(` $d_o `:` type($d_o) `)`
    (`d_final_state` `(` $d_final_state^ `:` type($d_final_state) `)`)?
    (`writes` `(` $writes^ `:` type($writes) `)`)?
    (`states` `(` $states^ `:` type($states) `)`)?
  }], resultFormat);
}

include "gdn/Dialect/GDN/IR/StageOps.td"
include "gdn/Dialect/GDN/IR/SegmentOps.td"
include "gdn/Dialect/GDN/IR/GradientOps.td"
include "gdn/Dialect/GDN/IR/ConversionOps.td"
include "gdn/Dialect/GDN/IR/EntryOps.td"

#endif // GDN_DIALECT_GDN_IR_OPS_TD
