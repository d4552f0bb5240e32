# SPDX-License-Identifier: MIT
# cmake -DPORT_FOLDER=<dir> -DWORK=<dir> -P stand_in.cmake
#
# Runs the port's script where there is no vcpkg: what vcpkg's documentation says of the functions that it calls, for a
# package of headers.
cmake_minimum_required(VERSION 3.22)

set(PORT mp-mixed-precision)
set(CURRENT_PACKAGES_DIR "${WORK}/packages")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCE_PATH)
    message(FATAL_ERROR "vcpkg_cmake_configure: ${ARGN}")
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" ${arg_OPTIONS}
    "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DBUILD_SHARED_LIBS=OFF)
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --target install)
endfunction()

# Moves the package's files to share/<name>, where they find the prefix by themselves or are told.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  set(from "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
  set(to "${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}")
  if(NOT IS_DIRECTORY "${from}")
    message(FATAL_ERROR "vcpkg_cmake_config_fixup: there is no ${arg_CONFIG_PATH}")
  endif()
  file(RENAME "${from}" "${to}")
  file(GLOB files "${to}/*.cmake")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REGEX REPLACE "get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))*"
      "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)"
      text "${text}")
    string(REPLACE "/../../../\" ABSOLUTE)" "/../../\" ABSOLUTE)" text "${text}")
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(GLOB_RECURSE files "${CURRENT_PACKAGES_DIR}/*.pc")
  if(NOT files)
    message(FATAL_ERROR "vcpkg_fixup_pkgconfig: there is none")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(READ "${arg_FILE_LIST}" text)
  file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright" "${text}")
endfunction()

# The script's own folder is CMAKE_CURRENT_LIST_DIR in it, as with vcpkg.
include("${PORT_FOLDER}/portfile.cmake")

# vcpkg checks after each port: nothing for debugging, a copyright, no empty folders, headers.
foreach(wanted IN ITEMS include/mp/half.hpp "share/${PORT}/copyright" "share/${PORT}/usage" share/mp/mp-config.cmake)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${wanted}")
    message(FATAL_ERROR "the port does not install ${wanted}")
  endif()
endforeach()
foreach(unwanted IN ITEMS debug share/cmake share/doc bin lib)
  if(EXISTS "${CURRENT_PACKAGES_DIR}/${unwanted}")
    file(GLOB_RECURSE files "${CURRENT_PACKAGES_DIR}/${unwanted}/*")
    if(files)
      message(FATAL_ERROR "the port installs ${files}")
    endif()
  endif()
endforeach()
