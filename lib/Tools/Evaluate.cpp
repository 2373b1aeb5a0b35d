//===- Evaluate.cpp - Layer functions in float64 --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Evaluate.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;
namespace reference = ::gdn::reference;
using reference::Output;

/// The gradient that the reference computes for an output.
static std::vector<double> &select(reference::Gradients &gradients,
                                   Output output) {
  switch (output) {
  case Output::DQ:
    return gradients.dq;
  case Output::DK:
    return gradients.dk;
  case Output::DV:
    return gradients.dv;
  case Output::DBeta:
    return gradients.dBeta;
  case Output::DGate:
    return gradients.dGate;
  case Output::DALog:
    return gradients.dALog;
  case Output::DDtBias:
    return gradients.dDtBias;
  default:
    return gradients.dInitialState;
  }
}

/// How large the terms are of an output that is a sum over all tokens.
static std::vector<double> spreadOf(const reference::Gradients &gradients,
                                    Output output) {
  if (output == Output::DALog)
    return gradients.dALogSpread;
  if (output == Output::DDtBias)
    return gradients.dDtBiasSpread;
  return {};
}

template <typename... Args>
static llvm::Error failAt(Operation *op, const char *format, Args &&...args) {
  std::string location;
  llvm::raw_string_ostream os(location);
  if (auto file = dyn_cast<FileLineColLoc>(op->getLoc()))
    os << file.getFilename().getValue() << ':' << file.getLine() << ':'
       << file.getColumn() << ": ";
  return llvm::createStringError(
      location + llvm::formatv(format, std::forward<Args>(args)...).str(),
      std::make_error_code(std::errc::invalid_argument));
}

namespace {
/// Walks one function.
class Evaluator {
public:
  explicit Evaluator(const std::function<void(double)> &progress)
      : progress(progress) {}

  llvm::Expected<std::vector<Evaluated>> run(func::FuncOp func,
                                             llvm::ArrayRef<HostArray> inputs);

private:
  llvm::Error evaluateOp(Operation &op);
  llvm::Error evaluateConstant(arith::ConstantOp op);
  llvm::Error evaluateRule(DeltaRuleOpInterface op);
  llvm::Error evaluateForward(Operation *op, Value v,
                              const reference::Problem &problem);
  reference::RunOptions makeOptions();
  void setResults(Operation *op, Value v, const reference::Problem &problem,
                  bool gateParameterHasK,
                  llvm::MutableArrayRef<std::vector<double>> results,
                  llvm::ArrayRef<std::vector<double>> spreads);
  void setSizes(reference::Problem &problem, Value q, Value k, Value v);
  void setStateIndices(reference::Problem &problem, DeltaRuleOpInterface op);
  reference::Problem makeProblem(DeltaRuleOpInterface op);
  reference::Problem makeProblem(LinearAttentionStageOp op);
  /// Copies the value of an operand; nothing for an absent one.
  std::vector<double> copy(Value value) {
    return value ? *values[value].values : std::vector<double>();
  }

  std::function<void(double)> progress;
  DenseMap<Value, Evaluated> values;
  /// Layer ops before the one at work, and in all.
  int done = 0, total = 0;
};
} // namespace

llvm::Error Evaluator::evaluateConstant(arith::ConstantOp op) {
  if (auto number = dyn_cast<IntegerAttr>(op.getValue())) {
    auto value = static_cast<double>(number.getValue().getSExtValue());
    values[op.getResult()].values =
        std::make_shared<std::vector<double>>(1, value);
    return llvm::Error::success();
  }
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements || !elementOf(elements.getElementType()))
    return failAt(op,
                  "expected a constant tensor of f32, bf16, f16, i8, i32 or "
                  "i64 for --check, got another one");
  auto result = std::make_shared<std::vector<double>>();
  result->reserve(elements.getNumElements());
  if (isa<FloatType>(elements.getElementType()))
    for (APFloat value : elements.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      result->push_back(value.convertToDouble());
    }
  else
    for (APInt value : elements.getValues<APInt>())
      result->push_back(value.getSExtValue());
  values[op.getResult()] = {llvm::to_vector(elements.getType().getShape()),
                            result,
                            std::nullopt,
                            Element::F32,
                            {}};
  return llvm::Error::success();
}

void Evaluator::setSizes(reference::Problem &problem, Value q, Value k,
                         Value v) {
  llvm::ArrayRef<int64_t> keys = values[k].shape;
  llvm::ArrayRef<int64_t> outputs = values[v].shape;
  problem.B = keys[0];
  problem.T = keys[1];
  problem.Hq = keys[2];
  problem.K = keys[3];
  problem.H = outputs[2];
  problem.V = outputs[3];
  problem.q = copy(q);
  problem.k = copy(k);
  problem.v = copy(v);
}

static reference::StateLayout convert(StateLayout layout) {
  return layout == StateLayout::KV ? reference::StateLayout::KV
                                   : reference::StateLayout::VK;
}

reference::Problem Evaluator::makeProblem(LinearAttentionStageOp op) {
  reference::Problem problem;
  setSizes(problem, op.getQ(), op.getK(), op.getV());
  problem.deltaRule = false;
  problem.initialState = copy(op.getInitialState());
  for (double boundary : copy(op.getCuSeqlens()))
    problem.cuSeqlens.push_back(static_cast<int64_t>(boundary));
  if (FloatAttr scale = op.getScaleAttr())
    problem.scale = scale.getValueAsDouble();
  problem.qkL2norm = op.getQkL2norm();
  problem.stateLayout = convert(op.getStateLayout());
  return problem;
}

/// Where the states of sequences lie in a pool, and what is kept of others.
void Evaluator::setStateIndices(reference::Problem &problem,
                                DeltaRuleOpInterface op) {
  for (auto [value, numbers] :
       {std::pair(op.getStateIndices(), &problem.stateIndices),
        {op.getStepIndices(), &problem.stepIndices},
        {op.getParents(), &problem.parents},
        {op.getNumAccepted(), &problem.numAccepted},
        {op.getStepStarts(), &problem.stepStarts},
        {op.getStepIntervals(), &problem.stepIntervals}})
    for (double number : copy(value))
      numbers->push_back(static_cast<int64_t>(number));
  problem.stepStates = copy(op.getStepStates());
  if (Value states = op.getStepStates())
    problem.stepRows = values[states].shape[0];
  if (!op.getStateIndices())
    return;
  problem.poolSize = values[op.getInitialState()].shape[0];
  if (Value first = op.getFirstState())
    problem.firstState = static_cast<int64_t>(copy(first).front());
  for (double flag : copy(op.getHasInitialState()))
    problem.hasInitialState.push_back(flag != 0);
  if (Value steps = op.getStepIndices())
    problem.steps = values[steps].shape[1];
}

reference::Problem Evaluator::makeProblem(DeltaRuleOpInterface op) {
  reference::Problem problem;
  setSizes(problem, op.getQ(), op.getK(), op.getV());
  problem.gate = copy(op.getGate());
  problem.beta = copy(op.getBeta());
  problem.aLog = copy(op.getALog());
  problem.dtBias = copy(op.getDtBias());
  problem.initialState = copy(op.getInitialState());
  setStateIndices(problem, op);
  for (double boundary : copy(op.getCuSeqlens()))
    problem.cuSeqlens.push_back(static_cast<int64_t>(boundary));
  if (op.getGate())
    problem.gateKind = values[op.getGate()].shape.size() == 3
                           ? reference::GateKind::Head
                           : reference::GateKind::Channel;
  problem.gateDomain = op.getGateDomain();
  if (FloatAttr bound = op.getLowerBoundAttr())
    problem.lowerBound = bound.getValueAsDouble();
  if (FloatAttr scale = op.getScaleAttr())
    problem.scale = scale.getValueAsDouble();
  problem.qkL2norm = op.getQkL2norm();
  problem.betaIsLogit = op.getBetaDomain() != BetaDomain::Value;
  problem.allowNegEigval = op.getBetaDomain() == BetaDomain::DoubledLogit;
  problem.stateLayout = convert(op.getStateLayout());
  return problem;
}

/// The shape of an output of a problem.
static llvm::SmallVector<int64_t>
shapeOf(const reference::Problem &p, Output output, bool gateParameterHasK) {
  bool transposed = p.stateLayout == reference::StateLayout::VK;
  switch (output) {
  case Output::O:
  case Output::DV:
    return {p.B, p.T, p.H, p.V};
  case Output::DQ:
  case Output::DK:
    return {p.B, p.T, p.Hq, p.K};
  case Output::DBeta:
    return {p.B, p.T, p.H};
  case Output::DGate:
    if (p.gateKind == reference::GateKind::Channel)
      return {p.B, p.T, p.H, p.K};
    return {p.B, p.T, p.H};
  case Output::DALog:
    return {p.H};
  case Output::DDtBias:
    if (gateParameterHasK)
      return {p.H, p.K};
    return {p.H};
  case Output::FinalState:
  case Output::DInitialState:
    return {p.numStates(), p.H, transposed ? p.V : p.K, transposed ? p.K : p.V};
  }
  llvm_unreachable("covered switch");
}

reference::RunOptions Evaluator::makeOptions() {
  reference::RunOptions options;
  if (progress)
    options.progress = [&](double part) { progress((done + part) / total); };
  return options;
}

/// `spreads` are those of sums over all tokens; none for others.
void Evaluator::setResults(Operation *op, Value v,
                           const reference::Problem &problem,
                           bool gateParameterHasK,
                           llvm::MutableArrayRef<std::vector<double>> results,
                           llvm::ArrayRef<std::vector<double>> spreads) {
  std::optional<Element> dataType = elementOf(getElementTypeOrSelf(v));
  size_t index = 0;
  for (auto [result, output] : llvm::zip(op->getResults(), outputsOf(op))) {
    Evaluated &evaluated = values[result];
    evaluated.shape = shapeOf(problem, output, gateParameterHasK);
    evaluated.values =
        std::make_shared<std::vector<double>>(std::move(results[index]));
    evaluated.output = output;
    evaluated.dataType = *dataType;
    if (!spreads.empty())
      evaluated.spread = spreads[index];
    ++index;
  }
  ++done;
}

llvm::Error Evaluator::evaluateForward(Operation *op, Value v,
                                       const reference::Problem &problem) {
  auto forward = reference::forward(problem, makeOptions());
  if (!forward)
    return failAt(op, "{0}", forward.error);
  llvm::SmallVector<std::vector<double>> results;
  for (Output output : outputsOf(op))
    results.push_back(
        std::move(output == Output::O ? forward->o : forward->finalState));
  // The last ones are those that are kept after tokens.
  if (problem.stepRows)
    results[op->getNumResults() - 1] = std::move(forward->stepStates);
  setResults(op, v, problem, /*gateParameterHasK=*/false, results, {});
  if (problem.stepRows)
    values[op->getResults().back()].shape[0] = problem.stepRows;
  return llvm::Error::success();
}

llvm::Error Evaluator::evaluateRule(DeltaRuleOpInterface op) {
  if (op->getNumResults() == 0)
    return failAt(op, "expected an op on tensors for --check, got its buffer "
                      "form");
  reference::Problem problem = makeProblem(op);
  auto backward = dyn_cast<ChunkGatedDeltaRuleBwdOp>(op.getOperation());
  if (!backward)
    return evaluateForward(op, op.getV(), problem);
  auto gradients =
      reference::backward(problem, copy(backward.getDO()),
                          copy(backward.getDFinalState()), makeOptions());
  if (!gradients)
    return failAt(op, "{0}", gradients.error);
  llvm::SmallVector<std::vector<double>> results, spreads;
  for (Output output : outputsOf(op)) {
    results.push_back(std::move(select(*gradients, output)));
    spreads.push_back(spreadOf(*gradients, output));
  }
  bool hasK = op.getDtBias() && values[op.getDtBias()].shape.size() == 2;
  setResults(op, op.getV(), problem, hasK, results, spreads);
  return llvm::Error::success();
}

llvm::Error Evaluator::evaluateOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return evaluateConstant(constant);
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    Evaluated source = values[cast.getSource()];
    values[cast.getResult()] = std::move(source);
    return llvm::Error::success();
  }
  if (isa<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp,
          ChunkGatedDeltaRuleBwdOp, FusedStageOp, RecurrentStageOp,
          StatePassStageOp>(op))
    return evaluateRule(cast<DeltaRuleOpInterface>(op));
  if (auto attention = dyn_cast<LinearAttentionStageOp>(op))
    return evaluateForward(attention, attention.getV(), makeProblem(attention));
  return failAt(
      &op,
      "expected only layer ops and forward stages of gdn, arith.constant and "
      "tensor.cast for --check, got '{0}'",
      op.getName().getStringRef());
}

llvm::Expected<std::vector<Evaluated>>
Evaluator::run(func::FuncOp func, llvm::ArrayRef<HostArray> inputs) {
  if (!llvm::hasSingleElement(func.getBody()))
    return failAt(func, "expected a function of one block for --check, got {0}",
                  func.getBody().getBlocks().size());
  Block &body = func.getBody().front();
  total = llvm::count_if(body, [](Operation &op) {
    return isa<DeltaRuleOpInterface, LinearAttentionStageOp>(op);
  });
  for (auto [argument, input] : llvm::zip(body.getArguments(), inputs))
    values[argument] = {
        llvm::to_vector(input.getShape()),
        std::make_shared<std::vector<double>>(input.toDoubles()), std::nullopt,
        Element::F32};
  for (Operation &op : body.without_terminator())
    if (llvm::Error error = evaluateOp(op))
      return std::move(error);
  std::vector<Evaluated> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(values[value]);
  return results;
}

llvm::Expected<std::vector<Evaluated>>
tools::evaluate(func::FuncOp func, llvm::ArrayRef<HostArray> inputs,
                const std::function<void(double)> &progress) {
  return Evaluator(progress).run(func, inputs);
}
