//===- Object.cpp - Tables and entries as an object file ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/Host.h"

#include "Tables.h"
#include "gdn/Target/CPU.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

namespace {
using Constants = SmallVector<llvm::Constant *>;

/// Writes the structs of gdn-c/Calls.h as constants: fields of the same types
/// in the same order have the same layout.
class TableWriter {
public:
  TableWriter(llvm::Module &module, const Options &options)
      : module(module), context(module.getContext()), options(options) {}

  llvm::Error write(const ModuleTable &table, ArrayRef<Image> images);

private:
  llvm::Constant *i32(int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), value);
  }
  llvm::Constant *i64(int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), value);
  }
  llvm::Constant *null() {
    return llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0));
  }
  llvm::Constant *text(StringRef value);
  llvm::Constant *structure(ArrayRef<llvm::Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }
  template <typename Struct>
  llvm::Constant *structure(ArrayRef<llvm::Constant *> fields);
  llvm::GlobalVariable *global(llvm::Constant *value, bool isConstant = true);
  llvm::Constant *list(ArrayRef<llvm::Constant *> elements);
  template <typename Range, typename Make>
  llvm::Constant *listOf(const Range &range, Make make);

  llvm::Constant *image(StringRef bytes);
  llvm::Constant *arguments(ArrayRef<ArgumentTable> arguments);
  llvm::Constant *kernel(const KernelTable &kernel);
  llvm::Constant *operand(const GdnOperand &operand) {
    return structure<GdnOperand>({i32(operand.kind), i32(operand.index)});
  }
  llvm::Constant *launch(const LaunchTable &launch);
  void function(const FunctionTable &function);
  void entry(const EntryTable &entry);

  llvm::Module &module;
  llvm::LLVMContext &context;
  const Options &options;
  /// A kernel's image, and its name there.
  struct ImageOfKernel {
    llvm::Constant *image;
    uint64_t bytes;
    StringRef symbol;
  };
  llvm::StringMap<ImageOfKernel> images;
  Constants kernels, functions;
};
} // namespace

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

llvm::GlobalVariable *TableWriter::global(llvm::Constant *value,
                                          bool isConstant) {
  return new llvm::GlobalVariable(module, value->getType(), isConstant,
                                  llvm::GlobalValue::PrivateLinkage, value);
}

llvm::Constant *TableWriter::text(StringRef value) {
  llvm::GlobalVariable *result =
      global(llvm::ConstantDataArray::getString(context, value));
  result->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return result;
}

template <typename Struct>
llvm::Constant *TableWriter::structure(ArrayRef<llvm::Constant *> fields) {
  llvm::Constant *result = structure(fields);
  assert(module.getDataLayout().getTypeAllocSize(result->getType()) ==
             sizeof(Struct) &&
         "the fields of gdn-c/Calls.h");
  return result;
}

/// A pointer to the elements, which are of one type; null for none.
llvm::Constant *TableWriter::list(ArrayRef<llvm::Constant *> elements) {
  if (elements.empty())
    return null();
  auto *type =
      llvm::ArrayType::get(elements.front()->getType(), elements.size());
  return global(llvm::ConstantArray::get(type, elements));
}

template <typename Range, typename Make>
llvm::Constant *TableWriter::listOf(const Range &range, Make make) {
  Constants elements;
  for (const auto &element : range)
    elements.push_back(make(element));
  return list(elements);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

llvm::Constant *TableWriter::arguments(ArrayRef<ArgumentTable> arguments) {
  return listOf(arguments, [&](const ArgumentTable &argument) {
    llvm::Constant *shape =
        listOf(argument.shape, [&](int64_t extent) { return i64(extent); });
    return structure<GdnArgDesc>(
        {text(argument.name), i32(argument.kind), i32(argument.dtype),
         i32(argument.shape.size()), i32(argument.flags), shape,
         i32(argument.alignment)});
  });
}

llvm::Constant *TableWriter::kernel(const KernelTable &kernel) {
  llvm::Constant *parameters =
      listOf(kernel.parameters, [&](const GdnParamDesc &parameter) {
        return structure<GdnParamDesc>(
            {i32(parameter.kind), i32(parameter.index), i32(parameter.dim),
             i32(parameter.dtype)});
      });
  llvm::Constant *maps =
      listOf(kernel.tensorMaps, [&](const TensorMapTable &map) {
        llvm::Constant *dims = listOf(map.dims, [&](const GdnTensorMapDim &d) {
          return structure<GdnTensorMapDim>(
              {i32(d.dim), i32(d.box), i64(d.extent), i64(d.step)});
        });
        return structure<GdnTensorMapDesc>(
            {i32(map.argument), i32(map.dims.size()), i32(map.swizzle),
             i32(GDN_L2_PROMOTION_128B), dims});
      });
  llvm::Constant *symbols =
      listOf(kernel.symbols, [&](std::pair<unsigned, unsigned> symbol) {
        return text(kernel.arguments[symbol.first].name + "." +
                    std::to_string(symbol.second));
      });
  const ImageOfKernel &code = images.at(kernel.name);
  return structure<GdnKernelDesc>({i32(sizeof(GdnKernelDesc)),
                                   i32(GDN_RUNTIME_VERSION),
                                   text(code.symbol),
                                   code.image,
                                   i64(code.bytes),
                                   i32(options.computeCapability),
                                   i32(kernel.threads),
                                   i32(kernel.sharedBytes),
                                   i32(kernel.cluster),
                                   i32(kernel.residentBlocks),
                                   i32(kernel.follows),
                                   i32(kernel.arguments.size()),
                                   i32(kernel.parameters.size()),
                                   i32(kernel.tensorMaps.size()),
                                   i32(kernel.symbols.size()),
                                   arguments(kernel.arguments),
                                   parameters,
                                   maps,
                                   symbols,
                                   /*plan=*/null()});
}

llvm::Constant *TableWriter::launch(const LaunchTable &launch) {
  llvm::Constant *operands = listOf(
      launch.operands, [&](const GdnOperand &given) { return operand(given); });
  auto *grid = llvm::ConstantDataArray::get(
      context, ArrayRef<uint32_t>{static_cast<uint32_t>(launch.grid[0]),
                                  static_cast<uint32_t>(launch.grid[1]),
                                  static_cast<uint32_t>(launch.grid[2])});
  return structure<GdnLaunchDesc>(
      {kernels[launch.kernel], operands, i32(launch.operands.size()), grid});
}

void TableWriter::function(const FunctionTable &function) {
  llvm::Constant *symbols =
      listOf(function.symbols,
             [&](const std::string &symbol) { return text(symbol); });
  llvm::Constant *steps = listOf(function.steps, [&](const GdnIndexStep &step) {
    return structure<GdnIndexStep>(
        {i32(step.kind), i32(step.left), i32(step.right), i64(step.value)});
  });
  llvm::Constant *rules =
      listOf(function.rules, [&](const GdnExtentRule &rule) {
        return structure<GdnExtentRule>(
            {i32(rule.arg), i32(rule.dim), i32(rule.step)});
      });
  llvm::Constant *temporaries =
      listOf(function.temporaries, [&](const TemporaryTable &temporary) {
        llvm::Constant *shape =
            listOf(temporary.shape, [&](int32_t step) { return i32(step); });
        return structure<GdnTemporaryDesc>(
            {i32(temporary.dtype), i32(temporary.shape.size()), shape});
      });
  llvm::Constant *views = listOf(function.views, [&](const ViewTable &view) {
    llvm::Constant *dims = listOf(view.dims, [&](const GdnViewDim &dim) {
      return structure<GdnViewDim>({i32(dim.first), i32(dim.last),
                                    i32(dim.offset), i32(dim.extent),
                                    i32(dim.stride)});
    });
    return structure<GdnViewDesc>(
        {operand(view.base), i32(view.dims.size()), dims});
  });
  llvm::Constant *launches =
      listOf(function.launches,
             [&](const LaunchTable &table) { return launch(table); });
  llvm::Constant *results =
      listOf(function.results, [&](int32_t argument) { return i32(argument); });
  // The one thing that is written at run time.
  llvm::Constant *handles = null();
  if (!function.launches.empty())
    handles = global(llvm::ConstantAggregateZero::get(llvm::ArrayType::get(
                         null()->getType(), function.launches.size())),
                     /*isConstant=*/false);
  llvm::GlobalVariable *description = global(structure<GdnFunctionDesc>(
      {i32(sizeof(GdnFunctionDesc)),
       i32(GDN_RUNTIME_VERSION),
       text(function.name),
       function.source.empty() ? null() : text(function.source),
       i32(function.numInputs),
       i32(function.arguments.size()),
       i32(function.symbols.size()),
       i32(function.steps.size()),
       i32(function.rules.size()),
       i32(function.temporaries.size()),
       i32(function.views.size()),
       i32(function.launches.size()),
       i32(function.results.size()),
       arguments(function.arguments),
       symbols,
       steps,
       rules,
       temporaries,
       views,
       launches,
       results,
       handles}));
  description->setName(function.name + descriptionSuffix);
  description->setLinkage(llvm::GlobalValue::ExternalLinkage);
  functions.push_back(description);
  writeEntries(module, function, description);
}

void TableWriter::entry(const EntryTable &entry) {
  llvm::Constant *facts = listOf(entry.facts, [&](const auto &fact) {
    return structure<GdnFact>({text(fact.first), text(fact.second)});
  });
  llvm::Constant *variants =
      listOf(entry.variants, [&](const VariantTable &variant) {
        return structure<GdnVariantDesc>(
            {functions[variant.function], text(variant.schedule),
             text(variant.stateLayout), i32(variant.isLate),
             i32(variant.looksAtGates)});
      });
  llvm::GlobalVariable *description = global(structure<GdnEntryDesc>(
      {i32(sizeof(GdnEntryDesc)), i32(GDN_RUNTIME_VERSION), text(entry.name),
       i32(entry.facts.size()), i32(entry.variants.size()), facts, variants}));
  description->setName(entry.name + entrySuffix);
  description->setLinkage(llvm::GlobalValue::ExternalLinkage);
}

/// An image is named after its contents, so that a linker keeps one of several.
llvm::Constant *TableWriter::image(StringRef bytes) {
  std::string name =
      "gdn_image_" +
      llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)),
                  /*LowerCase=*/true);
  if (llvm::GlobalVariable *known = module.getNamedGlobal(name))
    return known;
  // The driver finds the end of PTX by its 0 byte; a cubin does not mind it.
  llvm::GlobalVariable *data =
      global(llvm::ConstantDataArray::getString(context, bytes));
  data->setName(name);
  data->setAlignment(llvm::Align(64));
  data->setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
  data->setVisibility(llvm::GlobalValue::HiddenVisibility);
  data->setComdat(module.getOrInsertComdat(name));
  return data;
}

llvm::Error TableWriter::write(const ModuleTable &table,
                               ArrayRef<Image> given) {
  for (const Image &code : given)
    for (const auto &[kernel, symbol] : code.kernels)
      images[kernel] = {image(code.bytes), code.bytes.size() + 1, symbol};
  for (const KernelTable &entry : table.kernels) {
    if (!images.contains(entry.name))
      return llvm::createStringError("expected an image of kernel " +
                                     entry.name + ", got none");
    kernels.push_back(global(kernel(entry)));
  }
  for (const FunctionTable &table : table.functions)
    function(table);
  for (const EntryTable &table : table.entries)
    entry(table);
  return llvm::Error::success();
}

llvm::Error host::emitObject(ModuleOp module, ArrayRef<Image> images,
                             llvm::raw_pwrite_stream &stream,
                             const Options &options) {
  llvm::Expected<ModuleTable> table = describeModule(module);
  if (!table)
    return table.takeError();
  if (llvm::Error error = checkNames(*table))
    return error;
  cpu::TargetOptions target;
  target.cpu = options.cpu;
  auto machine = cpu::createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  llvm::Module code("gdn", context);
  code.setTargetTriple((*machine)->getTargetTriple());
  code.setDataLayout((*machine)->createDataLayout());
  if (llvm::Error error = TableWriter(code, options).write(*table, images))
    return error;
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError(
        "expected a target that writes object files, got " +
        (*machine)->getTargetTriple().str());
  passes.run(code);
  return llvm::Error::success();
}
