#include "compiler/price_point.h"

#include <gtest/gtest.h>

namespace tessera::compiler {
namespace {

struct Model {
  Model() {
    module.symbols = {
        {"batch", {1, 8}}, {"h", {0, INT64_MAX}}, {"w", {0, 64}}, {"length", {0, INT64_MAX}}};
    ir::Graph& graph = module.methods.emplace_back().graph;
    const Dim h = Dim::symbol("h");
    graph.add_input("image", ValueType::tensor(DType::kFp32, Shape{Dim::symbol("batch"), 3,
                                                                   Dim(2) * h, Dim::symbol("w")}));
    graph.add_input("tokens", ValueType::tensor(DType::kInt64, Shape{Dim::symbol("batch"),
                                                                     Dim::symbol("length")}));
    graph.add_input("crop", ValueType::tensor(DType::kFp32,
                                              Shape{Dim::symbol("batch"), 3, h, Dim::symbol("w")}));
  }
  [[nodiscard]] Result<SymbolBindings> at(const std::map<std::string, Dims>& shapes) const {
    return price_point(module, module.methods[0].graph, shapes);
  }
  [[nodiscard]] std::string error(const std::map<std::string, Dims>& shapes) const {
    const auto point = at(shapes);
    return point ? "no error" : point.error().to_string();
  }
  ir::Module module;
};

TEST(PricePoint, DefaultsWithinTheRanges) {
  const auto point = Model().at({});
  ASSERT_TRUE(point) << point.error().to_string();
  EXPECT_EQ(*point, (SymbolBindings{{"batch", 1}, {"h", 224}, {"w", 64}, {"length", 128}}));
}

TEST(PricePoint, SizesThatTheRunDecidesFitThoseBesideThem) {
  Model model;
  model.module.symbols["found"] = {0, INT64_MAX};
  ir::Graph& graph = model.module.methods[0].graph;
  const Dim found = Dim::symbol("found");
  graph.add_value("list", ValueType::tensor(DType::kFp32, Shape{found}));
  EXPECT_EQ(model.at({})->at("found"), 16);
  const auto both = broadcast_shapes({found}, {Dim::symbol("length")});
  ASSERT_TRUE(both);
  graph.add_value("both", ValueType::tensor(DType::kFp32, *both));
  EXPECT_EQ(model.at({})->at("found"), 1) << "16 and 128 do not broadcast";
}

// Windows of 400 samples, and groups of 16 of them.
TEST(PricePoint, DefaultsGrowUntilEverySizeCanBe) {
  Model model;
  ir::Graph& graph = model.module.methods[0].graph;
  const Dim length = Dim::symbol("length");
  graph.add_value("windows", ValueType::tensor(DType::kFp32, Shape{length - Dim(400)}));
  EXPECT_EQ(model.at({})->at("length"), 512);
  EXPECT_EQ(model.at({})->at("batch"), 1);
  EXPECT_EQ(model.at({{"tokens", {1, 401}}})->at("length"), 401) << "what is stated stays";
  graph.add_value("groups",
                  ValueType::tensor(DType::kFp32, Shape{floordiv(length - Dim(400), Dim(160))}));
  EXPECT_EQ(model.at({})->at("length"), 1024) << "at 512 there is none";
}

TEST(PricePoint, AllAreOneWhereTheDefaultsGiveNoSize) {
  ir::Module module;
  for (const char* name : {"k", "n", "c"}) module.symbols[name] = {0, INT64_MAX};
  ir::Graph& graph = module.methods.emplace_back().graph;
  const Dim k = Dim::symbol("k");
  graph.add_input("image", ValueType::tensor(DType::kFp32, Shape{1, 3, 5, 5}));
  graph.add_input("kernel", ValueType::tensor(DType::kFp32, Shape{8, 3, k, k}));
  graph.add_input("y", ValueType::tensor(DType::kFp32, Shape{1, 8, Dim(6) - k, Dim(6) - k}));
  const auto point = price_point(module, graph, {});
  ASSERT_TRUE(point) << point.error().to_string();
  EXPECT_EQ(point->at("k"), 1);

  ir::Graph& deep = module.methods.emplace_back().graph;
  deep.add_input("x", ValueType::tensor(DType::kFp32, Shape(12, Dim::symbol("n"))));
  deep.add_input("z", ValueType::tensor(DType::kFp32, Shape(12, Dim::symbol("c"))));
  Shape open;
  for (int i = 0; i < 12; ++i) {
    module.symbols["d" + std::to_string(i)] = {0, INT64_MAX};
    open.push_back(Dim::symbol("d" + std::to_string(i)));
  }
  deep.add_input("open", ValueType::tensor(DType::kFp32, open));
  const auto small = price_point(module, deep, {});
  ASSERT_TRUE(small) << small.error().to_string();
  EXPECT_EQ(small->at("d11"), 1);
}

TEST(PricePoint, DefaultsStayWhereNoSizeDoes) {
  Model model;
  ir::Graph& graph = model.module.methods[0].graph;
  graph.add_value("none", ValueType::tensor(DType::kFp32, Shape{0, Dim::symbol("length")}));
  EXPECT_EQ(model.at({})->at("length"), 128) << "always empty";
  graph.add_value("never", ValueType::tensor(DType::kFp32, Shape{Dim(-1)}));
  EXPECT_EQ(model.at({})->at("length"), 128);
}

TEST(PricePoint, WhatARunShowedComesBeforeAGuess) {
  Model model;
  model.module.symbols["found"] = {0, 100};
  model.module.symbols["left"] = {0, INT64_MAX};
  ir::Graph& graph = model.module.methods[0].graph;
  const Dim found = Dim::symbol("found");
  graph.add_value("list", ValueType::tensor(DType::kFp32, Shape{found, Dim::symbol("left")}));
  const auto at = [&](const SymbolBindings& seen) {
    return *price_point(model.module, graph, {}, seen);
  };
  EXPECT_EQ(at({{"found", 7}, {"batch", 5}}).at("found"), 7);
  EXPECT_EQ(at({{"found", 7}, {"batch", 5}}).at("batch"), 1) << "inputs are priced as ever";
  EXPECT_EQ(at({{"found", 7}}).at("left"), 16);
  EXPECT_EQ(at({{"found", 1000}}).at("found"), 100) << "within its range";
  const auto both = broadcast_shapes({found}, {Dim::symbol("length")});
  ASSERT_TRUE(both);
  graph.add_value("both", ValueType::tensor(DType::kFp32, *both));
  EXPECT_EQ(at({{"found", 100}}).at("found"), 1) << "100 and 128 do not broadcast";
}

TEST(PricePoint, StatedSizesHoldForEveryInput) {
  const auto point = Model().at({{"crop", {4, 3, 100, 50}}});
  ASSERT_TRUE(point) << point.error().to_string();
  EXPECT_EQ(*point, (SymbolBindings{{"batch", 4}, {"h", 100}, {"w", 50}, {"length", 128}}));
}

TEST(PricePoint, StatedSizesThatDisagree) {
  const Model model;
  EXPECT_EQ(model.error({{"picture", {1}}}),
            "--shape: no input 'picture': expected one of 'image', 'tokens', 'crop'");
  EXPECT_EQ(model.error({{"tokens", {1, 2, 3}}}),
            "--shape: input 'tokens': expected int64[batch, length], found 1x2x3");
  EXPECT_EQ(model.error({{"crop", {1, 4, 10, 10}}}),
            "--shape: input 'crop': dimension 1: expected 3, found 4");
  EXPECT_EQ(model.error({{"crop", {1, 3, 10, 10}}, {"tokens", {2, 5}}}),
            "--shape: input 'tokens': dimension 0: expected 1, found 2");
  EXPECT_EQ(model.error({{"crop", {1, 3, 10, 10}}, {"image", {1, 3, 30, 10}}}),
            "--shape: input 'image': dimension 2: expected 20, found 30");
  EXPECT_EQ(model.error({{"crop", {9, 3, 10, 10}}}),
            "--shape: input 'crop': dimension 0: expected 1 to 8, found 9");
  EXPECT_EQ(model.error({{"crop", {1, 3, 10, 65}}}),
            "--shape: input 'crop': dimension 3: expected 0 to 64, found 65");
  EXPECT_EQ(model.error({{"image", {1, 3, 20, 10}}}),
            "--shape: input 'image': dimension 2: expected 448, found 20");
}

TEST(PricePoint, AnExpressionStatedBeforeItsSymbol) {
  // "crop" is bound first, whatever the order in which the sizes are stated
  const auto point = Model().at({{"image", {1, 3, 20, 10}}, {"crop", {1, 3, 10, 10}}});
  ASSERT_TRUE(point) << point.error().to_string();
  EXPECT_EQ(point->at("h"), 10);
}

}  // namespace
}  // namespace tessera::compiler
