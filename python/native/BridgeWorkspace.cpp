//===- BridgeWorkspace.cpp - The stream and memory of a caller ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BridgeWorkspace.h"

#include <tvm/ffi/c_api.h>

using namespace gdn;
using namespace gdn::cpu;

extern "C" {
[[gnu::weak]] void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);
[[gnu::weak]] DLPackManagedTensorAllocator
TVMFFIEnvGetDLPackManagedTensorAllocator();
[[gnu::weak]] int TVMFFIEnvTensorAlloc(DLTensor *prototype,
                                       TVMFFIObjectHandle *out);
[[gnu::weak]] int TVMFFIObjectDecRef(TVMFFIObjectHandle object);
}

void *gdn::bridge::streamOfCaller(int32_t device) {
  return TVMFFIEnvGetStream ? TVMFFIEnvGetStream(kDLCUDA, device) : nullptr;
}

namespace {
/// A tensor of the caller's library.
class CallersWorkspace : public hopper::Workspace {
public:
  explicit CallersWorkspace(TVMFFIObjectHandle tensor) : tensor(tensor) {
    data = TVMFFITensorGetDLTensorPtr(tensor)->data;
  }
  ~CallersWorkspace() override { TVMFFIObjectDecRef(tensor); }

private:
  TVMFFIObjectHandle tensor;
};
} // namespace

Error gdn::bridge::allocateForCaller(
    int32_t device, void *stream, uint64_t bytes,
    std::unique_ptr<hopper::Workspace> &workspace) {
  bool hasAllocator = TVMFFIEnvGetDLPackManagedTensorAllocator &&
                      TVMFFIEnvTensorAlloc && TVMFFIObjectDecRef &&
                      TVMFFIEnvGetDLPackManagedTensorAllocator();
  if (!hasAllocator)
    return hopper::allocateOwn(device, stream, bytes, workspace);
  int64_t size = static_cast<int64_t>(bytes);
  DLTensor prototype = {};
  prototype.device = {kDLCUDA, device};
  prototype.dtype = {kDLUInt, 8, 1};
  prototype.ndim = 1;
  prototype.shape = &size;
  TVMFFIObjectHandle tensor = nullptr;
  if (TVMFFIEnvTensorAlloc(&prototype, &tensor) != 0)
    return {"MemoryError", "gdn: expected " + std::to_string(bytes) +
                               " bytes of workspace on " +
                               nameOf({Device::CUDA, device}) +
                               " by the allocator of the tensors, got none"};
  workspace = std::make_unique<CallersWorkspace>(tensor);
  return {};
}
