# SPDX-License-Identifier: MIT
# cmake -DCOMPILER=<c++> -DINCLUDE=<dir> -DFLAGS=<flags> -DLIST=<file> -P check_headers.cmake
#
# Checks the syntax of every source file named in LIST, one a line. Goes on after a failure, so that one
# run names every header that is broken.

file(STRINGS "${LIST}" sources)
list(LENGTH sources count)
if(count EQUAL 0)
  message(FATAL_ERROR "no headers to check in ${LIST}")
endif()

# The commands of one execute_process are a pipeline and run at the same time. These neither read nor write
# the pipe, so a batch of them keeps every processor busy; of a few for each, because the batch waits for its last.
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR together "4 * ${processors}")
set(failed 0)
while(sources)
  list(SUBLIST sources 0 ${together} batch)
  list(REMOVE_ITEM sources ${batch})
  set(commands "")
  foreach(source IN LISTS batch)
    list(APPEND commands COMMAND "${COMPILER}" ${FLAGS} -I "${INCLUDE}" -fsyntax-only "${source}")
  endforeach()
  execute_process(${commands} RESULTS_VARIABLE results)
  foreach(source result IN ZIP_LISTS batch results)
    if(NOT result EQUAL 0)
      math(EXPR failed "${failed} + 1")
      message(NOTICE "FAILED: ${source}")
    endif()
  endforeach()
endwhile()
if(failed)
  message(FATAL_ERROR "${failed} of ${count} sources do not compile with ${COMPILER}")
endif()
message(NOTICE "${count} sources compile with ${COMPILER}")
