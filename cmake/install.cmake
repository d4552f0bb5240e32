# SPDX-License-Identifier: MIT
# Installs the headers with a CMake package and a pkg-config file. Nothing here depends on the processor, so
# all of it goes under include/ and share/, and the package may be used for any architecture.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(mp_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/mp")
set(mp_pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")

target_include_directories(mp INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/mp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inl" PATTERN "*.cuh")

install(TARGETS mp EXPORT mp-targets)
install(EXPORT mp-targets NAMESPACE mp:: DESTINATION "${mp_package_dir}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/mp-config.cmake.in" "${PROJECT_BINARY_DIR}/mp-config.cmake"
  INSTALL_DESTINATION "${mp_package_dir}")
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mp-config-version.cmake"
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/mp-config.cmake" "${PROJECT_BINARY_DIR}/mp-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/compiled.cmake"
  DESTINATION "${mp_package_dir}")

# The pkg-config file finds the headers from its own place, so that an installed tree can be moved.
file(RELATIVE_PATH mp_pc_to_prefix "/prefix/${mp_pkgconfig_dir}" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/mp.pc.in" "${PROJECT_BINARY_DIR}/mp.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/mp.pc" DESTINATION "${mp_pkgconfig_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
