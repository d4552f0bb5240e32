# SPDX-License-Identifier: MIT
# cmake -DINCLUDE=<dir> -P check_includes.cmake
#
# Checks that mechanisms do not lean on what is made of them: only the headers named here include those of a room.
# The names are regular expressions for paths below INCLUDE.

set(rooms compat report training parallel)
set(users_of_compat "^mp/(compat|report)/|^mp/(loss_scaling|mp)[.]hpp$")
set(users_of_report "^mp/report/")
set(users_of_training "^mp/(training|parallel|interop)/|^mp/(training|mp)[.]hpp$")
set(users_of_parallel "^mp/(parallel|interop)/|^mp/(parallel|mp)[.]hpp$")

file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/mp/*.hpp" "${INCLUDE}/mp/*.inl")
if(NOT headers)
  message(FATAL_ERROR "no headers in ${INCLUDE}")
endif()
set(failed FALSE)
foreach(header IN LISTS headers)
  file(STRINGS "${INCLUDE}/${header}" lines REGEX "^#include [<\"]mp/(compat|report|training|parallel)[/.]")
  foreach(room IN LISTS rooms)
    set(includes "${lines}")
    list(FILTER includes INCLUDE REGEX "mp/${room}[/.]")
    if(includes AND NOT header MATCHES "${users_of_${room}}")
      message(NOTICE "${header}: ${includes}")
      set(failed TRUE)
    endif()
  endforeach()
endforeach()
if(failed)
  message(FATAL_ERROR "arrows between rooms point one way, see HACKING.md")
endif()
