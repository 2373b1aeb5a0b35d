//===- BridgeArguments.cpp - A call's arguments from TVM-FFI --------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bridge.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

using namespace gdn;
using namespace gdn::bridge;
using namespace gdn::native;

extern "C" {
[[gnu::weak]] void *PyTuple_GetItem(void *tuple, intptr_t index);
[[gnu::weak]] void *PyEval_SaveThread();
[[gnu::weak]] void PyEval_RestoreThread(void *thread);
[[gnu::weak]] extern char _Py_NoneStruct;
[[gnu::weak]] void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);
[[gnu::weak]] DLPackManagedTensorAllocator
TVMFFIEnvGetDLPackManagedTensorAllocator();
}

static int32_t dtypeOf(DLDataType type, bool hasBits) {
  // NumPy has no bf16 of its own: its arrays come as their bits.
  if (hasBits && type.code == kDLUInt && type.bits == 16 && type.lanes == 1)
    return GDN_DTYPE_BF16;
#define GDN_TYPE(key, width, dlpack)                                           \
  if (type.code == dlpack && type.bits == width && type.lanes == 1)            \
    return GDN_DTYPE_##key;
#include "Manifest.inc"
  return GDN_DTYPE_FOREIGN(type.code, type.bits);
}

static void readTensor(const DLTensor &tensor, int place, Request &p) {
  Device device = {tensor.device.device_type, tensor.device.device_id};
  // All arrays lie where q lies, which is read first.
  if (place == At::q)
    p.device = device;
  if (device != p.device)
    fail(p.nameOf(place), "a tensor on " + nameOf(p.device) + " as q is",
         "one on " + nameOf(device));
  Array &array = p[place];
  array.dtype = dtypeOf(tensor.dtype, p.bf16AsBits);
  array.rank = tensor.ndim;
  array.data = static_cast<char *>(tensor.data) + tensor.byte_offset;
  const int stored = std::min(array.rank, kMaxRank);
  std::copy_n(tensor.shape, stored, array.sizes.begin());
  if (tensor.strides)
    std::copy_n(tensor.strides, stored, array.strides.begin());
  else
    array.makeDense();
}

void gdn::bridge::readArray(const TVMFFIAny &value, int place, Request &p) {
  if (value.type_index == kTVMFFITensor)
    readTensor(*TVMFFITensorGetDLTensorPtr(value.v_obj), place, p);
  else if (value.type_index == kTVMFFIDLTensorPtr)
    readTensor(*static_cast<const DLTensor *>(value.v_ptr), place, p);
  else if (value.type_index != kTVMFFINone)
    fail(p.nameOf(place), "a tensor or None", "another type", "TypeError");
}

/// The bytes of a bytes object, however it was passed; none of another value.
static TVMFFIByteArray bytesOf(const TVMFFIAny &value) {
  if (value.type_index == kTVMFFIByteArrayPtr)
    return *static_cast<const TVMFFIByteArray *>(value.v_ptr);
  if (value.type_index == kTVMFFIBytes)
    return *reinterpret_cast<const TVMFFIByteArray *>(
        reinterpret_cast<const char *>(value.v_obj) + sizeof(TVMFFIObject));
  return {};
}

namespace {
/// An array of a call that is not to run, as the package packs it.
struct Description {
  int64_t rank, typeCodeAndBits, deviceType, deviceIndex, address;
  int64_t sizes[kMaxRank], strides[kMaxRank];
};
} // namespace

void gdn::bridge::readDescriptions(const TVMFFIAny &value, Request &p) {
  TVMFFIByteArray bytes = bytesOf(value);
  Description described[At::gradients];
  if (!bytes.data)
    throw Error{"TypeError", "descriptions: expected bytes"};
  if (bytes.size != sizeof(described))
    throw Error{"ValueError", "descriptions: expected " +
                                  std::to_string(At::gradients) + " arrays"};
  std::memcpy(described, bytes.data, sizeof(described));
  for (int place = 0; place < At::gradients; ++place) {
    Description &one = described[place];
    DLTensor tensor = {reinterpret_cast<void *>(one.address),
                       {static_cast<DLDeviceType>(one.deviceType),
                        static_cast<int32_t>(one.deviceIndex)},
                       static_cast<int32_t>(one.rank),
                       {static_cast<uint8_t>(one.typeCodeAndBits >> 8),
                        static_cast<uint8_t>(one.typeCodeAndBits), 1},
                       one.sizes,
                       one.strides,
                       0};
    if (one.rank >= 0)
      readTensor(tensor, place, p);
  }
}

void gdn::bridge::unpackOptions(int64_t packed, Request &p) {
  constexpr int bits = 0
#define GDN_OPTION(field, width) +width
#include "Manifest.inc"
      ;
  constexpr size_t numGates = std::size(allGateDomains),
                   numBetas = std::size(allBetaDomains);
  Options &options = p;
  // Compilers lay out bit fields from the lowest bit on.
  static_assert(sizeof(Options) == sizeof(packed));
  options = std::bit_cast<Options>(packed);
  if (packed >> bits || options.gateDomain >= numGates ||
      options.betaDomain >= numBetas)
    throw Error{"ValueError",
                "options: expected a domain of g of 0 to " +
                    std::to_string(numGates - 1) + ", one of beta of 0 to " +
                    std::to_string(numBetas - 1) +
                    " and no bits above the first " + std::to_string(bits) +
                    " (gdn/_library.py packs them), got " +
                    std::to_string(packed)};
  constexpr int64_t chunk = manifest::HopperChunkTokens;
  if (p.split == GDN_SPLIT_LENGTH && p.splitBy % chunk)
    fail("segment_length", "a multiple of " + std::to_string(chunk) + " tokens",
         std::to_string(p.splitBy));
}

void gdn::bridge::readOptions(const TVMFFIAny *args, Request &p) {
  if (args[0].type_index != kTVMFFIFloat && args[0].type_index != kTVMFFINone)
    throw Error{"TypeError",
                "scale: expected a float or None, got another type"};
  if (args[0].type_index == kTVMFFIFloat)
    p.scale = args[0].v_float64 != 0 ? args[0].v_float64
                                     : std::numeric_limits<double>::min();
  const auto [options, threads, maxSeqlen] = readIntegers<kNumOptions - 1>(
      args + 1, "options, num_threads, max_seqlen: expected integers");
  if (threads < 1)
    fail("num_threads", "at least 1", "0"); // That of smaller ones, too.
  p.threads = static_cast<int>(std::min<int64_t>(threads, 1024));
  p.maxSeqlen = maxSeqlen;
  unpackOptions(options, p);
}

bool gdn::bridge::canReadObjects(const DLPackExchangeAPI &api) {
  return api.header.version.major == DLPACK_MAJOR_VERSION &&
         api.dltensor_from_py_object_no_sync && api.current_work_stream &&
         PyTuple_GetItem && PyEval_SaveThread && PyEval_RestoreThread &&
         &_Py_NoneStruct;
}

void gdn::bridge::readObjects(const DLPackExchangeAPI &api, void *tuple,
                              Request &p) {
  for (int place = 0; place < At::gradients; ++place) {
    void *object = PyTuple_GetItem(tuple, place);
    if (object == &_Py_NoneStruct)
      continue;
    DLTensor tensor;
    if (!object || api.dltensor_from_py_object_no_sync(object, &tensor) != 0)
      throw Error{"EnvErrorAlreadySet", {}}; // TVM-FFI raises Python's own
    readTensor(tensor, place, p);
  }
}

std::shared_ptr<void> gdn::bridge::releaseGIL() {
  return {PyEval_SaveThread(), PyEval_RestoreThread};
}

void *Caller::streamOf(int32_t device) const {
  void *stream = nullptr;
  if (api && api->current_work_stream(kDLCUDA, device, &stream) == 0)
    return stream;
  return TVMFFIEnvGetStream ? TVMFFIEnvGetStream(kDLCUDA, device) : nullptr;
}

DLPackManagedTensorAllocator Caller::getAllocator() const {
  if (api && api->managed_tensor_allocator)
    return api->managed_tensor_allocator;
  return TVMFFIEnvGetDLPackManagedTensorAllocator
             ? TVMFFIEnvGetDLPackManagedTensorAllocator()
             : nullptr;
}
