//===- Device.cpp - Devices and their memory ------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include "gdn/CostModel/CostModel.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

using namespace gdn;
using namespace gdn::cpu;
using gdn::hopper::Workspace;

/// What the GPU kernels are compiled for: 10 * major + minor of Hopper.
static const int32_t kComputeCapability =
    cost::findChip("sm_90a")->computeCapability;

std::string gdn::cpu::nameOf(Device device) {
  if (device.type == Device::CPU)
    return "cpu";
  std::string kind = device.type == Device::CUDA ? "cuda:" : "another device:";
  return kind + std::to_string(device.index);
}

static std::string describe(const GdnDeviceInfo &info, const char *with) {
  return std::string(info.name) + with + "compute capability " +
         std::to_string(info.compute_capability / 10) + "." +
         std::to_string(info.compute_capability % 10);
}

std::string gdn::cpu::listGPUs() {
  int32_t count = 0;
  if (gdnDeviceGetCount(&count) != GDN_SUCCESS)
    return "none: " + std::string(gdnGetLastErrorMessage());
  std::string text;
  for (int32_t index = 0; index < count; ++index) {
    GdnDeviceInfo info = {};
    info.struct_size = sizeof(info);
    if (gdnDeviceGetInfo(index, &info) == GDN_SUCCESS)
      text += (text.empty() ? "cuda:" : "; cuda:") + std::to_string(index) +
              " " + describe(info, ", ");
  }
  return text.empty() ? "none: the driver lists no device" : text;
}

/// Why a GPU cannot be used, as far as the driver and the chip are at fault.
static std::string findFault(Device device) {
  int32_t count = 0;
  if (gdnDeviceGetCount(&count) != GDN_SUCCESS)
    return "none: " + std::string(gdnGetLastErrorMessage());
  if (device.index < 0 || device.index >= count)
    return std::to_string(count) + " devices in this machine";
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (gdnDeviceGetInfo(device.index, &info) != GDN_SUCCESS)
    return gdnGetLastErrorMessage();
  return info.compute_capability == kComputeCapability ? ""
                                                       : describe(info, " of ");
}

void gdn::cpu::checkDevice(Device device) {
  if (device.type == Device::CPU)
    return;
  if (device.type != Device::CUDA)
    fail("q", "a tensor on a CPU or a CUDA device", "one on " + nameOf(device));
  std::string fault = findFault(device);
  if (!fault.empty())
    fail("gdn",
         nameOf(device) + " to be a GPU of compute capability 9.0 (Hopper)",
         fault, "RuntimeError");
  if (!hopper::allFunctions().num_entries)
    fail("gdn", "a build with kernels for Hopper",
         "one with CPU kernels alone; call it on tensors on the CPU",
         "RuntimeError");
}

namespace {
/// The memory of a device's stream, as far as it was ever asked for.
struct Piece {
  std::mutex inUse;
  void *data = nullptr;
  uint64_t bytes = 0;
};
} // namespace

static Piece &pieceOf(int32_t device, void *stream) {
  static std::mutex guard;
  // Pieces keep their place. They are never given back: when a process ends,
  // the driver may be gone before this.
  static auto &pieces = *new std::map<std::pair<int32_t, void *>, Piece>;
  std::lock_guard<std::mutex> lock(guard);
  return pieces[{device, stream}];
}

Workspace gdn::hopper::allocateOwn(int32_t device, void *stream,
                                   uint64_t bytes) {
  Piece &piece = pieceOf(device, stream);
  piece.inUse.lock();
  std::shared_ptr<Piece> held(&piece, [](Piece *p) { p->inUse.unlock(); });
  if (piece.bytes < bytes) {
    // Twice as much as before, so that all pieces of a stream together stay
    // below twice the last one.
    uint64_t wanted = std::max(bytes, 2 * piece.bytes);
    void *memory = nullptr;
    if (gdnMemoryAllocate(device, wanted, &memory) != GDN_SUCCESS)
      throw Error{"MemoryError", "gdn: expected " + std::to_string(wanted) +
                                     " bytes of workspace on " +
                                     cpu::nameOf({cpu::Device::CUDA, device}) +
                                     ", got: " + gdnGetLastErrorMessage()};
    piece.data = memory;
    piece.bytes = wanted;
  }
  return Workspace(std::move(held), piece.data);
}
