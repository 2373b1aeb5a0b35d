//===- BridgeArguments.cpp - A call's arguments from TVM-FFI --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BridgeArguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace gdn;
using namespace gdn::bridge;
using namespace gdn::cpu;

std::array<Array *, kNumArrays> gdn::bridge::arraysOf(Problem &p) {
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

/// What messages call array `index` of a call.
static const char *nameOf(int index, Problem &p) {
  const Array *array = arraysOf(p)[index];
  return array == &p.o            ? p.oName
         : array == &p.finalState ? p.finalStateName
                                  : kArrayNames[index];
}

/// All arrays lie where q lies, which is read first.
static Error setDevice(int index, Device device, Problem &p) {
  if (index == 0)
    p.device = device;
  if (device == p.device)
    return {};
  return {"ValueError", std::string(nameOf(index, p)) +
                            ": expected a tensor on " + nameOf(p.device) +
                            " as q is, got one on " + nameOf(device)};
}

Error gdn::bridge::readTensor(const DLTensor &tensor, int index, Array &array,
                              Problem &p) {
  if (Error error = setDevice(
          index, {tensor.device.device_type, tensor.device.device_id}, p))
    return error;
  setType(array, tensor.dtype, p);
  array.data = static_cast<char *>(tensor.data) + tensor.byte_offset;
  setShape(array, tensor.ndim, tensor.shape, tensor.strides);
  return {};
}

Error gdn::bridge::readArray(const TVMFFIAny &value, int index, Array &array,
                             Problem &p) {
  const DLTensor *tensor = nullptr;
  if (value.type_index == kTVMFFINone)
    return {};
  if (value.type_index == kTVMFFITensor)
    tensor = TVMFFITensorGetDLTensorPtr(value.v_obj);
  else if (value.type_index == kTVMFFIDLTensorPtr)
    tensor = static_cast<const DLTensor *>(value.v_ptr);
  else
    return {"TypeError", std::string(nameOf(index, p)) +
                             ": expected a tensor or None, got another type"};
  return readTensor(*tensor, index, array, p);
}

Error gdn::bridge::checkAddresses(Problem &problem) {
  std::array<Array *, kNumArrays> arrays = arraysOf(problem);
  for (int i = 0; i < kNumArrays; ++i)
    if (Error error = checkMemory(nameOf(i, problem), *arrays[i]))
      return error;
  return {};
}

/// Reads the descriptions of all arrays from integers.
Error gdn::bridge::readDescriptions(const TVMFFIByteArray &bytes,
                                    Problem &problem) {
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

Error gdn::bridge::unpackOptions(int64_t options, Problem &p) {
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
  p.float32Arithmetic = fields.float32_arithmetic.of(options);
  p.savesStates = fields.saves_states.of(options);
  p.split = {static_cast<cost::SplitRequest::Kind>(fields.split.of(options)),
             fields.split_by.of(options)};
  p.split.decays = !fields.undecayed.of(options);
  p.firstState = fields.first_state.of(options);
  bool isLength = p.split.kind == cost::SplitRequest::Kind::Length;
  constexpr int64_t chunk = manifest::HopperChunkTokens;
  if (isLength && (p.split.value < chunk || p.split.value % chunk))
    return {"ValueError", "segment_length: expected a multiple of " +
                              std::to_string(chunk) + " tokens, got " +
                              std::to_string(p.split.value)};
  return {};
}

Error gdn::bridge::readOptions(const TVMFFIAny *args, Problem &p) {
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

Error gdn::bridge::readCall(const TVMFFIAny *args, int numTensors,
                            Problem &problem) {
  if (Error error = readOptions(args + numTensors, problem))
    return error;
  std::array<Array *, kNumArrays> arrays = arraysOf(problem);
  for (int i = 0; i < kNumArrays; ++i)
    if (Error error = readArray(args[i], i, *arrays[i], problem))
      return error;
  return {};
}

/// K^(-1/2), of a q that has been read; `check` refuses other shapes.
void gdn::bridge::setDefaultScale(Problem &p) {
  if (p.q.rank == kMaxRank && p.keyChannels() > 0)
    p.scale = std::pow(static_cast<double>(p.keyChannels()), -0.5);
}

/// The bytes of a bytes object, however it was passed.
bool gdn::bridge::readBytes(const TVMFFIAny &value, TVMFFIByteArray &bytes) {
  if (value.type_index == kTVMFFIByteArrayPtr)
    bytes = *static_cast<const TVMFFIByteArray *>(value.v_ptr);
  else if (value.type_index == kTVMFFIBytes)
    bytes = *reinterpret_cast<const TVMFFIByteArray *>(
        reinterpret_cast<const char *>(value.v_obj) + sizeof(TVMFFIObject));
  else
    return false;
  return true;
}

Error gdn::bridge::readDescribedCall(const TVMFFIAny *args, Problem &problem) {
  TVMFFIByteArray bytes;
  if (!readBytes(args[0], bytes))
    return {"TypeError", "descriptions: expected bytes"};
  if (Error error = readDescriptions(bytes, problem))
    return error;
  if (Error error = readOptions(args + 1, problem))
    return error;
  if (args[1].type_index == kTVMFFINone)
    setDefaultScale(problem);
  return {};
}
