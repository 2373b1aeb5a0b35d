//===- NameArguments.cpp - What arguments are to the layer ops ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

#define DEBUG_TYPE "gdn-name-arguments"

namespace mlir::gdn {
#define GEN_PASS_DEF_NAMEARGUMENTSPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// Names the arguments and results of one function.
class Namer {
public:
  explicit Namer(func::FuncOp function)
      : function(function), builder(function.getContext()) {}

  void run();

private:
  void nameOperand(Value value, const Twine &name, ArrayAttr dims);
  void nameOperands(Operation *op, StringRef suffix);
  void nameResults(Operation *op, StringRef suffix);
  DictionaryAttr describe(Operation *op);
  ArrayAttr makeDims(const NamedArray &array, StringRef suffix);

  func::FuncOp function;
  Builder builder;
  unsigned named = 0;
};

struct NameArguments : gdn::impl::NameArgumentsPassBase<NameArguments> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        Namer(function).run();
  }
};
} // namespace

static constexpr StringLiteral kName = GDNDialect::getNameAttrName(),
                               kDims = GDNDialect::getDimsAttrName(),
                               kSource = GDNDialect::getSourceAttrName();

static bool isLayer(Operation *op) {
  return isa<ChunkGatedDeltaRuleOp, ChunkGatedDeltaRuleBwdOp,
             RecurrentGatedDeltaRuleOp>(op);
}

ArrayAttr Namer::makeDims(const NamedArray &array, StringRef suffix) {
  SmallVector<Attribute> dims;
  for (StringRef dim : array.dims)
    dims.push_back(builder.getStringAttr(dim + suffix));
  return builder.getArrayAttr(dims);
}

/// Names the argument that `value` is; `dims` is null for a scalar.
void Namer::nameOperand(Value value, const Twine &name, ArrayAttr dims) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &function.front() ||
      function.getArgAttr(argument.getArgNumber(), kName))
    return;
  ++named;
  function.setArgAttr(argument.getArgNumber(), kName,
                      builder.getStringAttr(name));
  if (dims)
    function.setArgAttr(argument.getArgNumber(), kDims, dims);
}

void Namer::nameOperands(Operation *op, StringRef suffix) {
  for (const NamedArray &array : getNamedOperands(op))
    nameOperand(array.operand, array.name + suffix, makeDims(array, suffix));
  if (Value first = cast<DeltaRuleOpInterface>(op).getFirstState())
    nameOperand(first, "first_state" + suffix, /*dims=*/{});
}

void Namer::nameResults(Operation *op, StringRef suffix) {
  for (auto [result, array] :
       llvm::zip_first(op->getResults(), getNamedResults(op))) {
    SmallVector<Value> values = {result};
    for (size_t i = 0; i < values.size(); ++i)
      for (OpOperand &use : values[i].getUses()) {
        if (auto cast = dyn_cast<tensor::CastOp>(use.getOwner()))
          values.push_back(cast.getResult());
        unsigned number = use.getOperandNumber();
        if (!isa<func::ReturnOp>(use.getOwner()) ||
            function.getResultAttr(number, kName))
          continue;
        ++named;
        function.setResultAttr(number, kName,
                               builder.getStringAttr(array.name + suffix));
        function.setResultAttr(number, kDims, makeDims(array, suffix));
      }
  }
}

/// What one op computes, for tools that know nothing of MLIR.
DictionaryAttr Namer::describe(Operation *op) {
  auto rule = cast<DeltaRuleOpInterface>(op);
  NamedAttrList facts;
  auto set = [&](StringRef name, StringRef value) {
    facts.set(name, builder.getStringAttr(value));
  };
  set("op", op->getName().getStringRef());
  set("gate_domain", stringifyGateDomain(rule.getGateDomain()));
  set("beta_domain", stringifyBetaDomain(rule.getBetaDomain()));
  set("state_layout", stringifyStateLayout(rule.getStateLayout()));
  facts.set("scale", builder.getF64FloatAttr(getScale(rule)));
  if (FloatAttr bound = rule.getLowerBoundAttr())
    facts.set("lower_bound", builder.getF64FloatAttr(bound.getValueAsDouble()));
  if (rule.getQkL2norm())
    facts.set("qk_l2norm", builder.getUnitAttr());
  if (auto interval = op->getAttrOfType<IntegerAttr>("state_interval"))
    facts.set("state_interval", interval);
  return facts.getDictionary(function.getContext());
}

void Namer::run() {
  SmallVector<Operation *> layers;
  function.walk([&](Operation *op) {
    if (isLayer(op))
      layers.push_back(op);
  });
  for (auto [index, op] : llvm::enumerate(layers)) {
    std::string suffix = index == 0 ? "" : std::to_string(index);
    nameOperands(op, suffix);
    nameResults(op, suffix);
  }
  for (BlockArgument argument : function.getArguments())
    if (Attribute cut = function.getArgAttr(argument.getArgNumber(),
                                            GDNDialect::getCutAttrName())) {
      ++named;
      if (!function.getArgAttr(argument.getArgNumber(), kName))
        function.setArgAttr(argument.getArgNumber(), kName, cut);
    }
  bool isWhole = named == function.getNumArguments() + function.getNumResults();
  if (layers.size() == 1 && isWhole)
    function->setAttr(kSource, describe(layers.front()));
}
