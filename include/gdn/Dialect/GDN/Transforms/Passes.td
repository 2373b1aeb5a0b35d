//===- Passes.td - Passes of the gdn dialect ---------------*- tablegen -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
#define GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def PlanStagesPass : Pass<"gdn-plan-stages", "::mlir::ModuleOp"> {
  let summary = "Choose the kernels of every layer op: layer ops become stage ops";
  let description = [{
    Each layer op becomes the stage ops of a plan; one stage op is one kernel.

    ```mlir
    %o = gdn.chunk_gated_delta_rule q(...) k(...) v(...) beta(...) gate(...) -> ...
    // plan=fused
    %o = gdn.stage.fused q(...) k(...) v(...) beta(...) gate(...) {chunk_size = 32} -> ...
    // plan=separate
    %bm, %d = gdn.stage.prepare k(...) beta(...) gate(...) {chunk_size = 32} -> ...
    %o = gdn.stage.run q(...) k(...) v(...) beta(...) bm(%bm) decay(%d) {chunk_size = 32} -> ...
    ```

    A backward is one stage, `gdn.stage.backward`, or with `backward=three` the
    three that a GPU has kernels for.
    The three take q and k as they are: with `qk_l2norm` the rows are normalised,
    and rounded to their type, before them. Chain rules of the backward and reductions over a group of heads become
    `linalg` ops on whole tensors around the stage. Gradients of a query/key head
    with one value head and a gate a channel that a bound keeps in range are those
    of rows in front of their norm; if numbers of heads are open, an `scf.if`
    has the other way, too. Numerics: `separate` stores
    Bm in 16 bits for 16-bit inputs (spec 8), nothing else is rounded here.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"plan", "plan", "std::string", "\"fused\"",
      "Kernels of a forward: 'fused' (one) or 'separate' (prepare, run)">,
    Option<"backward", "backward", "std::string", "\"one\"",
      "Kernels of a backward: 'one', or 'three' (replay, adjoint, gradients) where there are">,
    Option<"chunkSize", "chunk-size", "int64_t", "32",
      "Tokens a chunk where the op does not say: 16, 32 or 64">,
    Option<"sideBySide", "side-by-side", "bool", "false",
      "Let replay and adjoint run at the same time for V of other sizes than 128 too">,
    Option<"stateInterval", "state-interval", "int64_t", "64",
      "Tokens between the states that the gradients of three kernels read, a multiple of 64">];
}

def BoundGatesPass : Pass<"gdn-bound-gates", "::mlir::ModuleOp"> {
  let summary = "Let kernels for bounded gates run if the gates of a call keep a bound";
  let description = [{
    Kernels for gates a channel of any strength take more than twice as long as
    those for gates that the op says keep a `lower_bound`. Most gates do, but a
    caller that gives logarithms rarely says so. This pass looks at the gates
    (`gdn.stage.gate_bound`), and makes both: the op as it is if they break the
    bound, and else the op with the bound.

    ```mlir
    %o = gdn.chunk_gated_delta_rule q(...) k(...) v(...) beta(...) gate(%g) {chunk_size = 16} -> ...
    // becomes, with bound=-5
    %found = gdn.stage.gate_bound k(...) gate(%g) none(%zeros) {lower_bound = -5.0} -> tensor<1x1x1xf32>
    %strong = ... // whether the element of %found is above 0
    %o = scf.if %strong -> ... {
      %any = gdn.chunk_gated_delta_rule q(...) k(...) v(...) beta(...) gate(%g) {chunk_size = 16} -> ...
      scf.yield %any
    } else {
      %bounded = gdn.chunk_gated_delta_rule q(...) k(...) v(...) beta(...) gate(%g) {lower_bound = -5.0} -> ...
      scf.yield %bounded
    }
    ```

    It holds for bf16 layer ops in chunks whose gates are logarithms a channel,
    or are made logarithms by softplus. The attribute `gdn.gate_bound` of a
    function says the function's bound in the place of the option. On a GPU the
    device takes the branch (`gdn-tile-guard-launches`). Numerics: both sides are
    the same function, rounded in other places.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let options = [Option<"bound", "bound", "double", "0.0",
    "The bound of the gates that kernels for bounded gates get, negative; 0 leaves functions without gdn.gate_bound as they are">];
}

def SplitSequencesPass : Pass<"gdn-cp-split", "::mlir::ModuleOp"> {
  let summary = "Compute the segments of a sequence side by side (context parallel)";
  let description = [{
    A chunk loop is serial. This pass cuts every sequence of a layer into
    segments and makes the states between them first, from what each segment
    makes of any state before it (spec 6). Segments are then sequences: the
    forward takes their boundaries for `cu_seqlens` and the states for
    `initial_state`, and nothing else of it changes.

    ```mlir
    %o, %ht = gdn.stage.fused q(...) k(...) v(...) beta(...) gate(...) initial_state(%h0) {chunk_size = 32} -> ...
    // becomes, with segments=8
    %boundaries, %first = gdn.stage.segment_boundaries k(...) {chunk_size = 32, segments = 8} -> ...
    %starts, %decay = gdn.stage.segment_starts k(...) gate(...) cu_seqlens(%boundaries) {chunk_size = 32, tolerance = ...} -> ...
    %map = gdn.stage.segment_map k(...) beta(...) cu_seqlens(%boundaries) starts(%starts) {chunk_size = 32} -> ...
    %b = gdn.stage.state_pass q(...) k(...) v(...) beta(...) gate(...) cu_seqlens(%boundaries) starts(%starts) {chunk_size = 32} -> ...
    %entry, %ht = gdn.stage.segment_scan map(%map) decay(%decay) states(%b) initial_state(%h0) first_segments(%first) -> ...
    %o = gdn.stage.fused q(...) k(...) v(...) beta(...) gate(...) initial_state(%entry) cu_seqlens(%boundaries) {...} -> ...
    ```

    A backward gets the states before segments and the gradients of those behind
    them, from a scan with `reverse` over the same maps. What each segment adds to
    these is `gdn.stage.adjoint_pass`; a backward of one stage runs twice for it.

    ```mlir
    %r, %s = gdn.stage.replay q(...) k(...) v(...) beta(...) gate(...) initial_state(%h0) {...} -> ...
    %dv, %ds, %dh0 = gdn.stage.adjoint q(...) ... d_o(%do) d_final_state(%dht) {...} -> ...
    %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(...) ... writes(%r) dv(%dv) states(%s) d_states(%ds) {...} -> ...
    // becomes, with the maps and entry states above
    %ends = gdn.stage.segment_starts k(...) gate(...) cu_seqlens(%boundaries) {reverse, ...} -> ...
    %db = gdn.stage.adjoint_pass q(...) ... cu_seqlens(%boundaries) d_o(%do) ends(%ends) {...} -> ...
    %exit, %dh0 = gdn.stage.segment_scan map(%map) decay(%decay) states(%db) initial_state(%dht) first_segments(%first) {reverse} -> ...
    %dv, %ds = gdn.stage.adjoint q(...) ... cu_seqlens(%boundaries) d_o(%do) d_final_state(%exit) {...} -> ...
    %r, %s = gdn.stage.replay q(...) ... initial_state(%entry) cu_seqlens(%boundaries) {...} -> ...
    %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(...) ... cu_seqlens(%boundaries) ... {...} -> ...
    ```

    If a segment's last tokens leave at most `decay-tolerance` of a state, these
    tokens alone make its B, and it needs no map (spec 6.3). The kernels decide
    that for each segment and head, by the gates of the call; with a gate per
    channel by the keys and beta, too. It holds for 16-bit layers with a gate;
    others, and all with a tolerance of 0, get maps of every segment, and no
    `segment_starts`.

    Batch rows become packed sequences. With `segment-length` the results of a
    sequence do not depend on its neighbours, bit for bit.

    Numerics: the same function, but for what the tolerance leaves out of the
    states, at most that share of their norm. `map` is rounded to f16 for 16-bit layers; the
    states between segments are f32. Other stages stay as they are.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"segments", "segments", "int64_t", "0",
      "Segments of a sequence; 0 splits none">,
    Option<"segmentLength", "segment-length", "int64_t", "0",
      "Tokens of a segment, a multiple of the chunk size; 0 leaves it to segments">,
    Option<"tolerance", "decay-tolerance", "double", "6.1442123533282e-06",
      "Norm of a segment's map below which it is zero (16-bit layers with a gate); 0 keeps all">,
    Option<"sideBySide", "side-by-side", "bool", "true",
      "Let the kernels of B and of the maps run at the same time, and those of a backward's scans">,
    Option<"fewerSegments", "fewer-segments", "int64_t", "0",
      "Number of segments of a sequence whose gates, by a sample on the device, do not call for `segments`; with a gate a channel 1, for heads that keep a state; 0 for `segments`. Needs own-starts">,
    Option<"ownStarts", "own-starts", "bool", "false",
      "Let a segment recompute the tail of a predecessor whose state decays (warm-up tokens), overlapped with the scan">];
}

def FollowAdjointPass : Pass<"gdn-follow-adjoint", "::mlir::ModuleOp"> {
  let summary = "Let gradients begin while the recurrence of the state's gradient runs";
  let description = [{
    `gdn.stage.adjoint` goes through a sequence from its last chunk to its first,
    and one of few heads leaves most of a GPU idle. Gradients need no chunk but
    those that it has passed. With this pass it reports how far it is, and
    `gdn.stage.gradients`, which takes blocks of chunks from the end, runs at the
    same time and waits for what it needs.

    ```mlir
    %dv, %ds = gdn.stage.adjoint q(...) ... {...} -> ...
    %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(...) ... dv(%dv) states(%s) d_states(%ds) {...} -> ...
    // becomes
    %dv, %ds, %progress = gdn.stage.adjoint q(...) ... {reporting_tiles = 2, ...} -> ...
    %dq, %dk, %dbeta, %dg = gdn.stage.gradients q(...) ... dv(%dv) states(%s) d_states(%ds) progress(%progress) {...} -> ...
    ```

    It holds for packed sequences that are not cut, and for gradients of states
    that are there when the adjoint begins, at most 128 tokens apart: saved by a
    forward, or made by a replay that has ended. Others wait for more than the
    adjoint, and stay as they are. The adjoint has V tiles of 64 channels then,
    whatever `v-tiles` of `convert-gdn-to-tile` says. Numerics: with these tiles
    every number is computed as before.
  }];
}

def PlanCallsPass : Pass<"gdn-plan-calls", "::mlir::ModuleOp"> {
  let summary = "Make a function of a layer op an entry with variants";
  let description = [{
    A function with `gdn.variants`, of one layer op, becomes as many functions as
    this array has dictionaries, and a `gdn.entry` of its name that lists them:
    other functions stay. A dictionary has the `schedule` of the variant, which
    is also behind the function's name unless it has a `name`. With `cut` the
    variant has an index argument for each word, with `gdn.cut`; with a
    `state_layout` it takes and gives states so. What has a dialect's name
    becomes an attribute of the function.

    ```mlir
    func.func @layer(%q: ..., %initial: tensor<?x?x128x128xf32> {gdn.optional, gdn.strided}) -> ...
        attributes {gdn.variants = [
          {schedule = "cta_per_v_tile", gdn_warp.schedules = {fused = "cta_per_v_tile"}},
          {schedule = "cta_per_head", name = "waiting", cut = ["segment_length"],
           gdn_warp.schedules = {fused = "cta_per_head"}}]} {...}
    // becomes
    func.func @layer_cta_per_v_tile(...) -> ... attributes {gdn_warp.schedules = {fused = "cta_per_v_tile"}} {...}
    func.func @layer_waiting(..., %length: index {gdn.cut = "segment_length"}) -> ... {...}
    gdn.entry @layer {
      gdn.variant @layer_cta_per_v_tile schedule("cta_per_v_tile")
      gdn.variant @layer_waiting schedule("cta_per_head")
    }
    ```
  }];
}

def NameArgumentsPass : Pass<"gdn-name-arguments", "::mlir::ModuleOp"> {
  let summary = "Note on functions what their arguments and results are to the layer ops";
  let description = [{
    Arguments that feed a layer op, through casts, and results that come from one
    get `gdn.name` and `gdn.dims`: the names of the array and of its dimensions,
    which the levels below no longer know. Arrays of later ops of a function have
    a number behind their names. If there is one op and it takes all arguments
    and gives all results, `gdn.source` says what it computes. The host side of a
    compiled function is made from these notes: names and checks of its
    arguments.

    ```mlir
    func.func @layer(%arg0: tensor<1x?x2x128xbf16> {gdn.name = "q", gdn.dims = ["B", "T", "Hq", "K"]}, ...)
        -> (tensor<1x?x4x128xbf16> {gdn.name = "o", gdn.dims = ["B", "T", "H", "V"]})
        attributes {gdn.source = {op = "gdn.chunk_gated_delta_rule", scale = 0.08838 : f64, ...}}
    ```
  }];
}

def RaiseBuffersPass : Pass<"gdn-raise-buffers"> {
  let summary = "Turn layer ops on memrefs into layer ops on tensors";
  let description = [{
    The inverse of One-Shot Bufferize for the layer ops, so that a host that
    works on buffers can hand them to `gdn-plan-stages`, which plans tensors.

    ```mlir
    gdn.chunk_gated_delta_rule q(%q : memref<...>) ... outs(%o : memref<...>)
    // becomes
    %t = bufferization.to_tensor %q restrict : memref<...> to tensor<...>
    %r = gdn.chunk_gated_delta_rule q(%t : tensor<...>) ... -> tensor<...>
    bufferization.materialize_in_destination %r in restrict writable %o
    ```

    Inputs and `outs` must not overlap, as the buffer form demands. Numerics are
    kept: nothing is computed here.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def VerifyStagesFormPass : Pass<"gdn-verify-stages-form", "::mlir::ModuleOp"> {
  let summary = "Check that a module is at the stages level";
  let description = [{
    Fails where a layer op is left: after `gdn-plan-stages` only stage ops and
    upstream tensor ops may exist (docs/Dialects/Stages.md). Changes nothing.
  }];
}

#endif // GDN_DIALECT_GDN_TRANSFORMS_PASSES_TD
