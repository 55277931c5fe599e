#include "plan/cost_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::plan {
namespace {

std::string parse_error(std::string_view text) {
  const auto table = CostTable::parse(text);
  return table ? "no error" : table.error().to_string();
}

std::string entry_error(const std::string& entry) {
  return parse_error(R"({"schema": "tessera.cost_table/1.0", "prices": {"k": )" + entry + "}}");
}

TEST(CostTable, PrintsAndParsesBackEqual) {
  CostTable table;
  table.add("cpu:b|\"quoted\"", {0.1, 1e-7, 25});
  table.add("cpu:a", {12345.678901234567, 0, 5});
  const auto parsed = CostTable::parse(table.print());
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->entries(), table.entries());
  EXPECT_EQ(parsed->print(), table.print());
  EXPECT_EQ(parsed->content_hash(), table.content_hash());
}

TEST(CostTable, PrintsSortedByKeyWhateverTheOrderOfAdding) {
  CostTable forwards, backwards;
  forwards.add("a", {1, 0, 5});
  forwards.add("b", {2, 0, 5});
  backwards.add("b", {2, 0, 5});
  backwards.add("a", {1, 0, 5});
  EXPECT_EQ(forwards.print(), backwards.print());
  EXPECT_EQ(forwards.print(), R"({
 "schema": "tessera.cost_table/1.1",
 "prices": {
  "a": {
   "us": 1.0,
   "spread_us": 0.0,
   "samples": 5
  },
  "b": {
   "us": 2.0,
   "spread_us": 0.0,
   "samples": 5
  }
 }
}
)");
}

TEST(CostTable, KeepsTheFirstEntryUnlessToldToReplace) {
  CostTable table;
  table.add("k", {1, 0, 5});
  table.add("k", {2, 0, 5});
  EXPECT_EQ(table.find("k")->time_us, 1);
  table.add("k", {3, 0, 5}, /*replace=*/true);
  EXPECT_EQ(table.find("k")->time_us, 3);
  EXPECT_EQ(table.find("other"), nullptr);
  EXPECT_EQ(table.size(), 1U);
}

TEST(CacheState, IsFoundByTheWordThatKeysHave) {
  for (const auto state : {CacheState::kResident, CacheState::kShared, CacheState::kStreamed})
    EXPECT_EQ(find_cache_state(to_string(state)), state);
  EXPECT_EQ(find_cache_state("warm"), std::nullopt);
}

TEST(CostTable, HashTellsTablesApart) {
  CostTable table;
  const auto empty = table.content_hash();
  table.add("k", {1, 0, 5});
  EXPECT_NE(table.content_hash(), empty);
}

TEST(CostTable, MalformedTables) {
  EXPECT_EQ(parse_error("{"), "not a cost table: expected a JSON object");
  EXPECT_EQ(parse_error("[1]"), "not a cost table: expected a JSON object");
  EXPECT_EQ(parse_error(R"({"prices": {}})"),
            "not a cost table: expected schema tessera.cost_table/1.1, found null");
  EXPECT_EQ(
      parse_error(R"({"schema": "tessera.report/1.0"})"),
      "not a cost table: expected schema tessera.cost_table/1.1, found \"tessera.report/1.0\"");
  EXPECT_EQ(
      parse_error(R"({"schema": "tessera.cost_table/2.0", "prices": {}})"),
      "not a cost table: expected schema tessera.cost_table/1.1, found \"tessera.cost_table/2.0\"");
  EXPECT_EQ(parse_error(R"({"schema": "tessera.cost_table/1.0"})"),
            "cost table: expected an object 'prices'");
  EXPECT_EQ(parse_error(R"({"schema": "tessera.cost_table/1.0", "prices": []})"),
            "cost table: expected an object 'prices'");
}

TEST(CostTable, KeepsHowAPriceWasMeasured) {
  CostTable table;
  table.add("c", {1, 0, 5, false, 2.5, 3, true});
  table.add("a", {1, 0, 5, true});
  table.add("b", {1, 0, 5, false});
  const auto parsed = CostTable::parse(table.print());
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->entries(), table.entries());
}

TEST(CostTable, MalformedEntries) {
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 5, "busy": 1})"),
            "price 'k': 'busy': expected true or false, found 1");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 5, "prepare_us": "no"})"),
            "price 'k': 'prepare_us': expected a number of at least 0, found \"no\"");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 5, "cold_us": -1})"),
            "price 'k': 'cold_us': expected a number of at least 0, found -1");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 5, "outliers": -1})"),
            "price 'k': 'outliers': expected an integer of at least 0, found -1");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 5, "clock_changed": 0})"),
            "price 'k': 'clock_changed': expected true or false, found 0");
  EXPECT_EQ(entry_error("3"), "price 'k': expected an object, found number");
  EXPECT_EQ(entry_error(R"({"spread_us": 0, "samples": 5})"),
            "price 'k': 'us': expected a number of at least 0, found nothing");
  EXPECT_EQ(entry_error(R"({"us": "1", "spread_us": 0, "samples": 5})"),
            "price 'k': 'us': expected a number of at least 0, found \"1\"");
  EXPECT_EQ(entry_error(R"({"us": -1, "spread_us": 0, "samples": 5})"),
            "price 'k': 'us': expected a number of at least 0, found -1");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": -2, "samples": 5})"),
            "price 'k': 'spread_us': expected a number of at least 0, found -2");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0})"),
            "price 'k': 'samples': expected an integer of at least 1, found nothing");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 1.5})"),
            "price 'k': 'samples': expected an integer of at least 1, found 1.5");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 0})"),
            "price 'k': 'samples': expected an integer of at least 1, found 0");
  EXPECT_EQ(entry_error(R"({"us": 1, "spread_us": 0, "samples": 5000000000})"),
            "price 'k': 'samples': expected an integer of at least 1, found 5000000000");
}

TEST(CostTable, Files) {
  const testing::TempDir folder;
  const auto absent = CostTable::load(folder / "absent.json");
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->size(), 0U);
  CostTable table;
  table.add("k", {1.5, 0.25, 7});
  ASSERT_TRUE(table.save(folder / "t.json"));
  const auto loaded = CostTable::load(folder / "t.json");
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->entries(), table.entries());
  const auto broken = CostTable::load(folder.write("broken.json", "{}"));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().to_string(),
            (folder / "broken.json").string() +
                ": not a cost table: expected schema tessera.cost_table/1.1, found null");
}

TEST(CostTable, NearestSharesTheLongestPrefix) {
  CostTable table;
  EXPECT_EQ(table.nearest("x"), "");
  for (const char* key : {"cpu:conv|1x3", "cpu:conv|1x4", "cpu:pool", "npu:conv"})
    table.add(key, {1, 0, 5});
  EXPECT_EQ(table.nearest("cpu:conv|1x5"), "cpu:conv|1x4");
  EXPECT_EQ(table.nearest("cpu:conv|1x30"), "cpu:conv|1x3");
  EXPECT_EQ(table.nearest("cpu:softmax"), "cpu:pool");
  EXPECT_EQ(table.nearest("zzz"), "");
}

TEST(CostTable, NearestAgreesWithLookingAtAll) {
  for (const std::uint64_t seed : testing::seeds(200)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    const auto draw = [&] {
      std::string key(1 + random.index(5), 'a');
      for (char& letter : key) letter = static_cast<char>('a' + random.index(2));
      return key;
    };
    CostTable table;
    for (int i = 0; i < 6; ++i) table.add(draw(), {1, 0, 5});
    const std::string key = draw();
    const auto shared = [&](const std::string& other) {
      std::size_t count = 0;
      while (count < key.size() && count < other.size() && key[count] == other[count]) ++count;
      return count;
    };
    std::size_t best = 0;
    for (const auto& [other, entry] : table.entries()) best = std::max(best, shared(other));
    EXPECT_EQ(shared(table.nearest(key)), best);
    EXPECT_EQ(table.nearest(key).empty(), best == 0);
  }
}

TEST(RoundPrice, ToTheNearestPowerOf1_02) {
  EXPECT_EQ(round_price_us(0), 0);
  EXPECT_EQ(round_price_us(-1), 0);
  EXPECT_EQ(round_price_us(1), 1);
  EXPECT_DOUBLE_EQ(round_price_us(1.021), 1.02);
  EXPECT_EQ(round_price_us(100), round_price_us(100.4));
  testing::Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const double time_us = std::exp(random.real(-5, 12));
    const double rounded_us = round_price_us(time_us);
    EXPECT_NEAR(rounded_us / time_us, 1, 0.01);
    EXPECT_EQ(round_price_us(rounded_us), rounded_us);
  }
}

}  // namespace
}  // namespace tessera::plan
