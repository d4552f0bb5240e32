# SPDX-License-Identifier: MIT
# Measures compile times: processor seconds of the compiler at -O2, the median of ROUNDS in each of which every row
# has its turn. There are two tables: what including a header costs, over an empty file; and whole sources, in headers
# alone and with the compiled part, also as multiples of a source that only uses std::regex, with the bytes of code in
# their objects.
#
#   cmake -DCOMPILER=g++ -DINCLUDE=include -DPEER_INCLUDE_DIRS=/usr/include/eigen3 -DTABLE=out.md
#         -DSOURCES_TABLE=sources.md -P this file
#
# COMPILER            the compiler
# INCLUDE             folder that holds mp/
# PEER_INCLUDE_DIRS   folders of the peers' headers; those that do not compile are left out
# TABLE               file to write the Markdown table of headers to; without it there is none
# SOURCES_TABLE       the same for sources
# NVCC                nvcc, for the row of a product on a CUDA device, for sm_90a; without it there is none
# ROUNDS              7 for headers and 3 for sources unless given

cmake_minimum_required(VERSION 3.22)
# The shell's `time` knows the processor time of a command, which other programs disturb less than the clock.
find_program(bash bash REQUIRED)
find_program(size size REQUIRED)

cmake_path(ABSOLUTE_PATH INCLUDE)
set(options -std=c++20 -O2 "-I${INCLUDE}")
# Not -isystem: the folder may be /usr/include, which must stay behind the compiler's own.
foreach(dir IN LISTS PEER_INCLUDE_DIRS)
  list(APPEND options -idirafter "${dir}")
endforeach()
if(TABLE)
  set(folder "${TABLE}")
else()
  set(folder "${SOURCES_TABLE}")
endif()
cmake_path(ABSOLUTE_PATH folder)
cmake_path(GET folder PARENT_PATH folder)
set(folder "${folder}/compile_time")
file(MAKE_DIRECTORY "${folder}")

# milliseconds_of(<variable> <object> <source> <command>...): processor time of one compilation; empty if it fails.
function(milliseconds_of variable object source)
  execute_process(
    COMMAND "${bash}" -c "TIMEFORMAT='%3U %3S'; time \"$@\"" bash
            ${ARGN} -c "${source}" -o "${object}"
    RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_QUIET)
  if(status EQUAL 0 AND output MATCHES "([0-9]+)[.]([0-9]+) ([0-9]+)[.]([0-9]+)\n*$")
    # A leading 1 keeps cmake from reading 089 as an octal number.
    math(EXPR sum "${CMAKE_MATCH_1}*1000 + 1${CMAKE_MATCH_2} + ${CMAKE_MATCH_3}*1000 + 1${CMAKE_MATCH_4} - 2000")
    set(${variable} ${sum} PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()

# median_of(<variable> <number>...)
function(median_of variable)
  list(SORT ARGN COMPARE NATURAL)
  math(EXPR middle "${ARGC} / 2 - 1")
  list(GET ARGN ${middle} median)
  set(${variable} ${median} PARENT_SCOPE)
endfunction()

# measure(<rounds> <row>...): compiles source_<row> with options_<row> to <folder>/<row>.o in each round, by
# compiler_<row> where there is one. Sets time_<row> to the median of the milliseconds, and `measured` to the rows that compile here.
function(measure rounds)
  if(ROUNDS)
    set(rounds ${ROUNDS})
  endif()
  set(measured ${ARGN})
  foreach(round RANGE 1 ${rounds})
    message("compile time, round ${round} of ${rounds}")
    foreach(row IN LISTS measured)
      set(command "${COMPILER}" ${options})
      if(compiler_${row})
        set(command ${compiler_${row}})
      endif()
      milliseconds_of(time "${folder}/${row}.o" "${source_${row}}" ${command} ${options_${row}})
      if(time STREQUAL "")
        message("${name_${row}} does not compile here, left out")
        list(REMOVE_ITEM measured ${row})
      else()
        list(APPEND times_${row} ${time})
      endif()
    endforeach()
  endforeach()
  foreach(row IN LISTS measured)
    median_of(time ${times_${row}})
    set(time_${row} ${time} PARENT_SCOPE)
  endforeach()
  set(measured ${measured} PARENT_SCOPE)
endfunction()

# hundredths_of(<variable> <numerator> <denominator>): the quotient with two decimals, at least zero.
function(hundredths_of variable numerator denominator)
  math(EXPR hundredths "(100 * (${numerator}) + ${denominator} / 2) / ${denominator}")
  if(hundredths LESS 0)
    set(hundredths 0)
  endif()
  math(EXPR whole "${hundredths} / 100")
  math(EXPR fraction "${hundredths} % 100 + 100")
  string(SUBSTRING ${fraction} 1 2 fraction)
  set(${variable} "${whole}.${fraction}" PARENT_SCOPE)
endfunction()

if(TABLE)
  file(GLOB headers RELATIVE "${INCLUDE}" "${INCLUDE}/mp/*.hpp")
  # These need nvcc or a foreign library.
  list(FILTER headers EXCLUDE REGEX "^mp/(cuda|interop)")
  set(peers immintrin.h fp16.h half.hpp cuda_fp16.h Eigen/Core)
  set(name_empty "an empty file")
  set(source_empty "${folder}/empty.cpp")
  file(WRITE "${source_empty}" "")
  set(rows empty)
  foreach(header IN LISTS headers peers)
    string(MAKE_C_IDENTIFIER "${header}" row)
    list(APPEND rows ${row})
    set(name_${row} "`<${header}>`")
    set(source_${row} "${folder}/${row}.cpp")
    file(WRITE "${source_${row}}" "#include <${header}>\n")
  endforeach()
  measure(7 ${rows})
  set(table "| header | seconds |\n|---|---|\n")
  foreach(row IN LISTS measured)
    set(time ${time_${row}})
    if(NOT row STREQUAL "empty")
      math(EXPR time "${time} - ${time_empty}")
    endif()
    hundredths_of(seconds ${time} 1000)
    string(APPEND table "| ${name_${row}} | ${seconds} |\n")
  endforeach()
  file(WRITE "${TABLE}" "${table}")
  message("${table}")
endif()

if(SOURCES_TABLE)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH root)
  set(sources bench/compile_time/std_regex.cpp bench/compile_time/elementwise.cpp
    bench/compile_time/linear_without_autocast.cpp bench/compile_time/linear_in_region.cpp
    bench/compile_time/linear_layer_in_region.cpp bench/compile_time/linear_eight_type_mixes.cpp
    examples/quickstart.cpp bench/torch/gpt.cpp tests/nn/ops/linear.cpp)
  if(NVCC)
    list(APPEND sources bench/compile_time/product_on_stream.cu)
  endif()
  set(rows "")
  foreach(source IN LISTS sources)
    string(MAKE_C_IDENTIFIER "${source}" row)
    # Each in headers alone, and as for mp::compiled.
    list(APPEND rows ${row} ${row}_compiled)
    foreach(form IN ITEMS ${row} ${row}_compiled)
      set(name_${form} "`${source}`")
      set(source_${form} "${root}/${source}")
    endforeach()
    set(options_${row}_compiled -DMP_COMPILED)
  endforeach()
  # As tests are compiled.
  foreach(row IN ITEMS tests_nn_ops_linear_cpp tests_nn_ops_linear_cpp_compiled)
    list(APPEND options_${row} -Og "-I${root}/tests")
    string(APPEND name_${row} ", -Og")
  endforeach()
  foreach(row IN ITEMS bench_compile_time_product_on_stream_cu bench_compile_time_product_on_stream_cu_compiled)
    set(compiler_${row} "${NVCC}" -std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a "-I${INCLUDE}")
    string(APPEND name_${row} ", nvcc for sm_90a")
  endforeach()
  # What all of these share, once.
  set(source_compiled_part "${folder}/compiled_part.cpp")
  set(name_compiled_part "the compiled part, once")
  set(options_compiled_part -DMP_COMPILED)
  file(WRITE "${source_compiled_part}" "#define MP_COMPILED_SOURCE\n#include <mp/compiled.hpp>\n")
  list(REMOVE_ITEM rows bench_compile_time_std_regex_cpp_compiled)
  measure(3 ${rows} compiled_part)
  # cells_of(<variable> <row>)
  function(cells_of variable row)
    set(${variable} " | | |" PARENT_SCOPE)
    if(row IN_LIST measured)
      hundredths_of(seconds ${time_${row}} 1000)
      hundredths_of(ratio ${time_${row}} ${time_bench_compile_time_std_regex_cpp})
      execute_process(COMMAND "${size}" "${folder}/${row}.o" OUTPUT_VARIABLE sizes COMMAND_ERROR_IS_FATAL ANY)
      string(REGEX MATCH "\n *([0-9]+)" matched "${sizes}")
      set(${variable} " ${seconds} | ${ratio} | ${CMAKE_MATCH_1} |" PARENT_SCOPE)
    endif()
  endfunction()
  string(CONCAT table "| source | headers, s | times std::regex | bytes of code | mp::compiled, s | times std::regex | bytes |\n"
    "|---|---:|---:|---:|---:|---:|---:|\n")
  foreach(row IN LISTS rows)
    if(NOT row MATCHES "_compiled$" AND row IN_LIST measured)
      cells_of(of_headers ${row})
      cells_of(of_compiled ${row}_compiled)
      string(APPEND table "| ${name_${row}} |${of_headers}${of_compiled}\n")
    endif()
  endforeach()
  cells_of(of_compiled compiled_part)
  string(APPEND table "| ${name_compiled_part} | | | |${of_compiled}\n")
  file(WRITE "${SOURCES_TABLE}" "${table}")
  message("${table}")
endif()
