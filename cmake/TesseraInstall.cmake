# What `cmake --install` leaves behind: the command, device profiles, include/tessera/, and one shared library with the whole run side (nothing of the
# compiler), found through find_package(tessera) as tessera::runtime.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(tessera_shared SHARED
  $<TARGET_OBJECTS:tessera_base> $<TARGET_OBJECTS:tessera_runtime> $<TARGET_OBJECTS:tessera_backends_run>)
set_target_properties(tessera_shared PROPERTIES
  OUTPUT_NAME tessera EXPORT_NAME runtime LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tessera.map)
target_link_libraries(tessera_shared PRIVATE tessera_runtime tessera_backends_run PUBLIC tl::expected)
target_link_options(tessera_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tessera.map)
target_compile_features(tessera_shared PUBLIC cxx_std_20)
target_include_directories(tessera_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
install(TARGETS tessera_shared EXPORT tessera LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT tessera NAMESPACE tessera:: FILE tessera-targets.cmake DESTINATION ${package_dir})

write_basic_package_version_file(${PROJECT_BINARY_DIR}/tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tessera-config.cmake.in ${PROJECT_BINARY_DIR}/tessera-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tessera-config.cmake ${PROJECT_BINARY_DIR}/tessera-config-version.cmake DESTINATION ${package_dir})
if(TARGET tessera_command)
  install(TARGETS tessera_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
