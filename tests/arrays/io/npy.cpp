// SPDX-License-Identifier: MIT
// .npy files against bytes written out here, against hostile headers, and against NumPy and ml_dtypes where Python has
// them (foreign_files.py).
#include <mp/arrays/io/npy.hpp>
#include <mp/float4.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "foreign_files.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

std::string npy(std::string_view header, std::string_view data, char version = 1) {
    std::string result = "\x93NUMPY";
    result.append(
        {version, '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)});
    if (version > 1) result.append(2, '\0');
    return result.append(header).append(data);
}

std::string refusal(std::string_view bytes) {
    const test_folder folder;
    write_file(folder.file("x.npy"), bytes);
    return thrown<mp::file_error>([&] { const mp::npy_file file(folder.file("x.npy")); });
}

}  // namespace

TEST_CASE(".npy: the bytes are those of the format") {
    const test_folder folder;
    const std::string path = folder.file("x.npy");
    const std::vector<mp::bfloat16> values{mp::bfloat16(1.0F), mp::bfloat16(-2.0F)};
    mp::save_npy(path, values);
    const std::string header = "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }";
    const std::string bytes = read_file(path);
    CHECK(bytes.size() == 128 + 4);
    CHECK(bytes == "\x93NUMPY\x01\x00\x76\x00"s + header + std::string(117 - header.size(), ' ') +
                       "\n\x80\x3f\x00\xc0"s);
    const std::vector<std::uint8_t> six{1, 2, 3, 4, 5, 6};
    mp::save_npy(path, six, {1, 2, 3});
    CHECK(holds(read_file(path), "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3), }"));
    mp::save_npy(path, 0.5);
    CHECK(holds(read_file(path), "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"));
    CHECK_THROWS_AS(mp::save_npy(path, six, {2, 2}), mp::argument_error);
}

TEST_CASE(".npy: arrays are seen in place and copied, by the type that the caller names") {
    const test_folder folder;
    const std::string path = folder.file("x.npy");
    const auto check = [&]<class Value>(Value, std::string_view descr) {
        std::vector<Value> values(7);
        for (std::size_t i = 0; i < 7; ++i) values[i] = static_cast<Value>(static_cast<float>(i % 3));
        mp::save_npy(path, values);
        const mp::npy_file file(path);
        CHECK(file.descr() == descr);
        CHECK(std::vector<Value>(file.view<Value>().begin(), file.view<Value>().end()) == values);
        std::vector<Value> again(7);
        file.read(again);
        CHECK(again == values);
    };
    check(float{}, "<f4");
    check(std::int64_t{}, "<i8");
    check(mp::half{}, "<f2");
    check(mp::float8_e5m2{}, "<V1");
    check(mp::float4_e2m1fn{}, "<V1");

    write_file(path, npy("{\"shape\": (2, 3L), 'fortran_order': True, 'descr': '<u2'}\n\n\n\n\n\n\n\n\n",
                         "\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00"s, 3));
    const mp::npy_file fortran(path);
    const auto m = fortran.matrix<std::uint16_t>();
    CHECK(m.rows == 2);
    CHECK(m(1, 0) == 2);
    CHECK(m(0, 2) == 5);
    // Unsigned integers of the size may be numbers that NumPy has not.
    CHECK(fortran.view<mp::bfloat16>()[5].bits() == 6);
    CHECK(holds(thrown<mp::file_error>([&] { static_cast<void>(fortran.view<mp::half>()); }),
                "has elements of type '<u2', and 'f2' was expected"));

    write_file(path, npy("{'descr': '>f4', 'fortran_order': False, 'shape': (), }", "\x3f\x80\x00\x00"s));
    const mp::npy_file big(path);
    float one = 0;
    big.read(one);
    CHECK(one == 1.0F);
    CHECK(holds(thrown<mp::file_error>([&] { static_cast<void>(big.view<float>()); }), "is big-endian"));
}

TEST_CASE(".npy: what is no such file is refused") {
    CHECK(holds(refusal(""), "is no .npy file"));
    CHECK(holds(refusal("\x93NUMPY\x04\x00\x00\x00"s), "is of version 4.0"));
    CHECK(holds(refusal("\x93NUMPY\x01\x00\xff\xff"s), "the header would have 65535 bytes"));
    CHECK(holds(refusal("\x93NUMPY\x02\x00\xff\xff\xff\xff"s), "the header would have 4294967295 bytes"));
    const auto header = [](std::string_view text) { return refusal(npy(text, "\0\0\0\0")); };
    CHECK(
        holds(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), "which does not fit the"));
    CHECK(holds(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
                "[4294967296, 4294967296], which does not fit the 0 bytes"));
    CHECK(holds(header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
                "whole number"));
    CHECK(holds(header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
                "a whole number was expected"));
    CHECK(holds(header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
                "'|O', which are not numbers"));
    CHECK(holds(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
                "several fields"));
    CHECK(holds(header("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }"), "neither True nor False"));
    CHECK(holds(header("{'descr': '<f4', 'shape': (1,), }"), "lacks a member"));
    CHECK(holds(header("{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }"), "twice"));
    CHECK(holds(header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } 1"), "more after the end"));
    CHECK(holds(header("{'descr': '<f4', 'x': 1}"), "unknown 'x'"));
    CHECK(holds(header("{'descr': '<f4"), "a string was expected"));
    const auto shape = [&](std::string_view text) {
        return header("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(text) + "}");
    };
    CHECK(holds(shape("(0)"), "not a tuple"));
    CHECK(holds(shape("0"), "'(' was expected"));
    CHECK(holds(shape("[0]"), "'(' was expected"));
    CHECK(holds(shape("(,)"), "a whole number was expected"));
    CHECK(holds(shape("(0,,)"), "a whole number was expected"));
    CHECK(holds(shape("(00,)"), "a whole number was expected"));
    CHECK(holds(shape("(0.0,)"), "')' was expected"));
    for (const char* const accepted : {"(0,)", "( 0 , )", "(0, 1)", "(0,1,)"}) {
        CHECK(holds(shape(accepted), "(nothing"));
    }
    CHECK(holds(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "\0\0\0\0\0"sv)),
                "has 1 bytes after its array"));
}

TEST_CASE(".npy: several arrays of a file are read one by one") {
    const test_folder folder;
    const std::string path = folder.file("x");
    const std::string first =
        npy("{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", "\1\0\2\0\3\0"sv);
    const std::string second =
        npy("{'descr': '>u2', 'fortran_order': True, 'shape': (1, 2)}", "\0\4\0\5"sv, 2);
    const std::string empty = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (0,)}", "");
    write_file(path, first + second + empty + first);
    std::vector<mp::npy_file> arrays = mp::npy_file::read_all(path);
    REQUIRE(arrays.size() == 4);
    CHECK(arrays[1].fortran_order());
    CHECK(arrays[1].shape() == std::vector<std::size_t>{1, 2});
    CHECK(arrays[2].size() == 0);
    const mp::npy_file last = arrays[3];
    arrays.resize(2, last);  // the file stays mapped for a copy
    std::vector<std::uint16_t> values(2);
    arrays[1].read(values);
    CHECK(values == std::vector<std::uint16_t>{4, 5});
    values.resize(3);
    last.read(values);
    CHECK(values == std::vector<std::uint16_t>{1, 2, 3});
    const auto begins = [&](const std::string& before) {
        return path + ", array at byte " + std::to_string(before.size()) + ": ";
    };
    CHECK(holds(thrown<mp::file_error>([&] { static_cast<void>(last.view<float>()); }),
                (begins(first + second + empty) + "has elements of type '<u2'").c_str()));
    CHECK(mp::npy_file::read_all(path)[0].size() == 3);
    CHECK(holds(thrown<mp::file_error>([&] { const mp::npy_file file(path); }),
                "npy_file::read_all reads several"));
    const auto refused = [&](const std::string& bytes) {
        write_file(path, bytes);
        return thrown<mp::file_error>([&] { static_cast<void>(mp::npy_file::read_all(path)); });
    };
    CHECK(holds(refused(""), "is no .npy file"));
    CHECK(holds(refused(first + "x"), (begins(first) + "is no .npy file").c_str()));
    const std::string both = first + second;
    for (std::size_t size = 0; size < both.size(); ++size) {
        CHECK((refused(both.substr(0, size)) == "(nothing was thrown)") == (size == first.size()));
    }
}

TEST_CASE(".npy: one dimension in Fortran's order is a vector") {
    const test_folder folder;
    const auto matrix = [&](const std::string& shape) {
        write_file(folder.file("x"),
                   npy("{'descr': '|u1', 'fortran_order': True, 'shape': " + shape + "}", "\1\2\3\4\5\6"));
        const auto view = mp::npy_file(folder.file("x")).matrix<std::uint8_t>();
        return std::vector<std::ptrdiff_t>{view.rows, view.columns};
    };
    using sizes = std::vector<std::ptrdiff_t>;
    CHECK(matrix("(6,)") == sizes{1, 6});
    CHECK(matrix("(3, 2)") == sizes{3, 2});
    CHECK(holds(thrown<mp::file_error>([&] { matrix("(1, 2, 3)"); }), "more than two dimensions"));
}

TEST_CASE(".npy: a header above 65535 bytes makes a file of version 2.0") {
    const test_folder folder;
    const std::string path = folder.file("x");
    const std::uint8_t value = 7;
    // Without padding the elements would begin at byte 64 + 3 dimensions, and version 1.0 ends at byte 65 545.
    for (const std::size_t dimensions : {21800U, 21824U, 21825U, 30000U}) {
        CAPTURE(dimensions);
        mp::save_npy(path, value, std::vector<std::size_t>(dimensions, 1));
        const std::string bytes = read_file(path);
        CHECK(bytes[6] == (dimensions <= 21824 ? '\1' : '\2'));
        CHECK(bytes.size() % 64 == 1);
        const mp::npy_file file(path);
        CHECK(file.shape() == std::vector<std::size_t>(dimensions, 1));
        CHECK(file.view<std::uint8_t>()[0] == 7);
    }
    CHECK_THROWS_AS(mp::save_npy(path, value, std::vector<std::size_t>(400000, 1)), mp::argument_error);
    CHECK_THROWS_AS(mp::save_npy(path, std::vector<float>{}, {0, ~std::size_t{0}}), mp::argument_error);
}

TEST_CASE(".npy: shapes with a zero are matrices of their sizes, and dimensions fit ptrdiff_t") {
    const test_folder folder;
    const auto matrix = [&](const std::string& shape, const std::string& fortran = "False") {
        write_file(folder.file("x"),
                   npy("{'descr': '<f4', 'fortran_order': " + fortran + ", 'shape': " + shape + "}", ""));
        const auto view = mp::npy_file(folder.file("x")).matrix<float>();
        return std::vector<std::ptrdiff_t>{view.rows, view.columns};
    };
    using sizes = std::vector<std::ptrdiff_t>;
    CHECK(matrix("(4, 0)") == sizes{4, 0});
    CHECK(matrix("(0, 5)") == sizes{0, 5});
    CHECK(matrix("(4, 0)", "True") == sizes{4, 0});
    CHECK(matrix("(2, 3, 0)") == sizes{6, 0});
    CHECK(matrix("(0,)") == sizes{1, 0});
    if constexpr (sizeof(std::size_t) == 8) {
        CHECK(matrix("(0, 9223372036854775807)") == sizes{0, (std::numeric_limits<std::ptrdiff_t>::max)()});
        for (const char* const shape : {"(0, 9223372036854775808)", "(9223372036854775808, 0)",
                                        "(0, 18446744073709551615)", "(4294967296, 4294967296, 0)"}) {
            CHECK(holds(thrown<mp::file_error>([&] { matrix(shape); }), "which does not fit the"));
            CHECK(holds(thrown<mp::file_error>([&] { matrix(shape, "True"); }), "which does not fit the"));
        }
        CHECK(holds(thrown<mp::file_error>([&] { matrix("(4294967296, 2147483648, 0)"); }),
                    "[4294967296, 2147483648, 0], which is too large for a matrix"));
    }
}

TEST_CASE(".npy: NumPy and ml_dtypes read and write the same") {
    const test_folder folder;
    mp::save_npy(folder.file("ours_bf16.npy"), std::vector{mp::bfloat16(0.1F), mp::bfloat16(-3.0F)}, {2, 1});
    mp::save_npy(folder.file("ours_half.npy"), std::vector{mp::half(0.1F)});
    mp::save_npy(folder.file("ours_e5m2.npy"), std::vector{mp::float8_e5m2(0.1F)});
    mp::save_npy(folder.file("ours_long.npy"), 1.5F, std::vector<std::size_t>(30000, 1));
    if (!run_foreign_files("npy", folder.file(""))) return;
    const mp::npy_file bf16(folder.file("bf16.npy"));
    CHECK(bf16.descr() == "<V2");
    CHECK(bf16.shape() == std::vector<std::size_t>{2, 3});
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(static_cast<float>(bf16.view<mp::bfloat16>()[i]) == 0.25F * static_cast<float>(i));
    const mp::npy_file e5m2(folder.file("e5m2.npy"));
    CHECK(e5m2.descr() == "<f1");
    CHECK(static_cast<float>(e5m2.view<mp::float8_e5m2>()[1]) == -1.5F);
    const mp::npy_file fortran(folder.file("fortran.npy"));
    CHECK(fortran.matrix<double>()(1, 2) == 12.0);
    const std::vector<mp::npy_file> several = mp::npy_file::read_all(folder.file("several.npy"));
    REQUIRE(several.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        std::vector<std::int16_t> values(i + 1);
        several[i].read(values);
        CHECK(values == std::vector<std::int16_t>(i + 1, static_cast<std::int16_t>(i)));
    }
    std::vector<float> big(3);
    mp::npy_file(folder.file("big.npy")).read(big);
    CHECK(big == std::vector<float>{1, 2, 3});
}
