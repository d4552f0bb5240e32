// SPDX-License-Identifier: MIT Files of tensors against one that torch has written, against bytes written out
// here, and against hostile headers.
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using namespace std::string_literals;

/// A file with this header and `bytes` bytes behind it.
std::string file_of(std::string_view header, std::size_t bytes) {
    std::string result;
    for (unsigned i = 0; i < 8; ++i)
        result.push_back(static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 255));
    return result.append(header).append(bytes, '\0');
}

/// The message with which a file is refused.
std::string refusal(std::string_view bytes) {
    const test_folder folder;
    write_file(folder.file("x"), bytes);
    return thrown<mp::file_error>([&] { const mp::tensor_file file(folder.file("x")); });
}

/// The array {1, 2, ...} of a type is what it was, under the name that safetensors has for the type.
template <class Value>
void round_trip(const char* dtype) {
    CAPTURE(dtype);
    const test_folder folder;
    std::vector<Value> values(5);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<Value>(static_cast<float>(i % 2 + 1));
    const std::string path = folder.file("values");
    mp::save_safetensors(path, [&](auto& visit) { visit("values", values); });
    const mp::tensor_file file(path);
    CHECK(file.at("values").dtype == dtype);
    CHECK(file.at("values").shape == std::vector<std::size_t>{5});
    std::vector<Value> again(5);
    file.read("values", again);
    CHECK(again == values);
}

}  // namespace

TEST_CASE("a file that torch has written is read") {
    const mp::tensor_file file(MP_SOURCE_DIR "/tests/data/torch.safetensors");
    CHECK(file.tensors().size() == 5);
    CHECK(file.metadata().at("made \"by\"") == "torch\n");
    CHECK(file.at("w").shape == std::vector<std::size_t>{2, 3});
    CHECK(file.at("n").shape.empty());
    CHECK(file.at("n").count == 1);
    std::vector<float> w(6);
    file.read("w", w);
    CHECK(w[0] == 1.0F);
    CHECK(w[1] == -2.5F);
    CHECK(std::isinf(w[4]));
    CHECK(std::signbit(w[5]));
    std::vector<mp::half> h(2);
    file.read("h", h);
    CHECK(h == std::vector<mp::half>{mp::half(0.1F), mp::half(65504.0F)});
    std::vector<mp::bfloat16> b(3);
    file.read("b", b);
    CHECK(b[2] == mp::bfloat16(3.0F));
    std::vector<mp::float8_e4m3fn> q(2);
    file.read("q", q);
    CHECK(static_cast<float>(q[0]) == 448.0F);
    std::int64_t n = 0;
    file.read("n", n);
    CHECK(n == 7);
}

TEST_CASE("arrays of other types are converted where that is asked for, and refused else") {
    const mp::tensor_file file(MP_SOURCE_DIR "/tests/data/torch.safetensors");
    std::vector<mp::half> w(6);
    file.read_converted("w", w);
    CHECK(static_cast<float>(w[1]) == -2.5F);
    std::vector<float> values(2, 9.0F);
    file.read_converted("h", values);
    CHECK(values[0] == 0.0999755859375F);
    file.read_converted("q", values);
    CHECK(values[0] == 448.0F);
    std::vector<double> wide(3);
    file.read_converted("b", wide);
    CHECK(wide[2] == 3.0);

    const auto read = [&](const char* name, auto& to) {
        return thrown<mp::file_error>([&] { file.read(name, to); });
    };
    CHECK(holds(read("h", values), "'h' has elements of type F16, and F32 was expected"));
    CHECK(holds(read("w", values), "'w' has 6 elements, and 2 were expected"));
    CHECK(holds(read("v\n", values), "there is no 'v\\x0a'"));
    float one = 9.0F;
    CHECK(holds(thrown<mp::file_error>([&] { file.read_converted("n", one); }),
                "elements of type I64, which are not converted"));
    CHECK(one == 9.0F);
}

TEST_CASE("the bytes are those of the format") {
    const test_folder folder;
    const std::string path = folder.file("x");
    const std::vector<float> w{1.0F, -2.0F};
    const std::uint16_t n = 0x0102;
    mp::save_safetensors(path, [&](auto& visit) {
        visit("n", n);
        visit("w\"\x01", mp::row_major(w.data(), 2, 1));
    });
    const std::string header = R"({"w\"\u0001":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                               R"("n":{"dtype":"U16","shape":[],"data_offsets":[8,10]}})"s;
    std::string expected = file_of(header + std::string((8 - header.size() % 8) % 8, ' '), 0);
    expected.append("\0\0\x80\x3f\0\0\0\xc0\x02\x01"s);
    CHECK(read_file(path) == expected);
    CHECK(folder.count() == 1);
}

TEST_CASE("every type has its name, and formats that safetensors lacks keep theirs beside it") {
    round_trip<double>("F64");
    round_trip<float>("F32");
    round_trip<mp::half>("F16");
    round_trip<mp::bfloat16>("BF16");
    round_trip<mp::float8_e4m3fn>("F8_E4M3");
    round_trip<mp::float8_e5m2>("F8_E5M2");
    round_trip<mp::float8_e4m3fnuz>("F8_E4M3FNUZ");
    round_trip<mp::float8_e5m2fnuz>("F8_E5M2FNUZ");
    round_trip<mp::float8_e8m0fnu>("F8_E8M0");
    round_trip<mp::float8_e3m4>("U8");
    round_trip<mp::float4_e2m1fn>("U8");
    round_trip<std::int8_t>("I8");
    round_trip<std::uint8_t>("U8");
    round_trip<std::int16_t>("I16");
    round_trip<std::uint16_t>("U16");
    round_trip<std::int32_t>("I32");
    round_trip<std::uint32_t>("U32");
    round_trip<std::int64_t>("I64");
    round_trip<std::uint64_t>("U64");

    const test_folder folder;
    std::vector<mp::float8_e3m4> values(3, mp::float8_e3m4(1.0F));
    mp::save_safetensors(folder.file("x"), [&](auto& visit) { visit("x", values); });
    const mp::tensor_file file(folder.file("x"));
    std::vector<mp::float8_e4m3> others(3);
    CHECK(holds(thrown<mp::file_error>([&] { file.read("x", others); }),
                "'x' has elements of type float8_e3m4, and float8_e4m3 was expected"));
    std::vector<std::uint8_t> bytes(3);
    CHECK(holds(thrown<mp::file_error>([&] { file.read("x", bytes); }), "and U8 was expected"));
}

TEST_CASE("booleans are 0 or 1") {
    const test_folder folder;
    const std::string header = R"({"b":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
    bool values[2] = {true, true};
    write_file(folder.file("x"), file_of(header, 2));
    mp::tensor_file(folder.file("x")).read("b", values);
    CHECK_FALSE(values[1]);
    write_file(folder.file("y"), file_of(header, 1) + '\x02');
    const mp::tensor_file file(folder.file("y"));
    CHECK(holds(thrown<mp::file_error>([&] { file.read("b", values); }), "'b' is not 0 or 1"));
}

TEST_CASE("packed elements take less than a byte") {
    const test_folder folder;
    write_file(folder.file("x"), file_of(R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]},)"
                                         R"("b":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[3,6]}})",
                                         6));
    const mp::tensor_file file(folder.file("x"));
    CHECK(file.at("a").count == 6);
    CHECK(file.at("b").bytes.size() == 3);
    CHECK(holds(refusal(file_of(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1)),
                "which does not fit its"));
}

TEST_CASE("an empty array and an empty file of tensors are read") {
    const test_folder folder;
    std::vector<float> none;
    mp::save_safetensors(folder.file("x"), [&](auto& visit) { visit("none", none); });
    mp::tensor_file(folder.file("x")).read("none", none);
    mp::save_safetensors(folder.file("x"), [](auto&) {});
    CHECK(mp::tensor_file(folder.file("x")).tensors().empty());
    write_file(folder.file("spaces"), file_of(" {\t}\r\n ", 0));
    CHECK(mp::tensor_file(folder.file("spaces")).tensors().empty());
    write_file(folder.file("no dimensions"),
               file_of(R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", 0));
    if constexpr (sizeof(std::size_t) == 8) {
        CHECK(mp::tensor_file(folder.file("no dimensions")).at("a").count == 0);
    }
}

TEST_CASE("a file that is cut off anywhere is refused") {
    const std::string whole = read_file(MP_SOURCE_DIR "/tests/data/torch.safetensors");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        CAPTURE(length);
        const std::string message = refusal(whole.substr(0, length));
        CHECK(message != "(nothing was thrown)");
    }
    CHECK(refusal(whole) == "(nothing was thrown)");
    CHECK(holds(refusal(whole + '\0'), "the tensors take 44 bytes, and there are 45"));
}

TEST_CASE("damaged and hostile headers are refused, by name and byte") {
    const auto tensor = [](std::string_view text, std::size_t bytes = 4) {
        return refusal(file_of("{\"a\":" + std::string(text) + "}", bytes));
    };
    CHECK(holds(refusal(""), "is too short"));
    CHECK(holds(refusal(std::string(8, '\xff')), "would have 18446744073709551615 bytes"));
    CHECK(holds(refusal(file_of("[]", 0)), "damaged at byte 8: '{' was expected"));
    CHECK(holds(refusal(file_of("{} {", 0)), "there is more after the end"));
    CHECK(holds(refusal(file_of(R"({"a)", 0)), "a string has no end"));
    CHECK(holds(refusal(file_of("{\"a\n\":", 0)), "a control character"));
    CHECK(holds(refusal(file_of(R"({"\x":)", 0)), "an escape is unknown"));
    CHECK(holds(refusal(file_of(R"({"\u12g4":)", 0)), "an escape is unknown"));
    CHECK(holds(refusal(file_of(R"({"\ud800\u0041":)", 0)), "half of a surrogate pair"));
    CHECK(holds(refusal(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0)),
                "__metadata__ is there twice"));
    CHECK(holds(refusal(file_of("{\"\xff\":", 0)), "damaged at byte 10: the text is not valid UTF-8"));
    CHECK(holds(refusal(file_of(R"({"__metadata__":{"k":1}})", 0)), "'\"' was expected"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1]})"), "a tensor lacks its"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), "data_offsets are not two"));
    CHECK(holds(tensor(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})"), "the type 'F33' is unknown"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"shape":[1]})"),
                "two members 'shape'"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,5]})"), "beyond the end of the file"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), "beyond the end of the file"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), "a whole number below"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"), "a whole number below"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[99999999999999999999999],"data_offsets":[0,4]})"),
                "a whole number"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "which does not fit its"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})"),
                "[4294967296, 4294967296], which does not fit its"));
    CHECK(holds(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})", 5),
                "'a' overlaps another tensor, or lies after a gap"));
    const auto twice = [](std::string_view first, std::string_view second) {
        return refusal(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + std::string(first) +
                                   R"(},")" + std::string(second),
                               4));
    };
    CHECK(holds(twice("[0,2]", R"(a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})"),
                "'a' overlaps another tensor, or lies after a gap"));
    CHECK(holds(twice("[0,2]", R"(b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})"),
                "'b' overlaps another tensor"));
    CHECK(holds(refusal(file_of(std::string(100000, '{'), 0)), "'\"' was expected"));
}

TEST_CASE("what cannot be read or written is named") {
    const test_folder folder;
    const std::string missing = folder.file("missing/file");
    const std::string read = thrown<mp::file_error>([&] { const mp::tensor_file file(missing); });
    CHECK(holds(read, "missing/file: cannot be read: No such file"));
    const std::string of_folder =
        thrown<mp::file_error>([&] { const mp::tensor_file file(folder.file("")); });
    CHECK(holds(of_folder, "cannot be read"));
    std::vector<float> w(3);
    const std::string written =
        thrown<mp::file_error>([&] { mp::save_safetensors(missing, [&](auto& visit) { visit("w", w); }); });
    CHECK(holds(written, "cannot be written: No such file"));
    const std::string twice = thrown<mp::argument_error>([&] {
        mp::save_safetensors(folder.file("x"), [&](auto& visit) {
            visit("w", w);
            visit("w", w);
        });
    });
    CHECK(holds(twice, "there is one of this name"));
    CHECK(folder.count() == 0);
}
