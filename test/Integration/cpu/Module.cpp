//===- Module.cpp - The text and the inputs of a case ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matrix.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace gdn::numerics;
using mlir::gdn::tools::InputOptions;

/// The mixes of packed lengths: ascending with an empty sequence in front, the
/// same mixed with empty ones between and behind, and many short ones.
static const std::vector<int64_t> lengthMixes[] = {
    {0, 1, 63, 64, 65, 200}, {200, 0, 65, 1, 64, 63, 0}, {1, 1, 0, 2, 17, 31}};

static bool isPacked(const Program &program) {
  return valueOf(program, kPacked) == "yes";
}

static const std::vector<int64_t> &mixOf(const Setting &setting) {
  return lengthMixes[setting[kLength] % std::size(lengthMixes)];
}

namespace {
/// The sizes of a case.
struct Sizes {
  int64_t batch, tokens, queryHeads, heads, keys, values, sequences;
};
} // namespace

static Sizes sizesOf(const Program &program, const Setting &setting) {
  Sizes sizes = {};
  int64_t group = 1;
  (void)valueOf(program, kGroup).getAsInteger(10, group);
  sizes.queryHeads = group == 4 ? 1 : 2;
  sizes.heads = sizes.queryHeads * group;
  auto [keys, values] = valueOf(program, kDims).split('x');
  (void)keys.getAsInteger(10, sizes.keys);
  (void)values.getAsInteger(10, sizes.values);
  if (isPacked(program)) {
    const std::vector<int64_t> &mix = mixOf(setting);
    sizes.batch = 1;
    sizes.tokens = std::accumulate(mix.begin(), mix.end(), int64_t(0));
    sizes.sequences = mix.size();
    return sizes;
  }
  llvm::StringRef length = settingAxes()[kLength].values[setting[kLength]];
  (void)length.getAsInteger(10, sizes.tokens);
  // Two sequences where they are short, so that batches are tested too.
  sizes.batch = sizes.sequences = sizes.tokens < 128 ? 2 : 1;
  return sizes;
}

namespace {
/// Writes the function of a program, operand by operand.
class Writer {
public:
  Writer(const Program &program, const Sizes &sizes)
      : program(program), sizes(sizes),
        isStatic(valueOf(program, kSizes) == "static") {}

  std::string write();

private:
  std::string type(llvm::ArrayRef<int64_t> shape, llvm::StringRef element) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += (size < 0 ? "?" : std::to_string(size)) + "x";
    return text + element.str() + ">";
  }
  void operand(llvm::StringRef name, const std::string &type) {
    arguments.push_back(llvm::formatv("%{0}: {1}", name, type));
    operands += llvm::formatv("      {0}(%{0} : {1})\n", name, type);
  }
  void attribute(const std::string &text) { attributes.push_back(text); }

  void writeOperands();
  void writeAttributes();
  std::vector<std::string> resultTypes();

  bool hasGate() const { return valueOf(program, kGate) != "none"; }
  bool isChannelGate() const {
    return valueOf(program, kGate).starts_with("kda");
  }
  llvm::StringRef domain() const {
    return valueOf(program, kGate).split('-').second;
  }
  bool hasParameters() const {
    return domain() == "softplus" || domain() == "bounded";
  }
  bool isBackward() const { return valueOf(program, kOp) == "backward"; }
  bool hasInitialState() const {
    return valueOf(program, kStates).starts_with("in");
  }
  bool hasFinalState() const {
    return valueOf(program, kStates).contains("out");
  }
  std::string stateType() {
    bool isVK = valueOf(program, kStates).ends_with("vk");
    return type({dim(sizes.sequences), sizes.heads,
                 isVK ? sizes.values : sizes.keys,
                 isVK ? sizes.keys : sizes.values},
                valueOf(program, kStateType));
  }
  /// A size that only static programs know.
  int64_t dim(int64_t size) const { return isStatic ? size : -1; }

  const Program &program;
  const Sizes &sizes;
  bool isStatic;
  std::vector<std::string> arguments, attributes;
  std::string operands;
  std::string queries, values, betas, gates, parameters, biases;
};
} // namespace

void Writer::writeOperands() {
  llvm::StringRef data = valueOf(program, kData);
  llvm::StringRef parameter = valueOf(program, kParameterType);
  int64_t batch = isPacked(program) ? 1 : dim(sizes.batch);
  int64_t tokens = dim(sizes.tokens), heads = sizes.heads;
  queries = type({batch, tokens, sizes.queryHeads, sizes.keys}, data);
  values = type({batch, tokens, heads, sizes.values}, data);
  betas = type({batch, tokens, heads}, parameter);
  gates = isChannelGate() ? type({batch, tokens, heads, sizes.keys}, parameter)
                          : betas;
  // Gate parameters are f32 in every model; their sums need it.
  parameters = type({heads}, "f32");
  biases = isChannelGate() ? type({heads, sizes.keys}, "f32") : parameters;
  operand("q", queries);
  operand("k", queries);
  operand("v", values);
  operand("beta", betas);
  if (hasGate())
    operand("gate", gates);
  if (hasInitialState())
    operand("initial_state", stateType());
  if (isPacked(program))
    operand("cu_seqlens",
            type({dim(sizes.sequences + 1)}, valueOf(program, kBoundaries)));
  if (hasParameters()) {
    operand("a_log", parameters);
    operand("dt_bias", biases);
  }
  if (valueOf(program, kStates).contains("pool"))
    operand("state_indices",
            type({dim(sizes.sequences)}, valueOf(program, kBoundaries)));
  if (isBackward()) {
    operand("d_o", values);
    if (hasFinalState())
      operand("d_final_state", stateType());
  }
}

void Writer::writeAttributes() {
  if (hasGate() && domain() != "log")
    attribute("gate_domain = #gdn.gate_domain<" + domain().str() + ">");
  if (domain() == "bounded")
    attribute("lower_bound = -5.0 : f64");
  if (valueOf(program, kL2norm) == "yes")
    attribute("qk_l2norm");
  if (valueOf(program, kBeta) != "value")
    attribute("beta_domain = #gdn.beta_domain<" +
              valueOf(program, kBeta).str() + ">");
  if (valueOf(program, kStates).ends_with("vk"))
    attribute("state_layout = #gdn.state_layout<vk>");
  if (hasFinalState() && !isBackward())
    attribute("output_final_state");
}

std::vector<std::string> Writer::resultTypes() {
  std::vector<std::string> types;
  if (!isBackward()) {
    types = {values};
    if (hasFinalState())
      types.push_back(stateType());
    return types;
  }
  types = {queries, queries, values, betas};
  if (hasGate())
    types.push_back(gates);
  if (hasInitialState())
    types.push_back(stateType());
  if (hasParameters()) {
    types.push_back(parameters);
    types.push_back(biases);
  }
  return types;
}

std::string Writer::write() {
  writeOperands();
  writeAttributes();
  std::vector<std::string> types = resultTypes();
  std::string results = llvm::join(types, ", ");
  std::string name = "gdn.chunk_gated_delta_rule";
  if (isBackward())
    name += "_bwd";
  else if (valueOf(program, kOp) == "recurrent")
    name = "gdn.recurrent_gated_delta_rule";
  std::vector<std::string> names;
  for (size_t i = 0; i < types.size(); ++i)
    names.push_back("%r" + std::to_string(i));
  std::string list = llvm::join(names, ", ");
  return llvm::formatv("func.func @f({0})\n    -> ({1}) {{\n  {2} = {3}\n{4}"
                       "      {{{5}}\n      -> {1}\n  return {2} : {1}\n}\n",
                       llvm::join(arguments, ", "), results, list, name,
                       operands, llvm::join(attributes, ", "));
}

Module gdn::numerics::writeModule(const Program &program,
                                  const Setting &setting) {
  Module module;
  module.text = Writer(program, sizesOf(program, setting)).write();
  module.compile.plan = valueOf(program, kPlan).str();
  (void)valueOf(program, kChunk).getAsInteger(10, module.compile.chunkSize);
  (void)valueOf(program, kVTiles).getAsInteger(10, module.compile.vTiles);
  module.compile.twoProductChain = valueOf(program, kChain) == "2";
  return module;
}

/// A seed of the setting's own, so that no two settings see the same numbers.
static uint64_t seedOf(const Setting &setting) {
  return setting[kLength] * 64 + setting[kMeanGate] * 8 + setting[kKeys];
}

InputOptions gdn::numerics::inputsOf(const Program &program,
                                     const Setting &setting) {
  Sizes sizes = sizesOf(program, setting);
  InputOptions options;
  if (isPacked(program))
    options.lengths = mixOf(setting);
  else
    options.dims = {{"B", sizes.batch}, {"T", sizes.tokens}};
  options.random.seed = seedOf(setting);
  llvm::StringRef gate = settingAxes()[kMeanGate].values[setting[kMeanGate]];
  (void)gate.getAsDouble(options.random.meanGate);
  llvm::StringRef keys = settingAxes()[kKeys].values[setting[kKeys]];
  if (keys.consume_front("cosine:"))
    (void)keys.getAsDouble(options.random.keyCosine);
  return options;
}

std::string gdn::numerics::commandOf(const Program &program,
                                     const Setting &setting,
                                     llvm::StringRef file) {
  Sizes sizes = sizesOf(program, setting);
  std::string text = llvm::formatv(
      "gdn-run {0} --check --plan={1} --chunk-size={2} --v-tiles={3} "
      "--mean-gate={4} --keys={5} --seed={6}{7}",
      file, valueOf(program, kPlan), valueOf(program, kChunk),
      valueOf(program, kVTiles),
      settingAxes()[kMeanGate].values[setting[kMeanGate]],
      settingAxes()[kKeys].values[setting[kKeys]], seedOf(setting),
      valueOf(program, kChain) == "2" ? " --two-product-chain" : "");
  if (!isPacked(program))
    return text +
           llvm::formatv(" --dim B={0} --dim T={1}", sizes.batch, sizes.tokens)
               .str();
  std::vector<std::string> lengths;
  for (int64_t length : mixOf(setting))
    lengths.push_back(std::to_string(length));
  return text + " --lengths=" + llvm::join(lengths, ",");
}
