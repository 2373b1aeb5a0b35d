//===- StageOperands.h - The operands of stage ops by name ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by Stage.cpp alone. Operands as each op declares them; an empty name
// is not read.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGEOPERANDS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGEOPERANDS_H

#include "mlir/Support/LLVM.h"

namespace mlir::gdn {

inline constexpr StringLiteral kBoundaries = "cu_seqlens";

inline constexpr StringLiteral kRecurrentOperands[] = {"q",
                                                       "k",
                                                       "v",
                                                       "beta",
                                                       "gate",
                                                       "initial_state",
                                                       kBoundaries,
                                                       "a_log",
                                                       "dt_bias",
                                                       "state_indices",
                                                       "first_state",
                                                       "has_initial_state",
                                                       "step_states",
                                                       "step_indices",
                                                       "num_accepted",
                                                       "parents"};
inline constexpr StringLiteral kFusedOperands[] = {"q",
                                                   "k",
                                                   "v",
                                                   "beta",
                                                   "gate",
                                                   "initial_state",
                                                   kBoundaries,
                                                   "a_log",
                                                   "dt_bias",
                                                   "state_indices",
                                                   "first_state",
                                                   "has_initial_state",
                                                   "step_states",
                                                   "step_indices",
                                                   "step_starts",
                                                   "step_intervals",
                                                   "starts",
                                                   "before",
                                                   "closes",
                                                   "whole_heads",
                                                   "whole_begins",
                                                   "sequence_state",
                                                   "",
                                                   "sequence_numbers",
                                                   "num_states"};
inline constexpr StringLiteral kStatePassOperands[] = {"",
                                                       "k",
                                                       "v",
                                                       "beta",
                                                       "gate",
                                                       "initial_state",
                                                       kBoundaries,
                                                       "a_log",
                                                       "dt_bias",
                                                       "starts",
                                                       "before",
                                                       "closes",
                                                       "whole_heads",
                                                       "sequence_state"};
inline constexpr StringLiteral kPrepareOperands[] = {
    "k", "beta", "gate", kBoundaries, "a_log", "dt_bias"};
inline constexpr StringLiteral kSegmentStartsOperands[] = {
    "k",     "beta",    "gate",        kBoundaries,
    "a_log", "dt_bias", "whole_heads", "whole_begins"};
inline constexpr StringLiteral kGateBoundOperands[] = {
    "k", "gate", kBoundaries, "a_log", "dt_bias", "found"};
inline constexpr StringLiteral kSegmentMapOperands[] = {
    "k",       "beta",   "gate",   kBoundaries, "a_log",
    "dt_bias", "starts", "before", "closes",    "whole_heads"};
// A sample of gates is no reason for a work item a head.
inline constexpr StringLiteral kSegmentBoundariesOperands[] = {
    "k", "sampled_gate", kBoundaries, "length", "parts", "longer_length"};
inline constexpr StringLiteral kSegmentScanOperands[] = {"map",
                                                         "decay",
                                                         "states",
                                                         "initial_state",
                                                         kBoundaries,
                                                         "before",
                                                         "starts",
                                                         "boundaries",
                                                         "last_segments",
                                                         "whole_heads",
                                                         "state_indices",
                                                         "first_state",
                                                         "has_initial_state"};
inline constexpr StringLiteral kRunOperands[] = {"q",
                                                 "k",
                                                 "v",
                                                 "beta",
                                                 "bm",
                                                 "decay",
                                                 "initial_state",
                                                 kBoundaries,
                                                 "state_indices",
                                                 "first_state",
                                                 "has_initial_state"};
inline constexpr StringLiteral kLinearAttentionOperands[] = {
    "q", "k", "v", "initial_state", kBoundaries};
inline constexpr StringLiteral kBackwardOperands[] = {
    "q",         "k",     "v",       "beta", "gate",         "initial_state",
    kBoundaries, "a_log", "dt_bias", "d_o",  "d_final_state"};
inline constexpr StringLiteral kReplayOperands[] = {
    "",          "k",     "v",      "beta", "gate", "initial_state",
    kBoundaries, "a_log", "dt_bias"};
inline constexpr StringLiteral kExpandOperands[] = {
    "", "k", "v", "", "gate", "", kBoundaries, "a_log", "dt_bias", "kept"};
inline constexpr StringLiteral kAdjointOperands[] = {
    "q",         "k",     "",        "beta", "gate",         "",
    kBoundaries, "a_log", "dt_bias", "d_o",  "d_final_state"};
inline constexpr StringLiteral kAdjointPassOperands[] = {
    "q",         "k",     "",        "beta", "gate", "",
    kBoundaries, "a_log", "dt_bias", "d_o",  "ends"};
inline constexpr StringLiteral kGradientsOperands[] = {
    "q",       "k",        "",          "beta",
    "gate",    "",         kBoundaries, "a_log",
    "dt_bias", "d_o",      "writes",    "dv",
    "states",  "d_states", "progress",  "sequence_numbers",
    "q_rstd",  "k_rstd"};

} // namespace mlir::gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGEOPERANDS_H
