//===- CostModel.h - What a launch costs, before it is made -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicts the time of a chunked forward on a GPU for each schedule that there
// are kernels for, and chooses one, from what the host knows without waiting
// for the device. The compiler (gdn-warp-choose-schedule, gdn-compile
// --explain) and the library of the Python package ask the same functions.
// Plain C++: no MLIR, no CUDA. Times are in seconds.
//
// The model. A work item is a sequence and a value head, or a tile of its value
// channels. A work item of `tokens` tokens keeps a multiprocessor for
//
//   itemSeconds + ceil(tokens / chunk) * chunkSeconds
//
// of its schedule, for the chunks of a work item follow one another and a CTA
// fills a multiprocessor. Work items are started in order, the longest first,
// each where a multiprocessor becomes free; a CTA that takes work items in turn
// saves turnSeconds at each change. Of the lengths of the sequences there is
// known at most the longest; the others share what remains. They give the end
// of the last work item, and
//
//   seconds = launchSeconds + max(end of the last work item, bytes / bandwidth)
//
// The constants are fitted to docs/data/forward-h200.csv with the least
// greatest error: 6.7 % (tools/benchmark/fit_costs.cpp; CalibrationTest.cpp
// holds the rows to the fit, and the fit to 10 %, which is what a time moves by
// between calls).
//
//===----------------------------------------------------------------------===//

#ifndef GDN_COSTMODEL_COSTMODEL_H
#define GDN_COSTMODEL_COSTMODEL_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlir::gdn::warp {
struct Arch;
} // namespace mlir::gdn::warp

namespace gdn::cost {

/// What the model knows of a GPU.
struct Chip {
  int64_t multiprocessors;
  /// FLOP of 16-bit products and bytes of memory that a second has.
  double flopPerSecond, bytesPerSecond;
  /// 10 * major + minor of the devices that the chip's code runs on.
  int32_t computeCapability = 0;
  /// Name of the target, as in Arch.h.
  std::string_view name = {};
};

/// What Arch.h says of a chip; `multiprocessors`, if not 0, are those of the
/// device.
Chip getChip(const mlir::gdn::warp::Arch &arch, int64_t multiprocessors = 0);
/// The chip that is meant where nobody says which.
Chip getDefaultChip(int64_t multiprocessors = 0);

/// A schedule, by the name that --schedule and the templates give it.
struct Schedule {
  std::string_view name;

  bool operator==(const Schedule &other) const { return name == other.name; }
  bool operator!=(const Schedule &other) const { return name != other.name; }

  /// All V tiles of a head in one CTA, which prepares each chunk once.
  static const Schedule CtaPerHead;
  /// A CTA for each V tile; two such CTAs of a head share the preparation.
  static const Schedule CtaPerVTile;
  /// Token by token: a CTA for each small V tile, several on a multiprocessor.
  static const Schedule Token;
};
inline constexpr Schedule Schedule::CtaPerHead = {"cta_per_head"};
inline constexpr Schedule Schedule::CtaPerVTile = {"cta_per_v_tile"};
inline constexpr Schedule Schedule::Token = {"token"};

/// Seconds of the first V tile of a CTA, and of each further one.
struct VTileSeconds {
  double first, further;
};

/// What is known of a schedule of a stage: a row of Rows.inc, which
/// tools/benchmark/fit_costs.cpp writes from measured times.
struct ScheduleCosts {
  /// The stage op, and the schedule.
  std::string_view stage, name;
  /// Whether a CTA has all V tiles of a head.
  bool folds;
  /// Whether sequences of one length have a CTA a multiprocessor, which takes
  /// work items in turn, and not a CTA a work item.
  bool takesTurns;
  /// Of a work item besides its chunks: barriers, the state in and out, the
  /// first loads and the last stores, which nothing hides.
  VTileSeconds item;
  /// Of a chunk of 32 tokens and 128 key channels.
  VTileSeconds chunk;
  /// From the launch to the first instruction, and from the last to the end.
  double launchSeconds;
  /// Whether nobody has measured it: it is the row of the forward, with chunks
  /// that take as much less time as they have fewer FLOP.
  bool predicted = false;
};

/// The stage of programs token by token.
inline constexpr std::string_view kTokenStage = "recurrent";
/// Its one row: `item` is a work item's state in and out, `chunk` a token.
ScheduleCosts tokenSchedule();

/// The rows that were measured.
const std::vector<ScheduleCosts> &measuredSchedules();
/// The rows of a stage, measured or predicted; the first of equals is chosen.
std::vector<ScheduleCosts> schedulesOf(std::string_view stage);
/// The row of a schedule; that of the first one if there is none.
ScheduleCosts costsOf(Schedule schedule, std::string_view stage = "fused");
/// The schedule of that name, or nothing.
std::optional<Schedule> findSchedule(std::string_view name);

/// Parts whose states the registers of a CTA hold.
inline constexpr int64_t kMaxFolded = 2;
/// Value channels of a V tile: the rows of a tensor core's product.
inline constexpr int64_t kVTileChannels = 64;

/// A launch, as far as the host knows it.
struct Workload {
  /// The stage op that the kernel is of.
  std::string_view stage = "fused";
  /// Nothing: many.
  std::optional<int64_t> sequences;
  /// Whether sequences lie one after the other and may differ in length.
  bool packed = false;
  /// T: of one sequence, or of all packed ones together. Nothing: long ones.
  std::optional<int64_t> tokens;
  /// Tokens of the longest sequence, where they may differ.
  std::optional<int64_t> longest;
  /// Query and key heads, value heads.
  int64_t keyHeads = 1, heads = 1;
  int64_t keyChannels = 128, valueChannels = 128;
  /// Parts of the value channels.
  int64_t vTiles = 2;
  int64_t chunkTokens = 32;
  /// Bytes of an element of q, k, v and o.
  int64_t dataBytes = 2;
  /// Bytes of the gate and beta of a token and value head.
  int64_t gateBytes = 8;
  /// Whether each key channel has a gate of its own.
  bool gatesChannels = false;
  /// Bytes that the states before and after have for an entry, together.
  int64_t stateBytes = 0;
  /// Tokens between the states that a forward saves for a backward; 0 where it
  /// saves nothing.
  int64_t stateInterval = 0;
  /// Whether states are [V, K].
  bool stateVFirst = false;
};

/// FLOP of a token and value head: those of the products of 64-token chunks,
/// the measure that all libraries are compared by. The forward has
/// 4 * 64 (K + V) + 6 K V, 163,840 at K = V = 128; the state pass and linear
/// attention have 2 * 64 (K + V) + 4 K V. Other stages count as the forward.
double flopPerToken(double keyChannels, double valueChannels,
                    std::string_view stage = "fused");

/// FLOP of a launch, and bytes of its arrays, each read or written once.
double countFlop(const Workload &workload);
double countBytes(const Workload &workload);

/// What the time of a schedule is made of.
enum class Bound {
  /// The chunks of one work item, which follow one another.
  Longest,
  /// The work items that a multiprocessor gets one after the other.
  Items,
  /// Bytes.
  Memory,
  /// Nothing: the states of all V tiles do not fit a CTA.
  Registers
};

/// What is predicted of one schedule.
struct Estimate {
  Schedule schedule;
  /// Whether its row is predicted from that of another stage.
  bool predicted = false;
  int64_t ctas = 0;
  /// Whether they take work items in turn.
  bool inTurn = false;
  /// Work items that a multiprocessor gets one after the other, if all take the
  /// same time.
  int64_t waves = 0;
  /// Chunks of the longest work item.
  int64_t longestChunks = 0;
  double seconds = 0;
  Bound bound = Bound::Items;
};

/// The prediction for the stage token by token: its CTAs share multiprocessors,
/// so it ends with the bytes, or with the tokens of one sequence.
Estimate estimateTokens(const Workload &workload, const Chip &chip,
                        const ScheduleCosts &costs);
/// The prediction for one schedule; `costs` need not be of the table.
Estimate estimate(const Workload &workload, const Chip &chip,
                  const ScheduleCosts &costs);

/// A schedule and what speaks for it.
struct Choice {
  Schedule schedule;
  /// For all schedules, in the order of the table.
  std::vector<Estimate> estimates;
  /// The longest sequence that was reckoned with, and whether it is known.
  int64_t longest = 0;
  bool knowsLongest = true;
  double flop = 0, bytes = 0;
  /// The larger of FLOP and bytes over what the chip does in a second.
  double floorSeconds = 0;

  const Estimate &of(Schedule schedule) const;
  const Estimate &chosen() const { return of(schedule); }
  /// Part of the predicted time that the floor is, 0 to 1.
  double utilisation() const;
  /// Why a schedule was not chosen, as a phrase.
  std::string whyNot(const Estimate &lost) const;
};

/// Takes the schedule that is predicted to be the fastest, or `forced`.
///
/// Where sequences may differ and the longest is not known, no choice is safe.
/// If N x H work items fill the chip, `cta_per_head` takes 1.60 times as long
/// as `cta_per_v_tile` when one sequence has all tokens, and
/// `cta_per_v_tile` 1.25 times as long as `cta_per_head` when all are of one
/// length, whatever N is. It is decided by what callers do: two sequences are a
/// short and a long one, as random cuts make them on average (3/4 of the tokens
/// in one); three or more are a batch of equal ones. Who knows better passes
/// `longest`.
Choice choose(const Workload &workload, const Chip &chip,
              std::optional<Schedule> forced = std::nullopt);

/// Seconds of a kernel that copies an array: `bytes` are read and written.
double predictCopy(double bytes, const Chip &chip);

//===----------------------------------------------------------------------===//
// CPUs
//===----------------------------------------------------------------------===//

/// Instructions of a CPU, and the type of a program's operands.
enum class CoreLevel { V3, V4, V4BF16 };
enum class CoreOperand { BF16, F16, F32 };

/// What one core does with a program.
struct Core {
  CoreLevel level;
  CoreOperand operand;
  /// Of chunked programs, counted by `flopPerToken`.
  double flopPerSecond;
  /// State entries that token by token programs update.
  double updatesPerSecond;
};

/// One core of a Xeon with AVX512_BF16 (docs/Performance.md), bound to the
/// instructions of a level. Rough on purpose: a plan only asks which way is
/// faster, and whether a thread pays.
const Core &coreOf(CoreLevel level, CoreOperand operand);

/// Seconds of a sequence and value head on a core, in chunks and token by
/// token; `gatesChannels` says whether each key channel has a gate of its own.
double chunkedSeconds(const Core &core, int64_t tokens, int64_t keyChannels,
                      int64_t valueChannels, int64_t chunkTokens,
                      bool gatesChannels);
double recurrentSeconds(const Core &core, int64_t tokens, int64_t keyChannels,
                        int64_t valueChannels, bool gatesChannels);

} // namespace gdn::cost

#endif // GDN_COSTMODEL_COSTMODEL_H
