// SPDX-License-Identifier: MIT
/// \file
/// Runs a program as its users do, in a folder of its own.
#pragma once

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace examples {

inline std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// How a program ended, and what it wrote.
struct outcome {
    int code;
    std::string out;
    std::string error;
};

/// A folder to run a program in, which goes away with the object.
class workplace {
public:
    /// \param program  its path
    explicit workplace(std::string program)
        : program_(std::move(program)),
          folder_(std::filesystem::temp_directory_path() /
                  ("mp_example_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)))) {
        std::filesystem::create_directories(folder_);
    }
    workplace(const workplace&) = delete;
    workplace& operator=(const workplace&) = delete;
    ~workplace() { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

    /// Runs the program in the folder. The arguments go through the shell.
    [[nodiscard]] outcome run(const std::string& arguments) const {
        const std::string command =
            "cd '" + folder_.string() + "' && '" + program_ + "' " + arguments + " >out.txt 2>error.txt";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder_ / "out.txt"),
                content_of(folder_ / "error.txt")};
    }

private:
    std::string program_;
    std::filesystem::path folder_;
};

}  // namespace examples
