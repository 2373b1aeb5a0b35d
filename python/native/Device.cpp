//===- Device.cpp - Devices that this build has kernels for ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

#include "gdn-c/Runtime.h"
#include "gdn/CostModel/CostModel.h"

using namespace gdn;
using namespace gdn::cpu;

/// What the GPU kernels are compiled for: 10 * major + minor of Hopper.
static const int32_t kComputeCapability =
    cost::findChip("sm_90a")->computeCapability;

std::string gdn::cpu::nameOf(Device device) {
  if (device.type == Device::CPU)
    return "cpu";
  std::string kind = device.type == Device::CUDA ? "cuda:" : "another device:";
  return kind + std::to_string(device.index);
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
  if (info.compute_capability == kComputeCapability)
    return {};
  return std::string(info.name) + " of compute capability " +
         std::to_string(info.compute_capability / 10) + "." +
         std::to_string(info.compute_capability % 10);
}

Error gdn::cpu::checkDevice(Device device) {
  if (device.type == Device::CPU)
    return {};
  if (device.type != Device::CUDA)
    return {"ValueError", "q: expected a tensor on a CPU or a CUDA device, got "
                          "one on " +
                              nameOf(device)};
  std::string fault = findFault(device);
  if (!fault.empty())
    return {"RuntimeError",
            "gdn: expected " + nameOf(device) +
                " to be a GPU of compute capability 9.0 (Hopper), got " +
                fault};
  if (hopper::allFunctions().num_entries)
    return {};
  return {"RuntimeError", "gdn: expected a build with kernels for Hopper, got "
                          "one with CPU kernels alone; call it on tensors on "
                          "the CPU"};
}
