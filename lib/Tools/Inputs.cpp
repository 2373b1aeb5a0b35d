//===- Inputs.cpp - Sizes, files and checks of a function's inputs --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled function trusts the sizes it is given, so everything that static
// types leave open is settled here: each op has one size for each of the names
// B, T, Hq, H, K, V, N, P; whoever gives a second one that differs is refused.
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Inputs.h"
#include "gdn/Tools/Error.h"

#include "Sizes.h"

#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <future>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

/// What integers of a type are below, as far as doubles count them.
static double limitOf(Element element) {
  return element == Element::I8    ? 0x1p7
         : element == Element::I32 ? 0x1p31
                                   : 0x1p53;
}

namespace {
/// Makes the inputs of one function.
class InputMaker {
public:
  InputMaker(std::vector<Argument> arguments, const InputOptions &options)
      : arguments(std::move(arguments)), options(options),
        shapes(this->arguments.size()) {}

  llvm::Expected<std::vector<HostArray>> make();

private:
  llvm::Error checkOptions();
  llvm::Error readFiles();
  llvm::Error bindShape(const Argument &argument, llvm::ArrayRef<int64_t> shape,
                        const std::string &source);
  llvm::Error bindTypes();
  llvm::Error bindOptions();
  llvm::Error bindLengths(llvm::ArrayRef<int64_t> lengths);
  llvm::Error bindDim(llvm::StringRef name, int64_t size);
  llvm::Error bindDefaults();
  llvm::Error settleShape(const Argument &argument);
  std::vector<int64_t> lengthsOf(Operation *op) const;
  llvm::Expected<HostArray> makeScalar(const Argument &argument,
                                       Element element);
  llvm::Expected<HostArray> makeArray(const Argument &argument);

  std::vector<Argument> arguments;
  const InputOptions &options;
  std::vector<llvm::SmallVector<int64_t>> shapes;
  std::map<unsigned, NpyArray> files;
  Sizes sizes;
};
} // namespace

static std::string title(const Argument &argument) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "argument " << argument.index << " (" << argument.type << ")";
  return text;
}

llvm::Error InputMaker::checkOptions() {
  for (auto &[index, file] : options.files)
    if (index >= arguments.size())
      return fail("expected --arg of an argument below {0}, got {1}",
                  arguments.size(), index);
  for (auto &[index, shape] : options.shapes)
    if (index >= arguments.size())
      return fail("expected --arg-shape of an argument below {0}, got {1}",
                  arguments.size(), index);
  for (unsigned index : options.absent)
    if (index >= arguments.size() || !arguments[index].isOptional)
      return fail("expected --absent of an argument with gdn.optional, got {0}",
                  index);
  for (auto &[i, value] : options.scalars)
    if (i >= arguments.size() || !arguments[i].isScalar)
      return fail("expected --scalar of a scalar argument, got {0}", i);
  for (const Argument &argument : arguments)
    if (argument.isScalar && !options.scalars.count(argument.index))
      return fail("expected --scalar {0}=<value> for argument {0}, got none",
                  argument.index);
  return llvm::Error::success();
}

llvm::Error InputMaker::readFiles() {
  for (auto &[index, path] : options.files) {
    llvm::Expected<NpyArray> array = readNpy(path);
    if (!array)
      return array.takeError();
    const Argument &argument = arguments[index];
    bool wantsInteger = argument.type.getElementType().isInteger();
    if (wantsInteger != array->isInteger)
      return fail("{0}: expected {1} for {2}, got type '{3}'", path,
                  wantsInteger ? "integers" : "floats", title(argument),
                  array->type);
    if (auto error = bindShape(argument, array->shape, path))
      return error;
    files.emplace(index, std::move(*array));
  }
  return llvm::Error::success();
}

/// Takes a shape that the user gave for an argument.
llvm::Error InputMaker::bindShape(const Argument &argument,
                                  llvm::ArrayRef<int64_t> shape,
                                  const std::string &source) {
  RankedTensorType type = argument.type;
  bool fits = static_cast<int64_t>(shape.size()) == type.getRank();
  for (int64_t i = 0; fits && i < type.getRank(); ++i)
    fits = type.isDynamicDim(i) || type.getDimSize(i) == shape[i];
  if (!fits || !countElements(shape))
    return fail("{0}: expected a shape that fits {1}, got {2}", source,
                title(argument), tools::describe(shape));
  shapes[argument.index].assign(shape.begin(), shape.end());
  for (auto [name, size] : llvm::zip(argument.dimNames, shape))
    if (auto error = sizes.set(argument.op, name, size, source))
      return error;
  return llvm::Error::success();
}

/// Takes what the types of arguments and operands say.
llvm::Error InputMaker::bindTypes() {
  for (const Argument &argument : arguments) {
    for (RankedTensorType type : {argument.type, argument.operandType})
      for (auto [name, size] : llvm::zip(argument.dimNames, type.getShape()))
        if (!ShapedType::isDynamic(size))
          if (auto error = sizes.set(argument.op, name, size, title(argument)))
            return error;
  }
  return llvm::Error::success();
}

llvm::Error InputMaker::bindOptions() {
  for (auto &[index, shape] : options.shapes)
    if (auto error = bindShape(arguments[index], shape, "--arg-shape"))
      return error;
  if (options.lengths)
    if (auto error = bindLengths(*options.lengths))
      return error;
  for (auto &[name, size] : options.dims)
    if (auto error = bindDim(name, size))
      return error;
  return llvm::Error::success();
}

/// Takes the lengths of the packed sequences.
llvm::Error InputMaker::bindLengths(llvm::ArrayRef<int64_t> lengths) {
  int64_t sum = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  bool isPacked = false;
  for (const Argument &argument : arguments) {
    if (argument.role != Role::CuSeqlens)
      continue;
    isPacked = true;
    if (auto error = sizes.set(argument.op, "N", lengths.size(), "--lengths"))
      return error;
    if (auto error = sizes.set(argument.op, "T", sum, "--lengths"))
      return error;
  }
  if (!isPacked)
    return fail("expected --lengths for an argument that is cu_seqlens, got a "
                "function without one");
  return llvm::Error::success();
}

/// Takes the size of a dimension. One that is settled may differ between ops,
/// so that the size only fills in; but somewhere it must be true.
llvm::Error InputMaker::bindDim(llvm::StringRef name, int64_t size) {
  std::optional<int64_t> other;
  bool isTrue = false;
  for (const Argument &argument : arguments) {
    auto isIt = [&](llvm::StringRef dim) {
      return dim == name || (name == "N" && dim == "N+1");
    };
    if (llvm::none_of(argument.dimNames, isIt))
      continue;
    std::optional<int64_t> settled = sizes.get(argument.op, name);
    if (!settled)
      if (auto error = sizes.set(argument.op, name, size, "--dim"))
        return error;
    if (settled.value_or(size) == size)
      isTrue = true;
    else
      other = settled;
  }
  if (isTrue)
    return llvm::Error::success();
  if (other)
    return fail("expected --dim {0}={1}, which the arguments have, got {0}={2}",
                name, *other, size);
  return fail("expected --dim of a dimension of the arguments, got {0}", name);
}

/// B and N follow from each other where the user said nothing.
llvm::Error InputMaker::bindDefaults() {
  for (const Argument &argument : arguments) {
    DeltaRuleOpInterface op = argument.op;
    if (!op)
      continue;
    std::optional<int64_t> batch = sizes.get(op, "B");
    std::optional<int64_t> count = sizes.get(op, "N");
    bool packed = static_cast<bool>(op.getCuSeqlens());
    if (!batch) {
      batch = packed ? 1 : count.value_or(1);
      if (auto error = sizes.set(op, "B", *batch, "the default"))
        return error;
    }
    if (!count)
      if (auto error = sizes.set(op, "N", packed ? 1 : *batch, "the default"))
        return error;
    // As many as the sequences may name, and not a row for each.
    if (op.getStateIndices() && !sizes.get(op, "P"))
      if (auto error = sizes.set(op, "P", *sizes.get(op, "N"), "the default"))
        return error;
  }
  return llvm::Error::success();
}

/// Settles the shape of an argument, or says what is missing.
llvm::Error InputMaker::settleShape(const Argument &argument) {
  llvm::SmallVector<int64_t> &shape = shapes[argument.index];
  if (!shape.empty() || argument.type.getRank() == 0)
    return llvm::Error::success();
  llvm::append_range(shape, argument.type.getShape());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!ShapedType::isDynamic(shape[i]))
      continue;
    if (argument.dimNames.empty())
      return fail("expected --arg-shape {0}=<shape> or --arg {0}=<file> for "
                  "the dynamic {1}, got neither",
                  argument.index, title(argument));
    std::optional<int64_t> size = sizes.get(argument.op, argument.dimNames[i]);
    if (!size)
      return fail("expected --dim {0}=<size> for the dynamic {1}, got none",
                  argument.dimNames[i], title(argument));
    shape[i] = *size;
  }
  if (options.absent.count(argument.index))
    shape[0] = 0;
  if (!countElements(shape))
    return fail("expected a shape that fits into memory for {0}, got {1}",
                title(argument), tools::describe(shape));
  return llvm::Error::success();
}

std::vector<int64_t> InputMaker::lengthsOf(Operation *op) const {
  if (options.lengths)
    return *options.lengths;
  int64_t count = sizes.get(op, "N").value_or(1);
  int64_t tokens = sizes.get(op, "T").value_or(0);
  std::vector<int64_t> lengths;
  for (int64_t n = 0; n < count; ++n)
    lengths.push_back(tokens * (n + 1) / count - tokens * n / count);
  return lengths;
}

llvm::Expected<HostArray> InputMaker::makeScalar(const Argument &argument,
                                                 Element element) {
  double value = options.scalars.at(argument.index);
  if (element != Element::F32 &&
      (value != std::trunc(value) || !(std::abs(value) < limitOf(element))))
    return fail("expected --scalar {0} of a number that fits {1}, got {2}",
                argument.index, name(element), value);
  for (int64_t unit : argument.multiples)
    if (value <= 0 || std::fmod(value, unit) != 0)
      return fail(
          "expected --scalar {0} of a positive multiple of {1}, got {2}",
          argument.index, unit, static_cast<int64_t>(value));
  return HostArray(element, {}, value);
}

llvm::Expected<HostArray> InputMaker::makeArray(const Argument &argument) {
  llvm::ArrayRef<int64_t> shape = shapes[argument.index];
  // getArguments has refused all other types.
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access)
  Element element = *elementOf(argument.type.getElementType());
  if (argument.isScalar)
    return makeScalar(argument, element);
  auto file = files.find(argument.index);
  if (file == files.end()) {
    std::vector<int64_t> lengths;
    if (argument.role == Role::CuSeqlens)
      lengths = lengthsOf(argument.op);
    if (argument.role == Role::StateIndices ||
        argument.role == Role::StepIndices) {
      DeltaRuleOpInterface op = argument.op;
      bool isOfSteps = argument.role == Role::StepIndices && op.getStepStates();
      int64_t states = sizes.get(op, isOfSteps ? "R" : "P").value_or(0);
      return HostArray(element, shape,
                       drawStateIndices(argument, *countElements(shape), states,
                                        options.random));
    }
    return HostArray(element, shape,
                     drawRandom(argument, shape, lengths, options.random));
  }
  double limit = limitOf(element);
  if (argument.type.getElementType().isInteger())
    for (double value : file->second.values)
      if (std::abs(value) >= limit)
        return fail("{0}: expected values that fit {1}, got {2}",
                    options.files.at(argument.index), name(element), value);
  HostArray array(element, shape, file->second.values);
  // The doubles are four times the size of bf16 and no longer needed. The map
  // itself stays: other arguments are being made.
  file->second.values = {};
  return array;
}

llvm::Expected<std::vector<HostArray>> InputMaker::make() {
  if (auto error = checkOptions())
    return std::move(error);
  noteParts(arguments, options.scalars);
  for (auto step : {&InputMaker::bindTypes, &InputMaker::readFiles,
                    &InputMaker::bindOptions, &InputMaker::bindDefaults})
    if (auto error = (this->*step)())
      return std::move(error);
  for (const Argument &argument : arguments) {
    if (auto error = settleShape(argument))
      return std::move(error);
    if (auto error = checkSizes(argument.op, sizes))
      return std::move(error);
  }
  // Each argument has a stream of random numbers of its own, and drawing one
  // of a large layer takes seconds.
  std::vector<std::future<llvm::Expected<HostArray>>> drawn;
  for (const Argument &argument : arguments)
    drawn.push_back(std::async(files.count(argument.index)
                                   ? std::launch::deferred
                                   : std::launch::async,
                               [&] { return makeArray(argument); }));
  llvm::Error error = llvm::Error::success();
  std::vector<HostArray> inputs;
  for (auto [argument, future] : llvm::zip(arguments, drawn)) {
    llvm::Expected<HostArray> array = future.get();
    if (error) {
      llvm::consumeError(array.takeError());
      continue;
    }
    if (!array)
      error = array.takeError();
    else if (argument.role == Role::CuSeqlens)
      error = checkBoundaries(argument.index, *array,
                              sizes.get(argument.op, "T").value_or(0));
    if (!error)
      inputs.push_back(std::move(*array));
  }
  if (error)
    return std::move(error);
  return inputs;
}

llvm::Expected<std::vector<HostArray>>
tools::makeInputs(func::FuncOp func, const InputOptions &options) {
  llvm::Expected<std::vector<Argument>> arguments = getArguments(func);
  if (!arguments)
    return arguments.takeError();
  return InputMaker(std::move(*arguments), options).make();
}
