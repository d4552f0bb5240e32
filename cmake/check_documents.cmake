# SPDX-License-Identifier: MIT
# cmake -DSOURCE=<dir> -P check_documents.cmake
#
# Checks that links of documents lead to files; that README.md links every page of docs/ and is short; that every code block
# is in a test; that all documents name one version; that files exist which documents and comments name; and the
# form of CHANGELOG.md.

cmake_minimum_required(VERSION 3.22)

set(most_lines 150)

file(GLOB documents RELATIVE "${SOURCE}" "${SOURCE}/*.md" "${SOURCE}/docs/*.md" "${SOURCE}/bench/results/*.md")
set(failed FALSE)
set(linked "")
foreach(document IN LISTS documents)
  file(READ "${SOURCE}/${document}" text)
  # Brackets and semicolons have a meaning in CMake's lists.
  string(REPLACE "](" "<link:" text "${text}")
  string(REGEX REPLACE "[][;]" " " text "${text}")
  cmake_path(GET document PARENT_PATH folder)
  string(REGEX MATCHALL "(<link:|src=\"|href=\")[A-Za-z0-9_./-]+[)\"#]" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^(<link:|src=\"|href=\")(.*).$" "\\2" target "${link}")
    cmake_path(APPEND SOURCE "${folder}" "${target}" OUTPUT_VARIABLE path)
    cmake_path(NORMAL_PATH path)
    if(NOT EXISTS "${path}")
      message(NOTICE "${document}: there is no ${target}")
      set(failed TRUE)
    endif()
    if(document STREQUAL "README.md")
      list(APPEND linked "${target}")
    endif()
  endforeach()
endforeach()

# HACKING.md links the page about the tests.
foreach(page IN LISTS documents)
  if(page MATCHES "^docs/" AND NOT page MATCHES "^docs/mutation[.]md$" AND NOT page IN_LIST linked)
    message(NOTICE "README.md: has no link to ${page}")
    set(failed TRUE)
  endif()
endforeach()

include("${CMAKE_CURRENT_LIST_DIR}/document_blocks.cmake")
set(tests "")
file(GLOB sources "${SOURCE}/tests/documents/*.cpp" "${SOURCE}/tests/device/cuda/documents.cu"
  "${SOURCE}/tests/device/cuda/compiled/calls.cpp")
foreach(source IN LISTS sources)
  file(READ "${source}" text)
  string(APPEND tests "${text}")
endforeach()
foreach(document IN LISTS documents)
  mp_document_blocks(blocks "${SOURCE}/${document}" "")
  foreach(block IN LISTS blocks)
    string(FIND "${tests}" "#include \"${block}\"" found)
    if(found EQUAL -1)
      message(NOTICE "${document}: no test in tests/documents includes ${block}")
      set(failed TRUE)
    endif()
  endforeach()
endforeach()

file(STRINGS "${SOURCE}/include/mp/config.hpp" version REGEX "^#define MP_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
string(REGEX MATCHALL "[0-9]+" version "${version}")
list(JOIN version "." version)
foreach(place IN ITEMS "CHANGELOG.md|\n## .${version}. - " "packaging/debian/changelog|\\(${version}-[0-9]+\\)"
    "packaging/vcpkg/mp-mixed-precision/vcpkg.json|\"version\": \"${version}\"" "docs/CITATION.cff|\nversion: ${version}\n")
  string(REGEX MATCH "^([^|]+)[|](.+)$" matched "${place}")
  set(file "${CMAKE_MATCH_1}")
  set(expected "${CMAKE_MATCH_2}")
  file(READ "${SOURCE}/${file}" text)
  if(NOT text MATCHES "${expected}")
    message(NOTICE "${file}: is not of version ${version}")
    set(failed TRUE)
  endif()
endforeach()

file(READ "${SOURCE}/README.md" text)
string(REGEX MATCHALL "\n" ends "${text}")
list(LENGTH ends lines)
if(lines GREATER most_lines)
  message(NOTICE "README.md: has ${lines} lines, more than ${most_lines}")
  set(failed TRUE)
endif()

include("${CMAKE_CURRENT_LIST_DIR}/check_file_names.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/check_changelog.cmake")
if(failed)
  message(FATAL_ERROR "the documents are not in order")
endif()
