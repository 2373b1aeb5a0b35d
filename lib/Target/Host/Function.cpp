//===- Function.cpp - Functions that launch kernels as tables -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

namespace {
/// An array of the function as it is known while its ops are read: where it
/// lies, and a step for each extent.
struct Array {
  GdnOperand place;
  SmallVector<int32_t> extents;
};

/// Reads a function op by op.
class FunctionBuilder {
public:
  FunctionBuilder(func::FuncOp function, ArrayRef<KernelTable> kernels)
      : function(function), kernels(kernels) {}

  FailureOr<FunctionTable> build();

private:
  LogicalResult addArgument(unsigned number, Type type, bool isResult);
  int32_t addSymbol(const std::string &name, int32_t argument, int32_t dim);
  int32_t addStep(GdnIndexStep step);
  int32_t getExtent(int32_t argument, int64_t dim);
  LogicalResult addInputs();
  void addBoundaryRules();
  void addHeadRule();
  void noteReturned();

  LogicalResult visit(Operation *op);
  LogicalResult visitConstant(arith::ConstantOp op);
  LogicalResult visitBinary(Operation *op, int32_t kind);
  LogicalResult visitDim(tensor::DimOp op);
  LogicalResult visitEmpty(tensor::EmptyOp op);
  LogicalResult visitLaunch(tile::LaunchOp op);
  LogicalResult visitReturn(func::ReturnOp op);
  FailureOr<Array> addOutput(tile::LaunchOp launch, unsigned index);
  LogicalResult checkOutput(Operation *op, int32_t argument,
                            ArrayRef<int32_t> extents);
  LogicalResult addOperands(tile::LaunchOp launch, ArrayRef<Array> outputs,
                            LaunchTable &result);
  LogicalResult addScalar(tile::LaunchOp launch, Value value,
                          LaunchTable &result);

  func::FuncOp function;
  ArrayRef<KernelTable> kernels;
  FunctionTable table;
  llvm::StringMap<int32_t> symbols;
  /// The first extent of each symbol.
  SmallVector<int32_t> symbolSteps;
  llvm::DenseMap<Value, int32_t> indices;
  llvm::DenseMap<Value, Array> arrays;
  /// Results of launches that the function returns, by argument.
  llvm::DenseMap<Value, int32_t> returned;
};
} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// What gdn-name-arguments noted of an argument or a result.
template <typename AttrType>
static AttrType getNote(func::FuncOp function, unsigned number, bool isResult,
                        StringRef name) {
  return isResult ? function.getResultAttrOfType<AttrType>(number, name)
                  : function.getArgAttrOfType<AttrType>(number, name);
}

int32_t FunctionBuilder::addStep(GdnIndexStep step) {
  for (auto [index, known] : llvm::enumerate(table.steps))
    if (known.kind == step.kind && known.left == step.left &&
        known.right == step.right && known.value == step.value)
      return index;
  table.steps.push_back(step);
  return table.steps.size() - 1;
}

int32_t FunctionBuilder::addSymbol(const std::string &name, int32_t argument,
                                   int32_t dim) {
  auto [entry, isNew] = symbols.try_emplace(name, table.symbols.size());
  if (isNew) {
    table.symbols.push_back(name);
    symbolSteps.push_back(
        addStep({GDN_INDEX_EXTENT, argument, dim, /*value=*/0}));
  }
  return entry->second;
}

/// The step of an argument's extent; equal ones have one step.
int32_t FunctionBuilder::getExtent(int32_t argument, int64_t dim) {
  int64_t extent = table.arguments[argument].shape[dim];
  if (extent >= 0)
    return addStep({GDN_INDEX_CONSTANT, 0, 0, extent});
  return symbolSteps[-1 - extent];
}

LogicalResult FunctionBuilder::addArgument(unsigned number, Type type,
                                           bool isResult) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  ArgumentTable argument;
  argument.dtype = tensor ? getDType(tensor.getElementType()) : 0;
  if (!argument.dtype)
    return function.emitOpError("expected arguments and results to be tensors "
                                "of bf16, f16, f32, i32 or i64, got ")
           << type;
  auto name = getNote<StringAttr>(function, number, isResult, "gdn.name");
  argument.name =
      name ? name.str()
           : (isResult ? "result" : "argument") + std::to_string(number);
  auto dims = getNote<ArrayAttr>(function, number, isResult, "gdn.dims");
  for (auto [dim, size] : llvm::enumerate(tensor.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      argument.shape.push_back(size);
      continue;
    }
    StringAttr note = dims && dim < dims.size()
                          ? dyn_cast<StringAttr>(dims[dim])
                          : StringAttr();
    std::string symbol =
        note ? note.str() : argument.name + "." + std::to_string(dim);
    int32_t index = addSymbol(symbol, table.arguments.size(), dim);
    argument.shape.push_back(GDN_SYMBOL(index));
  }
  table.arguments.push_back(std::move(argument));
  return success();
}

LogicalResult FunctionBuilder::addInputs() {
  for (BlockArgument value : function.getArguments()) {
    int32_t number = value.getArgNumber();
    if (failed(addArgument(number, value.getType(), /*isResult=*/false)))
      return failure();
    Array array{{GDN_OPERAND_ARGUMENT, number}, {}};
    for (size_t dim = 0; dim < table.arguments.back().shape.size(); ++dim)
      array.extents.push_back(getExtent(number, dim));
    arrays[value] = std::move(array);
  }
  table.numInputs = table.arguments.size();
  for (auto [number, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(addArgument(number, type, /*isResult=*/true)))
      return failure();
  return success();
}

/// Boundaries [N + 1] belong to N sequences.
void FunctionBuilder::addBoundaryRules() {
  for (auto [index, name] : llvm::enumerate(table.symbols)) {
    StringRef sequences = name;
    if (!sequences.consume_back("+1") || !symbols.contains(sequences))
      continue;
    int32_t one = addStep({GDN_INDEX_CONSTANT, 0, 0, 1});
    int32_t count =
        addStep({GDN_INDEX_SUBTRACT, symbolSteps[index], one, /*value=*/0});
    const GdnIndexStep &extent =
        table.steps[symbolSteps[symbols.lookup(sequences)]];
    table.rules.push_back({extent.left, extent.right, count});
  }
}

/// Every q/k head belongs to the same number of value heads: H = H / Hq * Hq.
void FunctionBuilder::addHeadRule() {
  if (!symbols.contains("H") || !symbols.contains("Hq"))
    return;
  int32_t heads = symbolSteps[symbols.lookup("H")],
          keyHeads = symbolSteps[symbols.lookup("Hq")];
  int32_t group = addStep({GDN_INDEX_DIVIDE, heads, keyHeads, 0});
  int32_t whole = addStep({GDN_INDEX_MULTIPLY, group, keyHeads, 0});
  const GdnIndexStep &extent = table.steps[heads];
  table.rules.push_back({extent.left, extent.right, whole});
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

LogicalResult FunctionBuilder::visitConstant(arith::ConstantOp op) {
  APInt value;
  if (!matchPattern(op.getResult(), m_ConstantInt(&value)) ||
      !value.isSignedIntN(64))
    return op.emitOpError("expected integers of 64 bits around the kernels of "
                          "a GPU, got ")
           << op.getType();
  indices[op] = addStep({GDN_INDEX_CONSTANT, 0, 0, value.getSExtValue()});
  return success();
}

/// Steps are signed: extents are not negative, and their products checked.
static int32_t getStepKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, int32_t>(op)
      .Case([](arith::AddIOp) { return GDN_INDEX_ADD; })
      .Case([](arith::SubIOp) { return GDN_INDEX_SUBTRACT; })
      .Case([](arith::MulIOp) { return GDN_INDEX_MULTIPLY; })
      .Case<arith::DivUIOp, arith::FloorDivSIOp>(
          [](auto) { return GDN_INDEX_DIVIDE; })
      .Case<arith::CeilDivUIOp, arith::CeilDivSIOp>(
          [](auto) { return GDN_INDEX_DIVIDE_UP; })
      .Case([](arith::RemUIOp) { return GDN_INDEX_REMAINDER; })
      .Case<arith::MinUIOp, arith::MinSIOp>(
          [](auto) { return GDN_INDEX_MINIMUM; })
      .Case<arith::MaxUIOp, arith::MaxSIOp>(
          [](auto) { return GDN_INDEX_MAXIMUM; })
      .Default(0);
}

LogicalResult FunctionBuilder::visitBinary(Operation *op, int32_t kind) {
  int32_t sides[2];
  for (auto [side, operand] : llvm::zip(sides, op->getOperands())) {
    auto known = indices.find(operand);
    if (known == indices.end())
      return op->emitOpError("expected operands made from extents");
    side = known->second;
  }
  indices[op->getResult(0)] = addStep({kind, sides[0], sides[1], 0});
  return success();
}

LogicalResult FunctionBuilder::visitDim(tensor::DimOp op) {
  std::optional<int64_t> dim = op.getConstantIndex();
  auto array = arrays.find(op.getSource());
  if (!dim || array == arrays.end() || *dim < 0 ||
      *dim >= static_cast<int64_t>(array->second.extents.size()))
    return op.emitOpError("expected a constant dimension of an array of the "
                          "function");
  indices[op] = array->second.extents[*dim];
  return success();
}

//===----------------------------------------------------------------------===//
// Arrays and launches
//===----------------------------------------------------------------------===//

/// An empty tensor is a shape; the launch that writes it says where it lies.
LogicalResult FunctionBuilder::visitEmpty(tensor::EmptyOp op) {
  Array array{{0, 0}, {}};
  unsigned next = 0;
  for (int64_t size : op.getType().getShape()) {
    if (!ShapedType::isDynamic(size)) {
      array.extents.push_back(addStep({GDN_INDEX_CONSTANT, 0, 0, size}));
      continue;
    }
    auto index = indices.find(op.getDynamicSizes()[next++]);
    if (index == indices.end())
      return op.emitOpError("expected sizes made from extents");
    array.extents.push_back(index->second);
  }
  arrays[op] = std::move(array);
  return success();
}

/// The caller's output must have the extents that the function gives it.
LogicalResult FunctionBuilder::checkOutput(Operation *op, int32_t argument,
                                           ArrayRef<int32_t> extents) {
  const ArgumentTable &output = table.arguments[argument];
  if (output.shape.size() != extents.size())
    return op->emitOpError("expected outs of rank ")
           << output.shape.size() << ", got " << extents.size();
  for (auto [dim, step] : llvm::enumerate(extents)) {
    // Where the symbol or the constant says it all there is no rule to add. A
    // symbol that the output itself introduced says nothing of the inputs.
    if (getExtent(argument, dim) != step)
      table.rules.push_back({argument, static_cast<int32_t>(dim), step});
  }
  return success();
}

FailureOr<Array> FunctionBuilder::addOutput(tile::LaunchOp launch,
                                            unsigned index) {
  Value out = launch.getOutputs()[index];
  if (!out.getDefiningOp<tensor::EmptyOp>())
    return launch.emitOpError("expected outs #")
           << index << " to be a tensor.empty, got another array";
  Array array = arrays[out];
  auto argument = returned.find(launch.getResult(index));
  if (argument != returned.end()) {
    array.place = {GDN_OPERAND_ARGUMENT, argument->second};
    if (failed(checkOutput(launch, argument->second, array.extents)))
      return failure();
    return array;
  }
  auto type = cast<RankedTensorType>(out.getType());
  array.place = {GDN_OPERAND_TEMPORARY,
                 static_cast<int32_t>(table.temporaries.size())};
  table.temporaries.push_back({getDType(type.getElementType()), array.extents});
  if (!table.temporaries.back().dtype)
    return launch.emitOpError("expected outs of bf16, f16, f32, i32 or i64, "
                              "got ")
           << type;
  return array;
}

/// Gives a scalar to the kernel's next argument.
LogicalResult FunctionBuilder::addScalar(tile::LaunchOp launch, Value value,
                                         LaunchTable &result) {
  auto index = indices.find(value);
  if (index == indices.end())
    return launch.emitOpError("expected sizes made from extents");
  result.operands.push_back({GDN_OPERAND_INDEX, index->second});
  return success();
}

/// The kernel takes the program's arrays in order, the tokens and, if there are
/// any, the boundaries.
LogicalResult FunctionBuilder::addOperands(tile::LaunchOp launch,
                                           ArrayRef<Array> outputs,
                                           LaunchTable &result) {
  auto addArray = [&](Value value) -> LogicalResult {
    auto array = arrays.find(value);
    if (array == arrays.end() || array->second.place.kind == 0)
      return launch.emitOpError("expected inputs that are arguments of the "
                                "function or results of kernels, got ")
             << value.getType();
    result.operands.push_back(array->second.place);
    return success();
  };
  for (Value input : launch.getInputs())
    if (failed(addArray(input)))
      return failure();
  for (const Array &output : outputs)
    result.operands.push_back(output.place);
  if (failed(addScalar(launch, launch.getTokens(), result)))
    return failure();
  if (launch.getCuSeqlens() && failed(addArray(launch.getCuSeqlens())))
    return failure();
  const KernelTable &kernel = kernels[result.kernel];
  if (kernel.arguments.size() != result.operands.size())
    return launch.emitOpError("expected kernel @")
           << kernel.name << " to take " << result.operands.size()
           << " arguments (inputs, outs, tokens, cu_seqlens), got "
           << kernel.arguments.size();
  return success();
}

LogicalResult FunctionBuilder::visitLaunch(tile::LaunchOp op) {
  const KernelTable *kernel = llvm::find_if(
      kernels, [&](const KernelTable &k) { return k.name == op.getProgram(); });
  if (kernel == kernels.end())
    return op.emitOpError("expected a kernel that went through "
                          "gdn-warp-to-llvm, got ")
           << op.getProgramAttr();
  LaunchTable launch{static_cast<unsigned>(kernel - kernels.begin()), {}, {}};
  for (auto [place, size] : llvm::zip(launch.grid, op.getGrid())) {
    auto index = indices.find(size);
    if (index == indices.end())
      return op.emitOpError("expected a grid made from extents");
    place = index->second;
  }
  SmallVector<Array> outputs;
  for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
    FailureOr<Array> output = addOutput(op, i);
    if (failed(output))
      return failure();
    outputs.push_back(*output);
  }
  if (failed(addOperands(op, outputs, launch)))
    return failure();
  for (auto [result, output] : llvm::zip(op.getResults(), outputs))
    arrays[result] = output;
  table.launches.push_back(std::move(launch));
  return success();
}

LogicalResult FunctionBuilder::visitReturn(func::ReturnOp op) {
  for (auto [number, value] : llvm::enumerate(op.getOperands())) {
    auto array = arrays.find(value);
    int32_t argument = table.numInputs + number;
    if (array == arrays.end() ||
        array->second.place.kind != GDN_OPERAND_ARGUMENT ||
        array->second.place.index != argument)
      return op.emitOpError("expected results of kernels, each returned once, "
                            "got another value as result ")
             << number;
  }
  return success();
}

LogicalResult FunctionBuilder::visit(Operation *op) {
  if (int32_t kind = getStepKind(op))
    return visitBinary(op, kind);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp op) { return visitConstant(op); })
      .Case([&](tensor::DimOp op) { return visitDim(op); })
      .Case([&](tensor::EmptyOp op) { return visitEmpty(op); })
      .Case([&](tile::LaunchOp op) { return visitLaunch(op); })
      .Case([&](func::ReturnOp op) { return visitReturn(op); })
      .Case([&](tensor::CastOp op) {
        arrays[op] = arrays.lookup(op.getSource());
        return success();
      })
      .Default([](Operation *op) {
        return op->emitOpError(
            "expected only kernels and the arithmetic of their sizes in a "
            "function for a GPU (gdn_tile.launch, tensor.empty, tensor.dim, "
            "tensor.cast, arith)");
      });
}

//===----------------------------------------------------------------------===//
// Whole functions
//===----------------------------------------------------------------------===//

/// An attribute as JSON, as far as a tool without MLIR can use it.
static llvm::json::Value toJSON(Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.str();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (isa<UnitAttr>(attribute))
    return true;
  return nullptr;
}

static std::string makeSource(func::FuncOp function) {
  auto facts = function->getAttrOfType<DictionaryAttr>("gdn.source");
  if (!facts)
    return {};
  llvm::json::Object object;
  for (NamedAttribute fact : facts)
    object[fact.getName().getValue()] = toJSON(fact.getValue());
  return llvm::formatv("{0}", llvm::json::Value(std::move(object)));
}

/// Notes which values the caller has memory for.
void FunctionBuilder::noteReturned() {
  auto end = dyn_cast<func::ReturnOp>(function.front().getTerminator());
  if (!end)
    return;
  for (auto [number, value] : llvm::enumerate(end.getOperands())) {
    Value source = value;
    while (auto cast = source.getDefiningOp<tensor::CastOp>())
      source = cast.getSource();
    returned.try_emplace(source, table.numInputs + number);
  }
}

FailureOr<FunctionTable> FunctionBuilder::build() {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitOpError("expected one block, got ")
           << function.getBody().getBlocks().size();
  table.name = function.getSymName().str();
  table.source = makeSource(function);
  if (failed(addInputs()))
    return failure();
  noteReturned();
  for (Operation &op : function.front())
    if (failed(visit(&op)))
      return failure();
  addBoundaryRules();
  addHeadRule();
  return std::move(table);
}

FailureOr<FunctionTable> host::describeFunction(func::FuncOp function,
                                                ArrayRef<KernelTable> kernels) {
  return FunctionBuilder(function, kernels).build();
}

/// Calls the arguments of a function's kernels what the function calls them.
static void nameArguments(const FunctionTable &function,
                          MutableArrayRef<KernelTable> kernels) {
  for (const LaunchTable &launch : function.launches)
    for (auto [argument, operand] :
         llvm::zip(kernels[launch.kernel].arguments, launch.operands))
      if (operand.kind == GDN_OPERAND_ARGUMENT)
        argument.name = function.arguments[operand.index].name;
}

llvm::Expected<ModuleTable> host::describeModule(ModuleOp module) {
  ModuleTable table;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto launch = function->getAttrOfType<warp::LaunchAttr>(
        warp::WarpDialect::getLaunchAttrName());
    if (!launch)
      continue;
    FailureOr<KernelTable> kernel = describeKernel(function, launch);
    if (failed(kernel))
      return llvm::createStringError("expected kernels that the runtime can "
                                     "launch, got @" +
                                     function.getSymName());
    table.kernels.push_back(std::move(*kernel));
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !function.isPublic())
      continue;
    FailureOr<FunctionTable> result = describeFunction(function, table.kernels);
    if (failed(result))
      return llvm::createStringError("expected a function that only launches "
                                     "kernels, got @" +
                                     function.getSymName());
    nameArguments(*result, table.kernels);
    table.functions.push_back(std::move(*result));
  }
  if (table.functions.empty())
    return llvm::createStringError(
        "expected a public function that launches kernels, got none");
  return std::move(table);
}
