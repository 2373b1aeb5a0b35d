//===- HopperReader.cpp - Gradients from what a forward saved -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function is a table (gdn-c/Runtime/Function.h). That of gradients from what
// a forward saved is the table of gradients that keep as many states, without
// the launches that make these once more.
//
//===----------------------------------------------------------------------===//

#include "HopperSaved.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

using namespace gdn::hopper;

namespace {
/// A function without some of its launches, two of whose temporaries are
/// arguments instead.
class Reader {
public:
  /// `isGone` has an entry for each launch.
  Reader(const GdnFunctionDesc &backward, const std::vector<bool> &isGone,
         std::array<int32_t, 2> saved);
  Reader(const Reader &) = delete;

  GdnFunctionDesc desc;

private:
  void addArgument(const GdnTemporaryDesc &temporary, const char *name);
  void numberTemporaries(const GdnFunctionDesc &backward,
                         const std::vector<bool> &isGone);
  void copyLaunch(const GdnLaunchDesc &launch, bool isBesideGone);

  std::array<int32_t, 2> saved;
  std::vector<GdnArgDesc> args;
  std::vector<const char *> symbols;
  std::vector<GdnExtentRule> rules;
  /// What stands for each temporary of the function.
  std::vector<GdnOperand> places;
  std::vector<GdnTemporaryDesc> temporaries;
  std::vector<GdnLaunchDesc> launches;
  std::vector<std::unique_ptr<GdnOperand[]>> operands;
  std::vector<std::unique_ptr<int64_t[]>> shapes;
  /// Kernels behind launches that are gone, which do not follow these.
  std::vector<std::unique_ptr<GdnKernelDesc>> waiting;
  std::vector<void *> kernels;
};
} // namespace

/// An array of the extents that the temporary has.
void Reader::addArgument(const GdnTemporaryDesc &temporary, const char *name) {
  auto arg = static_cast<int32_t>(args.size());
  auto &shape = shapes.emplace_back(new int64_t[temporary.rank]);
  for (int32_t d = 0; d < temporary.rank; ++d) {
    shape[d] = GDN_SYMBOL(symbols.size());
    symbols.push_back(name);
    rules.push_back({arg, d, temporary.shape[d]});
  }
  args.push_back({name, GDN_ARG_TENSOR, temporary.dtype, temporary.rank,
                  GDN_ARG_FLAG_CONTIGUOUS, shape.get(), /*alignment=*/0});
}

/// The temporaries that a launch takes.
static std::vector<int32_t> temporariesOf(const GdnLaunchDesc &launch) {
  std::vector<int32_t> list;
  for (int32_t i = 0; i < launch.num_operands; ++i)
    if (launch.operands[i].kind == GDN_OPERAND_TEMPORARY)
      list.push_back(launch.operands[i].index);
  return list;
}

/// Those that launches which are left take keep their place in the workspace.
void Reader::numberTemporaries(const GdnFunctionDesc &backward,
                               const std::vector<bool> &isGone) {
  std::vector<bool> isUsed(backward.num_temporaries);
  for (int32_t i = 0; i < backward.num_launches; ++i)
    for (int32_t temporary : temporariesOf(backward.launches[i]))
      isUsed[temporary] = isUsed[temporary] || !isGone[i];
  for (int32_t i = 0; i < backward.num_temporaries; ++i) {
    auto found = std::find(saved.begin(), saved.end(), i);
    if (found != saved.end()) {
      auto last = static_cast<int32_t>(saved.end() - found);
      places.push_back(
          {GDN_OPERAND_ARGUMENT, static_cast<int32_t>(args.size()) - last});
      continue;
    }
    places.push_back(
        {GDN_OPERAND_TEMPORARY, static_cast<int32_t>(temporaries.size())});
    if (isUsed[i])
      temporaries.push_back(backward.temporaries[i]);
  }
}

static bool isOf(const GdnLaunchDesc &launch, std::string_view stage) {
  return std::string_view(launch.kernel->symbol).ends_with(stage);
}

/// Whether a launch runs beside the one before it, which may go: of whole
/// sequences adjoint does. In segments what may go runs beside others.
static bool isBeside(const GdnFunctionDesc &function, int32_t launch) {
  return launch > 0 && isOf(function.launches[launch], "_adjoint") &&
         isOf(function.launches[launch - 1], "_replay");
}

void Reader::copyLaunch(const GdnLaunchDesc &launch, bool isBesideGone) {
  auto &own = operands.emplace_back(new GdnOperand[launch.num_operands]);
  for (int32_t i = 0; i < launch.num_operands; ++i) {
    const GdnOperand &operand = launch.operands[i];
    bool isTemporary = operand.kind == GDN_OPERAND_TEMPORARY;
    own[i] = isTemporary ? places[operand.index] : operand;
  }
  GdnLaunchDesc copy = launch;
  copy.operands = own.get();
  if (isBesideGone) {
    // It does not wait itself, and would begin before what was in front of what
    // is gone was done.
    auto &kernel =
        waiting.emplace_back(std::make_unique<GdnKernelDesc>(*launch.kernel));
    kernel->follows = 0;
    copy.kernel = kernel.get();
  }
  launches.push_back(copy);
}

Reader::Reader(const GdnFunctionDesc &backward, const std::vector<bool> &isGone,
               std::array<int32_t, 2> saved)
    : desc(backward), saved(saved),
      args(backward.args, backward.args + backward.num_args),
      symbols(backward.symbols, backward.symbols + backward.num_symbols),
      rules(backward.rules, backward.rules + backward.num_rules) {
  addArgument(backward.temporaries[saved[0]], "writes");
  addArgument(backward.temporaries[saved[1]], "states");
  numberTemporaries(backward, isGone);
  for (int32_t i = 0; i < backward.num_launches; ++i)
    if (!isGone[i])
      copyLaunch(backward.launches[i], isBeside(backward, i) && isGone[i - 1]);
  kernels.resize(launches.size());
  desc.num_args = static_cast<int32_t>(args.size());
  desc.args = args.data();
  desc.num_symbols = static_cast<int32_t>(symbols.size());
  desc.symbols = symbols.data();
  desc.num_rules = static_cast<int32_t>(rules.size());
  desc.rules = rules.data();
  desc.num_temporaries = static_cast<int32_t>(temporaries.size());
  desc.temporaries = temporaries.data();
  desc.num_launches = static_cast<int32_t>(launches.size());
  desc.launches = launches.data();
  desc.kernels = kernels.data();
}

/// The launch that makes writes and states once more; negative for none.
static int32_t findReplay(const GdnFunctionDesc &function) {
  for (int32_t i = 0; i < function.num_launches; ++i)
    if (isOf(function.launches[i], "_replay"))
      return i;
  return -1;
}

/// The temporaries that a launch makes: those that no earlier one has.
static std::vector<int32_t> findMade(const GdnFunctionDesc &function,
                                     int32_t launch) {
  std::vector<int32_t> made = temporariesOf(function.launches[launch]);
  for (int32_t earlier = 0; earlier < launch; ++earlier)
    for (int32_t other : temporariesOf(function.launches[earlier]))
      std::erase(made, other);
  return made;
}

/// The launches that nobody needs without replay: it, and those that make
/// temporaries for such launches alone, as what segments add to the state.
static std::vector<bool> findGone(const GdnFunctionDesc &function,
                                  int32_t replay) {
  std::vector<bool> isGone(function.num_launches);
  isGone[replay] = true;
  for (int32_t i = replay - 1; i >= 0; --i) {
    const GdnLaunchDesc &launch = function.launches[i];
    auto isOutput = [&](const GdnOperand &operand) {
      return operand.kind == GDN_OPERAND_ARGUMENT &&
             operand.index >= function.num_inputs;
    };
    std::vector<int32_t> made = findMade(function, i);
    if (made.empty() ||
        std::any_of(launch.operands, launch.operands + launch.num_operands,
                    isOutput))
      continue;
    isGone[i] = true;
    for (int32_t later = i + 1; later < function.num_launches; ++later)
      for (int32_t temporary : temporariesOf(function.launches[later]))
        if (!isGone[later] &&
            std::find(made.begin(), made.end(), temporary) != made.end())
          isGone[i] = false;
  }
  return isGone;
}

const GdnFunctionDesc *
gdn::hopper::findReaderOfSaved(const GdnFunctionDesc &backward) {
  static std::mutex mutex;
  static std::map<const GdnFunctionDesc *, std::unique_ptr<Reader>> readers;
  std::lock_guard lock(mutex);
  auto [entry, isNew] = readers.try_emplace(&backward);
  int32_t replay = findReplay(backward);
  if (isNew && replay >= 0)
    if (std::vector<int32_t> made = findMade(backward, replay);
        made.size() == 2)
      entry->second = std::make_unique<Reader>(
          backward, findGone(backward, replay), std::array{made[0], made[1]});
  return entry->second ? &entry->second->desc : nullptr;
}
