//===- HopperKernels.cpp - The table of the Hopper kernels ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Hopper.h"

using namespace gdn::hopper;

// The build writes one line a function, with the keys of gdn/kernels.json.
#define GDN_HOPPER_RELAYOUT(...)
#define GDN_HOPPER_KERNEL(name, ...)                                           \
  extern "C" const GdnFunctionDesc name##_function;
#define GDN_HOPPER_SPLIT GDN_HOPPER_KERNEL
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_HOPPER_SPLIT
#undef GDN_HOPPER_KERNEL

// The last entry keeps the table from being empty.
static const Kernel table[] = {
#define GDN_HOPPER_KERNEL(name, ...) GDN_HOPPER_SPLIT(name, None, __VA_ARGS__)
#define GDN_HOPPER_SPLIT(name, cut, keyChannels, valueChannels, element,       \
                         layout, ends, stateLayout, state, gateDomain, gate,   \
                         betaDomain, beta, norm, schedule)                     \
  {#name,                                                                      \
   {keyChannels, valueChannels, Element::element, Layout::layout, Ends::ends,  \
    StateLayout::stateLayout, Element::state, GateDomain::gateDomain,          \
    Element::gate, BetaDomain::betaDomain, Element::beta, Norm::norm},         \
   Schedule::schedule,                                                         \
   Cut::cut,                                                                   \
   &name##_function},
#if GDN_PYTHON_HOPPER
#include "HopperKernels.inc"
#endif
#undef GDN_HOPPER_SPLIT
#undef GDN_HOPPER_KERNEL
    {}};

std::span<const Kernel> gdn::hopper::allKernels() {
  return std::span(table).first(std::size(table) - 1);
}
