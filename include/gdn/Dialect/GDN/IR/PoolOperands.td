//===- PoolOperands.td - States in a pool, and after tokens -*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Glossary.md explains the terms.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_POOLOPERANDS_TD
#define GDN_DIALECT_GDN_IR_POOLOPERANDS_TD

// Included by Ops.td, whose types it has.

class GDN_StateIndicesOf<Type type> : Arg<Optional<type>, !strconcat(
  "The row of the pool `initial_state` that has the state of each sequence, [N]. ",
  "Absent, that of sequence n is row n.")>;
class GDN_HasInitialStateOf<Type type> : Arg<Optional<type>, !strconcat(
  "Whether each sequence begins with its row, [N]: with 0 it begins with zeros. ",
  "Absent, all of them do.")>;
class GDN_StepStatesOf<Type type> : Arg<Optional<type>, !strconcat(
  "Where the states after tokens are kept, [R, H, K, V] or [R, H, V, K]. ",
  "Absent, with step_indices, in the pool.")>;
class GDN_StepIndicesOf<Type type> : Arg<Optional<type>, !strconcat(
  "The rows that keep the states of a sequence, [N, steps]: one after each token, ",
  "or after each step_intervals of them.")>;
class GDN_NumAcceptedOf<Type type> : Arg<Optional<type>, !strconcat(
  "The tokens of its last call that each sequence has accepted, [N]: it begins ",
  "with the row of the last one of these.")>;
class GDN_ParentsOf<Type type> : Arg<Optional<type>,
  "The token of its sequence that each one follows, [N, steps].">;
class GDN_StepStartsOf<Type type> : Arg<Optional<type>, !strconcat(
  "The rows of step_states that each sequence has, from entry n to entry n + 1, ",
  "[N + 1].")>;
class GDN_StepIntervalsOf<Type type> : Arg<Optional<type>, !strconcat(
  "Tokens between the states of a sequence that are kept, [N]; 0 and below is ",
  "none.")>;

/// Of ops that take states from a pool and put them back.
defvar firstStateOperand = Arg<Optional<Index>,
  "The first row of the pool that belongs to a sequence; absent, 0.">;
class GDN_PoolOperands<Type indices, Type flags> {
  dag operands = (ins GDN_StateIndicesOf<indices>:$state_indices, firstStateOperand:$first_state,
    GDN_HasInitialStateOf<flags>:$has_initial_state);
}
defvar layerPoolOperands = GDN_PoolOperands<GDN_StateIndices, GDN_Flags>.operands;
defvar stagePoolOperands = GDN_PoolOperands<TensorRankOf<boundaryTypes, [1]>, TensorRankOf<flagTypes, [1]>>.operands;

/// Of ops that keep the states after tokens.
class GDN_StepOperands<Type states, Type indices, Type counts> {
  dag operands = (ins GDN_StepStatesOf<states>:$step_states, GDN_StepIndicesOf<indices>:$step_indices,
    GDN_NumAcceptedOf<counts>:$num_accepted, GDN_ParentsOf<indices>:$parents);
}
defvar layerStepOperands = GDN_StepOperands<GDN_State, GDN_StepIndices, GDN_StateIndices>.operands;
defvar stageStepOperands = GDN_StepOperands<TensorRankOf<parameterTypes, [4]>, TensorRankOf<boundaryTypes, [2]>,
  TensorRankOf<boundaryTypes, [1]>>.operands;

/// Of ops in chunks that keep the states after so many tokens.
class GDN_IntervalOperands<Type states, Type indices, Type numbers> {
  dag operands = (ins GDN_StepStatesOf<states>:$step_states, GDN_StepIndicesOf<indices>:$step_indices,
    GDN_StepStartsOf<numbers>:$step_starts, GDN_StepIntervalsOf<numbers>:$step_intervals);
}
defvar layerIntervalOperands = GDN_IntervalOperands<GDN_State, GDN_StepIndices, GDN_StateIndices>.operands;
defvar stageIntervalOperands = GDN_IntervalOperands<TensorRankOf<parameterTypes, [4]>, TensorRankOf<boundaryTypes, [2]>,
  TensorRankOf<boundaryTypes, [1]>>.operands;

defvar poolFormat = [{
  (`state_indices` `(` $state_indices^ `:` type($state_indices) `)`)?
  (`first_state` `(` $first_state^ `:` type($first_state) `)`)?
  (`has_initial_state` `(` $has_initial_state^ `:` type($has_initial_state) `)`)?
}];
defvar stepFormat = [{
  (`step_states` `(` $step_states^ `:` type($step_states) `)`)?
  (`step_indices` `(` $step_indices^ `:` type($step_indices) `)`)?
  (`num_accepted` `(` $num_accepted^ `:` type($num_accepted) `)`)?
  (`parents` `(` $parents^ `:` type($parents) `)`)?
}];

defvar intervalFormat = [{
  (`step_states` `(` $step_states^ `:` type($step_states) `)`)?
  (`step_indices` `(` $step_indices^ `:` type($step_indices) `)`)?
  (`step_starts` `(` $step_starts^ `:` type($step_starts) `)`)?
  (`step_intervals` `(` $step_intervals^ `:` type($step_intervals) `)`)?
}];

#endif // GDN_DIALECT_GDN_IR_POOLOPERANDS_TD
