//===- Execute.cpp - Call a compiled function -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Arguments.h"
#include "gdn/Tools/Compile.h"
#include "gdn/Tools/Error.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cstring>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

llvm::Expected<func::FuncOp> tools::findEntry(ModuleOp module,
                                              llvm::StringRef name) {
  llvm::SmallVector<func::FuncOp> candidates;
  std::string names;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal() || !func.isPublic())
      continue;
    if (func.getSymName() == name)
      return func;
    candidates.push_back(func);
    names += (names.empty() ? "@" : ", @") + func.getSymName().str();
  }
  if (name.empty() && candidates.size() == 1)
    return candidates.front();
  if (candidates.empty())
    return fail("expected a public function with a body, got none");
  if (name.empty())
    return fail("expected --entry of one of {0}, got none", names);
  return fail("expected --entry of {0}, got '{1}'", names, name);
}

void tools::eraseUnreached(func::FuncOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> reached;
  reached.insert(entry);
  for (size_t i = 0; i < reached.size(); ++i) {
    std::optional<SymbolTable::UseRange> uses =
        SymbolTable::getSymbolUses(reached[i]);
    if (!uses)
      return;
    for (const SymbolTable::SymbolUse &use : *uses)
      if (Operation *op = symbols.lookup(use.getSymbolRef().getRootReference()))
        reached.insert(op);
  }
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<SymbolOpInterface>(op) && !reached.contains(&op))
      op.erase();
}

llvm::Expected<Executable> Executable::compile(ModuleOp module,
                                               func::FuncOp entry,
                                               const CompileOptions &options) {
  std::vector<Result> results;
  for (Type type : entry.getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    std::optional<Element> element =
        tensor ? elementOf(tensor.getElementType()) : std::nullopt;
    if (!element) {
      std::string text;
      llvm::raw_string_ostream(text) << type;
      return fail("expected results of @{0} to be tensors of f32, bf16, f16, "
                  "i8, i32 or i64, got {1}",
                  entry.getSymName(), text);
    }
    results.push_back({*element, tensor.getRank()});
  }
  std::vector<Parameter> parameters;
  for (BlockArgument argument : entry.getArguments()) {
    auto writable = entry.getArgAttrOfType<BoolAttr>(
        argument.getArgNumber(),
        bufferization::BufferizationDialect::kWritableAttrName);
    parameters.push_back({scalarOf(argument.getType()).has_value(),
                          writable && writable.getValue()});
  }
  // The function is rewritten on the way down.
  std::string name = entry.getSymName().str();
  if (failed(lower(module, Level::LLVM, options)))
    return fail("expected a function that compiles, got @{0}", name);
  llvm::Expected<cpu::Program> program =
      cpu::Program::compile(module, options.target);
  if (!program)
    return program.takeError();
  if (llvm::Error error = program->materialize(name))
    return std::move(error);
  return Executable(std::move(*program), std::move(name), std::move(results),
                    std::move(parameters));
}

namespace {
/// A memref descriptor: two pointers, offset, sizes, strides (Pipelines.h).
using Word = int64_t;
constexpr int64_t headerWords = 3;
int64_t descriptorWords(int64_t rank) { return headerWords + 2 * rank; }
} // namespace

static std::vector<Word> describeArray(HostArray &array) {
  llvm::ArrayRef<int64_t> shape = array.getShape();
  int64_t rank = shape.size();
  std::vector<Word> descriptor(descriptorWords(rank));
  auto address = reinterpret_cast<intptr_t>(array.data());
  descriptor[0] = descriptor[1] = address;
  Word stride = 1;
  for (int64_t i = rank; i-- > 0; stride *= shape[i]) {
    descriptor[headerWords + i] = shape[i];
    descriptor[headerWords + rank + i] = stride;
  }
  return descriptor;
}

/// Copies a result out of the memory that the function returned.
static HostArray copyResult(Element element, int64_t rank,
                            const Word *descriptor) {
  llvm::ArrayRef<int64_t> shape(descriptor + headerWords, rank);
  HostArray array(element, shape);
  auto *source = reinterpret_cast<const char *>(descriptor[1]) +
                 descriptor[2] * byteSize(element);
  if (array.size() > 0)
    std::memcpy(array.data(), source, array.size() * byteSize(element));
  return array;
}

llvm::Expected<std::vector<HostArray>>
Executable::run(llvm::MutableArrayRef<HostArray> inputs, double *seconds) {
  int64_t resultWords = 0;
  for (const Result &result : results)
    resultWords += descriptorWords(result.rank);
  std::vector<Word> room(resultWords);
  std::vector<std::vector<Word>> descriptors;
  std::vector<HostArray> copies;
  copies.reserve(inputs.size());
  for (auto [input, parameter] : llvm::zip_equal(inputs, parameters)) {
    if (parameter.isWritable)
      copies.push_back(input);
    descriptors.push_back(
        describeArray(parameter.isWritable ? copies.back() : input));
  }

  // The call takes pointers to arguments: to scalars, and to pointers to
  // arrays.
  std::vector<void *> values = {room.data()};
  for (std::vector<Word> &descriptor : descriptors)
    values.push_back(descriptor.data());
  std::vector<void *> arguments;
  if (!results.empty())
    arguments.push_back(&values[0]);
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back(parameters[i].isScalar
                            ? static_cast<void *>(inputs[i].data())
                            : &values[i + 1]);

  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  if (llvm::Error error = program.invoke(name, arguments))
    return std::move(error);
  if (seconds)
    *seconds = std::chrono::duration<double>(Clock::now() - start).count();

  std::vector<HostArray> outputs;
  const Word *descriptor = room.data();
  for (const Result &result : results) {
    outputs.push_back(copyResult(result.element, result.rank, descriptor));
    descriptor += descriptorWords(result.rank);
  }
  // After all copies: results of one function may share memory.
  llvm::SmallVector<Word> freed;
  descriptor = room.data();
  for (const Result &result : results) {
    if (!llvm::is_contained(freed, descriptor[0])) {
      freed.push_back(descriptor[0]);
      std::free(reinterpret_cast<void *>(descriptor[0]));
    }
    descriptor += descriptorWords(result.rank);
  }
  return outputs;
}
