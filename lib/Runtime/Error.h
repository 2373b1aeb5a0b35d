//===- Error.h - Statuses and the thread's last message ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_RUNTIME_ERROR_H
#define GDN_LIB_RUNTIME_ERROR_H

#include "gdn-c/Runtime.h"

#include <cstdarg>

namespace gdn::runtime {

/// A message under construction in a fixed buffer: reporting an error must not
/// need memory. What does not fit is cut.
class Message {
public:
  [[gnu::format(printf, 2, 3)]] Message &add(const char *format, ...);
  Message &addList(const char *format, va_list values);
  const char *text() const { return buffer; }

private:
  char buffer[512] = "";
  size_t length = 0;
};

/// Makes the message the calling thread's last one and returns the status.
GdnRuntimeStatus fail(GdnRuntimeStatus status, const Message &message);
[[gnu::format(printf, 2, 3)]] GdnRuntimeStatus fail(GdnRuntimeStatus status,
                                                    const char *format, ...);

/// Says no to a null pointer: "expected <what>, got null".
GdnRuntimeStatus checkGiven(const void *given, const char *what);

/// Returns the status of a call that fails from the function around it.
#define GDN_TRY(call)                                                          \
  do {                                                                         \
    if (GdnRuntimeStatus status = (call))                                      \
      return status;                                                           \
  } while (false)

} // namespace gdn::runtime

#endif // GDN_LIB_RUNTIME_ERROR_H
