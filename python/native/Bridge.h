//===- Bridge.h - What functions for TVM-FFI are made of --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_BRIDGE_H
#define GDN_PYTHON_NATIVE_BRIDGE_H

#include "Request.h"

#include <tvm/ffi/c_api.h>

#include <memory>

namespace gdn::bridge {

using native::Array;
using native::Error;
using native::Request;

/// Reads a tensor of a call, or None, into the request's array at a place.
void readArray(const TVMFFIAny &value, int place, Request &request);

/// Arguments that are integers, of which messages say what is expected.
template <size_t count>
std::array<int64_t, count> readIntegers(const TVMFFIAny *args,
                                        const std::string &expected) {
  std::array<int64_t, count> integers;
  for (size_t i = 0; i < count; ++i) {
    if (args[i].type_index != kTVMFFIInt)
      throw Error{"TypeError", expected + ", got another type as argument #" +
                                   std::to_string(i)};
    integers[i] = args[i].v_int64;
  }
  return integers;
}

/// What stands behind the arrays: scale, options, num_threads, max_seqlen.
inline constexpr int kNumOptions = 4;

void readOptions(const TVMFFIAny *args, Request &request);
/// The options alone, which are one integer.
void unpackOptions(int64_t options, Request &request);

/// Reads descriptions of all arrays of a call, integers in a bytes object.
void readDescriptions(const TVMFFIAny &value, Request &request);

/// TVM-FFI makes an object of each tensor that it passes, which costs a call of
/// eight tensors as much as all checks. A library that has DLPack's exchange
/// functions (torch 2.10 does) describes a tensor without one. The functions of
/// Python that are called are weak, like those of TVM-FFI, and in its stable
/// ABI: no Python is linked. Whether these functions are of DLPack's version,
/// and this is a process of Python: what all else here asks for.
bool canReadObjects(const DLPackExchangeAPI &api);

/// Reads all arrays of a call from a tuple of tensors and None. The caller
/// holds the GIL, and the tuple.
void readObjects(const DLPackExchangeAPI &api, void *tuple, Request &request);

/// Lets other threads of Python run while the result lives.
std::shared_ptr<void> releaseGIL();

/// The library that a call's tensors are of: that of exchange functions, or the
/// one that TVM-FFI read the tensors by.
struct Caller {
  const DLPackExchangeAPI *api = nullptr;
  /// What its allocator gave, for the launches of a call.
  std::shared_ptr<DLManagedTensorVersioned> workspace = {};

  /// Its current stream.
  void *streamOf(int32_t device) const;
  /// Its allocator, which follows the stream that is current, as the launches
  /// do; null for none.
  DLPackManagedTensorAllocator getAllocator() const;
};

} // namespace gdn::bridge

#endif // GDN_PYTHON_NATIVE_BRIDGE_H
