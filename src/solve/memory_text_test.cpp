#include "solve/memory_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "solve/memory_greedy.h"
#include "solve/memory_validate.h"

namespace tessera::solve {
namespace {

using ::testing::ElementsAre;

std::string refusal(std::string_view csv) {
  const Result<MemoryTable> table = parse_memory(csv);
  return table ? "" : table.error().to_string();
}

TEST(MemoryText, ReadsMinimallocsForm) {
  const Result<MemoryTable> table = parse_memory("id,lower,upper,size\r\nb1,0,3,16\r\n\nb2,3,9,8");
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_THAT(table->problem.buffers,
              ElementsAre(Buffer{"b1", 0, 3, 16, 1, {}}, Buffer{"b2", 3, 9, 8, 1, {}}));
  EXPECT_FALSE(table->solution);
}

TEST(MemoryText, ReadsColumnsInAnyOrder) {
  const Result<MemoryTable> table =
      parse_memory("size,alignment,offset,id,upper,lower,fixed\n16,8,24,x,5,1,24\n4,1,0,y,5,1,\n");
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_THAT(table->problem.buffers,
              ElementsAre(Buffer{"x", 1, 5, 16, 8, 24}, Buffer{"y", 1, 5, 4, 1, {}}));
  ASSERT_TRUE(table->solution);
  EXPECT_EQ(*table->solution, (MemorySolution{{24, 0}, 40, 20}));
  EXPECT_TRUE(validate(table->problem, *table->solution));
}

TEST(MemoryText, PrintsOnlyTheColumnsItNeeds) {
  MemoryProblem problem = {{{"a", 0, 2, 10, 1, {}}}, {}};
  EXPECT_EQ(print_memory(problem), "id,lower,upper,size\na,0,2,10\n");
  const MemorySolution solution = {{0}, 10, 10};
  EXPECT_EQ(print_memory(problem, &solution), "id,lower,upper,size,offset\na,0,2,10,0\n");
  problem.buffers.push_back({"b,\"c\"", 0, 1, 4, 4, 12});
  EXPECT_EQ(print_memory(problem),
            "id,lower,upper,size,alignment,fixed\na,0,2,10,1,\n\"b,\"\"c\"\"\",0,1,4,4,12\n");
}

TEST(MemoryText, ParsesBackWhatItPrints) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    MemoryProblem problem;
    const std::size_t count = random() % 20;
    for (std::size_t i = 0; i < count; ++i) {
      const auto lower = static_cast<std::int64_t>(random() % 40) - 5;
      Buffer buffer{std::to_string(i),
                    lower,
                    lower + static_cast<std::int64_t>(random() % 9),
                    static_cast<std::int64_t>(random() % 1000),
                    1,
                    {}};
      if (seed % 2 == 0) buffer.alignment = std::int64_t{1} << (random() % 5);
      if (seed % 3 == 0 && i == 0) buffer.fixed_offset = 64;
      if (seed % 5 == 0) buffer.id += ",\n\"";
      problem.buffers.push_back(buffer);
    }
    const Result<MemorySolution> solution = allocate_greedy(problem);
    ASSERT_TRUE(solution) << solution.error().to_string();
    const Result<MemoryTable> plain = parse_memory(print_memory(problem));
    ASSERT_TRUE(plain) << plain.error().to_string();
    EXPECT_EQ(plain->problem, problem);
    const Result<MemoryTable> solved = parse_memory(print_memory(problem, &*solution));
    ASSERT_TRUE(solved) << solved.error().to_string();
    EXPECT_EQ(solved->problem, problem);
    EXPECT_EQ(solved->solution, *solution);
  }
}

TEST(MemoryText, NamesTheLineOfAFault) {
  EXPECT_EQ(refusal(""), "expected a header line, found an empty file");
  EXPECT_EQ(refusal("id,lower,upper,bytes\n"),
            "line 1: unknown column 'bytes' (expected id, lower, upper, size, and optionally "
            "alignment, fixed, offset)");
  EXPECT_EQ(refusal("id,lower,upper\n"), "line 1: column 'size' is missing");
  EXPECT_EQ(refusal("id,lower,id\n"), "line 1: column 'id' stands twice");
  EXPECT_EQ(refusal("id,lower,upper,size\na,0,1,2\n\nb,0,1\n"),
            "line 4: expected 4 fields, found 3");
  EXPECT_EQ(refusal("id,lower,upper,size\na,0,1.5,2\n"),
            "line 2: upper: expected a whole number, found '1.5'");
  EXPECT_EQ(refusal("id,lower,upper,size\na,0,,2\n"),
            "line 2: upper: expected a whole number, found ''");
  EXPECT_EQ(refusal("id,lower,upper,size\na,0,1,99999999999999999999\n"),
            "line 2: size: '99999999999999999999' does not fit 64 bits");
  EXPECT_EQ(refusal("id,lower,upper,size\n\"a\nb,0,1,2\n"), "line 2: a quoted field does not end");
  EXPECT_EQ(refusal("id,lower,upper,size\n\"a\"b,0,1,2\n"),
            "line 2: expected a comma after a quoted field");
  EXPECT_EQ(refusal("id,lower,upper,size\na,0,1,-2\n"), "buffer 'a': size -2 is negative");
}

}  // namespace
}  // namespace tessera::solve
