//===- PythonObjects.cpp - Tensors by their Python objects ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PythonObjects.h"
#include "BridgeArguments.h"

#include <tvm/ffi/c_api.h>

using namespace gdn::bridge;
using namespace gdn::cpu;

extern "C" {
[[gnu::weak]] void *PyTuple_GetItem(void *tuple, intptr_t index);
[[gnu::weak]] void *PyEval_SaveThread();
[[gnu::weak]] void PyEval_RestoreThread(void *thread);
[[gnu::weak]] extern char _Py_NoneStruct;
[[gnu::weak]] int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id,
                                     void *stream, void **original);
[[gnu::weak]] int TVMFFIEnvSetDLPackManagedTensorAllocator(
    DLPackManagedTensorAllocator allocator, int write_to_global_context,
    DLPackManagedTensorAllocator *original);
}

bool gdn::bridge::canReadObjects(const DLPackExchangeAPI &api) {
  return api.header.version.major == DLPACK_MAJOR_VERSION &&
         api.dltensor_from_py_object_no_sync && api.current_work_stream &&
         PyTuple_GetItem && PyEval_SaveThread && PyEval_RestoreThread &&
         &_Py_NoneStruct && TVMFFIEnvSetStream &&
         TVMFFIEnvSetDLPackManagedTensorAllocator;
}

Error gdn::bridge::readObjects(const DLPackExchangeAPI &api, void *tuple,
                               Problem &problem) {
  std::array<Array *, kNumArrays> arrays = arraysOf(problem);
  for (int i = 0; i < kNumArrays; ++i) {
    void *object = PyTuple_GetItem(tuple, i);
    if (object == &_Py_NoneStruct)
      continue;
    DLTensor tensor;
    if (!object || api.dltensor_from_py_object_no_sync(object, &tensor) != 0)
      return {"EnvErrorAlreadySet", {}}; // TVM-FFI raises Python's own
    if (Error error = readTensor(tensor, i, *arrays[i], problem))
      return error;
  }
  return {};
}

WithoutGIL::WithoutGIL() : thread(PyEval_SaveThread()) {}

WithoutGIL::~WithoutGIL() { PyEval_RestoreThread(thread); }

CallersEnvironment::CallersEnvironment(const DLPackExchangeAPI &api,
                                       Device device)
    : device(device) {
  void *current = nullptr;
  hasStream =
      device.type != Device::CPU &&
      api.current_work_stream(static_cast<DLDeviceType>(device.type),
                              device.index, &current) == 0 &&
      TVMFFIEnvSetStream(device.type, device.index, current, &stream) == 0;
  hasAllocator = api.managed_tensor_allocator &&
                 TVMFFIEnvSetDLPackManagedTensorAllocator(
                     api.managed_tensor_allocator, 0, &allocator) == 0;
}

CallersEnvironment::~CallersEnvironment() {
  if (hasStream)
    TVMFFIEnvSetStream(device.type, device.index, stream, nullptr);
  if (hasAllocator)
    TVMFFIEnvSetDLPackManagedTensorAllocator(allocator, 0, nullptr);
}
