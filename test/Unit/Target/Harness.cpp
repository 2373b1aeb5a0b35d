//===- Harness.cpp - Compile and call a tile program ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "gdn/InitAll.h"
#include "gdn/Pipelines/Pipelines.h"
#include "gdn/Target/CPU.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <random>

using namespace mlir;

Array Array::random(std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  Array array(std::move(shape), std::vector<float>(size));
  for (float &value : array.data)
    value = distribution(generator);
  return array;
}

/// The descriptor of a dense array (Pipelines.h): two pointers, an offset, the
/// sizes and the strides.
static std::vector<int64_t> describe(void *data, ArrayRef<int64_t> shape) {
  auto address = reinterpret_cast<int64_t>(data);
  std::vector<int64_t> words{address, address, 0};
  words.insert(words.end(), shape.begin(), shape.end());
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t stride = 1;
    for (int64_t extent : shape.drop_front(i + 1))
      stride *= extent;
    words.push_back(stride);
  }
  return words;
}

/// The array that a function returned; frees its memory.
static Array takeResult(ArrayRef<int64_t> words, int64_t rank) {
  auto *data = reinterpret_cast<float *>(words[1]) + words[2];
  ArrayRef<int64_t> shape = words.slice(3, rank);
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  Array result(shape.vec(), std::vector<float>(data, data + size));
  std::free(reinterpret_cast<void *>(words[0]));
  return result;
}

Array call(StringRef text, std::vector<Array> arguments, int64_t resultRank,
           HarnessOptions options, std::vector<int32_t> boundaries) {
  DialectRegistry registry;
  gdn::registerAllDialects(registry);
  gdn::registerAllExtensions(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text.str();
    return {};
  }
  gdn::LoweringOptions lowering;
  lowering.vectorBits = options.vectorBits;
  lowering.parallel = options.parallel;
  PassManager manager(&context);
  gdn::buildTileToLLVMPipeline(manager, lowering);
  if (failed(manager.run(*module))) {
    ADD_FAILURE() << "does not lower:\n" << text.str();
    return {};
  }
  auto program = gdn::cpu::Program::compile(*module);
  if (!program) {
    ADD_FAILURE() << toString(program.takeError());
    return {};
  }

  std::vector<std::vector<int64_t>> descriptors;
  descriptors.emplace_back(3 + 2 * resultRank);
  for (Array &argument : arguments)
    descriptors.push_back(describe(argument.data.data(), argument.shape));
  if (!boundaries.empty())
    descriptors.push_back(
        describe(boundaries.data(), {static_cast<int64_t>(boundaries.size())}));
  std::vector<void *> pointers, packed;
  for (std::vector<int64_t> &descriptor : descriptors)
    pointers.push_back(descriptor.data());
  for (void *&pointer : pointers)
    packed.push_back(&pointer);
  if (llvm::Error error = program->invoke("f", packed)) {
    ADD_FAILURE() << toString(std::move(error));
    return {};
  }
  return takeResult(descriptors.front(), resultRank);
}

std::string makeModule(const std::vector<std::string> &inputs,
                       const std::string &output, const std::string &body) {
  std::string program = "gdn_tile.program @p(", function = "func.func @f(";
  std::string names, tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string comma = i ? ", " : "", name = "%x" + std::to_string(i);
    program += comma + name + " : memref<" + inputs[i] + "xf32>";
    function += comma + name + " : tensor<" + inputs[i] + "xf32>";
    names += comma + name;
    tensors += comma + "tensor<" + inputs[i] + "xf32>";
  }
  std::string result = "tensor<" + output + "xf32>";
  return program + ") outs(%y : memref<" + output +
         "xf32>) work_item(%n, %h, %vt) " +
         "tokens(%batch, %begin, %end) {\n%c0 = arith.constant 0 : index\n" +
         body + "}\n" + function + ") -> " + result + " {\n" +
         "%c1 = arith.constant 1 : index\n%e = tensor.empty() : " + result +
         "\n%r = gdn_tile.launch @p grid(%c1, %c1, %c1) tokens(%c1) ins(" +
         names + " : " + tensors + ") outs(%e : " + result + ") -> " + result +
         "\nreturn %r : " + result + "\n}\n";
}
