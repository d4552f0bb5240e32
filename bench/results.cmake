# SPDX-License-Identifier: MIT
# Puts measured tables into a copy of results/README.md: whatever stands there between the lines
# <!-- begin NAME --> and <!-- end NAME --> is replaced. NAME is `machine`, or a file of TABLES without its .md.
#
# TABLES            folder with the tables
# README            the text with the marks
# OUTPUT            where the result goes; may be README itself
# COMPILER, OPTIONS_GENERIC, OPTIONS_NATIVE   how the programs were built, for the line on the machine
# OPTIONS_AVX2      what keeps those of the tables for AVX2 from more

cmake_minimum_required(VERSION 3.22)

# --- the machine

set(processor "unknown processor")
set(features "")
if(EXISTS /proc/cpuinfo)
  file(READ /proc/cpuinfo cpuinfo)
  if(cpuinfo MATCHES "model name[ \t]*: ([^\n]*)")
    set(processor "${CMAKE_MATCH_1}")
  endif()
  if(cpuinfo MATCHES "flags[ \t]*: ([^\n]*)")
    string(REPLACE " " ";" flags "${CMAKE_MATCH_1}")
    foreach(flag f16c avx2 fma avx512f avx512_bf16 avx512_fp16 amx_bf16)
      if(flag IN_LIST flags)
        list(APPEND features ${flag})
      endif()
    endforeach()
  endif()
endif()
list(JOIN features " " features)
set(caches "")
foreach(index RANGE 0 3)
  set(cache "/sys/devices/system/cpu/cpu0/cache/index${index}")
  if(EXISTS "${cache}/size")
    file(STRINGS "${cache}/size" size)
    file(STRINGS "${cache}/level" level)
    file(STRINGS "${cache}/type" type)
    if(NOT type STREQUAL "Instruction")
      list(APPEND caches "L${level} ${size}")
    endif()
  endif()
endforeach()
list(JOIN caches ", " caches)
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
set(load "")
if(EXISTS /proc/loadavg)
  file(READ /proc/loadavg loadavg)
  if(loadavg MATCHES "^([0-9.]+) ([0-9.]+) ([0-9.]+)")
    set(load ", load average of the last 15 minutes ${CMAKE_MATCH_3}")
  endif()
endif()
string(TIMESTAMP today "%Y-%m-%d")
set(machine "${processor}, ${processors} processors (${features}), ${caches}; ${COMPILER}, \
generic is `${OPTIONS_GENERIC}`, native is `${OPTIONS_NATIVE}`, avx2 is generic with `${OPTIONS_AVX2}`; ${today}${load}.\n")

# --- filling in

file(READ "${README}" text)

function(fill_in name contents)
  set(begin "<!-- begin ${name} -->\n")
  set(end "<!-- end ${name} -->")
  string(FIND "${text}" "${begin}" first)
  string(FIND "${text}" "${end}" last)
  if(first EQUAL -1 OR last LESS first)
    message(WARNING "${README} has no place for ${name}")
    return()
  endif()
  string(LENGTH "${begin}" length)
  math(EXPR first "${first} + ${length}")
  string(SUBSTRING "${text}" 0 ${first} before)
  string(SUBSTRING "${text}" ${last} -1 after)
  set(text "${before}\n${contents}\n${after}" PARENT_SCOPE)
endfunction()

fill_in(machine "${machine}")
file(GLOB tables "${TABLES}/*.md")
list(FILTER tables EXCLUDE REGEX "/README[.]md$")
foreach(table IN LISTS tables)
  cmake_path(GET table STEM name)
  file(READ "${table}" contents)
  string(STRIP "${contents}" contents)
  fill_in(${name} "${contents}\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
message("The tables are in ${OUTPUT}")
