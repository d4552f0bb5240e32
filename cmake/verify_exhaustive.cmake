# SPDX-License-Identifier: MIT
# cmake -DRUNS=<file> -DCOMPILER=<text> -DTABLE=<file> -P verify_exhaustive.cmake
#
# Runs every command of RUNS, one a line, and writes a table of what was run, how it ended and how long it took.
# Fails, after all of them, if one failed.

cmake_minimum_required(VERSION 3.22)
file(STRINGS "${RUNS}" commands)
string(TIMESTAMP today "%Y-%m-%d" UTC)
set(processor "unknown processor")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo models REGEX "^model name" LIMIT_COUNT 1)
  string(REGEX REPLACE "^[^:]*: *" "" processor "${models}")
endif()
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)

set(rows "")
set(failed 0)
foreach(command IN LISTS commands)
  separate_arguments(words UNIX_COMMAND "${command}")
  list(GET words 0 program)
  list(REMOVE_AT words 0)
  cmake_path(GET program FILENAME name)
  list(JOIN words " " arguments)
  message(NOTICE "${name} ${arguments}")
  string(TIMESTAMP start "%s" UTC)
  execute_process(COMMAND "${program}" ${words} RESULT_VARIABLE result)
  string(TIMESTAMP end "%s" UTC)
  math(EXPR seconds "${end} - ${start}")
  if(result EQUAL 0)
    set(outcome "all right")
  else()
    set(outcome "**failed**")
    math(EXPR failed "${failed} + 1")
  endif()
  string(STRIP "${name} ${arguments}" title)
  string(APPEND rows "| `${title}` | ${outcome} | ${seconds} s |\n")
endforeach()

file(WRITE "${TABLE}"
  "# The exhaustive run\n\n"
  "${today}, ${COMPILER}, ${processors} processors (${processor}). Made by\n"
  "`cmake --preset exhaustive && cmake --build build/exhaustive --target verify-exhaustive-results`; the sources in\n"
  "`tests/*/exhaustive/` say what each program compares with what.\n\n"
  "| program | result | time |\n|---|---|---|\n${rows}")
message(NOTICE "The table is in ${TABLE}")
if(failed)
  message(FATAL_ERROR "${failed} exhaustive programs failed")
endif()
