//===- BridgeArguments.h - A call's arguments from TVM-FFI ------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_BRIDGEARGUMENTS_H
#define GDN_PYTHON_NATIVE_BRIDGEARGUMENTS_H

#include "BridgeFunction.h"
#include "Problem.h"

#include <array>
#include <iterator>
#include <tvm/ffi/c_api.h>

namespace gdn::bridge {

inline constexpr const char *kArrayNames[] = {
#define GDN_ARRAY(field, name) name,
#include "Manifest.inc"
};
inline constexpr int kNumArrays = std::size(kArrayNames);

/// The arrays of a problem in the order of these names.
std::array<cpu::Array *, kNumArrays> arraysOf(cpu::Problem &problem);

/// Reads tensor `index` of a call.
cpu::Error readTensor(const DLTensor &tensor, int index, cpu::Array &array,
                      cpu::Problem &problem);
/// Reads tensor `index` of a call, or None.
cpu::Error readArray(const TVMFFIAny &value, int index, cpu::Array &array,
                     cpu::Problem &problem);

/// Refuses arrays of a call that have elements and no address.
cpu::Error checkAddresses(cpu::Problem &problem);

/// Reads the descriptions of all arrays from integers.
cpu::Error readDescriptions(const TVMFFIByteArray &bytes,
                            cpu::Problem &problem);

/// What stands behind the arrays: scale, options, num_threads, max_seqlen.
inline constexpr int kNumOptions = 4;

cpu::Error readOptions(const TVMFFIAny *args, cpu::Problem &problem);
/// The options alone, which are one integer.
cpu::Error unpackOptions(int64_t options, cpu::Problem &problem);

/// Reads the arrays of a call, which begin the arguments, and the options that
/// stand behind `numTensors` of them.
cpu::Error readCall(const TVMFFIAny *args, int numTensors,
                    cpu::Problem &problem);

/// K^(-1/2), of a q that has been read; `check` refuses other shapes.
void setDefaultScale(cpu::Problem &problem);

/// Reads the descriptions of all arrays, as a bytes object, and what stands
/// behind them: a call that is not to run.
cpu::Error readDescribedCall(const TVMFFIAny *args, cpu::Problem &problem);

/// A function that reads a described call, and returns what `describe` makes of
/// it: a text, or an error.
template <typename Describe>
int explainCall(const char *name, const TVMFFIAny *args, int32_t count,
                TVMFFIAny *result, Describe describe) {
  if (count != 1 + kNumOptions)
    return wrongCount(name, 1 + kNumOptions, count);
  return guarded([&] {
    cpu::Problem problem;
    if (cpu::Error error = readDescribedCall(args, problem))
      return raise(error);
    std::string text;
    if (cpu::Error error = describe(problem, text))
      return raise(error);
    return returnString(text, result);
  });
}

/// The bytes of a bytes object, however it was passed; false if it is none.
bool readBytes(const TVMFFIAny &value, TVMFFIByteArray &bytes);

} // namespace gdn::bridge

#endif // GDN_PYTHON_NATIVE_BRIDGEARGUMENTS_H
