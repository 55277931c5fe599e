# Headers that most sources of a floor of the tree read, parsed once for all of them: a set for its libraries, and with the tests' own for
# its tests. clang-tidy sees the sources without them, so that each still includes what it uses.
#   tessera_header_set(NAME HEADERS header... TEST_HEADERS header... LINK target...)

set(TESSERA_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)  # tests are compiled more often than they run

function(tessera_header_set NAME)
  cmake_parse_arguments(ARG "" "" "HEADERS;TEST_HEADERS;LINK" ${ARGN})
  add_library(tessera_${NAME}_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
  target_link_libraries(tessera_${NAME}_headers PRIVATE tessera_options ${ARG_LINK} fmt::fmt tl::expected)
  target_precompile_headers(tessera_${NAME}_headers PRIVATE ${ARG_HEADERS})
  if(TESSERA_TESTS)
    add_library(tessera_${NAME}_test_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
    set_target_properties(tessera_${NAME}_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_link_libraries(tessera_${NAME}_test_headers PRIVATE tessera_options tessera_testing ${ARG_LINK} fmt::fmt tl::expected
      GTest::gmock GTest::gtest)
    target_compile_options(tessera_${NAME}_test_headers PRIVATE -fPIE ${TESSERA_TEST_OPTIONS})  # as programs have it
    target_precompile_headers(tessera_${NAME}_test_headers PRIVATE ${ARG_HEADERS} <cmath> <gmock/gmock.h> <gtest/gtest.h> ${ARG_TEST_HEADERS})
  endif()
endfunction()

set(library_headers <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <vector> <fmt/format.h>
  <tl/expected.hpp>)
set(graph_headers ${library_headers} <ir/ir.h> <ops/groups.h> <ops/infer_util.h> <ops/kernel_util.h> <ops/schema_util.h>)
set(graph_test_headers <array> <filesystem> <fstream> <limits> <sstream> <ops/op_table.h> <ir/infer.h> <ir/text.h> <ir/verify.h>
  <testing/interpret.h> <testing/op_testing.h> <testing/random.h> <testing/temp_dir.h>)
set(device_headers ${graph_headers} <artefact/read/program_image.h> <backends/compile_interface.h> <backends/run_interface.h>)
set(program_headers ${device_headers} <nlohmann/json.hpp> <plan/target.h> <report/report.h>)
set(program_test_headers ${graph_test_headers} <compiler/compile.h> <import/import.h> <runtime/executor.h> <testing/shared_data.h>)

tessera_header_set(library HEADERS ${library_headers})
tessera_header_set(graph HEADERS ${graph_headers} TEST_HEADERS ${graph_test_headers})
tessera_header_set(device HEADERS ${device_headers} TEST_HEADERS ${graph_test_headers})
tessera_header_set(program HEADERS ${program_headers} TEST_HEADERS ${program_test_headers} LINK nlohmann_json::nlohmann_json)
