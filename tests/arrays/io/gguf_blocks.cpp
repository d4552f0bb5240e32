// SPDX-License-Identifier: MIT
// Values of the blocks of GGUF: bits that the dequantize function of gguf-py 0.19.0 computes, which are those of ggml.
#include <mp/arrays/io/gguf.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/io/gguf_bytes.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using namespace std::string_view_literals;

/// Two blocks of a type: byte i of both is 37 i + 11 + 101 (i / 32) modulo 256, except for the scales at `offset`.
struct known_blocks {
    std::string_view name;
    unsigned number;
    std::size_t elements;  ///< of a block
    std::size_t bytes;
    std::size_t offset;
    std::string_view scales[2];
    std::uint64_t hash;         ///< FNV-1a of the values as little-endian floats
    std::uint32_t samples[16];  ///< bits of every eighth of a block
};

constexpr known_blocks table[] = {
    {"Q4_0",
     2,
     32,
     18,
     0,
     {"\x66\xae"sv, "\x01\x00"sv},
     0x81521805cde3380b,
     {0x3e999000, 0xbdccc000, 0xbefff000, 0x3f332800, 0x3e999000, 0xbf199000, 0x3dccc000, 0x3f332800,
      0x34e00000, 0xb4a00000, 0xb3800000, 0xb5000000, 0x34c00000, 0x0, 0xb4e00000, 0xb4e00000}},
    {"Q8_0",
     8,
     32,
     34,
     0,
     {"\x66\xae"sv, "\x01\x00"sv},
     0x3fbe2b0a8018a933,
     {0xc107f780, 0x40132a00, 0xc147f380, 0xbfd98c00, 0x41119080, 0xc0b65b00, 0x40a32900, 0xc11b2980,
      0xb6b80000, 0x36600000, 0xb6500000, 0x36c00000, 0xb5400000, 0xb6f00000, 0x35e00000, 0x35a80000}},
    {"Q4_K",
     12,
     256,
     144,
     0,
     {"\x66\x2e\x55\xb5"sv, "\xff\x7b\x03\x80"sv},
     0x75dcc2088d243afe,
     {0x424c59a0, 0x411ff600, 0x41a2a080, 0x419dd400, 0x41bbf440, 0x4237f480, 0x425a9d00, 0x41743500,
      0x493fe800, 0x4a9fec00, 0x4ae9e2c0, 0x4ac7e700, 0x4b19ecc0, 0x36de0000, 0x4a7be080, 0x4a9bec80}},
    {"Q6_K",
     14,
     256,
     210,
     208,
     {"\x66\xae"sv, "\x05\x00"sv},
     0x4809ab574cf8a067,
     {0xc2dd5890, 0xc337f480, 0xc2d65900, 0x41ad8ec0, 0x435aa588, 0xc2725740, 0x402cc200, 0x4311aa18,
      0xb9381000, 0xb8d70000, 0xb9124000, 0xba0e3000, 0xb855c000, 0x39e97000, 0x38f78000, 0x3a2c3000}},
    {"MXFP4",
     39,
     32,
     17,
     0,
     {"\x82"sv, "\x00"sv},
     0x46f5c9850851ed95,
     {0x0, 0x41800000, 0x0, 0xc1800000, 0x41400000, 0xc1800000, 0x41c00000, 0xc2000000, 0xc00000, 0x80200000,
      0x80c00000, 0x200000, 0x80400000, 0x600000, 0x80800000, 0x1000000}},
    {"NVFP4",
     40,
     64,
     36,
     0,
     {"\x38\x01\x7e\x7f"sv, "\x00\x08\xbc\x07"sv},
     0x72dd515f45d48712,
     {0xc0c00000, 0xbf000000, 0x3c400000, 0xbb800000, 0xc5280000, 0xc4e00000, 0x0, 0x0, 0x0, 0x0, 0x0,
      0x3d800000, 0x0, 0x0, 0x3d280000, 0x3be00000}},
};

std::string bytes_of(const known_blocks& it) {
    std::string bytes;
    for (unsigned i = 0; i < 2 * it.bytes; ++i)
        bytes.push_back(static_cast<char>(i * 37 + 11 + i / 32 * 101));
    for (std::size_t i = 0; i < 2; ++i)
        bytes.replace(i * it.bytes + it.offset, it.scales[i].size(), it.scales[i]);
    return bytes;
}

}  // namespace

TEST_CASE("GGUF: blocks become floats with the bits of gguf-py") {
    const test_folder folder;
    for (const known_blocks& it : table) {
        CAPTURE(it.name);
        write_file(folder.file("x"),
                   gguf_file_of({}, {gguf_tensor("w", {it.elements, 2}, it.number, 0)}, bytes_of(it)));
        const mp::gguf_file file(folder.file("x"));
        CHECK(file.at("w").type == it.name);
        std::vector<float> values(2 * it.elements);
        file.read_converted("w", values);
        std::uint64_t hash = 0xcbf29ce484222325;
        for (const float value : values) {
            for (unsigned i = 0; i < 32; i += 8)
                hash = (hash ^ (std::bit_cast<std::uint32_t>(value) >> i & 255)) * 0x100000001b3;
        }
        CHECK(hash == it.hash);
        for (std::size_t i = 0; i < 16; ++i) {
            CAPTURE(i);
            CHECK(std::bit_cast<std::uint32_t>(values[i * it.elements / 8]) == it.samples[i]);
        }
        // Values are exact before they are rounded to the type that is asked for.
        std::vector<double> exact(values.size());
        file.read_converted("w", exact);
        std::vector<mp::bfloat16> rounded(values.size());
        file.read_converted("w", rounded);
        for (std::size_t i = 0; i < values.size(); ++i) {
            CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(exact[i])) ==
                  std::bit_cast<std::uint32_t>(values[i]));
            CHECK(rounded[i].bits() == mp::bfloat16(exact[i]).bits());
        }
    }
}

TEST_CASE("GGUF: many blocks are converted in their order") {
    const test_folder folder;
    std::string data;
    for (unsigned block = 0; block < 100; ++block) {
        data.append("\x00\x3c"sv);
        for (unsigned i = 0; i < 32; ++i) data.push_back(static_cast<char>(block + i));
    }
    write_file(folder.file("x"), gguf_file_of({}, {gguf_tensor("w", {320, 10}, 8, 0)}, data));
    std::vector<float> values(3200);
    mp::gguf_file(folder.file("x")).read_converted("w", values);
    for (unsigned i = 0; i < 3200; ++i)
        CHECK(values[i] == static_cast<float>(static_cast<std::int8_t>(i / 32 + i % 32)));
}

TEST_CASE("GGUF: NVFP4 is read as mp::nvfp4") {
    const test_folder folder;
    std::string bytes = bytes_of(table[5]);
    bytes[3] = '\x40';
    bytes[36 + 2] = '\x3c';
    const auto write = [&] {
        write_file(folder.file("x"), gguf_file_of({}, {gguf_tensor("w", {64, 2}, 40, 0)}, bytes));
    };
    write();
    const mp::gguf_file file(folder.file("x"));
    const mp::nvfp4 w = file.read_nvfp4("w");
    REQUIRE(w.rows() == 2);
    REQUIRE(w.columns() == 64);
    CHECK(w.tensor_scale() == 1.0F);
    std::vector<float> values(128);
    file.read_converted("w", values);
    for (std::ptrdiff_t r = 0; r < 2; ++r)
        for (std::ptrdiff_t c = 0; c < 64; ++c)
            CHECK(w.value(r, c) == values[static_cast<std::size_t>(r * 64 + c)]);
    for (const unsigned code : {0x7FU, 0x80U, 0xFFU}) {
        bytes[37] = static_cast<char>(code);
        write();
        CHECK(holds(thrown<mp::file_error>(
                        [&] { static_cast<void>(mp::gguf_file(folder.file("x")).read_nvfp4("w")); }),
                    ("'w' has the scale " + std::to_string(code) + ", which is no UE4M3 number").c_str()));
    }
}

TEST_CASE("GGUF: a type that is not supported is named") {
    const test_folder folder;
    write_file(folder.file("x"),
               gguf_file_of({}, {gguf_tensor("q", {256}, 11, 0), gguf_tensor("i", {2}, 26, 128)},
                            std::string(136, '\0')));
    const mp::gguf_file file(folder.file("x"));
    std::vector<float> values(256, 7.0F);
    CHECK(holds(thrown<mp::file_error>([&] { file.read_converted("q", values); }),
                "'q' has elements of type Q3_K, and conversion of Q3_K is not supported"));
    values.resize(2);
    CHECK(
        holds(thrown<mp::file_error>([&] { file.read_converted("i", values); }), "conversion of I32 is not"));
    CHECK(values == std::vector<float>(2, 7.0F));
    CHECK(holds(thrown<mp::file_error>([&] { static_cast<void>(file.read_nvfp4("q")); }),
                "Q3_K, and NVFP4 was expected"));
}
