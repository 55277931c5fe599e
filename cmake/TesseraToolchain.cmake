# Settings of the compiler that hold for every target of the tree, generated code included.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# -O3 buys nothing here: what is hot is vectorised by hand or lives in a library.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Paths inside of programs and messages are relative to the tree, so that two folders give the same bytes.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TESSERA_CCACHE ccache)
  if(TESSERA_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${TESSERA_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${TESSERA_CCACHE})
  endif()
endif()

if(TESSERA_SANITIZE)
  add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
endif()
