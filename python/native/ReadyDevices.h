//===- ReadyDevices.h - Devices that a function is loaded on ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_READYDEVICES_H
#define GDN_PYTHON_NATIVE_READYDEVICES_H

#include "Hopper.h"

#include <atomic>

namespace gdn::hopper {

/// The devices on which a function has been made ready. A call on one of them
/// costs a load; others ask the runtime, which knows the devices that there
/// are.
class ReadyDevices {
public:
  Error prepare(const GdnFunctionDesc *function, int32_t device) {
    const uint64_t bit = 0 <= device && device < 64 ? uint64_t(1) << device : 0;
    if (bits.load(std::memory_order_acquire) & bit)
      return {};
    if (Error error = errorOf(gdnFunctionPrepare(function, device)))
      return error;
    bits.fetch_or(bit, std::memory_order_release);
    return {};
  }

private:
  /// A bit for each of the first 64 devices.
  std::atomic<uint64_t> bits = 0;
};

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_READYDEVICES_H
