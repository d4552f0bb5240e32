# SPDX-License-Identifier: MIT
# cmake -DDOXYGEN=<program> -DAWK=<program> -DSOURCE=<dir> -DOUTPUT=<dir> -DPROJECT_VERSION=<version> -P reference.cmake
#
# Makes the reference as a static site, OUTPUT/reference. Fails for whatever Doxygen has to say, but for members that are
# data or types: a structure's own comment tells of those whose names do not say it all.

cmake_minimum_required(VERSION 3.22)

file(MAKE_DIRECTORY "${OUTPUT}")
configure_file("${SOURCE}/cmake/Doxyfile.in" "${OUTPUT}/Doxyfile" @ONLY)
execute_process(COMMAND "${DOXYGEN}" "${OUTPUT}/Doxyfile" WORKING_DIRECTORY "${SOURCE}" COMMAND_ERROR_IS_FATAL ANY)

file(STRINGS "${OUTPUT}/warnings.txt" warnings)
set(found 0)
foreach(warning IN LISTS warnings)
  # Doxygen does not know that members of namespace std may be specialised (doxygen #7599 and its kin).
  if(warning MATCHES "[(](variable|typedef|macro definition)[)] of .* is not documented|Internal inconsistency: scope for class (std|fmt)::")
    continue()
  endif()
  math(EXPR found "${found} + 1")
  message(NOTICE "${warning}")
endforeach()
if(found GREATER 0)
  message(FATAL_ERROR "${found} warnings of Doxygen")
endif()
message(NOTICE "${OUTPUT}/reference/index.html")
