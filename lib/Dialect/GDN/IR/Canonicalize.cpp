//===- Canonicalize.cpp - Simpler ops that compute the same ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pattern holds for the mathematics of docs/Spec.md; none trades accuracy.
// A backward op keeps its operands: it returns a gradient for each.
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::gdn;

/// Whether every entry of a tensor is known to be this number.
static bool isFilledWith(Value tensor, double number) {
  DenseElementsAttr elements;
  Attribute entry;
  if (tensor && matchPattern(tensor, m_Constant(&elements)) &&
      elements.isSplat())
    entry = elements.getSplatValue<Attribute>();
  // A splat of dynamic size does not fold to a constant.
  else if (auto splat = tensor ? tensor.getDefiningOp<tensor::SplatOp>()
                               : tensor::SplatOp())
    matchPattern(splat.getInput(), m_Constant(&entry));
  auto value = dyn_cast_or_null<FloatAttr>(entry);
  return value && value.getValueAsDouble() == number;
}

//===----------------------------------------------------------------------===//
// Forward ops
//===----------------------------------------------------------------------===//

namespace {
/// A gate that decays nothing is no gate.
template <typename ForwardOp>
struct RemoveIdentityGate : OpRewritePattern<ForwardOp> {
  using OpRewritePattern<ForwardOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ForwardOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<double> neutral = formOf(op.getGateDomain()).neutral;
    if (!neutral || !isFilledWith(op.getGate(), *neutral))
      return rewriter.notifyMatchFailure(op, "gate is not known to be one");
    rewriter.modifyOpInPlace(op, [&] {
      op.getGateMutable().clear();
      op.setGateDomain(GateDomain::Log);
    });
    return success();
  }
};

/// A state starts at zero anyway.
template <typename ForwardOp>
struct RemoveZeroInitialState : OpRewritePattern<ForwardOp> {
  using OpRewritePattern<ForwardOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ForwardOp op,
                                PatternRewriter &rewriter) const override {
    // A pool is named by its rows, zero or not.
    if (!isFilledWith(op.getInitialState(), 0.0) || op.getStateIndices())
      return rewriter.notifyMatchFailure(op, "state is not known to be zero");
    // The final state has the initial one's element type, or f32 without one.
    Type element = getElementTypeOrSelf(op.getInitialState().getType());
    if (op.getOutputFinalState() && !element.isF32())
      return rewriter.notifyMatchFailure(op, "final state would become f32");
    rewriter.modifyOpInPlace(op, [&] { op.getInitialStateMutable().clear(); });
    return success();
  }
};

/// Gate parameters that change nothing: a bias of zero, a factor exp(0).
template <typename ForwardOp>
struct RemoveNeutralGateParameters : OpRewritePattern<ForwardOp> {
  using OpRewritePattern<ForwardOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ForwardOp op,
                                PatternRewriter &rewriter) const override {
    bool bias = isFilledWith(op.getDtBias(), 0.0);
    bool factor = !formOf(op.getGateDomain()).needsRate() &&
                  isFilledWith(op.getALog(), 0.0);
    if (!bias && !factor)
      return rewriter.notifyMatchFailure(op, "no neutral gate parameter");
    rewriter.modifyOpInPlace(op, [&] {
      if (bias)
        op.getDtBiasMutable().clear();
      if (factor)
        op.getALogMutable().clear();
    });
    return success();
  }
};

/// Replaces `op` by a clone with the results `kept` alone, whose attributes
/// `change` makes agree.
template <typename ForwardOp>
static void keepResults(PatternRewriter &rewriter, ForwardOp op,
                        ValueRange kept, function_ref<void(ForwardOp)> change) {
  auto smaller = cast<ForwardOp>(
      mlir::clone(rewriter, op, kept.getTypes(), op->getOperands()));
  change(smaller);
  rewriter.replaceAllUsesWith(kept, smaller.getResults());
  rewriter.eraseOp(op);
}

/// A final state that nobody reads need not be stored.
template <typename ForwardOp>
struct DropUnusedFinalState : OpRewritePattern<ForwardOp> {
  using OpRewritePattern<ForwardOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ForwardOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getFinalState() || !op.getFinalState().use_empty())
      return rewriter.notifyMatchFailure(op, "final state absent or used");
    auto rule = cast<DeltaRuleOpInterface>(op.getOperation());
    if (rule.getStepIndices() && !rule.getStepStates())
      return rewriter.notifyMatchFailure(op, "the pool keeps other states");
    SmallVector<Value> kept(op.getResults());
    kept.erase(kept.begin() + 1);
    keepResults<ForwardOp>(rewriter, op, kept, [](ForwardOp smaller) {
      smaller.setOutputFinalState(false);
    });
    return success();
  }
};

/// What no backward reads need not be saved.
struct DropUnusedSaves : OpRewritePattern<ChunkGatedDeltaRuleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ChunkGatedDeltaRuleOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getStateInterval() || op.getResults().empty())
      return rewriter.notifyMatchFailure(op, "nothing is saved");
    auto saved = op.getResults().take_back(2);
    if (!llvm::all_of(saved, [](Value value) { return value.use_empty(); }))
      return rewriter.notifyMatchFailure(op, "what is saved is used");
    keepResults<ChunkGatedDeltaRuleOp>(rewriter, op,
                                       op.getResults().drop_back(2),
                                       [](ChunkGatedDeltaRuleOp smaller) {
                                         smaller.removeStateIntervalAttr();
                                       });
    return success();
  }
};

/// One token in all is no work for chunks.
struct ChunkOfOneToken : OpRewritePattern<ChunkGatedDeltaRuleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ChunkGatedDeltaRuleOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getStateInterval())
      return rewriter.notifyMatchFailure(op, "saves what chunks have");
    if (op.getStepIntervals())
      return rewriter.notifyMatchFailure(op, "keeps what chunks have");
    if (getRuleDims(op).T != 1)
      return rewriter.notifyMatchFailure(op, "T is not known to be one");
    auto attributes = llvm::to_vector(op->getDiscardableAttrs());
    auto recurrent = rewriter.replaceOpWithNewOp<RecurrentGatedDeltaRuleOp>(
        op, op.getResultTypes(), op.getQ(), op.getK(), op.getV(), op.getBeta(),
        op.getGate(), op.getInitialState(), op.getCuSeqlens(), op.getALog(),
        op.getDtBias(), op.getStateIndices(), op.getFirstState(),
        op.getHasInitialState(), /*step_states=*/Value(),
        /*step_indices=*/Value(), /*num_accepted=*/Value(),
        /*parents=*/Value(), op.getOuts(), op.getScaleAttr(),
        op.getGateDomainAttr(), op.getLowerBoundAttr(), op.getQkL2normAttr(),
        op.getBetaDomainAttr(), op.getStateLayoutAttr(),
        op.getOutputFinalStateAttr());
    recurrent->setDiscardableAttrs(attributes);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

/// No gradient reaches the final state.
struct RemoveZeroFinalStateGradient
    : OpRewritePattern<ChunkGatedDeltaRuleBwdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ChunkGatedDeltaRuleBwdOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFilledWith(op.getDFinalState(), 0.0))
      return rewriter.notifyMatchFailure(op, "gradient not known to be zero");
    rewriter.modifyOpInPlace(op, [&] { op.getDFinalStateMutable().clear(); });
    return success();
  }
};

/// Boundaries 0 and T say that there is one sequence, which B = 1 says too.
template <typename LayerOp>
struct RemoveTrivialBoundaries : OpRewritePattern<LayerOp> {
  using OpRewritePattern<LayerOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(LayerOp op,
                                PatternRewriter &rewriter) const override {
    DenseIntElementsAttr boundaries;
    RuleDims dims = getRuleDims(op);
    if (!op.getCuSeqlens() ||
        !matchPattern(op.getCuSeqlens(), m_Constant(&boundaries)))
      return rewriter.notifyMatchFailure(op, "boundaries are not known");
    if (boundaries.getNumElements() != 2 || !(*boundaries.begin()).isZero() ||
        (*std::next(boundaries.begin())).getSExtValue() != dims.T)
      return rewriter.notifyMatchFailure(op, "boundaries are not 0 and T");
    rewriter.modifyOpInPlace(op, [&] { op.getCuSeqlensMutable().clear(); });
    return success();
  }
};

/// The scale that an op has anyway.
struct DropDefaultScale : OpInterfaceRewritePattern<DeltaRuleOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(DeltaRuleOpInterface op,
                                PatternRewriter &rewriter) const override {
    FloatAttr scale = op.getScaleAttr();
    if (!scale ||
        scale.getValueAsDouble() != getDefaultScale(getRuleDims(op).K))
      return rewriter.notifyMatchFailure(op, "scale absent or not K^(-1/2)");
    rewriter.modifyOpInPlace(op, [&] { op->removeAttr("scale"); });
    return success();
  }
};

/// An op takes a tensor of static sizes where a cast hides them. Not where the
/// sizes contradict the others: such a program has no meaning, but the op must
/// stay one that verifies.
struct FoldTensorCasts : OpInterfaceRewritePattern<DeltaRuleOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(DeltaRuleOpInterface op,
                                PatternRewriter &rewriter) const override {
    Rule rule = getRule(op);
    SmallVector<NamedShape> shapes = getOperandShapes(rule);
    DenseMap<Value, Value> folded;
    for (NamedShape &shape : shapes) {
      auto cast = shape.value.getDefiningOp<tensor::CastOp>();
      if (!cast || !tensor::canFoldIntoConsumerOp(cast))
        continue;
      shape.type = mlir::cast<ShapedType>(cast.getSource().getType());
      folded[shape.value] = cast.getSource();
    }
    if (folded.empty())
      return rewriter.notifyMatchFailure(op, "no cast to fold");
    for (auto [result, shape] :
         llvm::zip(op->getResults(), getResultShapes(op, rule)))
      shapes.push_back({shape.name, result,
                        mlir::cast<ShapedType>(result.getType()), shape.dims});
    RuleDims dims = getInitialDims(rule);
    bool clash = unify(shapes, dims);
    if (clash || (!ShapedType::isDynamic(dims.N) && dims.N < 1))
      return rewriter.notifyMatchFailure(op, "sizes contradict each other");
    rewriter.modifyOpInPlace(op, [&] {
      for (auto [cast, source] : folded)
        op->replaceUsesOfWith(cast, source);
    });
    return success();
  }
};
} // namespace

template <typename ForwardOp>
static void addForwardPatterns(RewritePatternSet &patterns) {
  patterns.add<DropUnusedFinalState<ForwardOp>, RemoveIdentityGate<ForwardOp>,
               RemoveNeutralGateParameters<ForwardOp>,
               RemoveTrivialBoundaries<ForwardOp>,
               RemoveZeroInitialState<ForwardOp>>(patterns.getContext());
}

void GDNDialect::getCanonicalizationPatterns(
    RewritePatternSet &patterns) const {
  addForwardPatterns<ChunkGatedDeltaRuleOp>(patterns);
  addForwardPatterns<RecurrentGatedDeltaRuleOp>(patterns);
  patterns
      .add<ChunkOfOneToken, DropDefaultScale, DropUnusedSaves, FoldTensorCasts,
           RemoveTrivialBoundaries<ChunkGatedDeltaRuleBwdOp>,
           RemoveZeroFinalStateGradient>(patterns.getContext());
}
