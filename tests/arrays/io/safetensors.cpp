// SPDX-License-Identifier: MIT
// Views of safetensors files, files written in pieces, block-scaled matrices in them, and what the safetensors package of
// Python reads and writes. tests/arrays/io/tensor_file.cpp has the format and hostile headers.
#include <mp/arrays/io/safetensors.hpp>
#include <mp/block_scaled.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foreign_files.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using namespace std::string_literals;

std::string file_of(std::string_view header, std::string_view data) {
    std::string result;
    for (unsigned i = 0; i < 8; ++i)
        result.push_back(static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 255));
    return result.append(header).append(data);
}

/// Rows of one block: 6, 1, 1 ... times 2^0, and 2^3 in the second row.
mp::mxfp4 two_rows() {
    std::vector<float> values(64, 1.0F);
    values[0] = 6;
    for (std::size_t i = 32; i < 64; ++i) values[i] = 8;
    values[32] = 48;
    return mp::quantize<mp::mxfp4>(mp::cpu{}, mp::row_major(values.data(), 2, 32));
}

}  // namespace

TEST_CASE("safetensors: arrays are viewed in place, and copied once where they are not aligned") {
    const test_folder folder;
    const std::string path = folder.file("x");
    std::string header(R"({"a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"F4","shape":[2,3],"data_offsets":[4,7]},)"
                       R"("c":{"dtype":"BF16","shape":[1],"data_offsets":[7,9]}})");
    header.append((8 - header.size() % 8) % 8, ' ');
    write_file(path, file_of(header, "\x80\x3f\x00\xc0\x21\x43\x65\x80\x3f"s));
    const mp::tensor_file file(path);
    const auto a = file.matrix<mp::bfloat16>("a");
    CHECK(a.columns == 2);
    CHECK(static_cast<float>(a(0, 1)) == -2.0F);
    CHECK(static_cast<const void*>(a.data) == file.at("a").bytes.data());
    const auto b = file.packed_view<mp::float4_e2m1fn>("b");
    for (unsigned i = 0; i < 6; ++i) CHECK(b[i].bits() == i + 1);
    const auto refused = [&](auto look) { return thrown<mp::file_error>(look); };
    CHECK(holds(refused([&] { static_cast<void>(file.view<mp::half>("a")); }), "BF16, and F16 was expected"));
    const auto c = file.matrix<mp::bfloat16>("c");
    CHECK(c.columns == 1);
    CHECK(static_cast<float>(c(0, 0)) == 1.0F);
    CHECK(c.data == file.view<mp::bfloat16>("c").data());
    CHECK(holds(refused([&] { static_cast<void>(file.packed_view<mp::float6_e2m3fn>("b")); }),
                "F6_E2M3 was expected"));
}

TEST_CASE("safetensors: a file is written in pieces and in any order") {
    const test_folder folder;
    const std::string path = folder.file("x");
    const std::vector<mp::tensor_description> tensors{{"h", "F16", {2}}, {"s", "F32", {}}};
    {
        mp::safetensors_writer out(path, tensors, {{"k", "v"}});
        out.write_elements("h", mp::half(1.0F));
        out.write_elements("s", 2.0F);
        CHECK(holds(thrown<mp::state_error>([&] { out.commit(); }), "'h' lacks 2 bytes"));
        CHECK(holds(thrown<mp::argument_error>([&] { out.write_elements("s", 2.0F); }), "must be at most 0"));
        CHECK(holds(thrown<mp::argument_error>([&] { out.write_elements("h", 2.0F); }),
                    "must be what 'h' has, F16"));
        CHECK_THROWS_AS(out.write_elements("x", 2.0F), mp::argument_error);
        out.write_elements("h", mp::half(-2.0F));
        out.commit();
    }
    const std::string header =
        R"({"__metadata__":{"k":"v"},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
        R"("h":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})";
    const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
    CHECK(read_file(path) == file_of(padded, "\x00\x00\x00\x40\x00\x3c\x00\xc0"s));
    CHECK(folder.count() == 1);
    const auto refused = [&](const mp::tensor_description& it) {
        return thrown<mp::argument_error>([&] { mp::safetensors_writer(path, std::vector{it, it}); });
    };
    CHECK(holds(refused({"a", "F3", {1}}), "must be one of safetensors"));
    CHECK(holds(refused({"a", "F4", {1}}), "a whole number of bytes"));
    CHECK(holds(refused({"a", "F4", {1ULL << 40, 1ULL << 40}}), "a whole number of bytes"));
    CHECK(holds(refused({"a", "F4", {2}}), "there is one of this name"));
}

TEST_CASE("safetensors: after commit() nothing is written") {
    const test_folder folder;
    const std::string path = folder.file("x");
    const std::vector<mp::tensor_description> tensors = {{"a", "F32", {2}}};
    mp::safetensors_writer out(path, tensors);
    CHECK(holds(thrown<mp::state_error>([&] { out.commit(); }), "'a' lacks 8 bytes"));
    out.write_elements("a", std::vector<float>{1.0F, 2.0F});
    out.commit();
    CHECK(thrown<mp::state_error>([&] { out.commit(); }) ==
          "mp::safetensors_writer::commit: commit() has been called");
    CHECK(thrown<mp::state_error>([&] { out.write("a", {}); }) ==
          "mp::safetensors_writer::write: commit() has been called");
    CHECK(mp::tensor_file(path).view<float>("a")[1] == 2.0F);
    mp::detail::file_replacement file(path);
    file.write("x");
    file.commit();
    CHECK(thrown<mp::state_error>([&] { file.write("y"); }) ==
          path + ": nothing can be written after commit()");
    CHECK_THROWS_AS(file.seek(0), mp::state_error);
    CHECK_THROWS_AS(file.commit(), mp::state_error);
}

TEST_CASE("safetensors: block-scaled matrices come back") {
    const test_folder folder;
    const std::string path = folder.file("ours.safetensors");
    std::vector<mp::tensor_description> tensors{{"n", "F32", {3}}};
    const std::size_t shape[] = {2, 1, 32};
    mp::describe_block_scaled<mp::mxfp4>("m", shape, tensors);
    mp::describe_block_scaled<mp::mxfp4>("w", std::vector<std::size_t>{2, 32}, tensors);
    mp::describe_block_scaled<mp::nvfp4>("v", shape, tensors);
    mp::describe_block_scaled<mp::mxfp6_e2m3>("s", shape, tensors);
    mp::safetensors_writer out(path, tensors);
    out.write_elements("n", std::vector<float>{1, 2, 3});
    const mp::mxfp4 q = two_rows();
    out.write_block_scaled("m", q);
    out.write_block_scaled("w", q);
    std::vector<float> values(64);
    for (std::size_t i = 0; i < 64; ++i) values[i] = 0.37F * static_cast<float>(i) - 7;
    const auto v = mp::quantize<mp::nvfp4>(mp::cpu{}, mp::row_major(values.data(), 2, 32));
    out.write_block_scaled("v", v);
    const auto s = mp::quantize<mp::mxfp6_e2m3>(mp::cpu{}, mp::row_major(values.data(), 2, 32));
    out.write_block_scaled("s", s);
    out.commit();

    const mp::tensor_file file(path);
    CHECK(file.at("m").shape == std::vector<std::size_t>{2, 1, 32});
    CHECK(file.at("m_scale").shape == std::vector<std::size_t>{2, 1, 1});
    CHECK(file.at("v_scale_2").dtype == "F32");
    CHECK(file.at("s").dtype == "F6_E2M3");
    const auto again = mp::read_block_scaled<mp::nvfp4>(file, "v");
    const auto s2 = mp::read_block_scaled<mp::mxfp6_e2m3>(file, "s");
    for (int r = 0; r < 2; ++r) {
        for (int c = 0; c < 32; ++c) {
            CHECK(again.value(r, c) == v.value(r, c));
            CHECK(s2.value(r, c) == s.value(r, c));
        }
    }
    CHECK(
        holds(thrown<mp::file_error>([&] { static_cast<void>(mp::read_block_scaled<mp::mxfp4>(file, "s")); }),
              "than the F4 of"));
    CHECK(
        holds(thrown<mp::file_error>([&] { static_cast<void>(mp::read_block_scaled<mp::mxfp4>(file, "n")); }),
              "no whole blocks"));

    if (!run_foreign_files("safetensors", folder.file(""))) return;
    const mp::tensor_file theirs(folder.file("theirs.safetensors"));
    CHECK(theirs.metadata().at("made by") == "numpy");
    CHECK(static_cast<float>(theirs.matrix<mp::bfloat16>("b")(1, 1)) == 0.75F);
    CHECK(theirs.view<double>("d")[0] == 0.1);
    CHECK(theirs.view<std::int32_t>("i")[1] == -2);
    CHECK(theirs.view<bool>("t")[0]);
}
