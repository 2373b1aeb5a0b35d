//===- Bridge.cpp - The library's functions for TVM-FFI -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// TVM-FFI finds a function f of a library as the symbol __tvm_ffi_f, a plain C
// function of tagged values; tensors arrive as DLPack's DLTensor. Nothing of
// libtvm_ffi is linked: its functions that are called are weak, and Python has
// loaded the library by then.
//
//   forward(q, ..., scale, options, num_threads, max_seqlen)
//   forward_objects(exchange_api, tensors, scale, options, num_threads,
//           max_seqlen): the same for a tuple of tensors that have DLPack's
//           exchange functions; both are addresses, and the GIL is held
//   backward(q, ..., gradients of out and final_state in their places, ...,
//           gradients of inputs to be written, scale, ...): on a GPU of packed
//           sequences, dense
//   backward_saved(q, ..., gradients, writes, states, scale, ...): the same
//           on a GPU from what forward_saving wrote; v is not read
//   forward_saving(q, ..., writes, states, scale, ...): a forward on a GPU that
//           writes these two for its gradients (Request.h)
//   reads_objects(exchange_api) -> bool: whether it can
//   explain(descriptions, scale, options, num_threads, max_seqlen) -> JSON
//   explain_backward, explain_saving: the same of gradients on a GPU, and of
//           the forward that saves for them, where the options say so
//   saving_pays(device, sequences, tokens, key_heads, heads,
//           has_channel_gates, has_segments, options) -> bool: whether a call
//           that saves for its gradients is predicted to take less time with
//           them than one that does not
//   check_values(cu_seqlens, state_indices, tokens, first_state, count): the
//           CPU's checks of a call's boundaries and of the rows of a pool of
//           `count` states, for copies of those that lie on a GPU
//   kernels() -> JSON
//   gpus() -> the GPUs of this machine, or why there are none, in words
//
// A tensor may be None, and the scale, which is then K^(-1/2). The manifest
// (gdn/kernels.json) lists the tensors in order, and the bit fields of
// `options`. `descriptions` are tensors as Description has them.
//
//===----------------------------------------------------------------------===//

#include "Bridge.h"

#include <exception>
#include <new>
#include <string>
#include <vector>

using namespace gdn;
using namespace gdn::bridge;
using native::At, native::Kind;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

extern "C" {
[[gnu::weak]] void TVMFFIErrorSetRaisedFromCStr(const char *kind,
                                                const char *message);
[[gnu::weak]] int TVMFFIStringFromByteArray(const TVMFFIByteArray *input,
                                            TVMFFIAny *out);
}

/// Runs a function of so many arguments, which may set the result, and returns
/// what TVM-FFI wants, with the error set. What is thrown becomes one: out of
/// memory, in the main.
static int guarded(void (*function)(const TVMFFIAny *, TVMFFIAny *),
                   const char *name, int expected, const TVMFFIAny *args,
                   int32_t count, TVMFFIAny *result) {
  auto raise = [](const Error &error) {
    if (TVMFFIErrorSetRaisedFromCStr)
      TVMFFIErrorSetRaisedFromCStr(error.kind, error.message.c_str());
    return -1;
  };
  result->type_index = kTVMFFINone;
  result->v_int64 = 0;
  try {
    if (count != expected)
      native::fail(name, std::to_string(expected) + " arguments",
                   std::to_string(count), "TypeError");
    function(args, result);
    return 0;
  } catch (const Error &error) {
    return raise(error);
  } catch (const std::bad_alloc &) {
    return raise({"MemoryError", "gdn: expected memory for a call's workspace, "
                                 "got none"});
  } catch (const std::exception &thrown) {
    return raise({"RuntimeError", std::string("gdn: ") + thrown.what()});
  }
}

/// A function for TVM-FFI, of so many arguments.
#define GDN_FUNCTION(name, expected)                                           \
  static void name(const TVMFFIAny *args, TVMFFIAny *result);                  \
  extern "C" [[gnu::visibility("default")]] int __tvm_ffi_##name(              \
      void *, const TVMFFIAny *args, int32_t count, TVMFFIAny *result) {       \
    return guarded(name, #name, expected, args, count, result);                \
  }                                                                            \
  static void name([[maybe_unused]] const TVMFFIAny *args,                     \
                   [[maybe_unused]] TVMFFIAny *result)

static void returnString(const std::string &text, TVMFFIAny *result) {
  TVMFFIByteArray bytes = {text.data(), text.size()};
  if (TVMFFIStringFromByteArray(&bytes, result) != 0)
    throw Error{"EnvErrorAlreadySet", {}};
}

static void returnBool(bool value, TVMFFIAny *result) {
  result->type_index = kTVMFFIBool;
  result->v_int64 = value;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// A workspace by the allocator of a caller, for gdnCallRun.
static GdnRuntimeStatus allocate(void *user, int32_t device, uint64_t bytes,
                                 void *, void **memory) {
  auto &caller = *static_cast<Caller *>(user);
  int64_t size = static_cast<int64_t>(bytes);
  DLTensor prototype = {};
  prototype.device = {kDLCUDA, device};
  prototype.dtype = {kDLUInt, 8, 1};
  prototype.ndim = 1;
  prototype.shape = &size;
  DLManagedTensorVersioned *tensor = nullptr;
  auto ignore = [](void *, const char *, const char *) {};
  if (caller.getAllocator()(&prototype, &tensor, nullptr, ignore) != 0)
    return gdnSetLastErrorMessage(
        GDN_ERROR_OUT_OF_MEMORY,
        ("expected " + std::to_string(bytes) + " bytes of workspace on cuda:" +
         std::to_string(device) + " by the allocator of the tensors, got none")
            .c_str());
  caller.workspace = {tensor, [](auto *given) { given->deleter(given); }};
  *memory = tensor->dl_tensor.data;
  return GDN_SUCCESS;
}

/// Runs a call whose arrays and options have been read.
static void run(Request &request, Caller caller = {}) {
  native::settleSteps(request);
  if (!request[At::o].isPresent() && request.kind != Kind::Backward)
    throw Error{"TypeError", "out: expected a tensor, got None"};
  if (request.isOnCPU())
    return native::run(request, nullptr, nullptr, nullptr);
  native::run(request, caller.streamOf(request.device.index),
              caller.getAllocator() ? allocate : nullptr, &caller);
}

/// How many tensors a call has: those of all calls, the gradients of a
/// backward, and what is saved.
static constexpr int countTensors(Kind kind, bool hasSaved) {
  return (kind == Kind::Backward ? At::writes : At::gradients) +
         (hasSaved ? At::end - At::writes : 0);
}

/// Runs a call of these tensors, and options behind them.
static void runArrays(Kind kind, bool hasSaved, const TVMFFIAny *args) {
  const TVMFFIAny *options = args + countTensors(kind, hasSaved);
  Request request;
  request.kind = kind;
  readOptions(options, request);
  if (kind == Kind::Backward)
    request.savesStates = hasSaved;
  const int own = countTensors(kind, /*hasSaved=*/false);
  for (int place = 0; place < own; ++place)
    readArray(*args++, place, request);
  for (int place = At::writes; hasSaved && place < At::end; ++place)
    readArray(*args++, place, request);
  run(request);
}

/// A function of such a call.
#define GDN_CALL(name, kind, hasSaved)                                         \
  GDN_FUNCTION(name, countTensors(kind, hasSaved) + kNumOptions) {             \
    runArrays(kind, hasSaved, args);                                           \
  }

GDN_CALL(forward, Kind::Forward, false)
GDN_CALL(forward_saving, Kind::Saving, true)
GDN_CALL(backward, Kind::Backward, false)
GDN_CALL(backward_saved, Kind::Backward, true)

GDN_FUNCTION(forward_objects, 2 + kNumOptions) {
  const auto [api, tensors] =
      readIntegers<2>(args, "tensors: expected addresses");
  const Caller caller = {reinterpret_cast<const DLPackExchangeAPI *>(api)};
  Request request;
  readOptions(args + 2, request);
  readObjects(*caller.api, reinterpret_cast<void *>(tensors), request);
  const std::shared_ptr<void> others = releaseGIL();
  run(request, caller);
}

GDN_FUNCTION(reads_objects, 1) {
  const auto [api] = readIntegers<1>(args, "exchange_api: expected an address");
  returnBool(canReadObjects(*reinterpret_cast<const DLPackExchangeAPI *>(api)),
             result);
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// What a described call of a kind would run.
static void explainCall(Kind kind, const TVMFFIAny *args, TVMFFIAny *result) {
  Request request;
  request.kind = kind;
  readOptions(args + 1, request);
  readDescriptions(args[0], request);
  native::settleSteps(request);
  returnString(native::describe(request), result);
}

#define GDN_EXPLAIN(name, kind)                                                \
  GDN_FUNCTION(name, 1 + kNumOptions) { explainCall(kind, args, result); }

GDN_EXPLAIN(explain, Kind::Forward)
GDN_EXPLAIN(explain_backward, Kind::Backward)
GDN_EXPLAIN(explain_saving, Kind::Saving)

GDN_FUNCTION(saving_pays, 8) {
  const auto [device, sequences, tokens, keyHeads, heads, hasChannelGates,
              hasSegments, options] =
      readIntegers<8>(args, "saving_pays: expected integers");
  Request request;
  request.kind = Kind::Saving;
  unpackOptions(options, request);
  request.device = {native::Device::CUDA, static_cast<int32_t>(device)};
  // The extents of a packed call, whose channels are of no account.
  auto describe = [&](int place, int rank, auto... sizes) {
    request[place].rank = rank;
    request[place].sizes = {sizes...};
  };
  describe(At::q, native::kMaxRank, int64_t(1), tokens, keyHeads, int64_t(1));
  describe(At::k, native::kMaxRank, int64_t(1), tokens, keyHeads, int64_t(1));
  describe(At::v, native::kMaxRank, int64_t(1), tokens, heads, int64_t(1));
  describe(At::gate, native::kMaxRank - !hasChannelGates);
  describe(At::cuSeqlens, 1, sequences + 1);
  returnBool(native::predictSaving(request, hasSegments), result);
}

GDN_FUNCTION(check_values, 5) {
  Request request;
  readArray(args[0], At::cuSeqlens, request);
  readArray(args[1], At::stateIndices, request);
  Array &boundaries = request[At::cuSeqlens], &rows = request[At::stateIndices];
  const auto [tokens, first, states] = readIntegers<3>(
      args + 2, "tokens, first_state, count: expected integers");
  // A call refuses other shapes and types.
  for (Array *list : {&boundaries, &rows})
    if (list->rank != 1 ||
        (list->dtype != GDN_DTYPE_I32 && list->dtype != GDN_DTYPE_I64))
      *list = {};
  native::checkValues(boundaries, rows, tokens, first, states);
}

/// "field": ["name", ...].
static std::string toJson(const char *field,
                          const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "\"" : ", \"") + name + "\"";
  return std::string("\"") + field + "\": [" + list + "]";
}

GDN_FUNCTION(kernels, 0) {
  std::vector<std::string> forwards, backwards, gpu;
  const GdnCallTable &table = native::allFunctions();
  for (int32_t i = 0; i < table.num_entries; ++i)
    for (int32_t j = 0; j < table.entries[i]->num_variants; ++j)
      gpu.push_back(table.entries[i]->variants[j].function->name);
  for (int32_t i = 0; i < table.num_items; ++i)
    (std::string_view(table.items[i].op).ends_with("_bwd") ? backwards
                                                           : forwards)
        .push_back(table.items[i].name);
  GdnDeviceInfo cpu = {};
  cpu.struct_size = sizeof(cpu);
  gdnDeviceGetInfo(GDN_DEVICE_CPU, &cpu);
  returnString(std::string("{\"isa\": \"") + cpu.name + "\", " +
                   toJson("kernels", forwards) + ", " +
                   toJson("backward_kernels", backwards) + ", " +
                   toJson("gpu_kernels", gpu) + "}",
               result);
}

/// "cuda:0 NVIDIA H200, compute capability 9.0; cuda:1 ...".
GDN_FUNCTION(gpus, 0) {
  int32_t count = 0;
  if (gdnDeviceGetCount(&count) != GDN_SUCCESS)
    return returnString("none: " + std::string(gdnGetLastErrorMessage()),
                        result);
  std::string text;
  for (int32_t index = 0; index < count; ++index) {
    GdnDeviceInfo info = {};
    info.struct_size = sizeof(info);
    if (gdnDeviceGetInfo(index, &info) == GDN_SUCCESS)
      text += (text.empty() ? "cuda:" : "; cuda:") + std::to_string(index) +
              " " + info.name + ", compute capability " +
              std::to_string(info.compute_capability / 10) + "." +
              std::to_string(info.compute_capability % 10);
  }
  returnString(text.empty() ? "none: the driver lists no device" : text,
               result);
}
