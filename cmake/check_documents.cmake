# SPDX-License-Identifier: MIT
# cmake -DSOURCE=<dir> -P check_documents.cmake
#
# Checks that a stranger finds what the documents speak of: every link to a file is one, every page of docs/ is linked
# from the README, and that stays on a few screens.

cmake_minimum_required(VERSION 3.22)

set(most_lines 150)

file(GLOB documents RELATIVE "${SOURCE}" "${SOURCE}/*.md" "${SOURCE}/docs/*.md" "${SOURCE}/bench/results/*.md")
set(failed FALSE)
set(linked "")
foreach(document IN LISTS documents)
  file(READ "${SOURCE}/${document}" text)
  # Brackets and semicolons mean something in lists.
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

# What is about the tests is for HACKING.md.
foreach(page IN LISTS documents)
  if(page MATCHES "^docs/" AND NOT page MATCHES "^docs/(coverage|mutation)[.]md$" AND NOT page IN_LIST linked)
    message(NOTICE "README.md: has no link to ${page}")
    set(failed TRUE)
  endif()
endforeach()

file(READ "${SOURCE}/README.md" text)
string(REGEX MATCHALL "\n" ends "${text}")
list(LENGTH ends lines)
if(lines GREATER most_lines)
  message(NOTICE "README.md: has ${lines} lines; at most ${most_lines} are wanted")
  set(failed TRUE)
endif()
if(failed)
  message(FATAL_ERROR "the documents are not in order")
endif()
