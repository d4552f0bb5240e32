# SPDX-License-Identifier: MIT
# Installs mp, moves the installed tree, and builds and runs a small project against it: once with
# find_package, once with nothing but the flags that pkg-config gives; with -DCOMPILED=ON, with mp::compiled.

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

set(prefix "${WORK_DIR}/moved")
set(consumer "${CMAKE_CURRENT_LIST_DIR}/installed")
file(REMOVE_RECURSE "${WORK_DIR}")

run("${CMAKE_COMMAND}" --install "${MP_BINARY_DIR}" --prefix "${WORK_DIR}/staging")
file(RENAME "${WORK_DIR}/staging" "${prefix}")

# Every header is there, and no installed file remembers the folders it was made in.
file(GLOB_RECURSE wanted RELATIVE "${MP_SOURCE_DIR}/include" "${MP_SOURCE_DIR}/include/mp/*")
file(GLOB_RECURSE found RELATIVE "${prefix}/${INCLUDE_DIR}" "${prefix}/${INCLUDE_DIR}/mp/*")
if(NOT wanted STREQUAL found)
  message(FATAL_ERROR "the installed headers are\n  ${found}\nand not\n  ${wanted}")
endif()
file(GLOB_RECURSE package_files "${prefix}/${DATA_DIR}/*")
foreach(file IN LISTS package_files)
  file(READ "${file}" text)
  foreach(folder IN ITEMS "${MP_SOURCE_DIR}" "${WORK_DIR}")
    string(FIND "${text}" "${folder}" position)
    if(NOT position EQUAL -1)
      message(FATAL_ERROR "${file} names ${folder}")
    endif()
  endforeach()
endforeach()

# Tools that were built have a page in the manual.
file(GLOB tools "${prefix}/${BIN_DIR}/mp-*")
foreach(tool IN LISTS tools)
  cmake_path(GET tool STEM name)
  file(READ "${prefix}/${MAN_DIR}/man1/${name}.1" page)
  if(NOT page MATCHES "^[.]TH ${name} 1 .*[.]SH NAME\n${name} .*[.]SH SYNOPSIS\n.*[.]SH OPTIONS\n.*[.]B .-.-help\n")
    message(FATAL_ERROR "the man page of ${name} is\n${page}")
  endif()
endforeach()

run("${CMAKE_COMMAND}" -S "${consumer}" -B "${WORK_DIR}/build" -G "${GENERATOR}" ${OPTIONS}
  "-DCMAKE_PREFIX_PATH=${prefix}")
if(COMPILED)
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build" --target consumer_of_compiled)
  run("${WORK_DIR}/build/consumer_of_compiled")
  return()
endif()
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/consumer")
message(NOTICE "find_package: works")

if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} "${prefix}/${DATA_DIR}/pkgconfig")
  execute_process(COMMAND "${PKG_CONFIG}" --modversion mp
    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT version STREQUAL MP_VERSION)
    message(FATAL_ERROR "pkg-config says that mp is version ${version}; it is ${MP_VERSION}")
  endif()
  execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs mp
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  # These headers are the project's own for the compiler, and it has nothing to say about them.
  run("${COMPILER}" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wfloat-equal
    -Wdouble-promotion -Werror "${consumer}/main.cpp" ${flags} -o "${WORK_DIR}/by_pkg_config")
  run("${WORK_DIR}/by_pkg_config")
  message(NOTICE "pkg-config: works")
else()
  message(NOTICE "pkg-config: not installed, not checked")
endif()
