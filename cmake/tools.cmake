# SPDX-License-Identifier: MIT
# Targets for the two tools that read the sources: tidy, format.

file(GLOB_RECURSE mp_own_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/include/mp/*.hpp" "${PROJECT_SOURCE_DIR}/include/mp/*.inl"
  "${PROJECT_SOURCE_DIR}/tests/*.[ch]pp" "${PROJECT_SOURCE_DIR}/tests/*.cu"
  "${PROJECT_SOURCE_DIR}/bench/*.[ch]pp" "${PROJECT_SOURCE_DIR}/bench/*.cu"
  "${PROJECT_SOURCE_DIR}/examples/*.[ch]pp" "${PROJECT_SOURCE_DIR}/examples/*.cu"
  "${PROJECT_SOURCE_DIR}/python/src/*.[ch]pp")

# Another version of clang-format lays the code out differently, so only the one the project uses counts.
find_program(MP_CLANG_FORMAT NAMES clang-format-19)
if(MP_CLANG_FORMAT)
  add_custom_target(format
    COMMAND "${MP_CLANG_FORMAT}" -i ${mp_own_sources}
    COMMENT "Formatting the sources" VERBATIM)
endif()

# Reads every C++ file of this build that lies in the source tree; headers are checked through them.
find_program(MP_RUN_CLANG_TIDY NAMES run-clang-tidy-14 run-clang-tidy)
if(MP_RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND "${MP_RUN_CLANG_TIDY}" -quiet -p "${PROJECT_BINARY_DIR}"
            "^${PROJECT_SOURCE_DIR}/(tests|examples|bench)/.*\\.cpp$"
    USES_TERMINAL VERBATIM)
endif()

# The reference, a static site of every public entity and all pages: build/<preset>/reference/index.html
find_program(MP_DOXYGEN doxygen)
find_program(MP_AWK awk)
if(MP_DOXYGEN AND MP_AWK)
  set(mp_reference_command "${CMAKE_COMMAND}" "-DDOXYGEN=${MP_DOXYGEN}" "-DAWK=${MP_AWK}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
    "-DOUTPUT=${PROJECT_BINARY_DIR}" "-DPROJECT_VERSION=${PROJECT_VERSION}" -P "${PROJECT_SOURCE_DIR}/cmake/reference.cmake")
  add_custom_target(reference COMMAND ${mp_reference_command} USES_TERMINAL VERBATIM)
endif()
