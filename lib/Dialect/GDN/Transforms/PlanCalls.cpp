//===- PlanCalls.cpp - The functions of which a call is one ---------------===//
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
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

#define DEBUG_TYPE "gdn-plan-calls"

namespace mlir::gdn {
#define GEN_PASS_DEF_PLANCALLSPASS
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// What a function says of one of its variants.
struct Wish {
  StringAttr schedule, suffix;
  ArrayAttr cut;
  StateLayoutAttr stateLayout;
  /// Attributes of the function.
  SmallVector<NamedAttribute> others;
};

struct PlanCalls : gdn::impl::PlanCallsPassBase<PlanCalls> {
  void runOnOperation() override;
  LogicalResult plan(func::FuncOp function, ArrayAttr wishes);
};
} // namespace

static FailureOr<Wish> readWish(func::FuncOp function, Attribute attribute) {
  auto refuse = [&]() -> InFlightDiagnostic {
    return function.emitOpError("expected ")
           << GDNDialect::getVariantsAttrName()
           << " of dictionaries with a schedule, and a name, a cut, a "
              "state_layout or attributes of dialects, got ";
  };
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  if (!dictionary)
    return refuse() << attribute;
  Wish wish;
  auto take = [](auto &field, Attribute value) {
    field = dyn_cast<std::remove_reference_t<decltype(field)>>(value);
    return static_cast<bool>(field);
  };
  for (NamedAttribute entry : dictionary) {
    StringRef name = entry.getName().getValue();
    Attribute value = entry.getValue();
    bool isTaken = name == "schedule"       ? take(wish.schedule, value)
                   : name == "name"         ? take(wish.suffix, value)
                   : name == "cut"          ? take(wish.cut, value)
                   : name == "state_layout" ? take(wish.stateLayout, value)
                                            : name.contains('.');
    if (!isTaken)
      return refuse() << name << " = " << value;
    if (name.contains('.'))
      wish.others.push_back(entry);
  }
  if (!wish.schedule)
    return refuse() << attribute;
  if (!wish.suffix)
    wish.suffix = wish.schedule;
  return wish;
}

/// The only layer op of a function; null for none, and for several.
static DeltaRuleOpInterface findLayer(func::FuncOp function) {
  DeltaRuleOpInterface found;
  bool isOne = true;
  function.walk([&](DeltaRuleOpInterface op) {
    isOne &= !found;
    found = op;
  });
  return isOne ? found : DeltaRuleOpInterface();
}

/// The type of states whose rows are the other ones' columns.
static Type transpose(Type type) {
  auto states = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(states.getShape());
  std::swap(shape[shape.size() - 2], shape.back());
  return RankedTensorType::get(shape, states.getElementType());
}

/// Makes a function take and give states of the other layout. They are its own
/// arguments and results.
static LogicalResult setStateLayout(func::FuncOp function,
                                    StateLayoutAttr layout) {
  DeltaRuleOpInterface layer = findLayer(function);
  if (layer.getStateLayout() == layout.getValue())
    return success();
  auto isState = [](const auto &array) {
    return llvm::is_contained(array.dims, "K") &&
           llvm::is_contained(array.dims, "V");
  };
  auto refuse = [&](const Twine &name) {
    return layer->emitOpError("expected ")
           << name << " to be the function's own for a variant with another "
           << "state_layout, got another value";
  };
  for (const NamedArray &array : getNamedOperands(layer))
    if (array.operand && isState(array)) {
      auto argument = dyn_cast<BlockArgument>(array.operand);
      if (!argument || argument.getOwner() != &function.front())
        return refuse(array.name);
      argument.setType(transpose(argument.getType()));
    }
  Operation *terminator = function.front().getTerminator();
  for (auto [result, array] :
       llvm::zip_first(layer->getResults(), getNamedResults(layer)))
    if (isState(array)) {
      if (!llvm::all_of(result.getUsers(),
                        [&](Operation *user) { return user == terminator; }))
        return refuse(array.name);
      result.setType(transpose(result.getType()));
    }
  layer->setAttr("state_layout", layout);
  function.setType(FunctionType::get(function.getContext(),
                                     function.front().getArgumentTypes(),
                                     terminator->getOperandTypes()));
  return success();
}

/// Clones the function as one of its variants, behind the last one.
static FailureOr<func::FuncOp>
makeVariant(func::FuncOp function, const Wish &wish, OpBuilder &builder) {
  auto clone = cast<func::FuncOp>(builder.clone(*function));
  clone.setSymName(
      (function.getSymName() + "_" + wish.suffix.getValue()).str());
  clone->removeAttr(GDNDialect::getVariantsAttrName());
  for (NamedAttribute attribute : wish.others)
    clone->setAttr(attribute.getName(), attribute.getValue());
  if (wish.stateLayout && failed(setStateLayout(clone, wish.stateLayout)))
    return failure();
  for (Attribute word : wish.cut ? wish.cut : builder.getArrayAttr({})) {
    NamedAttribute note(builder.getStringAttr(GDNDialect::getCutAttrName()),
                        word);
    if (failed(clone.insertArgument(
            clone.getNumArguments(), builder.getIndexType(),
            builder.getDictionaryAttr(note), function.getLoc())))
      return failure();
  }
  return clone;
}

LogicalResult PlanCalls::plan(func::FuncOp function, ArrayAttr wishes) {
  if (function.isExternal() || !findLayer(function))
    return function.emitOpError("expected one layer op in a function with ")
           << GDNDialect::getVariantsAttrName();
  if (wishes.empty())
    return function.emitOpError("expected at least one variant in ")
           << GDNDialect::getVariantsAttrName() << ", got none";
  OpBuilder builder(function);
  builder.setInsertionPointAfter(function);
  SmallVector<std::pair<func::FuncOp, StringAttr>> variants;
  SymbolTable symbols(getOperation());
  for (Attribute attribute : wishes) {
    FailureOr<Wish> wish = readWish(function, attribute);
    if (failed(wish))
      return failure();
    std::string name =
        (function.getSymName() + "_" + wish->suffix.getValue()).str();
    if (symbols.lookup(name))
      return function.emitOpError("expected variants of names that nothing "
                                  "else has, got ")
             << name << " twice; a variant may have a name";
    FailureOr<func::FuncOp> variant = makeVariant(function, *wish, builder);
    if (failed(variant))
      return failure();
    symbols.insert(*variant);
    builder.setInsertionPointAfter(*variant);
    variants.emplace_back(*variant, wish->schedule);
  }
  auto entry =
      EntryOp::create(builder, function.getLoc(), function.getSymNameAttr());
  builder.createBlock(&entry.getVariants());
  for (auto [variant, schedule] : variants)
    VariantOp::create(builder, variant.getLoc(),
                      FlatSymbolRefAttr::get(variant.getSymNameAttr()),
                      schedule);
  function.erase();
  return success();
}

void PlanCalls::runOnOperation() {
  for (auto function :
       llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (auto wishes = function->getAttrOfType<ArrayAttr>(
            GDNDialect::getVariantsAttrName()))
      if (failed(plan(function, wishes)))
        return signalPassFailure();
}
