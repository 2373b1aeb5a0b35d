//===- check.h - What C programs of the tests do with a status ----*- C -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TEST_INTEGRATION_EMULATOR_INPUTS_CHECK_H
#define GDN_TEST_INTEGRATION_EMULATOR_INPUTS_CHECK_H

#include "gdn-c/Runtime.h"

#include <stdio.h>
#include <stdlib.h>

/// Ends the process with the runtime's message if a call fails.
#define CHECK(call)                                                            \
  do {                                                                         \
    GdnRuntimeStatus status = (call);                                          \
    if (status != GDN_SUCCESS) {                                               \
      printf("%s: %s\n", gdnStatusGetString(status),                           \
             gdnGetLastErrorMessage());                                        \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

#endif // GDN_TEST_INTEGRATION_EMULATOR_INPUTS_CHECK_H
