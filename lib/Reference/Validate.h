//===- Validate.h - Shape checks of the backward ----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_REFERENCE_VALIDATE_H
#define GDN_LIB_REFERENCE_VALIDATE_H

#include "gdn/Reference/Reference.h"

namespace gdn::reference {

/// validate() and the sizes of the incoming gradients; an empty string is fine.
std::string validateBackward(const Problem &problem,
                             const std::vector<double> &dO,
                             const std::vector<double> &dFinalState);

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_VALIDATE_H
