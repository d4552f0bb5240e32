# SPDX-License-Identifier: MIT
# cmake -DCOMPILER=<c++> -DINCLUDE=<dir> -DFLAGS=<flags> -DLIST=<file> -P check_headers.cmake
#
# Checks the syntax of every source file named in LIST, one a line, with a compiler other than the one the
# build uses. Goes on after a failure, so that one run names every header that is broken.

file(STRINGS "${LIST}" sources)
list(LENGTH sources count)
if(count EQUAL 0)
  message(FATAL_ERROR "no headers to check in ${LIST}")
endif()
set(failed 0)
foreach(source IN LISTS sources)
  execute_process(
    COMMAND "${COMPILER}" ${FLAGS} -I "${INCLUDE}" -fsyntax-only "${source}"
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    math(EXPR failed "${failed} + 1")
    message(NOTICE "FAILED: ${source}")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "${failed} of ${count} headers do not compile alone with ${COMPILER}")
endif()
message(NOTICE "${count} headers compile alone with ${COMPILER}")
