# SPDX-License-Identifier: MIT
# Measures what including a header costs: processor seconds of compiling a file with that one line at -O2, less
# those of an empty file. The median of seven rounds; in each round every header has its turn.
#
#   cmake -DCOMPILER=g++ -DINCLUDE=include -DPEER_INCLUDE_DIRS=/usr/include/eigen3 -DTABLE=out.md -P this file
#
# COMPILER            the compiler
# INCLUDE             folder that holds mp/
# PEER_INCLUDE_DIRS   folders of the peers' headers; those that do not compile are left out
# TABLE               file to write the Markdown table to
# ROUNDS              7 unless given

cmake_minimum_required(VERSION 3.22)
if(NOT ROUNDS)
  set(ROUNDS 7)
endif()
# The shell's `time` knows the processor time of a command, which other programs disturb less than the clock.
find_program(bash bash REQUIRED)

cmake_path(ABSOLUTE_PATH INCLUDE)
cmake_path(ABSOLUTE_PATH TABLE)
cmake_path(GET TABLE PARENT_PATH folder)
set(folder "${folder}/compile_time")
file(MAKE_DIRECTORY "${folder}")

file(GLOB headers RELATIVE "${INCLUDE}" "${INCLUDE}/mp/*.hpp")
# These need nvcc or a foreign library.
list(FILTER headers EXCLUDE REGEX "^mp/(cuda|interop)")
set(peers immintrin.h fp16.h half.hpp cuda_fp16.h Eigen/Core)
set(include_options "-I${INCLUDE}")
# Not -isystem: the folder may be /usr/include, which must stay behind the compiler's own.
foreach(dir IN LISTS PEER_INCLUDE_DIRS)
  list(APPEND include_options -idirafter "${dir}")
endforeach()

# milliseconds_of(<variable> <source>): processor time of one compilation; empty if it fails.
function(milliseconds_of variable source)
  execute_process(
    COMMAND "${bash}" -c "TIMEFORMAT='%3U %3S'; time \"$@\"" bash
            "${COMPILER}" -std=c++20 -O2 ${include_options} -c "${source}" -o "${folder}/out.o"
    RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_QUIET)
  if(status EQUAL 0 AND output MATCHES "([0-9]+)[.]([0-9]+) ([0-9]+)[.]([0-9]+)\n*$")
    # A leading 1 keeps cmake from reading 089 as an octal number.
    math(EXPR sum "${CMAKE_MATCH_1}*1000 + 1${CMAKE_MATCH_2} + ${CMAKE_MATCH_3}*1000 + 1${CMAKE_MATCH_4} - 2000")
    set(${variable} ${sum} PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()

set(cases "an empty file" ${headers} ${peers})
set(measured "")
foreach(round RANGE 1 ${ROUNDS})
  message("compile time, round ${round} of ${ROUNDS}")
  set(index 0)
  foreach(header IN LISTS cases)
    set(source "${folder}/${index}.cpp")
    if(round EQUAL 1)
      if(index EQUAL 0)
        file(WRITE "${source}" "")
      else()
        file(WRITE "${source}" "#include <${header}>\n")
      endif()
      set(times_${index} "")
      milliseconds_of(first "${source}")
      if(first STREQUAL "")
        message("${header} does not compile here, left out")
      else()
        list(APPEND measured ${index})
      endif()
    endif()
    if(index IN_LIST measured)
      milliseconds_of(time "${source}")
      list(APPEND times_${index} ${time})
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
endforeach()

# median_of(<variable> <number>...)
function(median_of variable)
  list(SORT ARGN COMPARE NATURAL)
  math(EXPR middle "${ARGC} / 2 - 1")
  list(GET ARGN ${middle} median)
  set(${variable} ${median} PARENT_SCOPE)
endfunction()

# seconds_of(<variable> <milliseconds>): with two decimals.
function(seconds_of variable milliseconds)
  math(EXPR hundredths "(${milliseconds} + 5) / 10")
  if(hundredths LESS 0)
    set(hundredths 0)
  endif()
  math(EXPR whole "${hundredths} / 100")
  math(EXPR fraction "${hundredths} % 100 + 100")
  string(SUBSTRING ${fraction} 1 2 fraction)
  set(${variable} "${whole}.${fraction}" PARENT_SCOPE)
endfunction()

median_of(empty ${times_0})
set(table "| header | seconds |\n|---|---|\n")
set(index 0)
foreach(header IN LISTS cases)
  if(index IN_LIST measured)
    median_of(time ${times_${index}})
    if(NOT index EQUAL 0)
      math(EXPR time "${time} - ${empty}")
      set(header "`<${header}>`")
    endif()
    seconds_of(seconds ${time})
    string(APPEND table "| ${header} | ${seconds} |\n")
  endif()
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${TABLE}" "${table}")
message("${table}")
