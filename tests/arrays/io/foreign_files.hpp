// SPDX-License-Identifier: MIT
/// \file
/// Runs foreign_files.py, with which Python reads what was written here and writes what is read here.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

/// Runs `script KIND FOLDER`. Returns false, with a message, where Python or a package of it is missing. The interpreter is
/// python3, or the one that the variable MP_PYTHON names.
inline bool run_foreign_files(const std::string& kind, const std::string& folder,
                              const std::string& script = "foreign_files.py") {
    const char* const given = std::getenv("MP_PYTHON");
    const std::string python = given != nullptr ? given : "python3";
    const std::string command = "'" + python + "' '" MP_SOURCE_DIR "/tests/arrays/io/" + script + "' " +
                                kind + " '" + folder + "' 2>'" + folder + "/error'";
    const int status = std::system(command.c_str());
    // 3 is what the script ends with where a package is missing; a shell without Python ends with 127.
    const bool missing = status == 3 << 8 || status == 127 << 8;
    if (missing) {
        MESSAGE(
            "skipped: python3 has not the packages numpy, ml_dtypes, safetensors and gguf, see "
            "tests/arrays/io/foreign_files.py");
        return false;
    }
    CHECK(status == 0);
    return status == 0;
}
