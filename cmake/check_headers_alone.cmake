# SPDX-License-Identifier: MIT
# cmake -DCOMPILER=<clang++> -DINCLUDE=<dir> -DFLAGS=<flags> -DWRAPPERS=<dir> -DLIST=<file> -DBASES=<headers>
#   -DWORK=<dir> -P check_headers_alone.cmake
#
# Checks the syntax of every header whose wrapper (see mp_header_wrappers) in the folder WRAPPERS is named in LIST, one a
# line, as if each were compiled alone, in a quarter of the time: each is compiled on top of one of the headers BASES, which
# are precompiled in WORK, and reads only what more it includes. It sees no name that it would not see alone, because the
# base is one that it includes itself. Goes on after a failure, so that one run names every header that is broken.

cmake_policy(VERSION 3.22)

include("${CMAKE_CURRENT_LIST_DIR}/header_includes.cmake")

# compile(<wrapper>...): as many at a time as is good; what does not compile is appended to `failed`. The commands of one
# execute_process are a pipeline and run at the same time. These neither read nor write the pipe, so a batch of them keeps
# every processor busy; of a few for each, because the batch waits for its last.
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR together "4 * ${processors}")
function(compile)
  set(wrappers ${ARGN})
  while(wrappers)
    list(SUBLIST wrappers 0 ${together} batch)
    list(REMOVE_ITEM wrappers ${batch})
    set(commands "")
    foreach(wrapper IN LISTS batch)
      get_property(options GLOBAL PROPERTY "options ${wrapper}")
      list(APPEND commands COMMAND "${COMPILER}" ${FLAGS} -I "${INCLUDE}" ${options} "${wrapper}")
    endforeach()
    execute_process(${commands} RESULTS_VARIABLE results)
    foreach(wrapper result IN ZIP_LISTS batch results)
      if(NOT result EQUAL 0)
        message(NOTICE "FAILED: ${wrapper}")
        set_property(GLOBAL APPEND PROPERTY failed "${wrapper}")
      endif()
    endforeach()
  endwhile()
endfunction()

file(STRINGS "${LIST}" wrappers)
list(LENGTH wrappers count)
if(count EQUAL 0)
  message(FATAL_ERROR "no headers to check in ${LIST}")
endif()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(bases "")
foreach(header IN LISTS BASES)
  string(REGEX REPLACE "[.]hpp$" ".cpp" wrapper "${WRAPPERS}/${header}")
  string(MAKE_C_IDENTIFIER "${header}" name)
  set_property(GLOBAL PROPERTY "precompiled ${header}" "${WORK}/${name}.pch")
  set_property(GLOBAL PROPERTY "options ${wrapper}" -x c++-header -Xclang -fpch-instantiate-templates
    -o "${WORK}/${name}.pch")
  list(APPEND bases "${wrapper}")
endforeach()
compile(${bases})

# On top of the base that includes most.
list(REMOVE_ITEM wrappers ${bases})
foreach(wrapper IN LISTS wrappers)
  cmake_path(RELATIVE_PATH wrapper BASE_DIRECTORY "${WRAPPERS}" OUTPUT_VARIABLE header)
  cmake_path(REPLACE_EXTENSION header LAST_ONLY .hpp)
  mp_read_includes("${INCLUDE}" "${header}")
  get_property(includes GLOBAL PROPERTY "includes ${header}")
  set(options -fsyntax-only)
  set(most -1)
  foreach(included IN LISTS includes)
    get_property(precompiled GLOBAL PROPERTY "precompiled ${included}")
    if(precompiled AND EXISTS "${precompiled}")
      get_property(further GLOBAL PROPERTY "includes ${included}")
      list(LENGTH further length)
      if(length GREATER most)
        set(options -fsyntax-only -include-pch "${precompiled}")
        set(most ${length})
      endif()
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY "options ${wrapper}" "${options}")
endforeach()
compile(${wrappers})

file(REMOVE_RECURSE "${WORK}")
get_property(failed GLOBAL PROPERTY failed)
list(LENGTH failed failures)
if(failures)
  message(FATAL_ERROR "${failures} of ${count} headers do not compile alone with ${COMPILER}")
endif()
message(NOTICE "${count} headers compile alone with ${COMPILER}")
