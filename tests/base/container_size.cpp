// SPDX-License-Identifier: MIT
// Sizes whose bytes or bits no pointer could count are refused by name, before they are multiplied.
#include <doctest/doctest.h>
#include <mp/block_scaled.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/trace.hpp>
#include <mp/packed_array.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
constexpr std::ptrdiff_t longest = std::numeric_limits<std::ptrdiff_t>::max();

/// The sizes at which products of one to eight bytes wrap around, and their neighbours.
template <class Function>
void for_each_huge_size(Function function) {
    for (std::size_t divisor = 1; divisor < 8; ++divisor) {
        for (std::size_t near = 0; near < 3; ++near) {
            if (divisor > 1) function(most / divisor + near);
            function(most / divisor - near);
        }
    }
}

/// Whether it throws argument_error, and nothing of a container's own. What passes is not tried: it would ask
/// for more memory than sanitizers let pass.
template <class Function>
bool refused(Function function) {
    try {
        function();
        return false;
    } catch (const mp::argument_error&) {
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace

TEST_CASE("packed arrays of more elements than can be addressed are refused") {
    using array = mp::packed_array<mp::float4_e2m1fn>;
    const std::string limit = std::to_string(most / 8);
    CHECK(thrown<mp::argument_error>([] { array a(most); }) ==
          "mp::packed_array: size is " + std::to_string(most) + "; it must be at most " + limit +
              ", so that the elements can be addressed");
    array small(3, mp::float4_e2m1fn(1.5F));
    CHECK(thrown<mp::argument_error>([&] {
              small.resize(most);
          }).starts_with("mp::packed_array::resize: size is " + std::to_string(most) + ";"));
    CHECK(small.size() == 3);
    CHECK(float(small[2]) == 1.5F);
    for_each_huge_size([](std::size_t size) {
        CHECK(refused([=] { array a(size); }));
        CHECK(refused([=] { mp::packed_array<mp::float6_e2m3fn> a(size); }));
    });
}

TEST_CASE("block-scaled matrices whose product of sizes wraps around are refused") {
    CHECK(holds(thrown<mp::argument_error>([] { mp::mxfp4 a(longest, longest); }),
                "mp::block_scaled: rows is"));
    CHECK(holds(thrown<mp::argument_error>([] { mp::mxfp4 a(1, longest); }), "mp::block_scaled: columns is"));
    // 2^33 * 2^33 is 4 times the largest number and 2^32 * 2^32 wraps to nothing at all.
    for (const auto direction : {mp::block_direction::along_rows, mp::block_direction::along_columns}) {
        for (int rows = 0; rows < 63; ++rows) {
            for (int columns = 52; columns < 63; ++columns) {
                if (rows + columns < 61) continue;
                const auto r = static_cast<std::ptrdiff_t>(std::uint64_t{1} << rows);
                const auto c = static_cast<std::ptrdiff_t>(std::uint64_t{1} << columns);
                CHECK(refused([=] { mp::mxfp8_e4m3 a(r, c, direction); }));
                CHECK(refused([=] { mp::nvfp4 a(c, r, direction); }));
            }
        }
    }
    const mp::mxfp4 empty(longest, 0);
    CHECK(empty.bytes().empty());
}

TEST_CASE("memory of products is not smaller than what was asked for") {
    mp::gemm_workspace workspace;
    std::byte* const before = workspace.reserve(10);
    CHECK(thrown<mp::argument_error>([&] {
              (void)workspace.reserve(most);
          }).starts_with("mp::gemm_workspace::reserve: bytes is " + std::to_string(most)));
    for_each_huge_size([&](std::size_t size) { CHECK(refused([&] { (void)workspace.reserve(size); })); });
    CHECK(workspace.size() == 10);
    CHECK(workspace.reserve(10) == before);

    // A view may claim anything; what it claims is not read before it is refused.
    const mp::float8_e4m3fn one{};
    for (const std::ptrdiff_t columns : {longest, longest / 2, longest / 64}) {
        CHECK(thrown<mp::argument_error>([&] {
                  mp::packed_b<mp::float8_e4m3fn> b(mp::cpu{}, mp::row_major(&one, 1, columns));
              }).starts_with("mp::packed_b: b.columns is "));
    }
    CHECK(thrown<mp::argument_error>([&] {
              mp::packed_b<mp::float8_e4m3fn> b(mp::cpu{}, mp::row_major(&one, longest, 1));
          }).starts_with("mp::packed_b: b.rows is "));
}

TEST_CASE("sums of gradients and traces of more than can be addressed are refused") {
    CHECK(holds(thrown<mp::argument_error>([] { mp::gradient_accumulator sum(most); }),
                "mp::gradient_accumulator: size is"));
    CHECK(holds(thrown<mp::argument_error>([] { mp::trace_recorder trace({}, most); }),
                "mp::trace_recorder: expected_steps is"));
    for_each_huge_size([](std::size_t size) {
        CHECK(refused([=] { mp::gradient_accumulator sum(size); }));
        CHECK(refused([=] { mp::trace_recorder trace({}, size); }));
    });
}
