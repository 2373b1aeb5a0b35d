//===- BridgeFunction.h - What functions for TVM-FFI are made of *- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_BRIDGEFUNCTION_H
#define GDN_PYTHON_NATIVE_BRIDGEFUNCTION_H

#include "Problem.h"

#include <exception>
#include <new>
#include <tvm/ffi/c_api.h>

extern "C" {
[[gnu::weak]] void TVMFFIErrorSetRaisedFromCStr(const char *kind,
                                                const char *message);
[[gnu::weak]] int TVMFFIStringFromByteArray(const TVMFFIByteArray *input,
                                            TVMFFIAny *out);
}

#define GDN_FUNCTION(name)                                                     \
  extern "C" [[gnu::visibility("default")]] int __tvm_ffi_##name(              \
      void *, const TVMFFIAny *args, int32_t count, TVMFFIAny *result)

namespace gdn::bridge {

/// What a function returns to say that an error is set.
inline constexpr int kRaised = -1;

inline int raise(const cpu::Error &error) {
  if (TVMFFIErrorSetRaisedFromCStr)
    TVMFFIErrorSetRaisedFromCStr(error.kind, error.message.c_str());
  return kRaised;
}

/// Runs `body`, which returns an Error or a code, and turns what is thrown into
/// an error: out of memory, in the main.
template <typename Body> int guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return raise({"MemoryError", "gdn: expected memory for a call's workspace, "
                                 "got none"});
  } catch (const std::exception &error) {
    return raise({"RuntimeError", std::string("gdn: ") + error.what()});
  }
}

inline int wrongCount(const char *function, int expected, int got) {
  return raise({"TypeError", std::string(function) + ": expected " +
                                 std::to_string(expected) + " arguments, got " +
                                 std::to_string(got)});
}

inline int returnNothing(TVMFFIAny *result) {
  result->type_index = kTVMFFINone;
  result->v_int64 = 0;
  return 0;
}

inline int returnString(const std::string &text, TVMFFIAny *result) {
  TVMFFIByteArray bytes = {text.data(), text.size()};
  if (!TVMFFIStringFromByteArray)
    return kRaised;
  return TVMFFIStringFromByteArray(&bytes, result);
}

} // namespace gdn::bridge

#endif // GDN_PYTHON_NATIVE_BRIDGEFUNCTION_H
