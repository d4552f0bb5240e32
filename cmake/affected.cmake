# SPDX-License-Identifier: MIT

set(MP_AFFECTED "" CACHE FILEPATH
  "File with the output of .ci/affected: tests of the tiers thorough and cuda that the change cannot affect are left out")
if(MP_AFFECTED)
  file(STRINGS "${MP_AFFECTED}" files)
  foreach(file IN LISTS files)
    set_property(GLOBAL PROPERTY "affected ${PROJECT_SOURCE_DIR}/${file}" ON)
  endforeach()
endif()

# mp_affected(<variable> <file>...): those of the files that the change can affect; all if MP_AFFECTED is not set.
function(mp_affected variable)
  set(result "")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    get_property(affected GLOBAL PROPERTY "affected ${file}")
    if(affected OR NOT MP_AFFECTED)
      list(APPEND result "${file}")
    endif()
  endforeach()
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()
