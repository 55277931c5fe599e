# The sets of headers that tests of one floor of the tree share, precompiled.

set(graph_headers <array> <filesystem> <fstream> <limits> <sstream> <ops/kernel_util.h> <ops/op_table.h> <ir/infer.h> <ir/text.h>
  <ir/verify.h> <testing/interpret.h> <testing/op_testing.h> <testing/random.h> <testing/temp_dir.h>)
set(device_headers ${graph_headers} <artefact/read/program_image.h> <backends/compile_interface.h> <backends/run_interface.h>)
set(program_headers ${device_headers} <nlohmann/json.hpp> <compiler/compile.h> <import/import.h> <runtime/executor.h> <testing/shared_data.h>)

tessera_test_headers(library LINK tessera_base)
tessera_test_headers(graph LINK tessera_ir HEADERS ${graph_headers})
tessera_test_headers(device LINK tessera_compile_common HEADERS ${device_headers})
tessera_test_headers(program LINK tessera_compiler nlohmann_json::nlohmann_json HEADERS ${program_headers})
