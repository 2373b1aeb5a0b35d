//===- Bridge.cpp - The library's functions for TVM-FFI -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// TVM-FFI finds a function f of a library as the symbol __tvm_ffi_f, a plain C
// function of tagged values; tensors arrive as DLPack's DLTensor. Nothing of
// libtvm_ffi is linked: the two functions that are called when there is
// something to say are weak, and Python has loaded the library by then.
//
//   forward(q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens, out,
//           final_state, scale, options, num_threads, max_seqlen)
//   explain(descriptions, scale, options, num_threads, max_seqlen) -> JSON
//   kernels() -> JSON
//
// A tensor may be None, and the scale, which is then K^(-1/2). `options` has a
// bit field each for the gate domain, the domain of beta and the switches, as
// the manifest (gdn/kernels.json) lists them; the order of the tensors is there
// too. `descriptions` are the tensors as 64-bit integers: the rank (or -1),
// DLPack's type code and bits, the device's type and index, the address (0
// where nobody knows it), extents and strides.
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"
#include "KernelChoice.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>
#include <tvm/ffi/c_api.h>

using namespace gdn;
using namespace gdn::cpu;

extern "C" {
[[gnu::weak]] void TVMFFIErrorSetRaisedFromCStr(const char *kind,
                                                const char *message);
[[gnu::weak]] int TVMFFIStringFromByteArray(const TVMFFIByteArray *input,
                                            TVMFFIAny *out);
[[gnu::weak]] void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);
}

/// What a function returns to say that an error is set.
static constexpr int kRaised = -1;

static int raise(const Error &error) {
  if (TVMFFIErrorSetRaisedFromCStr)
    TVMFFIErrorSetRaisedFromCStr(error.kind, error.message.c_str());
  return kRaised;
}

static int returnString(const std::string &text, TVMFFIAny *result) {
  TVMFFIByteArray bytes = {text.data(), text.size()};
  if (!TVMFFIStringFromByteArray)
    return kRaised;
  return TVMFFIStringFromByteArray(&bytes, result);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static constexpr const char *kArrayNames[] = {
#define GDN_ARRAY(field, name) name,
#include "Manifest.inc"
};
static constexpr int kNumArrays = std::size(kArrayNames);

static std::array<Array *, kNumArrays> arraysOf(Problem &p) {
  return {
#define GDN_ARRAY(field, name) &p.field,
#include "Manifest.inc"
  };
}

static Element elementOf(DLDataType type, bool hasBits) {
  if (type.lanes != 1)
    return Element::Other;
  // NumPy has no bf16 of its own: its arrays come as their bits.
  if (hasBits && type.code == kDLUInt && type.bits == 16)
    return Element::BF16;
#define GDN_TYPE(key, name, width, dlpack)                                     \
  if (type.code == dlpack && type.bits == width)                               \
    return Element::key;
#include "Manifest.inc"
  return Element::Other;
}

static void setType(Array &array, DLDataType type, const Problem &p) {
  array.element = elementOf(type, p.bf16AsBits);
  array.typeCode = type.code;
  array.typeBits = type.bits;
}

/// Extents and strides; the strides of a dense array where none are given.
static void setShape(Array &array, int rank, const int64_t *sizes,
                     const int64_t *strides) {
  array.rank = rank;
  int64_t dense = 1;
  for (int i = std::min(rank, kMaxRank) - 1; i >= 0; --i) {
    array.sizes[i] = sizes[i];
    array.strides[i] = strides ? strides[i] : dense;
    dense *= sizes[i];
  }
}

/// All arrays lie where q lies, which is read first.
static Error setDevice(int index, Device device, Problem &p) {
  if (index == 0)
    p.device = device;
  if (device == p.device)
    return {};
  return {"ValueError", std::string(kArrayNames[index]) +
                            ": expected a tensor on " + nameOf(p.device) +
                            " as q is, got one on " + nameOf(device)};
}

static Error readArray(const TVMFFIAny &value, int index, Array &array,
                       Problem &p) {
  const DLTensor *tensor = nullptr;
  if (value.type_index == kTVMFFINone)
    return {};
  if (value.type_index == kTVMFFITensor)
    tensor = TVMFFITensorGetDLTensorPtr(value.v_obj);
  else if (value.type_index == kTVMFFIDLTensorPtr)
    tensor = static_cast<const DLTensor *>(value.v_ptr);
  else
    return {"TypeError", std::string(kArrayNames[index]) +
                             ": expected a tensor or None, got another type"};
  if (Error error = setDevice(
          index, {tensor->device.device_type, tensor->device.device_id}, p))
    return error;
  setType(array, tensor->dtype, p);
  array.data = static_cast<char *>(tensor->data) + tensor->byte_offset;
  setShape(array, tensor->ndim, tensor->shape, tensor->strides);
  return {};
}

/// Reads the descriptions of all arrays from integers.
static Error readDescriptions(const TVMFFIByteArray &bytes, Problem &problem) {
  std::array<Array *, kNumArrays> arrays = arraysOf(problem);
  const char *next = bytes.data, *end = bytes.data + bytes.size;
  auto take = [&](int64_t *values, int64_t count) {
    if (count < 0 || end - next < count * 8)
      return false;
    std::memcpy(values, next, count * 8);
    next += count * 8;
    return true;
  };
  for (int i = 0; i < kNumArrays; ++i) {
    int64_t header[5], shape[2][kMaxRank];
    if (!take(header, 1))
      return {"ValueError", "descriptions: expected " +
                                std::to_string(kNumArrays) + " arrays"};
    if (header[0] < 0)
      continue;
    int64_t stored = std::min<int64_t>(header[0], kMaxRank);
    if (!take(header + 1, 4) || !take(shape[0], stored) ||
        !take(shape[1], stored))
      return {"ValueError", "descriptions: expected extents and strides"};
    Device device = {static_cast<int32_t>(header[2]),
                     static_cast<int32_t>(header[3])};
    if (Error error = setDevice(i, device, problem))
      return error;
    setType(*arrays[i],
            {static_cast<uint8_t>(header[1] >> 8),
             static_cast<uint8_t>(header[1]), 1},
            problem);
    arrays[i]->data = reinterpret_cast<void *>(header[4]);
    setShape(*arrays[i], static_cast<int>(header[0]), shape[0], shape[1]);
  }
  return {};
}

/// What stands behind the arrays: scale, options, num_threads, max_seqlen.
static constexpr int kNumOptions = 4;

namespace {
/// A field of the options.
struct Field {
  int shift, width;

  int64_t of(int64_t options) const {
    return options >> shift & ((int64_t(1) << width) - 1);
  }
};

/// The fields by name, and the bits that all of them have.
struct OptionFields {
#define GDN_OPTION(name, shift, width) Field name = {shift, width};
#include "Manifest.inc"
  int bits = 0
#define GDN_OPTION(name, shift, width) +width
#include "Manifest.inc"
      ;
};
} // namespace

static Error unpackOptions(int64_t options, Problem &p) {
  constexpr OptionFields fields;
  constexpr int64_t numGates = std::size(allGateDomains),
                    numBetas = std::size(allBetaDomains);
  int64_t gateDomain = fields.gate_domain.of(options),
          betaDomain = fields.beta_domain.of(options);
  if (options >> fields.bits || gateDomain >= numGates ||
      betaDomain >= numBetas)
    return {"ValueError",
            "options: expected a domain of g of 0 to " +
                std::to_string(numGates - 1) + ", one of beta of 0 to " +
                std::to_string(numBetas - 1) + " and no bits above the first " +
                std::to_string(fields.bits) +
                " (gdn/_library.py packs them), got " +
                std::to_string(options)};
  p.gateDomain = static_cast<GateDomain>(gateDomain);
  p.betaDomain = static_cast<BetaDomain>(betaDomain);
  p.l2norm = fields.l2norm.of(options);
  p.stateVFirst = fields.state_v_first.of(options);
  p.recurrent = fields.recurrent.of(options);
  p.bf16AsBits = fields.bf16_as_bits.of(options);
  return {};
}

static Error readOptions(const TVMFFIAny *args, Problem &p) {
  if (args[0].type_index != kTVMFFIFloat && args[0].type_index != kTVMFFINone)
    return {"TypeError", "scale: expected a float or None, got another type"};
  for (int i = 1; i < kNumOptions; ++i)
    if (args[i].type_index != kTVMFFIInt)
      return {"TypeError",
              "options, num_threads, max_seqlen: expected integers"};
  if (args[0].type_index == kTVMFFIFloat)
    p.scale = args[0].v_float64;
  if (Error error = unpackOptions(args[1].v_int64, p))
    return error;
  p.threads = static_cast<int>(std::clamp<int64_t>(args[2].v_int64, 0, 1024));
  p.maxSeqlen = args[3].v_int64;
  return {};
}

/// K^(-1/2), of a q that has been read; `check` refuses other shapes.
static void setDefaultScale(Problem &p) {
  if (p.q.rank == kMaxRank && p.keyChannels() > 0)
    p.scale = std::pow(static_cast<double>(p.keyChannels()), -0.5);
}

/// Runs `body`, which returns an Error or a code, and turns what is thrown into
/// an error: out of memory, in the main.
template <typename Body> static int guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return raise({"MemoryError", "gdn: expected memory for a call's workspace, "
                                 "got none"});
  } catch (const std::exception &error) {
    return raise({"RuntimeError", std::string("gdn: ") + error.what()});
  }
}

static int wrongCount(const char *function, int expected, int got) {
  return raise({"TypeError", std::string(function) + ": expected " +
                                 std::to_string(expected) + " arguments, got " +
                                 std::to_string(got)});
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

#define GDN_FUNCTION(name)                                                     \
  extern "C" [[gnu::visibility("default")]] int __tvm_ffi_##name(              \
      void *, const TVMFFIAny *args, int32_t count, TVMFFIAny *result)

static Error runOnCPU(const Problem &problem) {
  KernelChoice chosen;
  if (Error error = chooseKernel(problem, chosen))
    return error;
  run(problem, chosen);
  return {};
}

/// The stream is the one that TVM-FFI found current where it read the tensors:
/// torch's.
static Error runOnGPU(const Problem &problem) {
  hopper::KernelChoice chosen;
  if (Error error = hopper::chooseKernel(problem, chosen))
    return error;
  void *stream = TVMFFIEnvGetStream
                     ? TVMFFIEnvGetStream(kDLCUDA, problem.device.index)
                     : nullptr;
  return hopper::run(problem, chosen, stream);
}

GDN_FUNCTION(forward) {
  if (count != kNumArrays + kNumOptions)
    return wrongCount("forward", kNumArrays + kNumOptions, count);
  return guarded([&] {
    Problem problem;
    std::array<Array *, kNumArrays> arrays = arraysOf(problem);
    if (Error error = readOptions(args + kNumArrays, problem))
      return raise(error);
    for (int i = 0; i < kNumArrays; ++i)
      if (Error error = readArray(args[i], i, *arrays[i], problem))
        return raise(error);
    if (args[kNumArrays].type_index == kTVMFFINone)
      setDefaultScale(problem);
    if (!problem.o.isPresent())
      return raise({"TypeError", "out: expected a tensor, got None"});
    if (Error error = check(problem))
      return raise(error);
    if (Error error = checkDevice(problem.device))
      return raise(error);
    for (int i = 0; i < kNumArrays; ++i)
      if (Error error = checkMemory(kArrayNames[i], *arrays[i]))
        return raise(error);
    bool isCPU = problem.device.type == Device::CPU;
    if (Error error = isCPU ? runOnCPU(problem) : runOnGPU(problem))
      return raise(error);
    result->type_index = kTVMFFINone;
    result->v_int64 = 0;
    return 0;
  });
}

/// The bytes of a bytes object, however it was passed.
static bool readBytes(const TVMFFIAny &value, TVMFFIByteArray &bytes) {
  if (value.type_index == kTVMFFIByteArrayPtr)
    bytes = *static_cast<const TVMFFIByteArray *>(value.v_ptr);
  else if (value.type_index == kTVMFFIBytes)
    bytes = *reinterpret_cast<const TVMFFIByteArray *>(
        reinterpret_cast<const char *>(value.v_obj) + sizeof(TVMFFIObject));
  else
    return false;
  return true;
}

static Error describeOnCPU(const Problem &problem, std::string &facts) {
  KernelChoice chosen;
  if (Error error = chooseKernel(problem, chosen))
    return error;
  facts = toJson(problem, chosen);
  return {};
}

static Error describeOnGPU(Problem problem, std::string &facts) {
  hopper::KernelChoice chosen;
  if (Error error = hopper::chooseKernel(problem, chosen))
    return error;
  // An address that nobody knows is taken for a right one: never read, and as
  // far aligned as an allocation.
  alignas(GDN_WORKSPACE_ALIGNMENT) static char somewhere[1];
  for (Array *array : arraysOf(problem))
    if (!array->data)
      array->data = somewhere;
  if (Error error = hopper::checkLaunch(problem, chosen))
    return error;
  facts = hopper::toJson(problem, chosen);
  return {};
}

GDN_FUNCTION(explain) {
  if (count != 1 + kNumOptions)
    return wrongCount("explain", 1 + kNumOptions, count);
  return guarded([&] {
    Problem problem;
    TVMFFIByteArray bytes;
    if (!readBytes(args[0], bytes))
      return raise({"TypeError", "descriptions: expected bytes"});
    if (Error error = readDescriptions(bytes, problem))
      return raise(error);
    if (Error error = readOptions(args + 1, problem))
      return raise(error);
    if (args[1].type_index == kTVMFFINone)
      setDefaultScale(problem);
    if (Error error = check(problem))
      return raise(error);
    if (Error error = checkDevice(problem.device))
      return raise(error);
    std::string facts;
    bool isCPU = problem.device.type == Device::CPU;
    if (Error error = isCPU ? describeOnCPU(problem, facts)
                            : describeOnGPU(problem, facts))
      return raise(error);
    return returnString(facts, result);
  });
}

GDN_FUNCTION(kernels) {
  return guarded([&] {
    const Isa *host = getHostIsa();
    std::string text = std::string("{\"isa\": \"") +
                       (host ? nameOf(*host) : "none") + "\", \"kernels\": [";
    const char *separator = "";
    for (const KernelSet &set : allKernels()) {
      text += std::string(separator) + "\"" + set.name + "\"";
      separator = ", ";
    }
    text += "], \"gpu_kernels\": [";
    separator = "";
    for (const hopper::Kernel &kernel : hopper::allKernels()) {
      text += std::string(separator) + "\"" + kernel.name + "\"";
      separator = ", ";
    }
    return returnString(text + "]}", result);
  });
}
