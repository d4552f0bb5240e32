# SPDX-License-Identifier: MIT

# mp_document_blocks(<variable> <page> <folder>)
#
# Writes the C++ blocks of a page, in their order, into <folder>/<page>_1.inl, _2.inl ..., and their names into <variable>. The
# compiler names the page and its lines. What a block says that is no program:
# - a line `...` stands for what the reader has there,
# - a line that ends in `// does not compile: <why>` is left out.
# Without a folder it only counts.
function(mp_document_blocks variable page folder)
  cmake_path(GET page STEM name)
  string(TOLOWER "${name}" name)
  file(READ "${page}" rest)
  set(names "")
  set(number 0)
  set(line 1)
  while(TRUE)
    string(FIND "${rest}" "```cpp\n" start)
    if(start EQUAL -1)
      break()
    endif()
    math(EXPR start "${start} + 7")
    string(SUBSTRING "${rest}" 0 ${start} before)
    string(SUBSTRING "${rest}" ${start} -1 rest)
    string(FIND "${rest}" "\n```" end)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" 0 ${end} block)
    string(SUBSTRING "${rest}" ${end} -1 rest)
    mp_count_lines(lines "${before}")
    math(EXPR line "${line} + ${lines}")
    math(EXPR number "${number} + 1")
    list(APPEND names "${name}_${number}.inl")
    if(folder)
      string(REGEX REPLACE "(^|\n) *[.][.][.]\n" "\\1\n" code "${block}")
      string(REGEX REPLACE "[^\n]*// does not compile:[^\n]*" "" code "${code}")
      file(GENERATE OUTPUT "${folder}/${name}_${number}.inl" CONTENT "#line ${line} \"${page}\"\n${code}")
    endif()
    mp_count_lines(lines "${block}")
    math(EXPR line "${line} + ${lines}")
  endwhile()
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()

function(mp_count_lines variable text)
  string(REGEX MATCHALL "\n" ends "${text}")
  list(LENGTH ends count)
  set(${variable} ${count} PARENT_SCOPE)
endfunction()
