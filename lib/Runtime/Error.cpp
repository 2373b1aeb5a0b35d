//===- Error.cpp - Statuses and the thread's last message -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace gdn::runtime;

/// The calling thread's last message.
static thread_local char lastMessage[512];

Message &Message::addList(const char *format, va_list values) {
  size_t room = sizeof(buffer) - length;
  int written = vsnprintf(buffer + length, room, format, values);
  if (written > 0)
    length += std::min(static_cast<size_t>(written), room - 1);
  return *this;
}

Message &Message::add(const char *format, ...) {
  va_list values;
  va_start(values, format);
  addList(format, values);
  va_end(values);
  return *this;
}

GdnRuntimeStatus gdn::runtime::fail(GdnRuntimeStatus status,
                                    const Message &message) {
  return gdnSetLastErrorMessage(status, message.text());
}

GdnRuntimeStatus gdn::runtime::fail(GdnRuntimeStatus status, const char *format,
                                    ...) {
  Message message;
  va_list values;
  va_start(values, format);
  message.addList(format, values);
  va_end(values);
  return fail(status, message);
}

GdnRuntimeStatus gdn::runtime::checkGiven(const void *given, const char *what) {
  return given
             ? GDN_SUCCESS
             : fail(GDN_ERROR_INVALID_ARGUMENT, "expected %s, got null", what);
}

GdnRuntimeStatus gdnSetLastErrorMessage(GdnRuntimeStatus status,
                                        const char *message) {
  // The message may be the thread's own last one, with more text around it.
  size_t length = message ? strnlen(message, sizeof(lastMessage) - 1) : 0;
  if (length)
    memmove(lastMessage, message, length);
  lastMessage[length] = '\0';
  return status;
}

const char *gdnGetLastErrorMessage(void) { return lastMessage; }

const char *gdnStatusGetString(GdnRuntimeStatus status) {
  switch (status) {
  case GDN_SUCCESS:
    return "success";
  case GDN_ERROR_INVALID_ARGUMENT:
    return "invalid argument";
  case GDN_ERROR_INVALID_KERNEL:
    return "invalid kernel description";
  case GDN_ERROR_VERSION:
    return "description and runtime are of different versions";
  case GDN_ERROR_NO_DRIVER:
    return "no usable CUDA driver";
  case GDN_ERROR_NO_DEVICE:
    return "no CUDA device";
  case GDN_ERROR_UNSUPPORTED_DEVICE:
    return "unsupported device";
  case GDN_ERROR_NOT_PREPARED:
    return "kernel not prepared for the device";
  case GDN_ERROR_WORKSPACE_TOO_SMALL:
    return "workspace too small";
  case GDN_ERROR_OUT_OF_MEMORY:
    return "out of memory";
  case GDN_ERROR_DRIVER:
    return "CUDA driver call failed";
  case GDN_ERROR_NOT_SERVED:
    return "no compiled function serves the call";
  case GDN_ERROR_INVALID_TYPE:
    return "an array of the call is missing or of another type";
  }
  return "unknown status";
}

uint32_t gdnRuntimeGetVersion(void) { return GDN_RUNTIME_VERSION; }
