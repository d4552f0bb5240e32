// SPDX-License-Identifier: MIT
// GGUF files against bytes written out here, against hostile ones, and against gguf-py where Python has it.
#include <mp/arrays/io/gguf.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "foreign_files.hpp"
#include "gguf_bytes.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

std::string refusal(std::string_view bytes) {
    const test_folder folder;
    write_file(folder.file("x.gguf"), bytes);
    return thrown<mp::file_error>([&] { const mp::gguf_file file(folder.file("x.gguf")); });
}

}  // namespace

TEST_CASE("GGUF: tensors and pairs are read as they are written out") {
    // A block of MXFP4: scale 2^1, element i has the code i % 8 and element i + 16 the code 8 + i % 8 (negative).
    std::string block(1, static_cast<char>(128));
    for (int i = 0; i < 16; ++i) block.push_back(static_cast<char>((8 + i % 8) << 4 | i % 8));
    std::string data = block + std::string(47, '\0') + le(0x3f800000, 4) + le(0xc0000000, 4);
    const test_folder folder;
    write_file(
        folder.file("x"),
        gguf_file_of(
            {gguf_text("a") + le(5, 4) + le(0xfffffffe, 4), gguf_text("b") + le(8, 4) + gguf_text("word"),
             gguf_text("c") + le(9, 4) + le(8, 4) + le(2, 8) + gguf_text("x") + gguf_text("yz"),
             gguf_text("d") + le(7, 4) + le(1, 1), gguf_text("e") + le(6, 4) + le(0x3f000000, 4)},
            {gguf_tensor("w", {32, 1}, 39, 0), gguf_tensor("f", {2}, 0, 64)}, data));
    const mp::gguf_file file(folder.file("x"));
    CHECK(file.version() == 3);
    CHECK(std::get<std::int64_t>(file.metadata().at("a")) == -2);
    CHECK(std::get<std::string>(file.metadata().at("b")) == "word");
    CHECK(std::get<mp::gguf_array>(file.metadata().at("c")).size == 2);
    CHECK(std::get<bool>(file.metadata().at("d")));
    CHECK(std::get<double>(file.metadata().at("e")) == 0.5);
    CHECK(file.at("w").shape == std::vector<std::size_t>{1, 32});
    CHECK(file.view<float>("f")[1] == -2.0F);
    const float magnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const mp::mxfp4 w = file.read_mxfp4("w");
    std::vector<mp::half> converted(32);
    file.read_converted("w", converted);
    for (int i = 0; i < 32; ++i) {
        CAPTURE(i);
        const float expected = (i < 16 ? 2.0F : -2.0F) * magnitudes[i % 8];
        CHECK(w.value(0, i) == expected);
        CHECK(static_cast<float>(converted[static_cast<std::size_t>(i)]) == expected);
    }
    CHECK(holds(thrown<mp::file_error>([&] { static_cast<void>(file.view<mp::half>("w")); }),
                "'w' has elements of type MXFP4, and F16 was expected"));
    CHECK(holds(thrown<mp::file_error>([&] { static_cast<void>(file.at("v")); }), "there is no 'v'"));
}

TEST_CASE("GGUF: what is damaged is refused") {
    const std::string data(128, '\0');
    CHECK(holds(refusal(gguf_file_of({}, {gguf_tensor("a", {32}, 0, 0)}, data)), "(nothing"));
    CHECK(holds(refusal(gguf_file_of({}, {}, "")), "(nothing"));
    CHECK(holds(refusal("GGUF"), "is no GGUF file"));
    CHECK(holds(refusal("GGUF" + le(0x03000000, 4) + std::string(16, '\0')), "or big-endian"));
    CHECK(holds(refusal("GGUF" + le(3, 4) + le(~0ULL, 8) + le(0, 8)), "it was cut off"));
    CHECK(holds(refusal("GGUF" + le(3, 4) + le(0, 8) + le(1, 8) + le(~0ULL, 8) + "a"), "it was cut off"));
    CHECK(holds(refusal(gguf_file_of({gguf_text("a") + le(9, 4) + le(10, 4) + le(1ULL << 61, 8)}, {}, data)),
                "it was cut off"));
    CHECK(holds(refusal(gguf_file_of({gguf_text("a") + le(9, 4) + le(9, 4) + le(1, 8)}, {}, data)),
                "array of arrays"));
    CHECK(holds(refusal(gguf_file_of({gguf_text("a") + le(13, 4) + le(0, 8)}, {}, data)), "unknown type"));
    CHECK(holds(refusal(gguf_file_of(
                    {gguf_text("a") + le(0, 4) + le(0, 1), gguf_text("a") + le(0, 4) + le(0, 1)}, {}, data)),
                "key is there twice"));
    CHECK(holds(refusal(gguf_file_of({gguf_text("general.alignment") + le(4, 4) + le(24, 4)}, {}, data)),
                "no power of two"));
    const auto one = [&](const std::string& it) { return refusal(gguf_file_of({}, {it}, data)); };
    CHECK(holds(one(gguf_tensor("a", {33}, 0, 0)), "beyond its end"));
    CHECK(holds(one(gguf_tensor("a", {1}, 0, 160)), "beyond its end"));
    CHECK(holds(one(gguf_tensor("a", {1}, 0, 16)), "is not aligned"));
    CHECK(holds(one(gguf_tensor("a", {1, 1, 1, 1, 1}, 0, 0)), "more than four dimensions"));
    CHECK(holds(one(gguf_tensor("a", {1ULL << 33, 1ULL << 33}, 0, 0)), "a shape is too large"));
    CHECK(holds(one(gguf_tensor("a", {48}, 39, 0)), "no whole number of blocks"));
    CHECK(holds(one(gguf_tensor("a", {1}, 99, 0)), "unknown type"));
    CHECK(holds(refusal(gguf_file_of({}, {gguf_tensor("a", {16}, 0, 0), gguf_tensor("b", {1}, 0, 32)}, data)),
                "overlap"));
    CHECK(holds(refusal(gguf_file_of({}, {gguf_tensor("a", {1}, 0, 0), gguf_tensor("a", {1}, 0, 32)}, data)),
                "name is there twice"));
}

TEST_CASE("GGUF: shapes with a zero are matrices of their sizes, and dimensions fit ptrdiff_t") {
    const test_folder folder;
    // The fastest dimension, which has the number of columns, is the first one in the file.
    const auto matrix = [&](const std::vector<std::uint64_t>& shape, unsigned type) {
        write_file(folder.file("x"), gguf_file_of({}, {gguf_tensor("a", shape, type, 0)}, ""));
        const mp::gguf_file file(folder.file("x"));
        std::vector<float> none;
        file.read_converted("a", none);
        if (type == 39) {
            const mp::mxfp4 blocks = file.read_mxfp4("a");
            return std::vector<std::ptrdiff_t>{blocks.rows(), blocks.columns()};
        }
        const auto view = file.matrix<float>("a");
        return std::vector<std::ptrdiff_t>{view.rows, view.columns};
    };
    using sizes = std::vector<std::ptrdiff_t>;
    constexpr std::uint64_t large = 1ULL << 62;
    for (const unsigned type : {0U, 39U}) {
        CHECK(matrix({0, 4}, type) == sizes{4, 0});
        CHECK(matrix({64, 0}, type) == sizes{0, 64});
        CHECK(matrix({0, 2, 3}, type) == sizes{6, 0});
        CHECK(holds(thrown<mp::file_error>([&] { matrix({2 * large, 0}, type); }), "a shape is too large"));
        CHECK(holds(thrown<mp::file_error>([&] { matrix({0, 2 * large}, type); }), "a shape is too large"));
        CHECK(holds(thrown<mp::file_error>([&] { matrix({0, large, 4}, type); }), "a shape is too large"));
        if constexpr (sizeof(std::size_t) == 8) {
            CHECK(matrix({0, large}, type) == sizes{1LL << 62, 0});
            CHECK(matrix({large, 0}, type) == sizes{0, 1LL << 62});
            CHECK(holds(thrown<mp::file_error>([&] { matrix({0, large, 2}, type); }),
                        "too large for a matrix"));
        }
    }
}

TEST_CASE("GGUF: gguf-py writes the same") {
    const test_folder folder;
    if (!run_foreign_files("gguf", folder.file(""))) return;
    const mp::gguf_file file(folder.file("theirs.gguf"));
    CHECK(std::get<std::uint64_t>(file.metadata().at("count")) == 7);
    CHECK(std::get<double>(file.metadata().at("epsilon")) == 0.5);
    CHECK(file.matrix<float>("f")(1, 2) == 5.0F);
    CHECK(file.view<mp::half>("h")[0] == mp::half(0.1F));
    CHECK(file.at("q").type == "Q8_0");
    const mp::mxfp4 x = file.read_mxfp4("x");
    const auto values = file.matrix<float>("x.values");
    REQUIRE(x.rows() == 2);
    for (int r = 0; r < 2; ++r)
        for (int c = 0; c < 32; ++c) CHECK(x.value(r, c) == values(r, c));
    for (const char* const type : {"Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4", "NVFP4"}) {
        CAPTURE(type);
        const std::string name = std::string("blocks.") + type;
        const auto expected = file.view<float>(name + ".values");
        std::vector<float> found(expected.size());
        CHECK(file.at(name).type == type);
        file.read_converted(name, found);
        std::size_t differences = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const bool equal =
                std::bit_cast<std::uint32_t>(found[i]) == std::bit_cast<std::uint32_t>(expected[i]);
            if (!equal && !(std::isnan(found[i]) && std::isnan(expected[i]))) ++differences;
        }
        CHECK(differences == 0);
    }
}
