//===- GPUMemory.h - Memory and events of a GPU -----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TOOLS_GPUMEMORY_H
#define GDN_LIB_TOOLS_GPUMEMORY_H

#include "gdn-c/Runtime.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <vector>

namespace mlir::gdn::tools {

/// The ordinal of the GPU that is used.
inline constexpr int32_t device = 0;

inline llvm::Error toError(GdnRuntimeStatus status) {
  if (status == GDN_SUCCESS)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "{0}: {1}", gdnStatusGetString(status), gdnGetLastErrorMessage()));
}

/// Device memory.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept : data(other.data) { other.data = nullptr; }
  ~Buffer() { (void)gdnMemoryFree(device, data); }

  static llvm::Expected<Buffer> allocate(uint64_t bytes) {
    Buffer buffer;
    if (llvm::Error error =
            toError(gdnMemoryAllocate(device, bytes, &buffer.data)))
      return std::move(error);
    return buffer;
  }

  /// Allocates bytes that are NaN in every floating-point type, so that what a
  /// kernel does not write cannot pass for a result.
  static llvm::Expected<Buffer> poison(uint64_t bytes) {
    llvm::Expected<Buffer> buffer = allocate(bytes);
    std::vector<char> ones(buffer && bytes ? bytes : 0, '\xff');
    if (buffer && bytes)
      if (llvm::Error error = toError(
              gdnMemoryCopyToDevice(device, buffer->data, ones.data(), bytes)))
        return std::move(error);
    return buffer;
  }

  void *data = nullptr;
};

/// A point in time on the device.
class Event {
public:
  Event() = default;
  Event(Event &&other) noexcept : handle(other.handle) {
    other.handle = nullptr;
  }
  ~Event() { (void)gdnEventDestroy(device, handle); }

  static llvm::Expected<Event> create() {
    Event event;
    if (llvm::Error error = toError(gdnEventCreate(device, &event.handle)))
      return std::move(error);
    return event;
  }

  void *handle = nullptr;
};

} // namespace mlir::gdn::tools

#endif // GDN_LIB_TOOLS_GPUMEMORY_H
