//===- GPU.cpp - Functions on a GPU ---------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/GPU.h"

#include "GPUMemory.h"
#include "Object.h"
#include "gdn/Tools/Images.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

static int32_t getDType(Element element) {
  switch (element) {
  case Element::F32:
    return GDN_DTYPE_F32;
  case Element::BF16:
    return GDN_DTYPE_BF16;
  case Element::F16:
    return GDN_DTYPE_F16;
  case Element::I8:
    return GDN_DTYPE_U8;
  case Element::I32:
    return GDN_DTYPE_I32;
  case Element::I64:
    return GDN_DTYPE_I64;
  }
  llvm_unreachable("covered switch");
}

static std::optional<Element> getElement(int32_t dtype) {
  for (Element element : {Element::F32, Element::BF16, Element::F16,
                          Element::I8, Element::I32, Element::I64})
    if (getDType(element) == dtype)
      return element;
  return std::nullopt;
}

namespace {
/// One call's arguments, and the memory behind them.
class Call {
public:
  Call(const GdnFunctionDesc &function, llvm::ArrayRef<HostArray> inputs)
      : function(function), inputs(inputs) {}

  llvm::Error prepare();
  llvm::Error launch();
  /// The function's results.
  llvm::Expected<std::vector<HostArray>> fetch();
  /// Whether a result is an input, updated in place.
  bool changesInputs() const;
  /// Copies these inputs to the device again.
  llvm::Error resetInputs();
  uint64_t getWorkspaceBytes() const { return workspaceBytes; }

private:
  /// Adds a scalar, or an array that is absent, if the input is one.
  bool addValue(const HostArray &input);
  llvm::Error addInput(const HostArray &input);
  llvm::Error addOutput(int32_t index);
  void addTensor(Buffer buffer, const HostArray &array);

  const GdnFunctionDesc &function;
  llvm::ArrayRef<HostArray> inputs;
  std::vector<HostArray> outputs;
  std::vector<Buffer> buffers;
  /// In a list, so that arguments may point to them.
  std::vector<std::unique_ptr<GdnTensor>> tensors;
  std::vector<GdnArg> arguments;
  Buffer workspace;
  uint64_t workspaceBytes = 0;
};
} // namespace

static uint64_t countBytes(const HostArray &array) {
  return array.size() * byteSize(array.getElement());
}

void Call::addTensor(Buffer buffer, const HostArray &array) {
  llvm::ArrayRef<int64_t> shape = array.getShape();
  tensors.push_back(std::make_unique<GdnTensor>(
      GdnTensor{buffer.data, getDType(array.getElement()),
                static_cast<int32_t>(shape.size()), shape.data(), nullptr}));
  buffers.push_back(std::move(buffer));
  GdnArg argument;
  argument.kind = GDN_ARG_TENSOR;
  argument.value.tensor = tensors.back().get();
  arguments.push_back(argument);
}

bool Call::addValue(const HostArray &input) {
  size_t index = arguments.size();
  if (index >= static_cast<size_t>(function.num_inputs))
    return false;
  const GdnArgDesc &desc = function.args[index];
  GdnArg argument = {};
  argument.kind = desc.kind;
  bool isArray = desc.kind == GDN_ARG_TENSOR;
  bool isAbsent = desc.flags & GDN_ARG_FLAG_OPTIONAL && input.size() == 0;
  if (isArray ? !isAbsent : input.size() != 1)
    return false;
  if (!isArray)
    std::memcpy(&argument.value, input.data(), countBytes(input));
  arguments.push_back(argument);
  buffers.emplace_back();
  return true;
}

llvm::Error Call::addInput(const HostArray &input) {
  if (addValue(input))
    return llvm::Error::success();
  uint64_t bytes = countBytes(input);
  llvm::Expected<Buffer> buffer = Buffer::allocate(bytes);
  if (!buffer)
    return buffer.takeError();
  if (bytes)
    if (llvm::Error error = toError(
            gdnMemoryCopyToDevice(device, buffer->data, input.data(), bytes)))
      return error;
  addTensor(std::move(*buffer), input);
  return llvm::Error::success();
}

llvm::Error Call::addOutput(int32_t index) {
  const GdnArgDesc &desc = function.args[function.num_inputs + index];
  std::optional<Element> element = getElement(desc.dtype);
  if (!element)
    return llvm::createStringError(llvm::formatv(
        "expected output '{0}' of f32, bf16, f16, i8, i32 or i64, "
        "got type {1}",
        desc.name, desc.dtype));
  llvm::SmallVector<int64_t> shape(desc.rank);
  if (llvm::Error error = toError(
          gdnFunctionGetOutputShape(&function, arguments.data(),
                                    function.num_inputs, index, shape.data())))
    return error;
  if (!countElements(shape))
    return llvm::createStringError(
        llvm::formatv("expected output '{0}' to fit into memory, got {1}",
                      desc.name, describe(shape)));
  // Their shapes are pointed to, and there is room for all of them.
  HostArray &output = outputs.emplace_back(*element, shape);
  llvm::Expected<Buffer> buffer = Buffer::poison(countBytes(output));
  if (!buffer)
    return buffer.takeError();
  addTensor(std::move(*buffer), output);
  return llvm::Error::success();
}

llvm::Error Call::prepare() {
  int32_t numOutputs = function.num_args - function.num_inputs;
  outputs.reserve(numOutputs);
  if (llvm::Error error = toError(gdnFunctionPrepare(&function, device)))
    return error;
  // A launch on the default stream wants a current context.
  if (llvm::Error error = toError(gdnDeviceMakeCurrent(device)))
    return error;
  for (const HostArray &input : inputs)
    if (llvm::Error error = addInput(input))
      return error;
  if (static_cast<int32_t>(inputs.size()) != function.num_inputs)
    return llvm::createStringError(
        llvm::formatv("expected an object whose function '{0}' takes {1} "
                      "inputs, got one that takes {2}",
                      function.name, inputs.size(), function.num_inputs));
  for (int32_t i = 0; i < numOutputs; ++i)
    if (llvm::Error error = addOutput(i))
      return error;
  if (llvm::Error error = toError(gdnFunctionGetWorkspaceBytes(
          &function, arguments.data(), function.num_args, &workspaceBytes)))
    return error;
  llvm::Expected<Buffer> buffer = Buffer::poison(workspaceBytes);
  if (!buffer)
    return buffer.takeError();
  std::swap(workspace.data, buffer->data);
  return llvm::Error::success();
}

llvm::Error Call::launch() {
  return toError(gdnFunctionLaunch(&function, arguments.data(),
                                   function.num_args, workspace.data,
                                   workspaceBytes, /*stream=*/nullptr));
}

llvm::Expected<std::vector<HostArray>> Call::fetch() {
  std::vector<HostArray> results;
  for (int32_t argument :
       llvm::ArrayRef(function.results, function.num_results)) {
    bool isInput = argument < function.num_inputs;
    HostArray &result = results.emplace_back(
        isInput ? inputs[argument] : outputs[argument - function.num_inputs]);
    if (uint64_t bytes = countBytes(result))
      if (llvm::Error error = toError(gdnMemoryCopyFromDevice(
              device, result.data(), buffers[argument].data, bytes)))
        return std::move(error);
  }
  return results;
}

bool Call::changesInputs() const {
  return llvm::any_of(
      llvm::ArrayRef(function.results, function.num_results),
      [&](int32_t argument) { return argument < function.num_inputs; });
}

llvm::Error Call::resetInputs() {
  for (int32_t argument :
       llvm::ArrayRef(function.results, function.num_results))
    if (argument < function.num_inputs && countBytes(inputs[argument]))
      if (llvm::Error error = toError(gdnMemoryCopyToDevice(
              device, buffers[argument].data, inputs[argument].data(),
              countBytes(inputs[argument]))))
        return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// GPUExecutable
//===----------------------------------------------------------------------===//

void GPUExecutable::Unload::operator()(const GdnFunctionDesc *function) const {
  // What was never loaded, or on a device that failed, needs no unloading.
  (void)gdnFunctionUnload(function);
}

GPUExecutable::GPUExecutable(std::unique_ptr<Object> object,
                             const GdnFunctionDesc *function)
    : object(std::move(object)), function(function) {}
GPUExecutable::GPUExecutable(GPUExecutable &&) noexcept = default;
GPUExecutable &GPUExecutable::operator=(GPUExecutable &&) noexcept = default;
GPUExecutable::~GPUExecutable() = default;

llvm::Error GPUExecutable::checkDevice() {
  int32_t count;
  if (llvm::Error error = toError(gdnDeviceGetCount(&count)))
    return llvm::createStringError(
        "expected a machine with a GPU for --target=sm_90a; " +
        llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Expected<GPUExecutable>
GPUExecutable::create(std::unique_ptr<llvm::MemoryBuffer> file,
                      llvm::StringRef entry) {
  llvm::Expected<Object> object = Object::load(std::move(file));
  if (!object)
    return object.takeError();
  llvm::Expected<const GdnFunctionDesc *> function = object->lookup(entry);
  if (!function)
    return function.takeError();
  return GPUExecutable(std::make_unique<Object>(std::move(*object)), *function);
}

llvm::Expected<GPUExecutable>
GPUExecutable::compile(ModuleOp module, llvm::StringRef entry,
                       const CompileOptions &options) {
  if (failed(lower(module, Level::NVVM, options)))
    return llvm::createStringError("expected a function that compiles, got @" +
                                   entry);
  llvm::Expected<Images> made = makeImages(module);
  if (!made)
    return made.takeError();
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  if (llvm::Error error = host::emitObject(module, made->images, stream))
    return std::move(error);
  return create(llvm::MemoryBuffer::getMemBufferCopy(object, entry), entry);
}

llvm::Expected<GPUExecutable> GPUExecutable::load(llvm::StringRef path,
                                                  llvm::StringRef entry) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(
        llvm::formatv("{0}: expected a readable file, got '{1}'", path,
                      file.getError().message()));
  return create(std::move(*file), entry);
}

llvm::Expected<GPUResult> GPUExecutable::run(llvm::ArrayRef<HostArray> inputs,
                                             int64_t repeat) {
  GPUResult result;
  GdnDeviceInfo info = {};
  info.struct_size = sizeof(info);
  if (llvm::Error error = toError(gdnDeviceGetInfo(device, &info)))
    return std::move(error);
  result.device = info.name;
  Call call(*function, inputs);
  if (llvm::Error error = call.prepare())
    return std::move(error);
  result.workspaceBytes = call.getWorkspaceBytes();
  if (llvm::Error error = call.launch())
    return std::move(error);
  auto first = call.fetch();
  if (!first)
    return first.takeError();

  // A point between any two calls.
  std::vector<Event> events;
  for (int64_t i = 0; i <= repeat; ++i) {
    llvm::Expected<Event> event = Event::create();
    if (!event)
      return event.takeError();
    events.push_back(std::move(*event));
  }
  for (int64_t i = 0; i <= repeat; ++i) {
    if (llvm::Error error =
            toError(gdnEventRecord(device, events[i].handle, nullptr)))
      return std::move(error);
    if (i == repeat)
      break;
    if (llvm::Error error = call.launch())
      return std::move(error);
  }
  for (int64_t i = 0; i < repeat; ++i) {
    double seconds = 0;
    if (llvm::Error error = toError(gdnEventGetSeconds(
            device, events[i].handle, events[i + 1].handle, &seconds)))
      return std::move(error);
    result.seconds.push_back(seconds);
  }
  // Calls that update their inputs go on from one another.
  if (call.changesInputs()) {
    if (llvm::Error error = call.resetInputs())
      return std::move(error);
    if (llvm::Error error = call.launch())
      return std::move(error);
  }
  auto last = call.fetch();
  if (!last)
    return last.takeError();
  result.repeatable = *first == *last;
  result.outputs = std::move(*last);
  return result;
}
