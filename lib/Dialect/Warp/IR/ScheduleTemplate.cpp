//===- ScheduleTemplate.cpp - Checks and text of schedule templates -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemplateText.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Amounts
//===----------------------------------------------------------------------===//

/// `as "tokens" plus 1`, behind the `as`.
static ParseResult parseChannel(AsmParser &parser, std::string &channel,
                                int64_t &value) {
  if (parser.parseString(&channel))
    return failure();
  bool isMore = succeeded(parser.parseOptionalKeyword("plus"));
  if (!isMore && failed(parser.parseOptionalKeyword("minus")))
    return success();
  if (parser.parseInteger(value))
    return failure();
  if (!isMore)
    value = -value;
  return success();
}

Attribute AmountAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t value = 0, most = 0;
  std::string channel;
  AmountUnit unit = AmountUnit::Chunks;
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("fill"))) {
    unit = AmountUnit::Fill;
    if (parser.parseInteger(value) || parser.parseKeyword("to") ||
        parser.parseInteger(most) || parser.parseKeyword("chunks"))
      return {};
  } else if (succeeded(parser.parseOptionalKeyword("as"))) {
    unit = AmountUnit::Channel;
    if (parseChannel(parser, channel, value))
      return {};
  } else {
    if (parser.parseInteger(value))
      return {};
    if (succeeded(parser.parseOptionalKeyword("iterations")))
      unit = AmountUnit::Iterations;
    else if (parser.parseKeyword("chunks", " or 'iterations'"))
      return {};
  }
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return AmountAttr::getChecked(function_ref<InFlightDiagnostic()>(emitError),
                                parser.getContext(), unit, value, most,
                                StringRef(channel));
}

void AmountAttr::print(AsmPrinter &printer) const {
  printer << '<';
  switch (getUnit()) {
  case AmountUnit::Chunks:
  case AmountUnit::Iterations:
    printer << getValue() << ' ' << stringifyAmountUnit(getUnit());
    break;
  case AmountUnit::Fill:
    printer << "fill " << getValue() << " to " << getMost() << " chunks";
    break;
  case AmountUnit::Channel:
    printer << "as \"" << getChannel() << '"';
    if (getValue() != 0)
      printer << (getValue() > 0 ? " plus " : " minus ")
              << std::abs(getValue());
    break;
  }
  printer << '>';
}

/// No template needs more, and what is computed of these fits 64 bits.
static constexpr int64_t kMaxAmount = 1 << 16;

LogicalResult AmountAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 AmountUnit unit, int64_t value, int64_t most,
                                 StringRef channel) {
  int64_t least = unit == AmountUnit::Channel ? -kMaxAmount : 0;
  for (auto [number, from] : {std::pair(value, least), {most, int64_t(0)}})
    if (number < from || number > kMaxAmount)
      return emitError() << "expected an amount of " << from << " to "
                         << kMaxAmount << ", got " << number;
  if (unit == AmountUnit::Fill && (value < 1 || most < value))
    return emitError() << "expected to fill with 1 chunk or more, up to a "
                          "maximum that is not less, got "
                       << value << " to " << most;
  return success();
}

//===----------------------------------------------------------------------===//
// Roles, channels and conditions
//===----------------------------------------------------------------------===//

/// Lists of names, which may be absent.
static LogicalResult verifyNames(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<ArrayAttr> lists) {
  for (ArrayAttr list : lists)
    for (Attribute name : list ? list.getValue() : ArrayRef<Attribute>())
      if (!isa<StringAttr>(name))
        return emitError() << "expected a list of strings, got " << name;
  return success();
}

LogicalResult RoleTemplateAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, StringRef name, int64_t warps,
    int64_t registers, int64_t minRegisters, int64_t registerWeight,
    ArrayAttr steps, ArrayAttr delayedSteps, AmountAttr delay,
    AmountAttr prefetchDistance, bool, int64_t, bool, bool, bool, bool, bool,
    bool, bool, bool, int64_t) {
  if (failed(verifyNames(emitError, {steps, delayedSteps})))
    return failure();
  for (int64_t number : {registers, minRegisters, registerWeight})
    if (number < 0 || number > kMaxAmount)
      return emitError() << "expected numbers of registers of 0 to "
                         << kMaxAmount << " in role " << name << ", got "
                         << number;
  if (registers != 0 && minRegisters != 0)
    return emitError() << "expected registers or min_registers in role " << name
                       << ", got both";
  for (AmountAttr amount : {delay, prefetchDistance})
    if (amount && amount.getUnit() == AmountUnit::Fill)
      return emitError() << "expected a depth to fill shared memory, got a "
                            "delay or distance of role "
                         << name;
  return success();
}

LogicalResult
ChannelTemplateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                            StringRef, AmountAttr, ArrayAttr from, ArrayAttr to,
                            bool) {
  return verifyNames(emitError, {from, to});
}

LogicalResult ConditionAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, ArrayAttr steps,
    ArrayAttr noSteps, int64_t minVTiles, int64_t maxVTiles, bool,
    int64_t maxStateColumns, int64_t maxStateEntries, int64_t maxVectors,
    int64_t maxTileBytes, int64_t minChunkTokens, int64_t maxStateBits) {
  if (minVTiles < 0 || maxVTiles < 0 || maxStateColumns < 0 ||
      maxStateEntries < 0 || maxVectors < 0 || maxTileBytes < 0 ||
      minChunkTokens < 0 || maxStateBits < 0)
    return emitError() << "expected limits of at least 0";
  return verifyNames(emitError, {steps, noSteps});
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// A list of attributes in brackets, each without the name of its kind.
template <typename Attr>
static ParseResult parseAttrs(OpAsmParser &parser, ArrayAttr &attrs) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        FailureOr<Attr> attr = FieldParser<Attr>::parse(parser);
        if (succeeded(attr))
          list.push_back(*attr);
        return ParseResult(attr);
      }))
    return failure();
  attrs = parser.getBuilder().getArrayAttr(list);
  return success();
}

template <typename Attr>
static void printAttrs(OpAsmPrinter &printer, ArrayAttr attrs) {
  printer << '[';
  printer.increaseIndent();
  llvm::interleave(
      attrs.getAsRange<Attr>(),
      [&](Attr attr) {
        printer.printNewline();
        printer.printStrippedAttrOrType(attr);
      },
      [&] { printer << ','; });
  printer.decreaseIndent();
  printer << ']';
}

ParseResult gdn::warp::parseRoleTemplates(OpAsmParser &parser,
                                          ArrayAttr &roles) {
  return parseAttrs<RoleTemplateAttr>(parser, roles);
}
void gdn::warp::printRoleTemplates(OpAsmPrinter &printer, Operation *,
                                   ArrayAttr roles) {
  printAttrs<RoleTemplateAttr>(printer, roles);
}

ParseResult gdn::warp::parseChannelTemplates(OpAsmParser &parser,
                                             ArrayAttr &channels) {
  return parseAttrs<ChannelTemplateAttr>(parser, channels);
}
void gdn::warp::printChannelTemplates(OpAsmPrinter &printer, Operation *,
                                      ArrayAttr channels) {
  printAttrs<ChannelTemplateAttr>(printer, channels);
}

ParseResult gdn::warp::parseCondition(OpAsmParser &parser,
                                      ConditionAttr &when) {
  FailureOr<ConditionAttr> parsed = FieldParser<ConditionAttr>::parse(parser);
  if (failed(parsed))
    return failure();
  when = *parsed;
  return success();
}
void gdn::warp::printCondition(OpAsmPrinter &printer, Operation *,
                               ConditionAttr when) {
  printer.printStrippedAttrOrType(when);
}

/// The channel that an amount follows is one whose own depth follows none.
static LogicalResult verifyFollowed(ScheduleTemplateOp op, AmountAttr amount) {
  if (!amount || amount.getUnit() != AmountUnit::Channel)
    return success();
  for (auto channel : op.getChannels().getAsRange<ChannelTemplateAttr>())
    if (channel.getName() == amount.getChannel() &&
        channel.getDepth().getUnit() != AmountUnit::Channel)
      return success();
  return op.emitOpError("expected an amount as that of a channel of the "
                        "template, whose depth is a number or fills, got \"")
         << amount.getChannel() << "\"";
}

LogicalResult ScheduleTemplateOp::verify() {
  auto isIn = [](int64_t value) { return value >= 1 && value <= kMaxAmount; };
  int64_t chunks = getChunksPerIteration(), cluster = getCluster(),
          minCTAs = getMinCtas();
  if (!isIn(chunks) || !isIn(cluster))
    return emitOpError("expected 1 to ")
           << kMaxAmount << " chunks an iteration and CTAs of a cluster, got "
           << chunks << " and " << cluster;
  if (!isIn(minCTAs))
    return emitOpError("expected 1 to ")
           << kMaxAmount << " CTAs on a multiprocessor, got " << minCTAs;
  llvm::StringSet<> names;
  for (auto role : getRoles().getAsRange<RoleTemplateAttr>()) {
    if (!names.insert(role.getName()).second)
      return emitOpError("expected roles of different names, got two of ")
             << role.getName();
    if (role.getWarps() < 1 || role.getWarps() > kMaxAmount)
      return emitOpError("expected at least 1 warp in role ")
             << role.getName() << ", got " << role.getWarps();
    for (AmountAttr amount : {role.getDelay(), role.getPrefetchDistance()})
      if (failed(verifyFollowed(*this, amount)))
        return failure();
  }
  llvm::StringSet<> channels;
  for (auto channel : getChannels().getAsRange<ChannelTemplateAttr>()) {
    if (!channels.insert(channel.getName()).second)
      return emitOpError("expected channels of different names, got two of ")
             << channel.getName();
    if (failed(verifyFollowed(*this, channel.getDepth())))
      return failure();
    for (auto taker : channel.getTo().getAsRange<StringAttr>())
      if (!names.contains(taker.getValue()))
        return emitOpError("expected channel ")
               << channel.getName() << " to go to roles of the template, got "
               << taker;
  }
  return success();
}
