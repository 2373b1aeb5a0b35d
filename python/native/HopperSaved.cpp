//===- HopperSaved.cpp - What a forward saves for its gradients -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function is a table (gdn-c/Runtime/Function.h). That of gradients from what
// a forward saved is the table of gradients without one launch, so it needs no
// kernels of its own.
//
//===----------------------------------------------------------------------===//

#include "HopperSaved.h"

#include "HopperArguments.h"
#include "ReadyDevices.h"

#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

using namespace gdn::hopper;
using gdn::cpu::Array;

//===----------------------------------------------------------------------===//
// Forwards that save
//===----------------------------------------------------------------------===//

#define GDN_HOPPER_SAVING(name, ...)                                           \
  extern "C" const GdnFunctionDesc name##_function;
#if GDN_PYTHON_HOPPER
#include "HopperSavingKernels.inc"
#endif
#undef GDN_HOPPER_SAVING

namespace {
/// A compiled forward, and what it serves.
struct SavingKernel {
  int64_t channels;
  Element element;
  GateDomain gateDomain;
  Element gate;
  BetaDomain betaDomain;
  Element beta;
  Norm norm;
  const GdnFunctionDesc *function;
};
} // namespace

// The last entry keeps the table from being empty.
static const SavingKernel table[] = {
#define GDN_HOPPER_SAVING(name, channels, element, gateDomain, gate,           \
                          betaDomain, beta, norm)                              \
  {channels,      Element::element,       GateDomain::gateDomain,              \
   Element::gate, BetaDomain::betaDomain, Element::beta,                       \
   Norm::norm,    &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperSavingKernels.inc"
#endif
#undef GDN_HOPPER_SAVING
    {}};

static const SavingKernel *findSaving(const Problem &p) {
  for (const SavingKernel &kernel :
       std::span(table).first(std::size(table) - 1))
    if (kernel.channels == p.keyChannels() &&
        kernel.channels == p.valueChannels() && kernel.element == p.q.element &&
        kernel.gateDomain == p.gateDomain && kernel.gate == p.gate.element &&
        kernel.betaDomain == p.betaDomain && kernel.beta == p.beta.element &&
        (kernel.norm == Norm::L2) == p.l2norm)
      return &kernel;
  return nullptr;
}

Error gdn::hopper::runSaving(const Problem &p, const Saved &saved, void *stream,
                             Allocate allocate) {
  const SavingKernel *kernel = findSaving(p);
  bool hasForm = kernel && p.cuSeqlens.isPresent() && !p.stateVFirst &&
                 p.initialState.isPresent() && p.finalState.isPresent();
  if (!hasForm)
    return {"NotImplementedError",
            "gdn: expected a call with a forward that saves in this version, "
            "got another form"};
  static ReadyDevices ready[std::size(table)];
  int32_t device = p.device.index;
  if (Error error = ready[kernel - table].prepare(kernel->function, device))
    return error;
  Arguments arguments;
  for (const Array *array :
       {&p.q, &p.k, &p.v, &p.beta, &p.gate, &p.initialState, &p.cuSeqlens,
        &p.aLog, &p.dtBias, &p.o, &p.finalState, &saved.writes, &saved.states})
    arguments.add(*array);
  uint64_t bytes = 0;
  if (Error error = errorOf(gdnFunctionGetWorkspaceBytes(
          kernel->function, arguments.data(), arguments.size(), &bytes)))
    return error;
  std::unique_ptr<Workspace> workspace;
  if (bytes)
    if (Error error = allocate(device, stream, bytes, workspace))
      return error;
  return errorOf(gdnFunctionLaunchOn(
      kernel->function, device, arguments.data(), arguments.size(),
      workspace ? workspace->data : nullptr, bytes, stream));
}

//===----------------------------------------------------------------------===//
// Gradients from what was saved
//===----------------------------------------------------------------------===//

namespace {
/// A function without a launch, whose results are arguments instead.
class Reader {
public:
  Reader(const GdnFunctionDesc &backward, int32_t launch,
         std::array<int32_t, 2> saved);
  Reader(const Reader &) = delete;

  GdnFunctionDesc desc;

private:
  void addArgument(const GdnTemporaryDesc &temporary, const char *name);
  void copyLaunch(const GdnLaunchDesc &launch, bool isFirst);

  std::array<int32_t, 2> saved;
  std::vector<GdnArgDesc> args;
  std::vector<const char *> symbols;
  std::vector<GdnExtentRule> rules;
  std::vector<GdnTemporaryDesc> temporaries;
  std::vector<GdnLaunchDesc> launches;
  std::vector<std::unique_ptr<GdnOperand[]>> operands;
  std::vector<std::unique_ptr<int64_t[]>> shapes;
  /// The kernel behind the launch that is gone, which does not follow it.
  GdnKernelDesc next;
  std::vector<void *> places;
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

void Reader::copyLaunch(const GdnLaunchDesc &launch, bool isFirst) {
  auto &own = operands.emplace_back(new GdnOperand[launch.num_operands]);
  for (int32_t i = 0; i < launch.num_operands; ++i) {
    GdnOperand operand = launch.operands[i];
    if (operand.kind == GDN_OPERAND_TEMPORARY) {
      int32_t removed = 0;
      for (size_t s = 0; s < saved.size(); ++s) {
        removed += saved[s] < operand.index;
        if (saved[s] == launch.operands[i].index)
          operand = {GDN_OPERAND_ARGUMENT,
                     static_cast<int32_t>(args.size() - saved.size() + s)};
      }
      if (operand.kind == GDN_OPERAND_TEMPORARY)
        operand.index -= removed;
    }
    own[i] = operand;
  }
  GdnLaunchDesc copy = launch;
  copy.operands = own.get();
  if (isFirst) {
    // It may have been launched beside what is gone, and so before what was in
    // front of that was done.
    next = *launch.kernel;
    next.follows = 0;
    copy.kernel = &next;
  }
  launches.push_back(copy);
}

Reader::Reader(const GdnFunctionDesc &backward, int32_t launch,
               std::array<int32_t, 2> saved)
    : desc(backward), saved(saved),
      args(backward.args, backward.args + backward.num_args),
      symbols(backward.symbols, backward.symbols + backward.num_symbols),
      rules(backward.rules, backward.rules + backward.num_rules) {
  addArgument(backward.temporaries[saved[0]], "writes");
  addArgument(backward.temporaries[saved[1]], "states");
  for (int32_t i = 0; i < backward.num_temporaries; ++i)
    if (i != saved[0] && i != saved[1])
      temporaries.push_back(backward.temporaries[i]);
  for (int32_t i = 0; i < backward.num_launches; ++i)
    if (i != launch)
      copyLaunch(backward.launches[i], /*isFirst=*/i == launch + 1);
  places.resize(launches.size());
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
  desc.kernels = places.data();
}

/// The launch that makes writes and states once more; negative for none.
static int32_t findReplay(const GdnFunctionDesc &function) {
  for (int32_t i = 0; i < function.num_launches; ++i)
    if (std::string_view(function.launches[i].kernel->symbol)
            .ends_with("_replay"))
      return i;
  return -1;
}

/// The temporaries that a launch makes: those that no earlier one has.
static std::vector<int32_t> findMade(const GdnFunctionDesc &function,
                                     int32_t launch) {
  auto listOf = [&](int32_t number) {
    std::vector<int32_t> list;
    const GdnLaunchDesc &desc = function.launches[number];
    for (int32_t i = 0; i < desc.num_operands; ++i)
      if (desc.operands[i].kind == GDN_OPERAND_TEMPORARY)
        list.push_back(desc.operands[i].index);
    return list;
  };
  std::vector<int32_t> made = listOf(launch);
  for (int32_t earlier = 0; earlier < launch; ++earlier)
    for (int32_t other : listOf(earlier))
      std::erase(made, other);
  return made;
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
      entry->second = std::make_unique<Reader>(backward, replay,
                                               std::array{made[0], made[1]});
  return entry->second ? &entry->second->desc : nullptr;
}
