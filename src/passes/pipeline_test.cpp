#include "passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/rewrite.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::module_of;

constexpr const char* kModel = R"(
    input %x : fp32[2, 3]
    const %two : fp32[] dense [2]
    const %three : fp32[] dense [3]
    const %six : fp32[] dense [6]
    %product = Mul(%two, %three)
    %one = Div(%product, %six)
    %a = Mul(%x, %one)
    %b = Identity(%a)
    %c = Transpose(%b)
    %d = Transpose(%c)
    %dead = Exp(%d)
    %y = Relu(%d)
    output %y)";

TEST(Pipeline, SimplifiesToAFixedPoint) {
  ir::Module module = module_of(kModel);
  const auto result = simplify(module);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(testing::brief(module.methods[0].graph), "y = Relu(x)\n");
}

TEST(Pipeline, ReportsWhatEachPassDid) {
  ir::Module module = module_of(kModel);
  std::vector<std::string> changes;
  const auto result = simplify(
      module, {}, [&](std::string_view pass, const ir::Module&) { changes.emplace_back(pass); });
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_EQ(result->passes.size(), simplify_passes().size()) << "also those that did nothing";
  const PassReport& fold = result->passes[0];
  EXPECT_EQ(fold.name, "fold_constants");
  EXPECT_TRUE(fold.changed);
  EXPECT_GE(fold.ms, 0);
  EXPECT_EQ(fold.removed, (std::map<std::string, std::int64_t>{{"Div", 1}, {"Mul", 1}}));
  EXPECT_TRUE(fold.added.empty());
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0], "fold_constants");
  EXPECT_THAT(changes, ::testing::Not(::testing::Contains("fold_batch_normalization")))
      << "only passes that changed something";
}

TEST(Pipeline, PassesCanBeLeftOut) {
  ir::Module module = module_of(kModel);
  PassOptions options;
  options.disabled = {"simplify_transpose"};
  ASSERT_TRUE(simplify(module, options));
  EXPECT_EQ(testing::brief(module.methods[0].graph),
            "c = Transpose(x)\nd = Transpose(c)\ny = Relu(d)\n");
  options.disabled = {"simplify_everything"};
  const auto unknown = simplify(module, options);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message.starts_with(
      "no pass is named 'simplify_everything' (there are fold_constants, "))
      << unknown.error().message;
}

TEST(Pipeline, NamedPassesRunAlone) {
  ir::Module module = module_of(kModel);
  const std::vector<std::string> names = {"eliminate_no_ops", "simplify_transpose"};
  const auto result = run_passes(module, names);
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_EQ(result->passes.size(), 2U);
  EXPECT_EQ(result->passes[0].name, "eliminate_no_ops");
  EXPECT_EQ(result->passes[1].name, "simplify_transpose");
  const std::vector<std::string> wrong = {"simplify_transpose", "simplify_everything"};
  const auto unknown = run_passes(module, wrong);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message.starts_with(
      "no pass is named 'simplify_everything' (there are fold_constants, "))
      << unknown.error().message;
}

TEST(Pipeline, IsDeterministic) {
  ir::Module first = module_of(kModel);
  ir::Module second = module_of(kModel);
  ASSERT_TRUE(simplify(first));
  ASSERT_TRUE(simplify(second));
  EXPECT_EQ(ir::print(first), ir::print(second));
}

TEST(Pipeline, LooksIntoBodies) {
  ir::Module module = module_of(R"(
    input %c : bool[]
    input %x : fp32[2]
    %y = If(%c) bodies {
      body captures [%x] { input %a : fp32[2] %b = Identity(%a) %r = Relu(%b) output %r }
      body captures [%x] { input %a : fp32[2] %r = Neg(%a) output %r }
    }
    output %y)");
  ASSERT_TRUE(simplify(module));
  EXPECT_EQ(testing::brief(*module.methods[0].graph.nodes()[0]->bodies[0]), "r = Relu(a)\n");
}

TEST(PassRunner, NamesThePassThatBroke) {
  ir::Module module = module_of("input %x : fp32[2] %y = Relu(%x) output %y");
  const Pass breaks{"drop_origins",
                    [](PassContext&, ir::Graph& graph) -> Result<bool> {
                      graph.nodes()[0]->origins.clear();
                      return true;
                    },
                    ""};
  const PassOptions options;
  PassRunner runner(module, options);
  const auto result = runner.run(breaks);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(),
            "pass drop_origins: method 'main': node 'Relu_0' (Relu): has no origins");
}

TEST(PassRunner, StopsAfterBoundedRounds) {
  ir::Module module = module_of("input %x : fp32[2] %y = Relu(%x) output %y");
  static int runs = 0;
  runs = 0;
  const Pass restless{"restless",
                      [](PassContext&, ir::Graph&) -> Result<bool> { return ++runs > 0; }, ""};
  const PassOptions options;
  PassRunner runner(module, options);
  ASSERT_TRUE(runner.run_to_fixed_point(std::vector{restless}, 5));
  EXPECT_EQ(runs, 5);
}

// ---- The value of random graphs stays -----------------------------------------------------------

// Chains and joins of operators that the passes know, over one shape.
std::string random_statements(testing::Random& random) {
  std::string text = "input %v0 : fp32[2, 3] input %v1 : fp32[2, 3]\n";
  text +=
      "const %one : fp32[] dense [1] const %zero : fp32[3] dense [0, 0, 0] const %two : fp32[1] "
      "dense [2] const %k : fp32[2, 3] dense [1, -2, 3, 4, 5, 6]\n";
  text +=
      "const %flat : int64[1] dense [6] const %back : int64[2] dense [2, 3] const %swap : int64[2] "
      "dense [3, 2]\n";
  int count = 2;
  const auto any = [&] { return "%v" + std::to_string(random.integer(0, count - 1)); };
  const auto constant = [&] {
    return random.pick(std::vector<std::string>{"%one", "%zero", "%two", "%k"});
  };
  for (std::int64_t i = random.integer(4, 14); i > 0; --i) {
    const std::string out = "%v" + std::to_string(count);
    const std::string t = "%t" + std::to_string(count);
    switch (random.integer(0, 9)) {
      case 0: text += out + " = Mul(" + any() + ", " + constant() + ")\n"; break;
      case 1: text += out + " = Add(" + constant() + ", " + any() + ")\n"; break;
      case 2: text += out + " = Sub(" + any() + ", " + any() + ")\n"; break;
      case 3: text += out + " = Identity(" + any() + ")\n"; break;
      case 4:
        text += t + " = Transpose(" + any() + ")\n" + out + " = Transpose(" + t + ")\n";
        break;
      case 5:
        text += t + " = Reshape(" + any() + ", %flat)\n" + out + " = Reshape(" + t + ", %back)\n";
        break;
      case 6:
        text += t + " = Reshape(" + any() + ", %swap)\n" + out + " = Transpose(" + t + ")\n";
        break;
      case 7: text += out + " = Relu(" + any() + ")\n"; break;
      case 8:
        text += t + " = Mul(" + constant() + ", " + constant() + ")\n" + out + " = Add(" + any() +
                ", " + t + ")\n";
        break;
      default: text += out + " = Div(" + any() + ", %two)\n"; break;
    }
    ++count;
  }
  text += "output %v" + std::to_string(count - 1) + "\n";
  if (count > 4) text += "output %v" + std::to_string(count - 2) + "\n";
  return text;
}

TEST(Pipeline, KeepsTheValuesOfRandomGraphs) {
  for (const std::uint64_t seed : testing::seeds(200)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    const std::string statements = random_statements(random);
    ir::Module module = module_of(statements);
    const ir::Graph& graph = module.methods[0].graph;
    const auto inputs = testing::random_inputs(graph, random);
    const auto before = testing::interpret(graph, inputs);
    ASSERT_TRUE(before) << before.error().to_string() << statements;
    const std::size_t nodes_before = graph.nodes().size();
    const auto simplified = simplify(module);
    ASSERT_TRUE(simplified) << simplified.error().to_string() << statements;
    EXPECT_LE(graph.nodes().size(), nodes_before);
    const auto after = testing::interpret(graph, inputs);
    ASSERT_TRUE(after) << after.error().to_string() << statements;
    for (std::size_t i = 0; i < before->size(); ++i)
      testing::expect_close((*after)[i], (*before)[i], 1e-5);
  }
}

}  // namespace
}  // namespace tessera::passes
