//===- Segments.h - Whether a call can be cut -------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_SEGMENTS_H
#define GDN_PYTHON_NATIVE_SEGMENTS_H

#include "Hopper.h"

namespace gdn::hopper {

/// Says why the sequences of a call cannot be cut, whatever its kernels are.
Error checkSegments(const Problem &problem);
/// What a call hears that wants segments, if no kernels have its form.
Error explainNoSegments(const Problem &problem);

/// The decision about segments as JSON; null where none was to be made.
std::string splitToJson(const KernelChoice &chosen);

} // namespace gdn::hopper

#endif // GDN_PYTHON_NATIVE_SEGMENTS_H
