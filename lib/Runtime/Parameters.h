//===- Parameters.h - The parameters of a launch ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_RUNTIME_PARAMETERS_H
#define GDN_LIB_RUNTIME_PARAMETERS_H

#include "Driver.h"

namespace gdn::runtime {

/// Bounds that let a launch work in fixed buffers. A kernel's parameters take
/// at most 4 KiB before PTX 8.1, which is 31 tensor maps and some pointers.
enum : int {
  maxArgs = 64,
  maxParams = 128,
  maxTensorMaps = 31,
  maxSymbols = 40,
  maxRank = 8,
  maxMapRank = 5,
  maxParamBytes = 4096,
  maxSteps = 256,
  maxTemporaries = 64,
  maxViews = 64,
  maxLaunches = 64
};

/// The parameters as the driver takes them: a place for each, in `bytes`.
struct Parameters {
  unsigned char *bytes;
  void **places;
};

/// Room for them on the stack.
struct ParameterBuffer {
  alignas(64) unsigned char bytes[maxParamBytes];
  void *places[maxParams];

  Parameters get() { return {bytes, places}; }
};

/// Writes all parameters; the arguments have been checked.
GdnRuntimeStatus writeParameters(const Driver &driver, const GdnKernel &kernel,
                                 const GdnArg *args, void *workspace,
                                 const Parameters &parameters);
/// Puts another address into an encoded tensor map; false if the driver does
/// not, and the map is then as before.
bool moveMap(const Driver &driver, void *address, unsigned char *to);

} // namespace gdn::runtime

#endif // GDN_LIB_RUNTIME_PARAMETERS_H
