// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/train/training/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace {

std::string message_of(auto f) {
    try {
        f();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return {};
}

TEST_CASE("a tensor is dense, row-major, at a cache line, and zero at first") {
    mp::tensor<mp::bfloat16> it(3, 5);
    CHECK(it.rows() == 3);
    CHECK(it.columns() == 5);
    CHECK(it.size() == 15);
    CHECK(it.bytes() == 30);
    CHECK(reinterpret_cast<std::uintptr_t>(it.values().data()) % 64 == 0);
    CHECK(std::all_of(it.values().begin(), it.values().end(), [](auto x) { return x.bits() == 0; }));
    it.view()(2, 4) = mp::bfloat16(1);
    CHECK(it.values()[14] == mp::bfloat16(1));
    CHECK(std::as_const(it).view()(2, 4) == mp::bfloat16(1));
    CHECK(mp::tensor<float>().size() == 0);
    CHECK(mp::tensor<float>(0, 7).view().columns == 7);
}

TEST_CASE("a tensor keeps its memory where it gets no larger, and zeros it where it does") {
    mp::tensor<float> it(4, 4);
    const float* const before = it.values().data();
    it.values()[0] = 2;
    it.resize(2, 8);
    it.resize(1, 3);
    CHECK(it.values().data() == before);
    CHECK(it.values()[0] == 2);
    CHECK(it.bytes() == 64);
    it.resize(5, 5);
    CHECK(std::all_of(it.values().begin(), it.values().end(), [](float x) { return x == 0; }));
}

TEST_CASE("a tensor that was moved from is empty") {
    mp::tensor<float> from(2, 2);
    float* const memory = from.values().data();
    mp::tensor<float> to(std::move(from));
    CHECK(to.values().data() == memory);
    CHECK(from.size() == 0);  // NOLINT(bugprone-use-after-move)
    mp::tensor<float> other;
    other = std::move(to);
    CHECK(other.values().data() == memory);
    CHECK(other.view().rows == 2);
}

TEST_CASE("a tensor names a size that cannot be, and stays as it was") {
    mp::tensor<double> it(1, 2);
    CHECK(message_of([&] { it.resize(-1, 2); }) == "mp::tensor::resize: rows is -1; it must not be negative");
    CHECK(message_of([&] { it.resize(1, -2); }) ==
          "mp::tensor::resize: columns is -2; it must not be negative");
    const auto most = std::numeric_limits<std::ptrdiff_t>::max();
    CHECK(message_of([&] { it.resize(most, 2); }).find("it must fit into memory with columns, which is 2") !=
          std::string::npos);
    CHECK(it.rows() == 1);
    CHECK(it.columns() == 2);
}

}  // namespace
