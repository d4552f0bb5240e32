# SPDX-License-Identifier: MIT

# mp_header_wrappers(<variable> <extension> [INCLUDE <regex>] [EXCLUDE <regex>])
#
# Writes one source file a header, and one that includes all of them, and puts their paths into <variable>. Each
# file includes its header first, so it compiles only if the header stands alone, and then a second time, so the
# header must be guarded. One that opens the namespace of the target's flags must have included what names it: the
# macro's own name is a namespace, too, and would be taken silently. The regular expressions are matched against the spelling in the include line, such as
# mp/format/limits.hpp.
function(mp_header_wrappers variable extension)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "INCLUDE;EXCLUDE" "")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
       "${PROJECT_SOURCE_DIR}/include/mp/*.hpp")
  if(arg_INCLUDE)
    list(FILTER headers INCLUDE REGEX "${arg_INCLUDE}")
  endif()
  if(arg_EXCLUDE)
    list(FILTER headers EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  set(wrappers "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.hpp$" "" stem "${header}")
    set(wrapper "${PROJECT_BINARY_DIR}/headers_alone/${stem}.${extension}")
    set(check "")
    file(STRINGS "${PROJECT_SOURCE_DIR}/include/${header}" opens REGEX "namespace.* MP_ISA_NAMESPACE")
    if(opens)
      set(check "#ifndef MP_ISA_NAMESPACE\n#error \"${header} does not include <mp/config.hpp>\"\n#endif\n")
    endif()
    # Unlike file(WRITE), this leaves an unchanged file and its time stamp alone.
    file(CONFIGURE OUTPUT "${wrapper}" CONTENT "#include <${header}>\n#include <${header}>\n${check}" @ONLY)
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
