# SPDX-License-Identifier: MIT
# Classes of the compiled part have constructors and destructors of complete objects also where clang compiles it, which
# leaves those of inline functions out.
#
#   cmake -DCLANG=clang++ -DMP_SOURCE_DIR=. -DWORK_DIR=folder -P this file
cmake_minimum_required(VERSION 3.22)
file(MAKE_DIRECTORY "${WORK_DIR}")
file(WRITE "${WORK_DIR}/part.cpp" "#include <mp/arrays/io/file_mapping.hpp>\n")
file(WRITE "${WORK_DIR}/user.cpp" "#include <mp/arrays/io/file_mapping.hpp>
int main() {
    const std::byte bytes[3]{};
    const mp::detail::file_mapping file{std::span<const std::byte>(bytes)};
    return file.bytes().size() == 3 ? 0 : 1;
}
")
set(options -std=c++20 -O2 -DMP_COMPILED "-I${MP_SOURCE_DIR}/include")
foreach(command IN ITEMS "-DMP_COMPILED_SOURCE;-c;part.cpp;-o;part.o" "user.cpp;part.o;-o;user")
  execute_process(COMMAND "${CLANG}" ${options} ${command} WORKING_DIRECTORY "${WORK_DIR}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND "${WORK_DIR}/user" COMMAND_ERROR_IS_FATAL ANY)
