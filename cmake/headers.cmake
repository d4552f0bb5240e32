# SPDX-License-Identifier: MIT

include("${CMAKE_CURRENT_LIST_DIR}/header_includes.cmake")

# mp_header_wrappers(<variable> <extension> [CHAINED] [INCLUDE <regex>] [EXCLUDE <regex>])
#
# Writes one source file a header, and one that includes all of them, and puts their paths into <variable>. Each
# file includes its header first, so it compiles only if the header stands alone, and then a second time, so the
# header must be guarded. One that opens the namespace of the target's flags must have included what names it: the
# macro's own name is a namespace, too, and would be taken silently. The regular expressions are matched against the
# spelling in the include line, such as mp/numbers/format/limits.hpp.
#
# With CHAINED a file has several headers one after another, of which each includes the one before by itself. So it sees no
# more than it would alone, and what they all include is read once.
function(mp_header_wrappers variable extension)
  cmake_parse_arguments(PARSE_ARGV 2 arg "CHAINED" "INCLUDE;EXCLUDE" "")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
       "${PROJECT_SOURCE_DIR}/include/mp/*.hpp")
  # Old paths, which only forward, and what one source of a program includes under a macro of its own.
  list(FILTER headers EXCLUDE REGEX "^mp/((check|compat|interop|report|scaling)/|compiled[.])")
  if(arg_INCLUDE)
    list(FILTER headers INCLUDE REGEX "${arg_INCLUDE}")
  endif()
  if(arg_EXCLUDE)
    list(FILTER headers EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  set(ends ${headers})
  if(arg_CHAINED)
    mp_chain_headers(ends ${headers})
  endif()
  set(wrappers "")
  foreach(end IN LISTS ends)
    set(chain "${end}")
    set(wrapper "${PROJECT_BINARY_DIR}/headers_alone/${end}")
    if(arg_CHAINED)
      set(chain ${chain_${end}})
      set(wrapper "${PROJECT_BINARY_DIR}/headers_chained/${end}")
    endif()
    set(content "")
    foreach(header IN LISTS chain)
      string(APPEND content "#include <${header}>\n#include <${header}>\n")
      foreach(macro IN ITEMS MP_ISA_NAMESPACE MP_CORE_NAMESPACE)
        file(STRINGS "${PROJECT_SOURCE_DIR}/include/${header}" opens REGEX "namespace.* ${macro}")
        if(opens)
          string(APPEND content "#ifndef ${macro}\n#error \"${header} does not include <mp/config.hpp>\"\n#endif\n")
        endif()
      endforeach()
    endforeach()
    # Unlike file(WRITE), this leaves an unchanged file and its time stamp alone.
    string(REGEX REPLACE "[.]hpp$" ".${extension}" wrapper "${wrapper}")
    file(CONFIGURE OUTPUT "${wrapper}" CONTENT "${content}" @ONLY)
    list(APPEND wrappers "${wrapper}")
  endforeach()
  # And all of them together, where one may declare what another one has.
  set(together "${PROJECT_BINARY_DIR}/headers_alone/all_together_${variable}.${extension}")
  list(TRANSFORM headers REPLACE "^(.+)$" "#include <\\1>")
  list(JOIN headers "\n" includes)
  file(CONFIGURE OUTPUT "${together}" CONTENT "${includes}\n" @ONLY)
  list(APPEND wrappers "${together}")
  set(${variable} "${wrappers}" PARENT_SCOPE)
endfunction()

# mp_chain_headers(<variable> <header>...): puts the last headers of the chains into <variable>, and the chain that ends with
# one into chain_<header>.
function(mp_chain_headers variable)
  set(by_size "")
  foreach(header IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/${header}")
    mp_read_includes("${PROJECT_SOURCE_DIR}/include" "${header}")
    get_property(includes GLOBAL PROPERTY "includes ${header}")
    list(LENGTH includes size)
    list(APPEND by_size "${size} ${header}")
  endforeach()
  list(SORT by_size COMPARE NATURAL)
  set(ends "")
  foreach(header IN LISTS by_size)
    string(REGEX REPLACE "^[0-9]+ " "" header "${header}")
    get_property(includes GLOBAL PROPERTY "includes ${header}")
    set(chain_${header} "${header}")
    # Of those that could go on, the one that includes most.
    list(REVERSE ends)
    foreach(end IN LISTS ends)
      if(end IN_LIST includes)
        set(chain_${header} "${chain_${end}};${header}")
        list(REMOVE_ITEM ends "${end}")
        break()
      endif()
    endforeach()
    list(REVERSE ends)
    list(APPEND ends "${header}")
  endforeach()
  foreach(end IN LISTS ends)
    set(chain_${end} "${chain_${end}}" PARENT_SCOPE)
  endforeach()
  set(${variable} "${ends}" PARENT_SCOPE)
endfunction()
