#include "backends/simulated/compile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/simulated/compile/simulated_device.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera::backends::simulated {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// A profile with nothing but what must be there, and `more`.
std::string with(const std::string& more) {
  return R"({"schema": "tessera.device/1.0", "name": "npu")" + (more.empty() ? "" : ", " + more) +
         "}";
}

Profile parsed(const std::string& more) {
  auto profile = parse_profile(with(more));
  EXPECT_TRUE(profile) << profile.error().to_string();
  return profile ? *std::move(profile) : Profile{};
}

std::string error_of(const std::string& text) {
  const auto profile = parse_profile(text);
  return profile ? "no error" : profile.error().to_string();
}

TEST(Profile, DefaultsAreThoseOfTheFormat) {
  const Profile profile = parsed("");
  EXPECT_EQ(profile.name, "npu");
  EXPECT_FALSE(profile.supports) << "absent: everything";
  EXPECT_FALSE(profile.only);
  EXPECT_FALSE(profile.nodes);
  EXPECT_TRUE(profile.lacks.empty());
  EXPECT_TRUE(profile.layouts.empty());
  EXPECT_TRUE(profile.rates.gflops.empty());
  EXPECT_EQ(profile.rates.default_gflops, 100);
  EXPECT_EQ(profile.rates.memory_gb_per_s, 10);
  EXPECT_EQ(profile.rates.launch_us, 20);
  EXPECT_EQ(profile.rates.sync_us, 20);
  EXPECT_EQ(profile.rates.link_gb_per_s, 8);
  EXPECT_EQ(profile.rates.link_latency_us, 10);
  EXPECT_FALSE(profile.rates.unified);
  EXPECT_EQ(profile.rates.memory_bytes, 0) << "no limit";
  EXPECT_FALSE(profile.max_partitions);
  EXPECT_FALSE(profile.mock.init_fails);
}

TEST(Profile, ReadsEveryKey) {
  const Profile profile = parsed(R"("kind": "simulated",
    "supports": [{"op": "Conv", "dtypes": ["fp32", "int8"], "max_rank": 4,
                  "where": {"group": 1, "dilations": [1, 1], "auto_pad": "NOTSET", "strides": {"min": 1, "max": 2}}}],
    "lacks": [{"op": "Pad", "attr": {"mode": "reflect"}}], "only": ["Conv", "Relu"], "nodes": ["conv_*"],
    "layouts": ["nhwc", "nChw16c"], "gflops": {"fp32": 500, "fp16": 2000}, "memory_gb_per_s": 50,
    "launch_us": 0, "sync_us": 30, "link": {"gb_per_s": 4, "latency_us": 1, "unified": true},
    "memory_mib": 0.5, "sram_kib": 8192, "power": {"active_w": 2, "idle_w": 0.1, "pj_per_byte": 20},
    "max_partitions": 3,
    "mock": {"compile_fails_for": ["a"], "slow_down": 4, "after": 10})");
  ASSERT_TRUE(profile.supports);
  ASSERT_EQ(profile.supports->size(), 1U);
  const SupportRule& conv = profile.supports->front();
  EXPECT_EQ(conv.op, "Conv");
  EXPECT_THAT(conv.dtypes, ElementsAre(DType::kFp32, DType::kInt8));
  EXPECT_EQ(conv.max_rank, 4);
  ASSERT_EQ(conv.where.size(), 4U);  // by name
  EXPECT_EQ(std::get<std::string>(conv.where[0].equals), "NOTSET");
  EXPECT_THAT(std::get<std::vector<double>>(conv.where[1].equals), ElementsAre(1, 1));
  EXPECT_EQ(std::get<double>(conv.where[2].equals), 1);
  EXPECT_EQ(conv.where[3].min, 1);
  EXPECT_EQ(conv.where[3].max, 2);
  ASSERT_EQ(profile.lacks.size(), 1U);
  EXPECT_EQ(profile.lacks[0].where[0].name, "mode");
  EXPECT_EQ(*profile.only, (std::vector<std::string>{"Conv", "Relu"}));
  EXPECT_EQ(*profile.nodes, (std::vector<std::string>{"conv_*"}));
  EXPECT_EQ(profile.layouts, (std::vector<std::string>{"nhwc", "nChw16c"}));
  EXPECT_EQ(profile.rates.gflops.at(DType::kFp16), 2000);
  EXPECT_EQ(profile.rates.launch_us, 0);
  EXPECT_EQ(profile.rates.sync_us, 30);
  EXPECT_EQ(profile.rates.link_gb_per_s, 4);
  EXPECT_TRUE(profile.rates.unified);
  EXPECT_EQ(profile.rates.memory_bytes, 512 * 1024);
  EXPECT_EQ(profile.sram_kib, 8192);
  EXPECT_EQ(profile.power.at("idle_w"), 0.1);
  EXPECT_EQ(profile.max_partitions, 3);
  EXPECT_EQ(profile.mock.compile_fails_for, (std::vector<std::string>{"a"}));
  EXPECT_EQ(profile.mock.run_time.at("after"), 10);
}

TEST(Profile, NullMeansAbsentWhereTheFormatSaysSo) {
  const Profile profile = parsed(R"("max_partitions": null, "mock": null)");
  EXPECT_FALSE(profile.max_partitions);
  EXPECT_TRUE(parsed(R"("mock": "init_fails")").mock.init_fails);
}

TEST(Profile, TheTextIsKeptWithoutWhiteSpace) {
  EXPECT_EQ(parsed("").text, R"({"name":"npu","schema":"tessera.device/1.0"})");
}

TEST(Profile, MalformedFilesAreRefused) {
  EXPECT_EQ(error_of("{"), "not a device profile: expected JSON");
  EXPECT_EQ(error_of("[1]"), "not a device profile: expected an object, found array");
  EXPECT_EQ(error_of("{}"), "'schema': expected tessera.device/1.0, found null");
  EXPECT_EQ(error_of(R"({"schema": "tessera.device/2.0", "name": "a"})"),
            R"('schema': expected tessera.device/1.0, found "tessera.device/2.0")");
  EXPECT_EQ(error_of(R"({"schema": "tessera.device/1.0"})"),
            "'name': expected a name, found nothing");
  EXPECT_EQ(error_of(R"({"schema": "tessera.device/1.0", "name": ""})"),
            R"('name': expected a name, found "")");
  EXPECT_EQ(error_of(with(R"("kind": "real")")), R"('kind': expected "simulated", found "real")");
}

TEST(Profile, UnknownKeysAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(error_of(with(R"("suports": [])")),
            "'suports': unknown key in the profile: expected one of schema, name, kind, supports, "
            "lacks, only, nodes, layouts, gflops, memory_gb_per_s, launch_us, sync_us, link, "
            "memory_mib, sram_kib, power, max_partitions, mock");
  EXPECT_EQ(error_of(with(R"("link": {"speed": 1})")),
            "'speed': unknown key in link: expected one of gb_per_s, latency_us, unified");
  EXPECT_EQ(error_of(with(R"("power": {"w": 1})")),
            "'w': unknown key in power: expected one of active_w, idle_w, pj_per_byte");
  EXPECT_EQ(error_of(with(R"("mock": {"slow": 1})")),
            "'slow': unknown key in mock: expected one of compile_fails_for, slow_down, after, "
            "lost_after, error_at, hangs_at, wrong_at");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Relu", "attr": {}}])")),
            "'supports'[0]: 'attr': unknown key in an operator entry: expected one of op, dtypes, "
            "where, max_rank");
  EXPECT_EQ(error_of(with(R"("lacks": [{"op": "Relu", "max_rank": 4}])")),
            "'lacks'[0]: 'max_rank': unknown key in an operator entry: expected one of op, dtypes, "
            "attr");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "where": {"group": {"most": 1}}}])")),
            "'supports'[0]: 'most': unknown key in group: expected one of min, max");
}

TEST(Profile, OperatorEntriesSayWhatIsWrong) {
  EXPECT_EQ(error_of(with(R"("supports": {})")), "'supports': expected a list, found {}");
  EXPECT_EQ(error_of(with(R"("lacks": [{"op": "Pad"}, 3])")),
            "'lacks'[1]: 'an operator entry': expected an object, found 3");
  EXPECT_EQ(error_of(with(R"("supports": [{}])")),
            "'supports'[0]: 'op': expected an operator's name, found nothing");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": 1}])")),
            "'supports'[0]: 'op': expected an operator's name, found 1");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Convolution"}])")),
            "'supports'[0]: 'op': expected an operator of the op table, found 'Convolution'");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "dtypes": ["fp31"]}])")),
            "'supports'[0]: 'dtypes': expected a dtype such as fp32, fp16 or int8, found 'fp31'");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "dtypes": "fp32"}])")),
            R"('supports'[0]: 'dtypes': expected a list of strings, found "fp32")");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "max_rank": 3.5}])")),
            "'supports'[0]: 'max_rank': expected a whole number of at least 0, found 3.5");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "where": []}])")),
            "'supports'[0]: 'where': expected an object, found []");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "where": {"group": null}}])")),
            "'supports'[0]: 'group': expected a number, a text, a list of numbers or {\"min\":, "
            "\"max\":}, found null");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "where": {"group": {"min": "1"}}}])")),
            R"('supports'[0]: 'min': expected a number, found "1")");
  EXPECT_EQ(error_of(with(R"("supports": [{"op": "Conv", "where": {"group": {}}}])")),
            "'supports'[0]: 'group': expected a range with a min or a max, found {}");
}

TEST(Profile, ListsAndRatesSayWhatIsWrong) {
  EXPECT_EQ(error_of(with(R"("only": ["Conv", 1])")),
            R"('only': expected a list of strings, found ["Conv",1])");
  EXPECT_EQ(error_of(with(R"("nodes": "conv")")),
            R"('nodes': expected a list of strings, found "conv")");
  EXPECT_EQ(error_of(with(R"("layouts": ["nwhc"])")),
            "'layouts': expected nchw, nhwc or a blocked layout such as nChw16c, found 'nwhc'");
  EXPECT_EQ(error_of(with(R"("gflops": 5)")), "'gflops': expected an object, found 5");
  EXPECT_EQ(error_of(with(R"("gflops": {"float": 5})")),
            "'gflops': expected a dtype such as fp32, fp16 or int8, found 'float'");
  EXPECT_EQ(error_of(with(R"("gflops": {"fp32": 0})")), "'fp32': expected a rate above 0, found 0");
  EXPECT_EQ(error_of(with(R"("gflops": {"fp32": "fast"})")),
            R"('fp32': expected a number of at least 0, found "fast")");
  EXPECT_EQ(error_of(with(R"("memory_gb_per_s": 0)")),
            "'memory_gb_per_s': expected a number above 0, found 0");
  EXPECT_EQ(error_of(with(R"("launch_us": -1)")),
            "'launch_us': expected a number of at least 0, found -1");
  EXPECT_EQ(error_of(with(R"("sync_us": null)")),
            "'sync_us': expected a number of at least 0, found null");
  EXPECT_EQ(error_of(with(R"("link": 8)")), "'link': expected an object, found 8");
  EXPECT_EQ(error_of(with(R"("link": {"gb_per_s": 0})")),
            "'gb_per_s': expected a number above 0, found 0");
  EXPECT_EQ(error_of(with(R"("link": {"unified": 1})")),
            "'unified': expected true or false, found 1");
  EXPECT_EQ(error_of(with(R"("memory_mib": 1e300)")),
            "'memory_mib': expected at most 1e+12, found 1e+300");
  EXPECT_EQ(error_of(with(R"("sram_kib": 1e13)")),
            "'sram_kib': expected at most 1e+12, found 1e+13");
  EXPECT_EQ(error_of(with(R"("max_partitions": -2)")),
            "'max_partitions': expected a whole number of at least 0, found -2");
  EXPECT_EQ(error_of(with(R"("max_partitions": 1e300)")),
            "'max_partitions': expected a whole number of at least 0, found 1e+300");
  EXPECT_EQ(error_of(with(R"("mock": "breaks")")),
            R"('mock': expected "init_fails" or an object, found "breaks")");
  EXPECT_EQ(error_of(with(R"("mock": {"lost_after": "x"})")),
            R"('lost_after': expected a number of at least 0, found "x")");
  EXPECT_EQ(error_of(with(R"("mock": {"compile_fails_for": "x"})")),
            R"('compile_fails_for': expected a list of strings, found "x")");
}

TEST(Profile, ErrorsOfFilesNameTheFile) {
  const testing::TempDir folder;
  const auto file = folder.write("bad.json", with(R"("launch_us": "soon")"));
  const auto device = make_simulated_device(file.string());
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().to_string(),
            file.string() + R"(: 'launch_us': expected a number of at least 0, found "soon")");
  const auto missing = make_simulated_device((folder / "none.json").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().to_string(),
            "cannot open '" + (folder / "none.json").string() + "': No such file or directory");
}

TEST(Profile, ADeviceThatCannotStart) {
  const auto device = make_simulated_device_from_text(with(R"("mock": "init_fails")"));
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(device.error().to_string(), "device 'npu' cannot start (mock: init_fails)");
}

// Every prefix of a profile is an error or a profile; none is a crash.
TEST(Profile, TruncatedFilesAreErrors) {
  const std::string whole = with(R"("supports": [{"op": "Conv", "where": {"group": 1}}])");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(error_of(whole.substr(0, size)), StartsWith("not a device profile")) << size;
}

TEST(Profile, TheProfilesOfTheTreeParse) {
  for (const char* name : {"npu", "gpu"}) {
    const auto device = make_simulated_device(
        (testing::source_dir() / "profiles" / (std::string(name) + ".json")).string());
    ASSERT_TRUE(device) << device.error().to_string();
    EXPECT_EQ((*device)->info().name, name);
    EXPECT_EQ((*device)->info().memory, name);
    EXPECT_TRUE((*device)->info().simulated);
  }
}

}  // namespace
}  // namespace tessera::backends::simulated
