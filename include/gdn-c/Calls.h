//===- gdn-c/Calls.h - Which function a call runs -----------------*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller names the arrays of a call and says what it is to compute. This
// library finds the compiled functions that do so among those of a table,
// chooses one and the cut of its sequences by the cost model, converts arrays
// that the function does not take as they are, and launches it. It needs
// libgdn-runtime alone: no MLIR, and CUDA only at run time. docs/Calls.md
// explains the use.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_C_CALLS_H
#define GDN_C_CALLS_H

#include "gdn-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Something that is computed, by name: {"op", "gdn.chunk_gated_delta_rule"},
/// {"gate_domain", "log"}, {"beta_domain", "value"}, {"qk_l2norm", "false"};
/// {"state_interval", "128"} of what saves states or reads them.
typedef struct GdnFact {
  const char *name;
  const char *value;
} GdnFact;

/// A function of an entry (gdn.variant).
typedef struct GdnVariantDesc {
  const GdnFunctionDesc *function;
  /// By which the cost model knows it: "cta_per_head", "cta_per_v_tile" or
  /// "token".
  const char *schedule;
  /// How its states lie: "kv" or "vk".
  const char *state_layout;
  /// Whether the forward of its segments is launched when their maps are done
  /// (gdn.late_forward).
  int32_t is_late;
  /// Whether bits of a sequence depend on the gates of others
  /// (gdn.gate_bound).
  int32_t looks_at_gates;
} GdnVariantDesc;

/// Functions that compute the same of the same arrays (gdn.entry).
typedef struct GdnEntryDesc {
  /// sizeof(GdnEntryDesc).
  uint32_t struct_size;
  /// GDN_RUNTIME_VERSION.
  uint32_t version;
  const char *name;
  int32_t num_facts;
  int32_t num_variants;
  const GdnFact *facts;
  const GdnVariantDesc *variants;
} GdnEntryDesc;

/// A function that brings an array of a call to what another function takes, or
/// an output of that to the call's array. Arrays are [B, T, H, C]. Its
/// arguments are known by their names: "input" is read; the output is written,
/// whose extents "like" has; elements beyond the input are zeros. An array has
/// any strides, but for the output of a copy, whose channels lie side by side.
typedef struct GdnConversionDesc {
  /// "copy", of elements of as many bits, in the name of GDN_DTYPE_BF16 or
  /// GDN_DTYPE_F32; "transpose", which is one of an input [B, H, C, T] whose
  /// tokens lie side by side; "cast", which multiplies by "factor"; "fill", by
  /// "factor", without an input; or the names of two domains: "linear_to_log",
  /// "softplus_to_log", which has "a_log" and "dt_bias", "logit_to_value",
  /// which multiplies by "factor".
  const char *kind;
  /// GDN_DTYPE_* of the input, 0 of a fill, and of the output.
  int32_t from;
  int32_t to;
  /// What the call's "factor" is multiplied by.
  double factor;
  const GdnFunctionDesc *function;
} GdnConversionDesc;

/// Functions for a CPU that compute one item of a call each: a sequence and a
/// value head. `gdn-compile --parallel=false` makes them of a layer with
/// B = N = Hq = H = 1 and dynamic tokens. Their arguments are memrefs, in the
/// compiler's C interface (_mlir_ciface_*): q, k, v, beta, gate and
/// initial_state; of a forward then o and final_state, of a backward d_o,
/// d_final_state and the gradients of the first six. Gates are logarithms in
/// float32, one a token or one a token and key channel; beta is a value, states
/// and all that a backward takes are float32.
typedef struct GdnItemDesc {
  /// The name that people see.
  const char *name;
  /// The layer op.
  const char *op;
  /// GDN_DTYPE_* of q, k, v and o, and K = V.
  int32_t dtype;
  int32_t channels;
  int32_t has_channel_gates;
  /// The level of CPUs that they are compiled for, as GdnDeviceInfo numbers and
  /// names levels.
  int32_t level;
  const char *isa;
  /// Forwards with states [K, V] and [V, K], each without and with normalised q
  /// and k. Or backwards with states [K, V], of gates as logarithms, and of
  /// gates as factors, whose gradient divides by none.
  void (*functions[4])(void);
} GdnItemDesc;

/// What a program has compiled. It stays as it is while it is in use, but for
/// what `index` points to.
typedef struct GdnCallTable {
  /// sizeof(GdnCallTable).
  uint32_t struct_size;
  int32_t num_entries;
  int32_t num_conversions;
  const GdnEntryDesc *const *entries;
  const GdnConversionDesc *conversions;
  /// Room for the library: a pointer, null at first.
  void **index;
  /// For calls on a CPU.
  const GdnItemDesc *items;
  int32_t num_items;
} GdnCallTable;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// An array of a call by the name that the function's arguments have; `tensor`
/// is null if the call has none.
typedef struct GdnCallArray {
  const char *name;
  const GdnTensor *tensor;
} GdnCallArray;

/// Whether and how sequences are cut into segments.
enum {
  /// As is predicted to be the fastest.
  GDN_SPLIT_MODEL = 0,
  GDN_SPLIT_NEVER = 1,
  /// Into `split_value` segments of the longest sequence.
  GDN_SPLIT_SEGMENTS = 2,
  /// Into segments of `split_value` tokens, not at all if that is 0, and by no
  /// other fact of the call: the bits of a sequence do not depend on what is
  /// beside it. With 0 a call token by token is served by no other functions.
  GDN_SPLIT_LENGTH = 3
};

/// A call. Its facts are those of the layer op: "op", "gate_domain",
/// "beta_domain", "qk_l2norm", "state_interval", and with bounded gates
/// "lower_bound", as tables print it ("-5"). Where q, k and v have different
/// types, they are computed in float32, and o has q's, or token by token v's. A
/// gate of four dimensions is one for each key channel; its "dt_bias" may be
/// [H K] or [H, K]. On a CPU {"arithmetic", "float32"} asks for float32
/// whatever the arrays are. Everything that it points to stays where it is
/// while the call is planned or launched; names and values of facts, names of
/// arrays and the state_layout stay as they are while the library is in use.
typedef struct GdnCall {
  /// sizeof(GdnCall).
  uint32_t struct_size;
  /// A GPU, or GDN_DEVICE_CPU, whose calls run to their end on threads of their
  /// own: a stream and a workspace are of no account.
  int32_t device;
  int32_t num_facts;
  int32_t num_arrays;
  const GdnFact *facts;
  const GdnCallArray *arrays;
  /// How its states lie: "kv", which null stands for, or "vk".
  const char *state_layout;
  /// GDN_SPLIT_*.
  int32_t split;
  /// Whether no gate decays anything, so that no segment forgets.
  int32_t is_undecayed;
  int64_t split_value;
  /// Factor of the read-out; 0 stands for K^(-1/2).
  double scale;
  /// Tokens of the longest sequence, 0 if the host does not know them.
  int64_t longest;
  /// Segments of a forward that saves, or of a backward that reads it, for
  /// whose states there is memory.
  int64_t saved_segments;
  /// What messages call a fact, a value of one ("gate_domain=log") or an array,
  /// instead of its name; `num_words` of them.
  const GdnFact *words;
  int32_t num_words;
  /// Of a call with state_indices, the first row of the pool that sequences may
  /// name: one that names a lower one has no state.
  int64_t first_state;
  /// On a CPU the most threads; 0 for one a processor.
  int32_t threads;
} GdnCall;

/// Most arguments of a function that a plan has, and of these that may be
/// converted.
#define GDN_CALL_MAX_ARGUMENTS 32
#define GDN_CALL_MAX_CONVERTED 20

/// What a call runs. A plan serves each call that lists the same arrays in the
/// same order, and is like the planned one but for addresses, which are aligned
/// alike.
typedef struct GdnCallPlan {
  /// sizeof(GdnCallPlan).
  uint32_t struct_size;
  int32_t multiprocessors;
  const GdnCallTable *table;
  const GdnEntryDesc *entry;
  const GdnVariantDesc *variant;
  /// Tokens of a segment, 0 for whole sequences; its parts, and the tokens of a
  /// segment where the device finds that shorter ones do not pay, 0 for none.
  int64_t segment_length;
  int64_t segment_parts;
  int64_t longer_segment_length;
  /// Of a call that saves states or reads them, how many its function takes of
  /// those that it has memory for.
  int64_t saved_states;
  /// On a CPU what computes an item, and threads that are worth starting; entry
  /// and variant are null then. Segments choose anew.
  const GdnItemDesc *items;
  int32_t threads;
  /// The predicted time.
  double seconds;
  /// Of each argument of the function, the number of the call's array, or how
  /// many these are of an optional one that the call does not list; of a
  /// scalar -1, -2 and -3 for the lengths and parts above, in their order, and
  /// -4 for the call's first_state.
  int8_t arguments[GDN_CALL_MAX_ARGUMENTS];
  /// The function's arguments that are converted, in the library's order; -1
  /// for what is not.
  int8_t converted[GDN_CALL_MAX_CONVERTED];
} GdnCallPlan;

/// Finds the functions that serve a call and chooses one. Pure host work, which
/// reads no address but for how far it is aligned, and whether final_state is
/// initial_state; and the boundaries of a call on a CPU. `plan->struct_size` is
/// set.
/// Where no function takes the call as it is, but one takes a call that the
/// table's conversions bring it to, that is planned.
/// GDN_ERROR_NOT_SERVED, with what there is instead, if none does either;
/// GDN_ERROR_NO_DEVICE or GDN_ERROR_UNSUPPORTED_DEVICE, before anything else,
/// of a device that is neither a Hopper GPU nor a CPU of x86-64-v3 or above.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallPlan(const GdnCallTable *table,
                                                const GdnCall *call,
                                                GdnCallPlan *plan);

/// The plan of a call that is like one of the last few that this thread has
/// planned with the table; null if none is. The plan stays where it is until
/// the thread plans another call. Takes a tenth of a microsecond.
GDN_RUNTIME_EXPORT const GdnCallPlan *gdnCallRecall(const GdnCallTable *table,
                                                    const GdnCall *call);

/// Bytes of workspace of a planned call, aligned to GDN_WORKSPACE_ALIGNMENT:
/// its function's, and what is converted. Checks the call's arrays as
/// gdnFunctionCheck does.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallGetWorkspaceBytes(
    const GdnCallPlan *plan, const GdnCall *call, uint64_t *bytes);

/// Loads the functions of a plan on the call's device. Cheap when done before.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallPrepare(const GdnCallPlan *plan,
                                                   const GdnCall *call);

/// Launches a planned and prepared call on `stream`. Neither allocates nor
/// synchronises, and may be captured in a CUDA graph.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallLaunch(const GdnCallPlan *plan,
                                                  const GdnCall *call,
                                                  void *workspace,
                                                  size_t workspace_bytes,
                                                  void *stream);

/// Gives `bytes` of device memory, aligned to GDN_WORKSPACE_ALIGNMENT, that
/// work on `stream` may use from now on. `user` is what gdnCallRun was given.
typedef GdnRuntimeStatus (*GdnAllocate)(void *user, int32_t device,
                                        uint64_t bytes, void *stream,
                                        void **memory);

/// Prepares a planned call and launches it, with a workspace of `allocate` if
/// it wants one. A null `allocate` stands for the library's own memory: one
/// piece for each device and stream, which one call at a time has. It grows,
/// and nothing of it is given back, for CUDA graphs that were captured with it.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallRun(const GdnCallPlan *plan,
                                               const GdnCall *call,
                                               GdnAllocate allocate, void *user,
                                               void *stream);

/// Recalls or plans a call and runs it: all that a program has to say of a call
/// again and again.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallExecute(const GdnCallTable *table,
                                                   const GdnCall *call,
                                                   GdnAllocate allocate,
                                                   void *user, void *stream);

/// Writes what gdnCallPlan finds and predicts as JSON into `text`, which has
/// room for `size` bytes, and ends it with 0; says in `needed` how many there
/// are. `text` may be null, and so may addresses of arrays that nobody has
/// allocated.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallDescribe(const GdnCallTable *table,
                                                    const GdnCall *call,
                                                    char *text, size_t size,
                                                    size_t *needed);

/// Compares values that lie on the host with the rules of a call of so many
/// tokens: boundaries, and rows of a pool of `count` states, of which sequences
/// may name those from `first_state` on. Either may be null. Calls on a CPU are
/// compared themselves.
GDN_RUNTIME_EXPORT GdnRuntimeStatus
gdnCallCheckValues(const GdnTensor *cu_seqlens, const GdnTensor *state_indices,
                   int64_t tokens, int64_t first_state, int64_t count);

/// Whether forward and backward of a call are predicted to take less time if
/// the forward saves states (its fact "state_interval") than if it saves its
/// inputs alone. `has_segments` says whether there are functions of segments;
/// of the arrays only extents are read.
GDN_RUNTIME_EXPORT GdnRuntimeStatus gdnCallSavingPays(const GdnCall *call,
                                                      int32_t has_segments,
                                                      int32_t *pays);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // GDN_C_CALLS_H
