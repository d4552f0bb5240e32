// SPDX-License-Identifier: MIT
// The code of docs/checking.md for formats that are chosen when the program runs, and of docs/training.md for files.
#include <doctest/doctest.h>
#include <mp/analysis.hpp>
#include <mp/arrays/io/gguf.hpp>
#include <mp/arrays/io/npy.hpp>
#include <mp/arrays/io/safetensors.hpp>
#include <mp/block_scaled.hpp>
#include <mp/check.hpp>
#include <mp/frontends/report/error_page.hpp>
#include <mp/half.hpp>
#include <mp/training.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

/// A folder to work in while one lives.
class own_folder {
public:
    explicit own_folder(const char* name) : folder_(std::filesystem::temp_directory_path() / name) {
        std::filesystem::create_directories(folder_);
        std::filesystem::current_path(folder_);
    }
    ~own_folder() {
        std::filesystem::current_path(before_);
        std::filesystem::remove_all(folder_);
    }
    own_folder(const own_folder&) = delete;
    own_folder& operator=(const own_folder&) = delete;

private:
    std::filesystem::path before_ = std::filesystem::current_path();
    std::filesystem::path folder_;
};

TEST_CASE("docs/checking.md: formats of the run, tracked numbers, soft errors, histograms") {
    const own_folder here("mp_documents_analysis");
#include "checking_3.inl"
    CHECK(x == 1.0 + 0x1p-10);
    CHECK(a[999] > 1.5);
#include "checking_4.inl"
    CHECK(wrong_by > 0.0);
    CHECK(wrong_by < 0.1);
#include "checking_5.inl"
    CHECK(faults.size() < 10);
    CHECK(weights == std::vector<mp::half>(100000));
#include "checking_6.inl"
    CHECK(tail <= 0.5);
    CHECK(std::filesystem::file_size("errors.html") > 1000);
    CHECK(std::filesystem::file_size("errors.csv") > 10);
}

/// A file of GGUF 3 with one tensor of MXFP4, 32 by 1, of which all codes are 1.0.
void write_gguf(const char* path) {
    std::string file("GGUF", 4);
    const auto number = [&](std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) file += static_cast<char>(value >> (8 * i));
    };
    number(3, 4);
    number(1, 8);  // tensors
    number(0, 8);  // keys
    const std::string name = "blk.0.ffn_up_exps.weight";
    number(name.size(), 8);
    file += name;
    number(2, 4);
    number(32, 8);
    number(1, 8);
    number(39, 4);  // MXFP4
    number(0, 8);
    while (file.size() % 32 != 0) file += '\0';
    file += static_cast<char>(127);
    file += std::string(16, '\x22');
    while (file.size() % 32 != 0) file += '\0';
    std::ofstream(path, std::ios::binary) << file;
}

TEST_CASE("docs/training.md: weights in files of other programs") {
    const own_folder here("mp_documents_files");
    const std::vector<mp::bfloat16> values(4 * 32, mp::bfloat16(1.5F));
    mp::save_safetensors("model.safetensors",
                         [&](auto& visit) { visit("fc.weight", mp::row_major(values, 4, 32)); });
    mp::save_npy("activations.npy", mp::row_major(values, 4, 32));
    write_gguf("model.gguf");
#include "training_9.inl"
    CHECK(w(3, 31) == 1.5F);
    CHECK(x(0, 0) == 1.5F);
    CHECK(experts.columns() == 32);
    CHECK(up == std::vector<mp::bfloat16>(32, mp::bfloat16(1.0F)));
    CHECK(mp::tensor_file("small.safetensors").at("fc.weight_scale").count == 4);
}

}  // namespace
