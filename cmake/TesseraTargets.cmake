# How the tree's targets are made. A folder is one static library, with one test program beside it:
#   tessera_folder(NAME DIRS dir... LINK target... [HEADERS set] [LABELS label...])
# Programs, each described by one line:
#   tessera_test(NAME SOURCES file... LINK target... [HEADERS set] [LABELS label...])   a GoogleTest program, and a ctest of it
#   tessera_fuzz(NAME SOURCES file... LINK target... [CORPUS dir])        a fuzz body, run for a moment by ctest
#   tessera_bench(NAME SOURCES file... LINK target...)                    a Google Benchmark program, built on demand
#   tessera_script_test(NAME COMMAND word... [LABELS label...])           a ctest that is not a GoogleTest program
# Labels that mean something: `fault` (bad input; runs under asan in .ci/run), `slow` (only in `./dev test --all`),
# `fuzz`, `package`. Each label has a target `tests_<label>` that builds its programs.

add_library(tessera_options INTERFACE)
target_compile_options(tessera_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
target_include_directories(tessera_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(tessera_options INTERFACE TESSERA_VERSION="${PROJECT_VERSION}")

add_custom_target(benchmarks)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tessera_options INTERFACE -fpch-preprocess)  # for ccache
  # Collecting garbage takes a twelfth of the compiler's time where it may not let its heap grow.
  target_compile_options(tessera_options INTERFACE "SHELL:--param ggc-min-expand=300" "SHELL:--param ggc-min-heapsize=1048576")
endif()

# Makes TARGET part of the build of each label's programs.
function(tessera_label_target TARGET)
  foreach(label IN LISTS ARGN)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${TARGET})
  endforeach()
endfunction()

# What every test of the tree gets: its labels, the code that means "skipped", and where the trees are.
function(tessera_test_properties NAME)
  set(environment TESSERA_SOURCE_DIR=${PROJECT_SOURCE_DIR} TESSERA_BUILD_DIR=${PROJECT_BINARY_DIR})
  set(timeout_s 600)
  if(TESSERA_SANITIZE)
    # Tests ask for more memory than there is.
    list(APPEND environment ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1)
    set(timeout_s 3600)
  endif()
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARGN}" SKIP_RETURN_CODE 77 TIMEOUT ${timeout_s}
    ENVIRONMENT "${environment}")
endfunction()

function(tessera_test NAME)
  cmake_parse_arguments(ARG "" "HEADERS" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE tessera_options tessera_testing ${ARG_LINK} fmt::fmt GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${NAME} PRIVATE ${TESSERA_TEST_OPTIONS})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS library)
  endif()
  target_precompile_headers(${NAME} REUSE_FROM tessera_${ARG_HEADERS}_test_headers)
  add_test(NAME ${NAME} COMMAND ${NAME})
  tessera_test_properties(${NAME} ${ARG_LABELS})
  tessera_label_target(${NAME} ${ARG_LABELS})
endfunction()

function(tessera_script_test NAME)
  cmake_parse_arguments(ARG "" "" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${NAME} COMMAND ${ARG_COMMAND})
  tessera_test_properties(${NAME} ${ARG_LABELS})
endfunction()

# One body, `int LLVMFuzzerTestOneInput(const uint8_t*, size_t)`, two engines: libFuzzer where the compiler has it (clang
# with TESSERA_SANITIZE=...,fuzzer-no-link), else the seeded generator of tests/testing/fuzz_main.cpp.
function(tessera_fuzz NAME)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LINK;LABELS" ${ARGN})
  if(TESSERA_SANITIZE MATCHES "fuzzer-no-link")
    add_executable(${NAME} ${ARG_SOURCES})
    target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${NAME} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/testing/fuzz_main.cpp)
  endif()
  target_link_libraries(${NAME} PRIVATE tessera_options tessera_testing ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY TESSERA_FUZZ_PROGRAMS "${NAME}\t${ARG_CORPUS}")
  add_test(NAME ${NAME} COMMAND ${NAME} -runs=2000 ${ARG_CORPUS})
  tessera_test_properties(${NAME} fuzz ${ARG_LABELS})
  tessera_label_target(${NAME} fuzz ${ARG_LABELS})
endfunction()

function(tessera_bench NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${NAME} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE tessera_options ${ARG_LINK} benchmark::benchmark benchmark::benchmark_main)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(benchmarks ${NAME})
endfunction()

function(tessera_folder NAME)
  cmake_parse_arguments(ARG "" "HEADERS" "DIRS;LINK;LABELS" ${ARGN})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS library)
  endif()
  set(sources)
  set(tests)
  foreach(dir IN LISTS ARG_DIRS)
    file(GLOB found CONFIGURE_DEPENDS ${dir}/*.cpp)
    foreach(file IN LISTS found)
      if(file MATCHES "_test\\.cpp$")
        list(APPEND tests ${file})
      else()
        list(APPEND sources ${file})
      endif()
    endforeach()
  endforeach()
  if(NOT sources)
    add_library(tessera_${NAME} INTERFACE)
    target_link_libraries(tessera_${NAME} INTERFACE tessera_options ${ARG_LINK})
  else()
    add_library(tessera_${NAME} STATIC ${sources})
    target_link_libraries(tessera_${NAME} PUBLIC tessera_options ${ARG_LINK})
    target_precompile_headers(tessera_${NAME} REUSE_FROM tessera_${ARG_HEADERS}_headers)
  endif()
  if(TESSERA_TESTS AND tests)
    tessera_test(tessera_${NAME}_test SOURCES ${tests} LINK tessera_${NAME} HEADERS ${ARG_HEADERS}
      LABELS ${ARG_LABELS} ${NAME})
  endif()
endfunction()
