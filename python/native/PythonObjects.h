//===- PythonObjects.h - Tensors by their Python objects --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TVM-FFI makes an object of each tensor that it passes, which costs a call of
// eight tensors as much as all checks. A library that has DLPack's exchange
// functions (torch 2.10 does) describes a tensor without one. The functions of
// Python that are called are weak, like those of TVM-FFI, and in its stable
// ABI: no Python is linked.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_PYTHONOBJECTS_H
#define GDN_PYTHON_NATIVE_PYTHONOBJECTS_H

#include "Problem.h"

#include <dlpack/dlpack.h>

namespace gdn::bridge {

/// Whether these functions are of DLPack's version, and this is a process of
/// Python: what all else here asks for.
bool canReadObjects(const DLPackExchangeAPI &api);

/// Reads all arrays of a call from a tuple of tensors and None. The caller
/// holds the GIL, and the tuple.
cpu::Error readObjects(const DLPackExchangeAPI &api, void *tuple,
                       cpu::Problem &problem);

/// Other threads of Python run while this lives.
class WithoutGIL {
public:
  WithoutGIL();
  ~WithoutGIL();
  WithoutGIL(const WithoutGIL &) = delete;

private:
  void *thread;
};

/// The stream and the allocator of the tensors' library are TVM-FFI's while
/// this lives, as where TVM-FFI itself reads the tensors.
class CallersEnvironment {
public:
  CallersEnvironment(const DLPackExchangeAPI &api, cpu::Device device);
  ~CallersEnvironment();
  CallersEnvironment(const CallersEnvironment &) = delete;

private:
  cpu::Device device;
  void *stream = nullptr;
  DLPackManagedTensorAllocator allocator = nullptr;
  bool hasStream = false, hasAllocator = false;
};

} // namespace gdn::bridge

#endif // GDN_PYTHON_NATIVE_PYTHONOBJECTS_H
