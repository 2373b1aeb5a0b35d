//===- Lowering.h - What the patterns of this conversion share --*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CONVERSION_WARPTONVVM_LOWERING_H
#define GDN_LIB_CONVERSION_WARPTONVVM_LOWERING_H

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::gdn::warp {

/// An array argument of a kernel, taken apart.
struct Array {
  /// Position among the kernel's arguments.
  int64_t argument;
  /// Where its data begin, in the global address space.
  Value pointer;
  /// Of type index, one a dimension; strides in elements.
  SmallVector<Value> sizes, strides;
};

/// What the kernels of a module became.
struct LoweredKernels {
  /// By the value that stands for an array in the body.
  DenseMap<Value, Array> arrays;
  /// Pointers to tensor maps, by function and #gdn_warp.tensor_map.
  DenseMap<std::pair<Operation *, Attribute>, Value> tensorMaps;

  /// The array behind `value`, or null if it is no kernel argument.
  const Array *lookup(Value value) const {
    auto it = arrays.find(value);
    return it == arrays.end() ? nullptr : &it->second;
  }
};

/// The function of the kernel `kernel`, whose body becomes its body.
LLVM::LLVMFuncOp lowerKernel(KernelOp kernel, LoweredKernels &kernels);

/// The map that a copy between `array` and `view` needs; `isCut`: for tiles of
/// which the rows end inside the array.
TensorMapAttr getTensorMap(MemRefType array, int64_t argument,
                           ArrayRef<int64_t> axes, ViewType view,
                           bool isCut = false);

//===----------------------------------------------------------------------===//
// Code that several patterns make
//===----------------------------------------------------------------------===//

/// The name of the symbol that is the start of dynamic shared memory.
inline constexpr StringLiteral kSharedSymbol = "__gdn_shared";
/// Address spaces of NVPTX.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3, kClusterSpace = 7;

Value createI32(ImplicitLocOpBuilder &b, int64_t value);
Value createIndex(ImplicitLocOpBuilder &b, int64_t value);

/// Number of the thread in the CTA, of its lane in the warp, and of its warp in
/// the warpgroup, as i32.
Value createThread(ImplicitLocOpBuilder &b);
Value createLane(ImplicitLocOpBuilder &b, Value thread = {});
Value createGroupWarp(ImplicitLocOpBuilder &b, Value thread = {});

/// Inline assembly; with side effects LLVM leaves it where it is.
LLVM::InlineAsmOp createAsm(ImplicitLocOpBuilder &b, TypeRange results,
                            ValueRange operands, StringRef text,
                            StringRef constraints, bool hasSideEffects = true);
/// The result of inline assembly with `count` results, and these.
LLVM::LLVMStructType getStruct(MLIRContext *context, Type element,
                               size_t count);
SmallVector<Value> unpackStruct(ImplicitLocOpBuilder &b, Value value);
/// An instruction as inline assembly: `tied` f32 values that it updates in
/// place, then inputs with their constraints.
SmallVector<Value> createTied(ImplicitLocOpBuilder &b, StringRef text,
                              ArrayRef<Value> tied, ArrayRef<Value> inputs,
                              StringRef inputConstraints);

/// The number of the thread, read here: what is made from it for one use an
/// work item stays there, and holds no registers in the loop over the work
/// item's chunks.
Value createThreadHere(ImplicitLocOpBuilder &b);

/// Number of the place that this lane holds first in a vector of `size`
/// elements over lanes, as i32.
Value createLanePlace(ImplicitLocOpBuilder &b, int64_t size);

/// A value of another lane; `lane` (i32) is a distance, a mask or an index
/// among the `width` lanes, a power of two, that this one is of.
Value createShuffle(ImplicitLocOpBuilder &b, ShuffleKind kind, Value value,
                    Value lane, int64_t width = 32);
/// The place of the element at `indices` in an array, in elements (index).
Value createArrayOffset(ImplicitLocOpBuilder &b, const Array &array,
                        ValueRange indices);
/// The address of the element at a place of an array, and at `indices`.
Value createOffsetAddress(ImplicitLocOpBuilder &b, const Array &array,
                          Type element, Value offset);
Value createElementAddress(ImplicitLocOpBuilder &b, const Array &array,
                           Type element, ValueRange indices);
/// Whether any dimension of an array of this type may be contiguous, or none.
bool hasAnyStrides(MemRefType type);
/// The array, if it is known to be contiguous along `axis`.
Array asRuns(ImplicitLocOpBuilder &b, const Array &array, int64_t axis);
/// Bytes of the longest access of a thread.
inline constexpr int64_t kRunBytes = 16;
/// Whether rows of the fragment that `op` stores may be runs of 16 bytes;
/// whether the array allows it; and the stores.
bool mayStoreRuns(ArrayStoreOp op);
Value createHasAlignedRuns(ImplicitLocOpBuilder &b, const Array &array,
                           ValueRange offsets, int64_t axis, int64_t bytes,
                           int64_t elementBytes);
Value createHasAlignedRuns(ImplicitLocOpBuilder &b, const Array &array,
                           ValueRange offsets, ArrayStoreOp op);
void createRunStores(ImplicitLocOpBuilder &b, ArrayStoreOp op, Value tile,
                     const Array &array, ValueRange offsets, Value end,
                     Value sumEnd);
/// What is stored at `address`, of floats, or of their sums with what is there
/// if the null or i1 `adds` says so.
Value createSumInMemory(ImplicitLocOpBuilder &b, Value adds, Value stored,
                        Value address, unsigned alignment);

/// What `kind` makes of an i32 of each lane of a warp, in all of them; its sum.
Value createReduction(ImplicitLocOpBuilder &b, Value value,
                      NVVM::ReduxKind kind);
Value createSum(ImplicitLocOpBuilder &b, Value value);

/// Number of the four lanes that this thread is one of, as i32: they hold the
/// same rows of a fragment.
Value createQuad(ImplicitLocOpBuilder &b, Value thread = {});

/// Whether the lanes of `kernel` may hold the rows of its tiles in the order in
/// which accesses of f32 have no bank conflicts. Its function is then marked.
bool mayTurnRows(KernelOp kernel);
inline constexpr StringLiteral kTurnedRows = "gdn_warp.turned_rows";
/// The row of eight that the four lanes of number `quad` hold.
Value turnRows(ImplicitLocOpBuilder &b, Value quad);

/// First row and first column of a fragment that this thread holds, as i32.
Value createFragmentRow(ImplicitLocOpBuilder &b, Value thread = {});
Value createFragmentColumn(ImplicitLocOpBuilder &b, Value thread = {});

/// Goes on in a branch for the warps that hold rows [rows[0], rows[1]) of a
/// fragment: whole warps, for each holds 16 rows.
void enterWarpsOf(ImplicitLocOpBuilder &b, ArrayRef<int64_t> rows);

/// What `create` makes in these warps; zeros in the others.
Value createInWarpsOf(ImplicitLocOpBuilder &b, ArrayRef<int64_t> rows,
                      VectorType type,
                      function_ref<Value(ImplicitLocOpBuilder &)> create);

/// The first row (`dim` 0) or column of a spread tile that this thread holds,
/// as i32; `thread` is its number.
Value createSpreadFirst(ImplicitLocOpBuilder &b, SpreadAttr spread, int64_t dim,
                        Value thread);

/// True in the threads that write a vector: those of the first row for
/// columns, of the first column for rows. Null if all threads do.
Value createIsWriter(ImplicitLocOpBuilder &b, RankedTensorType tensor);

/// What the reduction `op` makes of two values.
Value combine(ImplicitLocOpBuilder &b, linalg::ReduceOp op, Value lhs,
              Value rhs);

/// `threads` threads wait for each other at named barrier `id` (i32).
void createGroupSync(ImplicitLocOpBuilder &b, Value id, int64_t threads);

/// The address at `offset` bytes (index) of the kernel's shared memory.
Value createSharedAddress(ImplicitLocOpBuilder &b, Value offset);

/// Tells ptxas not to unroll `loop`: all roles together must fit the
/// instruction cache.
void keepLoop(scf::ForOp loop);

/// The lanes of a warp wait for each other, and see what they wrote.
void createWarpSync(ImplicitLocOpBuilder &b);

/// The same place of shared memory in CTA `rank` (i32) of the cluster.
Value createRemote(ImplicitLocOpBuilder &b, Value address, Value rank);

/// LLVM moves no memory access across it. The intrinsics of barriers name the
/// barrier alone as memory, so a load of data could be hoisted above a wait.
void createCompilerFence(ImplicitLocOpBuilder &b);

/// `base` plus `offset` (i32) plus `constant` bytes.
Value createAddress(ImplicitLocOpBuilder &b, Value base, Value offset,
                    int64_t constant);

/// The byte offset of element (row, column) of a view, both i32; no row in a
/// vector.
Value createElementOffset(ImplicitLocOpBuilder &b, ViewType view, Value row,
                          Value column);

/// The elements of a vector, and the vector of elements.
SmallVector<Value> unpack(ImplicitLocOpBuilder &b, Value vector);
Value pack(ImplicitLocOpBuilder &b, VectorType type, ArrayRef<Value> elements);

/// The two bf16 of a word (i32), lower one first, as f32.
std::array<Value, 2> widenPair(ImplicitLocOpBuilder &b, Value word);

/// Addresses of a matrix in shared memory for accesses of which the row is
/// `row` (i32) plus constant multiples of 8, and the byte in the row is `byte`
/// (i32, below 32 or, from column 0, below 128) plus constant multiples of 32,
/// or of 16 where `byte` is 0.
class ViewAddress {
public:
  ViewAddress(ImplicitLocOpBuilder &b, ViewType view, Value base, Value row,
              Value byte);
  /// The address of row `row` + `rows` and byte `byte` + `bytes`.
  Value get(int64_t rows, int64_t bytes);

private:
  ImplicitLocOpBuilder &b;
  ViewType view;
  Value base, thread;
};

/// A fragment of f32 that lies as it is in the view. With `thread`, which may
/// be null, the addresses are made of it.
Value createPlainLoad(ImplicitLocOpBuilder &b, VectorType type, ViewType view,
                      Value base, int64_t firstRow, Value thread);
void createPlainStore(ImplicitLocOpBuilder &b, Value fragment, ViewType view,
                      Value base, int64_t firstRow, Value thread);
/// Row `row` of each warp's rows in the view, for all of them.
Value createRepeatedLoad(ImplicitLocOpBuilder &b, VectorType type,
                         ViewType view, Value base, Value row, Value thread);

/// A fragment of f32 that lies turned in the view, each element by itself.
Value createTurnedLoad(ImplicitLocOpBuilder &b, VectorType type, ViewType view,
                       Value base, int64_t firstRow);
void createTurnedStore(ImplicitLocOpBuilder &b, Value fragment, ViewType view,
                       Value base, int64_t firstRow);

//===----------------------------------------------------------------------===//
// Patterns, a family a file
//===----------------------------------------------------------------------===//

void populateSequenceByRankPattern(const TypeConverter &converter,
                                   const LoweredKernels &kernels,
                                   RewritePatternSet &patterns);
void populateMeetingPatterns(const TypeConverter &converter,
                             const LoweredKernels &kernels,
                             RewritePatternSet &patterns);
/// A pattern of an op that accesses arrays.
template <typename Op> struct ArrayPattern : OpConversionPattern<Op> {
  ArrayPattern(const TypeConverter &converter, MLIRContext *context,
               const LoweredKernels &kernels)
      : OpConversionPattern<Op>(converter, context), kernels(kernels) {}

  const LoweredKernels &kernels;
};

void populateArrayClearPattern(const TypeConverter &converter,
                               const LoweredKernels &kernels,
                               RewritePatternSet &patterns);
void populateArrayPatterns(const TypeConverter &converter,
                           const LoweredKernels &kernels,
                           RewritePatternSet &patterns);
/// Single elements of arrays, and extents.
void populateArrayElementPatterns(const TypeConverter &converter,
                                  const LoweredKernels &kernels,
                                  RewritePatternSet &patterns);
void populatePrefetchPattern(const TypeConverter &converter,
                             const LoweredKernels &kernels,
                             RewritePatternSet &patterns);
void populateCopyPatterns(const TypeConverter &converter,
                          const LoweredKernels &kernels,
                          RewritePatternSet &patterns);
void populateClusterSumPattern(const TypeConverter &converter,
                               RewritePatternSet &patterns);
void populateElementwisePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns);
void populateFragmentScanPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns);
void populateFragmentPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns);
void populateLanePatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populateMathPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populateProductPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns);
void populateSharedPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);
void populateTriInversePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns);
void populateSpreadArrayPatterns(const TypeConverter &converter,
                                 const LoweredKernels &kernels,
                                 RewritePatternSet &patterns);
void populateSpreadTilePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns);
void populateStridedLoadPattern(const TypeConverter &converter,
                                const LoweredKernels &kernels,
                                RewritePatternSet &patterns);
void populateSynchronisationPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns);
void populateTrianglePatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns);
void populateWarpgroupPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns);

} // namespace mlir::gdn::warp

#endif // GDN_LIB_CONVERSION_WARPTONVVM_LOWERING_H
