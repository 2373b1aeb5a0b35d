//===- VectorsTest.cpp - Against the float64 numpy model --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Reference/Reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <ostream>

using namespace gdn::reference;

/// The arrays of one file that make_vectors.py wrote.
using Arrays = std::map<std::string, std::vector<double>>;

static Arrays readArrays(const std::string &name) {
  std::ifstream file(std::string(GDN_REFERENCE_VECTORS) + "/" + name + ".txt");
  Arrays arrays;
  std::string key, word;
  size_t count = 0;
  while (file >> key >> count) {
    std::vector<double> &values = arrays[key];
    // Not `file >> double`: that does not read -inf.
    for (size_t i = 0; i < count && file >> word; ++i)
      values.push_back(std::strtod(word.c_str(), nullptr));
  }
  return arrays;
}

static Problem makeProblem(Arrays &arrays) {
  Problem p;
  const std::vector<double> &dims = arrays["dims"];
  int64_t *fields[] = {&p.B, &p.T, &p.Hq, &p.H, &p.K, &p.V};
  for (size_t i = 0; i < dims.size(); ++i)
    *fields[i] = static_cast<int64_t>(dims[i]);
  for (double offset : arrays["cu_seqlens"])
    p.cuSeqlens.push_back(static_cast<int64_t>(offset));
  p.q = arrays["q"];
  p.k = arrays["k"];
  p.v = arrays["v"];
  p.gate = arrays["gate"];
  p.beta = arrays["beta"];
  p.aLog = arrays["a_log"];
  p.dtBias = arrays["dt_bias"];
  p.initialState = arrays["h0"];

  // gate_form: 0 none, 1 log, 2 softplus, 3 bounded; per channel; raw inputs.
  const std::vector<double> &form = arrays["gate_form"];
  if (form[0] != 0)
    p.gateKind = form[1] != 0 ? GateKind::Channel : GateKind::Head;
  if (form[0] == 2)
    p.gateDomain = GateDomain::Softplus;
  if (form[0] == 3)
    p.gateDomain = GateDomain::Bounded;
  p.qkL2norm = p.betaIsLogit = form[2] != 0;
  return p;
}

/// Equal up to the rounding of two different orders of summation.
static void expectClose(const char *name, const std::vector<double> &actual,
                        const std::vector<double> &expected) {
  Error error = compare(actual, expected);
  EXPECT_LE(error.relRms, 1e-13) << name;
  EXPECT_LE(error.maxAbs, 1e-12 * error.maxRef) << name;
}

class VectorsTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    arrays = readArrays(GetParam());
    ASSERT_EQ(arrays["dims"].size(), 6u) << "cannot read the vectors";
    ASSERT_FALSE(arrays["o"].empty());
    problem = makeProblem(arrays);
    ASSERT_EQ(validate(problem), "");
  }

  Arrays arrays;
  Problem problem;
};

TEST_P(VectorsTest, Forward) {
  Result<Forward> result = forward(problem);
  ASSERT_TRUE(result) << result.error;
  expectClose("o", result->o, arrays["o"]);
  expectClose("final state", result->finalState, arrays["ht"]);
}

TEST_P(VectorsTest, Backward) {
  Result<Gradients> result = backward(problem, arrays["do"], arrays["dht"]);
  ASSERT_TRUE(result) << result.error;
  expectClose("dq", result->dq, arrays["dq"]);
  expectClose("dk", result->dk, arrays["dk"]);
  expectClose("dv", result->dv, arrays["dv"]);
  expectClose("dgate", result->dGate, arrays["dgate"]);
  expectClose("dbeta", result->dBeta, arrays["dbeta"]);
  expectClose("dh0", result->dInitialState, arrays["dh0"]);
  expectClose("da_log", result->dALog, arrays["da_log"]);
  expectClose("ddt_bias", result->dDtBias, arrays["ddt_bias"]);
}

INSTANTIATE_TEST_SUITE_P(All, VectorsTest,
                         testing::Values("gdn_log", "gdn_batch", "gdn_softplus",
                                         "kda_log", "kda_softplus",
                                         "kda_bounded", "none"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });
