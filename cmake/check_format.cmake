# SPDX-License-Identifier: MIT
# cmake -DCLANG_FORMAT=<program> -DFILES=<list> -P check_format.cmake
#
# Names the files that clang-format would change, a line each; its own output has a paragraph a character.

execute_process(COMMAND "${CLANG_FORMAT}" --dry-run -Werror ${FILES} RESULT_VARIABLE result ERROR_QUIET)
if(result EQUAL 0)
  return()
endif()

set(unformatted 0)
foreach(file IN LISTS FILES)
  execute_process(COMMAND "${CLANG_FORMAT}" --dry-run -Werror "${file}" RESULT_VARIABLE result ERROR_QUIET)
  if(NOT result EQUAL 0)
    math(EXPR unformatted "${unformatted} + 1")
    message(NOTICE "not formatted: ${file}")
  endif()
endforeach()
message(FATAL_ERROR "${unformatted} files are not formatted; cmake --build --preset format mends them")
