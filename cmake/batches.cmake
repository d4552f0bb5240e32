# SPDX-License-Identifier: MIT

# mp_batches(<variable> <name> <source>...)
#
# Puts into <variable> what to compile in place of the sources: files that each include several of them, one after
# another in the order given, so that what all of them parse and instantiate is compiled once a batch. Each source has
# a namespace of its own there, after the headers of all; its names need not differ from those of the others. A
# source stays alone
# - where anything but comments and headers stands before its last #include,
# - where one of its lines reads `// alone: <why>`.
#
# The size of a batch is MP_TEST_BATCH sources; 1 compiles every source by itself. `auto` takes whole modules where there
# are few processors and much memory (a third of all machine code is in several sources; the largest module takes 4.5 GB),
# and elsewhere eight sources, so that all processors have something to do.
set(MP_TEST_BATCH 1 CACHE STRING "How many sources of tests are compiled together, or auto")

# mp_batch_size(<variable>)
function(mp_batch_size variable)
  set(size "${MP_TEST_BATCH}")
  if(size STREQUAL "auto")
    cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
    cmake_host_system_information(RESULT megabytes QUERY TOTAL_PHYSICAL_MEMORY)
    math(EXPR megabytes_each "${megabytes} / ${processors}")
    set(size 8)
    if(processors LESS_EQUAL 4 AND megabytes_each GREATER 5000)
      set(size 1000)
    endif()
  endif()
  set(${variable} ${size} PARENT_SCOPE)
endfunction()

function(mp_batches variable name)
  set(result "")
  set(batch "")
  set(headers "")
  set(body "")
  set(number 0)
  mp_batch_size(most)
  foreach(source IN LISTS ARGN)
    mp_includes_of(includes "${source}")
    if(most LESS_EQUAL 1 OR NOT includes)
      list(APPEND result "${source}")
      continue()
    endif()
    list(APPEND batch "${source}")
    list(APPEND headers ${includes})
    cmake_path(GET source STEM stem)
    string(MAKE_C_IDENTIFIER "${stem}" stem)
    string(APPEND body "namespace ${stem}_tests {\n#include \"${source}\"\n}\n")
    list(LENGTH batch length)
    if(length GREATER_EQUAL most)
      mp_write_batch(file "${name}" ${number} "${headers}" "${body}")
      list(APPEND result "${file}")
      math(EXPR number "${number} + 1")
      set(batch "")
      set(headers "")
      set(body "")
    endif()
  endforeach()
  if(batch)
    mp_write_batch(file "${name}" ${number} "${headers}" "${body}")
    list(APPEND result "${file}")
  endif()
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()

# mp_includes_of(<variable> <source>): the source's lines #include <...> and #include "...", the latter with whole
# paths where they are relative to it; nothing if it has to be compiled alone.
function(mp_includes_of variable source)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  set(${variable} "" PARENT_SCOPE)
  file(STRINGS "${source}" alone REGEX "^// alone: " LIMIT_COUNT 1)
  if(alone)
    return()
  endif()
  cmake_path(GET source PARENT_PATH folder)
  file(STRINGS "${source}" lines REGEX "^ *#|^[a-zA-Z]")
  set(includes "")
  set(other FALSE)
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^ *#include ([<\"])([^>\"]+)")
      set(other TRUE)
    elseif(other)
      return()
    elseif(CMAKE_MATCH_1 STREQUAL "\"" AND EXISTS "${folder}/${CMAKE_MATCH_2}")
      list(APPEND includes "#include \"${folder}/${CMAKE_MATCH_2}\"")
    else()
      list(APPEND includes "${line}")
    endif()
  endforeach()
  set(${variable} "${includes}" PARENT_SCOPE)
endfunction()

function(mp_write_batch variable name number headers body)
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "\n" headers)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/batches/${name}_${number}.cpp")
  # Unlike file(WRITE), this leaves an unchanged file and its time stamp alone.
  file(CONFIGURE OUTPUT "${file}" CONTENT "${headers}\n${body}" @ONLY)
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()
