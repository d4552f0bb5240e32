// SPDX-License-Identifier: MIT
// Headers of safetensors files: the verdicts of the reference implementation (safetensors 0.8.0 of Python, a wrapper of the
// Rust crate) on a table of headers; the texts that are written. thorough/tensor_header_mutations.cpp has generated ones.
#include <mp/arrays/io/safetensors.hpp>
#include <mp/arrays/io/tensor_header.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/io/tensor_listing.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

/// A text of a header, whether the reference accepts the header, and the number of bytes after it.
struct verdict {
    std::string_view text;
    bool accepted;
    std::size_t bytes = 0;
};

template <std::size_t Size>
void check(const verdict (&table)[Size], const std::string& before, const std::string& after) {
    for (const verdict& it : table) {
        const std::string file = tensor_file_of(before + std::string(it.text) + after, it.bytes);
        INFO(file.substr(8));
        CHECK(!listing(file).empty() == it.accepted);
    }
}

/// Where $0 is a tensor without elements, and $1 one of a byte.
constexpr verdict whole_headers[] = {
    {R"()"sv, false},
    {R"({})"sv, true},
    {" \011\015\012{} \011\015\012"sv, true},
    {R"(null)"sv, false},
    {R"([])"sv, false},
    {R"({}x)"sv, false},
    {R"({},)"sv, false},
    {"{}\000"sv, false},
    {"\014{}"sv, false},
    {"\357\273\277{}"sv, false},
    {"{}\377"sv, false},
    {R"({,})"sv, false},
    {R"({"a":$0,})"sv, false},
    {R"({'a':$0})"sv, false},
    {R"({a:$0})"sv, false},
    {R"({"a" $0})"sv, false},
    {R"({"a":$0 "b":$0})"sv, false},
    {R"({"a":$0)"sv, false},
    {R"({"a"})"sv, false},
    {R"({"":$0})"sv, true},
    {R"({"a":null})"sv, false},
    {R"({"a":{}})"sv, false},
    {R"({"__metadata__":null})"sv, true},
    {R"({"__metadata__":{}})"sv, true},
    {R"({"__metadata__":{"a":"b","a":"c"}})"sv, true},
    {R"({"__metadata__":{"a":null}})"sv, false},
    {R"({"__metadata__":{"a":1}})"sv, false},
    {R"({"__metadata__":[]})"sv, false},
    {R"({"__metadata__":[["a","b"]]})"sv, false},
    {R"({"__metadata__":""})"sv, false},
    {R"({"__metadata__":null,"__metadata__":{}})"sv, false},
    {R"({"__metadata__":{},"__metadata__":{}})"sv, false},
    {R"({"\u005f_metadata__":null})"sv, true},
    {R"({"a":$0,"a":$0})"sv, true},
    {R"({"a":$0,"a":$1})"sv, true, 1},
    {R"({"a":$1,"a":$0})"sv, false, 1},
    {R"({"a":$1,"a":$0})"sv, true},
    {R"({"a":$0,"\u0061":$1})"sv, true, 1},
    {R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[7,3]},"a":$0})"sv, true},
    {R"({"a":{"dtype":"U9","shape":[0],"data_offsets":[0,0]},"a":$0})"sv, false},
    {R"({"a":$1,"b":$0})"sv, true, 1},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"b":$1})"sv, true, 2},
    {R"({"a":$1,"b":$1})"sv, false, 1},
    {R"({"a":$1})"sv, false, 2},
    {R"({"a":$1})"sv, false},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})"sv, false, 2},
    {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})"sv, false, 1},
    {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})"sv, false, 1},
    {R"({"a":["U8",[0],[0,0]]})"sv, true},
    {R"({"a":["U8",[0]]})"sv, false},
    {R"({"a":["U8",[0],[0,0],1]})"sv, false},
    {R"({"a":[[0],"U8",[0,0]]})"sv, false}};

/// Members of a tensor that has all three.
constexpr verdict more_members[] = {{R"("x":1)"sv, true},        {R"("dtype":"U8")"sv, false},
                                    {R"("shape":[0])"sv, false}, {R"("data_offsets":[0,0])"sv, false},
                                    {R"("x":1,"x":2)"sv, true},  {R"()"sv, false}};

/// Members of a tensor.
constexpr verdict fields[] = {
    {R"("dtype":"U8","shape":[0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"\u00558","shape":[0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":{"U8":null},"shape":[0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":{"U8":{}},"shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":{"U8":null,"U8":null},"shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":{},"shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":null,"shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"u8","shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":0,"shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":["U8"],"shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":{},"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":null,"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":"","data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":0,"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":[],"data_offsets":[0,1])"sv, true, 1},
    {R"("dtype":"U8","shape":[0],"data_offsets":[0])"sv, false},
    {R"("dtype":"U8","shape":[0],"data_offsets":[0,0,0])"sv, false},
    {R"("dtype":"U8","shape":[0],"data_offsets":{"0":0})"sv, false},
    {R"("dtype":"U8","shape":[0],"data_offsets":null)"sv, false},
    {R"("dtype":"U8","shape":[0],"data_offsets":[-0,0])"sv, false},
    {R"("dtype":"U8","shape":[0],"data_offsets":[0.0,0])"sv, false},
    {R"("dtype":"U8","shape":[0],"data_offsets":[0,18446744073709551615])"sv, false},
    {R"("dtype":"F4","shape":[1],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"F4","shape":[1],"data_offsets":[0,1])"sv, false, 1},
    {R"("dtype":"F4","shape":[2],"data_offsets":[0,1])"sv, true, 1},
    {R"("dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3])"sv, true, 3},
    {R"("dtype":"F6_E3M2","shape":[2],"data_offsets":[0,2])"sv, false, 2},
    {R"("dtype":"F64","shape":[18446744073709551615,0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"F64","shape":[4294967296,4294967296,0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"F64","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"F64","shape":[0,18446744073709551615,2],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":[2305843009213693951],"data_offsets":[0,2305843009213693951])"sv, false},
    {R"("dtype":"F64","shape":[2305843009213693952,8],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615])"sv, false},
    {R"("dtype":"C128","shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"F8_E4M3FN","shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"F8_E3M4","shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"U4","shape":[0],"data_offsets":[0,0])"sv, false},
    {R"("dtype":"C64","shape":[0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"F8_E8M0","shape":[0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"F8_E4M3FNUZ","shape":[0],"data_offsets":[0,0])"sv, true},
    {R"("dtype":"F8_E5M2FNUZ","shape":[0],"data_offsets":[0,0])"sv, true}};

/// Values of a member that is unknown.
constexpr verdict values[] = {{R"(null)"sv, true},
                              {R"(true)"sv, true},
                              {R"(false)"sv, true},
                              {R"(truex)"sv, false},
                              {R"(tru)"sv, false},
                              {R"(nul)"sv, false},
                              {R"(NaN)"sv, false},
                              {R"(Infinity)"sv, false},
                              {R"("")"sv, true},
                              {R"([])"sv, true},
                              {R"({})"sv, true},
                              {R"([1,])"sv, false},
                              {R"([,1])"sv, false},
                              {R"([1 2])"sv, false},
                              {R"({"a":})"sv, false},
                              {R"({"a"})"sv, false},
                              {R"({1:2})"sv, false},
                              {R"({"a":1,})"sv, false},
                              {R"({"a":1,"a":2})"sv, true},
                              {R"(0)"sv, true},
                              {R"(-0)"sv, true},
                              {R"(-)"sv, false},
                              {R"(--1)"sv, false},
                              {R"(+1)"sv, false},
                              {R"(01)"sv, false},
                              {R"(00)"sv, false},
                              {R"(-01)"sv, false},
                              {R"(1.)"sv, false},
                              {R"(.5)"sv, false},
                              {R"(0.)"sv, false},
                              {R"(1.5e3)"sv, true},
                              {R"(1E+2)"sv, true},
                              {R"(1e)"sv, false},
                              {R"(1e+)"sv, false},
                              {R"(0x1)"sv, false},
                              {R"(1_0)"sv, false},
                              {R"(1e308)"sv, true},
                              {R"(1e309)"sv, false},
                              {R"(-1e309)"sv, false},
                              {R"(1e400)"sv, false},
                              {R"(1e-400)"sv, true},
                              {R"(0e99999999999999999999)"sv, true},
                              {R"(1e99999999999999999999)"sv, false},
                              {R"(1e-99999999999999999999)"sv, true},
                              {R"(0.1e309)"sv, true},
                              {R"(10e307)"sv, true},
                              {R"(0.00001e313)"sv, true},
                              {R"(1.7976931348623157e308)"sv, true},
                              {R"(1.7976931348623158e308)"sv, false},
                              {R"(179769313486231580e291)"sv, true},
                              {R"(18446744073709551615e288)"sv, true},
                              {R"(18446744073709551615e289)"sv, false},
                              {R"(18446744073709551616)"sv, true},
                              {R"("\ud800")"sv, false},
                              {R"("\x")"sv, false},
                              {R"("a)"sv, false}};

/// Dimensions after a zero.
constexpr verdict dimensions[] = {{R"(0)"sv, true},
                                  {R"(1)"sv, true},
                                  {R"(18446744073709551615)"sv, true},
                                  {R"(18446744073709551616)"sv, false},
                                  {R"(9223372036854775808)"sv, true},
                                  {R"(0.0)"sv, false},
                                  {R"(1.0)"sv, false},
                                  {R"(1e0)"sv, false},
                                  {R"(1E0)"sv, false},
                                  {R"(10e-1)"sv, false},
                                  {R"(-0)"sv, false},
                                  {R"(-1)"sv, false},
                                  {R"(01)"sv, false},
                                  {R"(00)"sv, false},
                                  {R"(+1)"sv, false},
                                  {R"(null)"sv, false},
                                  {R"(true)"sv, false},
                                  {R"("1")"sv, false},
                                  {R"([1])"sv, false},
                                  {R"(1 )"sv, true},
                                  {R"( 1)"sv, true},
                                  {R"(1,)"sv, false}};

/// Names of a tensor.
constexpr verdict names[] = {{R"(\u0041)"sv, true},
                             {R"(\uABcd)"sv, true},
                             {R"(\u0000)"sv, true},
                             {R"(\/\b\f\n\r\t\"\\)"sv, true},
                             {R"(\ud83d\ude00)"sv, true},
                             {R"(\uD83D\uDE00)"sv, true},
                             {R"(\ud800)"sv, false},
                             {R"(\udc00)"sv, false},
                             {R"(\ud800\u0041)"sv, false},
                             {R"(\ud800x)"sv, false},
                             {R"(\ud800\n)"sv, false},
                             {R"(\ud800\ud800\udc00)"sv, false},
                             {R"(\ud800\ud800)"sv, false},
                             {R"(\ud800\udbff)"sv, false},
                             {R"(\ud800\ue000)"sv, false},
                             {R"(\udbff\udfff)"sv, true},
                             {R"(\ude00\ud83d)"sv, false},
                             {R"(\u00zz)"sv, false},
                             {R"(\u+041)"sv, false},
                             {R"(\u004)"sv, false},
                             {R"(\U0041)"sv, false},
                             {R"(\x)"sv, false},
                             {R"(\')"sv, false},
                             {"\177"sv, true},
                             {"\037"sv, false},
                             {"\000"sv, false},
                             {"\012"sv, false},
                             {"\377"sv, false},
                             {"\200"sv, false},
                             {"\303\251"sv, true},
                             {"\303"sv, false},
                             {"\300\200"sv, false},
                             {"\301\277"sv, false},
                             {"\340\200\200"sv, false},
                             {"\340\240\200"sv, true},
                             {"\355\237\277"sv, true},
                             {"\355\240\200"sv, false},
                             {"\356\200\200"sv, true},
                             {"\360\217\277\277"sv, false},
                             {"\360\237\230\200"sv, true},
                             {"\364\217\277\277"sv, true},
                             {"\364\220\200\200"sv, false},
                             {"\365\200\200\200"sv, false}};

const std::string empty = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";

}  // namespace

TEST_CASE("safetensors: headers are accepted where the reference implementation accepts them") {
    for (const verdict& it : whole_headers) {
        std::string header(it.text);
        for (std::size_t at = 0; (at = header.find('$')) != std::string::npos;) {
            const bool has_byte = header[at + 1] == '1';
            header.replace(at, 2, has_byte ? R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})"s : empty);
        }
        INFO(header);
        CHECK(!listing(tensor_file_of(header, it.bytes)).empty() == it.accepted);
    }
    const std::string zero = R"({"a":{"dtype":"U8","data_offsets":[0,0],"shape":[0)";
    check(more_members, R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],)", "}}");
    check(fields, R"({"a":{)", "}}");
    check(values, zero + R"(],"x":)", "}}");
    check(dimensions, zero + ",", "]}}");
    check(names, "{\"", "\":" + empty + "}");
    for (const mp::detail::tensor_dtype& it : mp::detail::tensor_dtypes) {
        const std::string dtype(it.name);
        CHECK(listing(tensor_file_of(R"({"a":[")" + dtype + R"(",[0],[0,0]]})", 0)) ==
              "a " + dtype + " [0]\n.");
    }
    // Values nested 125 deep in a tensor, 127 in all.
    for (const std::size_t depth : {125U, 126U}) {
        const std::string nested = std::string(depth, '[') + std::string(depth, ']');
        CHECK(listing(tensor_file_of(zero + R"(],"x":)" + nested + "}}", 0)).empty() == (depth == 126));
    }
    CHECK(listing(tensor_file_of(std::string(1000000, '['), 0)).empty());
    // The last of the members with one name counts.
    const auto twice = read_tensor_file(
        tensor_file_of(R"({"a":)" + empty + R"(,"__metadata__":{"k":"v","k":"w"},"a":["I8",[1],[0,1]]})", 1));
    CHECK(twice.tensors.at("a").dtype == "I8");
    CHECK(twice.metadata.at("k") == "w");
    CHECK(read_tensor_file(tensor_file_of(R"({"\ud83d\ude00\u00e9\u20ac":)" + empty + "}", 0))
              .tensors.begin()
              ->first == "\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac");
}

TEST_CASE("safetensors: a file whose metadata are null is read") {
    const test_folder folder;
    const std::string header =
        R"({"__metadata__":null,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    write_file(folder.file("x"), tensor_file_of(header + std::string(6, ' '), 0).append("\0\0\x80\x3f"sv));
    const mp::tensor_file file(folder.file("x"));
    CHECK(file.metadata().empty());
    CHECK(file.matrix<float>("a")(0, 0) == 1.0F);
    // Elements of a file without padding may lie where their type cannot be read in place.
    write_file(folder.file("y"), tensor_file_of(header, 0).append("\0\0\x80\x3f"sv));
    float value = 0;
    mp::tensor_file(folder.file("y")).read("a", value);
    CHECK(value == 1.0F);
}

TEST_CASE("safetensors: the length of a header is at most 100 MB, and within the file") {
    const auto refusal = [](std::size_t size) {
        std::string file = tensor_file_of("", 0) + "\xff" + std::string(size - 1, ' ');
        for (unsigned i = 0; i < 4; ++i) file[i] = static_cast<char>(size >> (8 * i) & 255);
        return thrown<mp::file_error>([&] { read_tensor_file(file); });
    };
    CHECK(holds(refusal(100'000'000), "not valid UTF-8"));
    CHECK(holds(refusal(100'000'001), "the header would have 100000001 bytes"));
    CHECK(listing("\x02\0\0\0\0\0\0\0{}"sv) == ".");
    CHECK(listing("\x03\0\0\0\0\0\0\0{}"sv).empty());
    CHECK(listing("\x01\0\0\0\0\0\0\0{}"sv).empty());
    CHECK(listing("\x02\0\0\0\0\0\0\x80{}"sv).empty());
    CHECK(listing("\0\0\0\0\0\0\0\0"sv).empty());
    CHECK(listing("\x02\0\0\0\0\0\0"sv).empty());
}

TEST_CASE("safetensors: sums of sizes do not wrap") {
    // Nine arrays of 2^61 - 1 bytes and one of the rest end at 2^64 + 8: with wrapping sums, at the end of the file.
    std::string header = "{";
    std::uint64_t begin = 0;
    for (int i = 0; i < 9; ++i) {
        std::uint64_t end = begin + (std::uint64_t{1} << 61) - 1;
        if (i == 8) end = 8;
        header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":["U8",[)" + std::to_string(end - begin) +
                  "],[" + std::to_string(begin) + "," + std::to_string(end) + "]]";
        begin = end;
    }
    CHECK(listing(tensor_file_of(header + "}", 8)).empty());
}

TEST_CASE("safetensors: a shape that no matrix has is read, and refused as a matrix") {
    const test_folder folder;
    const auto matrix = [&](const std::string& shape) {
        write_file(
            folder.file("x"),
            tensor_file_of(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})", 0));
        const mp::tensor_file file(folder.file("x"));
        CHECK(file.at("a").count == 0);
        CHECK(file.view<float>("a").empty());
        const auto view = file.matrix<float>("a");
        return std::vector<std::ptrdiff_t>{view.rows, view.columns};
    };
    using sizes = std::vector<std::ptrdiff_t>;
    CHECK(matrix("[4,0]") == sizes{4, 0});
    CHECK(matrix("[0,5]") == sizes{0, 5});
    CHECK(matrix("[0]") == sizes{1, 0});
    CHECK(matrix("[2,3,0]") == sizes{6, 0});
    CHECK(matrix("[2,0,3]") == sizes{0, 3});
    if constexpr (sizeof(std::size_t) == 8) {
        CHECK(matrix("[0,9223372036854775807]") == sizes{0, (std::numeric_limits<std::ptrdiff_t>::max)()});
        for (const char* const shape : {"[0,9223372036854775808]", "[9223372036854775808,0]",
                                        "[4294967296,2147483648,0]", "[0,18446744073709551615,1]"}) {
            CAPTURE(shape);
            CHECK(holds(thrown<mp::file_error>([&] { matrix(shape); }), "which is too large for a matrix"));
        }
    }
}

TEST_CASE("safetensors: texts that are not UTF-8, and headers that the reference refuses, are not written") {
    const test_folder folder;
    const std::string path = folder.file("x");
    using pairs = std::vector<std::pair<std::string, std::string>>;
    const auto refused = [&](const std::vector<mp::tensor_description>& tensors, const pairs& metadata) {
        return thrown<mp::argument_error>([&] { mp::safetensors_writer(path, tensors, metadata); });
    };
    CHECK(refused({{"a\xff", "U8", {1}}}, {}) ==
          "mp::safetensors_writer: name is 'a\\xff'; it must be valid UTF-8");
    CHECK(holds(refused({{"\xed\xa0\x80", "U8", {1}}}, {}), "must be valid UTF-8"));
    CHECK(holds(refused({}, {{"\xc0\x80", ""}}), "metadata is '\\xc0\\x80'; it must be valid UTF-8"));
    CHECK(holds(refused({}, {{"k", "\xc3"}}), "must be valid UTF-8"));
    CHECK(holds(refused({}, {{"k", "v"}, {"k", "w"}}), "must not have two values of one key"));
    CHECK(holds(refused({}, {{"k", std::string(17'000'000, '\1')}}), "must be at most 100000000"));
    if constexpr (sizeof(std::size_t) == 8) {
        std::vector<mp::tensor_description> large;
        for (int i = 0; i < 130; ++i) large.push_back({std::to_string(i), "U8", {std::size_t{1} << 57}});
        CHECK(holds(refused(large, {}), "must be an array that ends below 2^64 bytes"));
        CHECK(holds(refused({{"a", "F64", {std::size_t{1} << 61}}}, {}), "that can be addressed"));
    }
    float value = 1;
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { mp::save_safetensors(path, [&](auto& visit) { visit("\xff", value); }); }),
                "must be valid UTF-8"));
    CHECK(folder.count() == 0);
    mp::safetensors_writer out(path, std::vector<mp::tensor_description>{{"\xc3\xa9", "U8", {0}}});
    out.commit();
    CHECK(mp::tensor_file(path).at("\xc3\xa9").count == 0);
}
