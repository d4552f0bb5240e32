// SPDX-License-Identifier: MIT
// Tests of interop/torch.hpp, over PyTorch's headers or what stands in for them: whoever includes this has included either.
#pragma once

#include <mp/frontends/interop/torch.hpp>

#include <doctest/doctest.h>
#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <type_traits>
#include <vector>

namespace torch_checks {

using c10::ScalarType;
template <class Torch, class Number>
inline constexpr bool is = mp::torch_number<Torch> && std::is_same_v<mp::torch_counterpart_t<Torch>, Number>;

static_assert(is<c10::Half, mp::half> && is<c10::BFloat16, mp::bfloat16>);
static_assert(is<c10::Float8_e4m3fn, mp::float8_e4m3fn> && is<c10::Float8_e5m2, mp::float8_e5m2>);
static_assert(is<c10::Float8_e4m3fnuz, mp::float8_e4m3fnuz> && is<c10::Float8_e5m2fnuz, mp::float8_e5m2fnuz>);
static_assert(is<c10::Float8_e8m0fnu, mp::float8_e8m0fnu>);
static_assert(mp::torch_packed_pair<c10::Float4_e2m1fn_x2> && !mp::torch_number<c10::Float4_e2m1fn_x2>);
static_assert(!mp::torch_number<c10::complex<c10::Half>> && !mp::torch_number<c10::quint8>);
static_assert(!mp::torch_number<mp::half> && !mp::torch_number<float> && !mp::torch_number<int>);

/// What is asked of an at::Tensor.
template <class T>
struct tensor {
    T* memory;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    ScalarType dtype;

    [[nodiscard]] std::int64_t dim() const { return static_cast<std::int64_t>(sizes.size()); }
    [[nodiscard]] std::int64_t size(std::int64_t i) const { return sizes.at(static_cast<std::size_t>(i)); }
    [[nodiscard]] std::int64_t stride(std::int64_t i) const {
        return strides.at(static_cast<std::size_t>(i));
    }
    [[nodiscard]] std::int64_t numel() const {
        std::int64_t n = 1;
        for (const std::int64_t s : sizes) n *= s;
        return n;
    }
    [[nodiscard]] ScalarType scalar_type() const { return dtype; }
    [[nodiscard]] void* data_ptr() const { return memory; }
};
static_assert(mp::torch_tensor<tensor<float>> && !mp::torch_tensor<std::vector<float>>);

/// The elements of a view by rows.
template <class T>
std::vector<float> elements(mp::matrix_view<T> view) {
    std::vector<float> result;
    for (std::ptrdiff_t r = 0; r < view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < view.columns; ++c) result.push_back(view(r, c));
    }
    return result;
}

TEST_CASE("single numbers keep their bits") {
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        REQUIRE(mp::from_torch(c10::Half(bits, c10::Half::from_bits())).bits() == bits);
        REQUIRE(mp::from_torch<mp::bfloat16>(c10::BFloat16(bits, c10::BFloat16::from_bits())).bits() == bits);
        REQUIRE(mp::to_torch<c10::Half>(mp::half::from_bits(bits)).x == bits);
        REQUIRE(mp::to_torch<c10::BFloat16>(mp::bfloat16::from_bits(bits)).x == bits);
    }
    for (std::uint32_t code = 0; code < 256; ++code) {
        const auto bits = static_cast<std::uint8_t>(code);
        using e5m2fnuz = c10::Float8_e5m2fnuz;
        REQUIRE(mp::from_torch(e5m2fnuz(bits, e5m2fnuz::from_bits())).bits() == bits);
        REQUIRE(mp::to_torch<c10::Float8_e8m0fnu>(mp::float8_e8m0fnu::from_bits(bits)).x == bits);
    }
    const c10::Float8_e4m3fn largest(0x7E, c10::Float8_e4m3fn::from_bits());
    CHECK(mp::from_torch(largest) == mp::float8_e4m3fn{448});
}

TEST_CASE("arrays are seen as the other type") {
    std::vector<c10::BFloat16> theirs{{0x3FC0, c10::BFloat16::from_bits()},
                                      {0x4000, c10::BFloat16::from_bits()}};
    const std::span<mp::bfloat16> ours = mp::view_from_torch(std::span(theirs));
    CHECK(ours.data() == static_cast<void*>(theirs.data()));
    CHECK(ours[0] == mp::bfloat16{1.5F});
    CHECK(ours[1] == mp::bfloat16{2});
    const std::vector<mp::half> numbers{mp::half{1}, mp::half{-2}};
    const std::span<const c10::Half> view = mp::view_as_torch<c10::Half>(std::span(numbers));
    CHECK(view[1].x == 0xC000);
    CHECK(mp::view_from_torch<mp::half>(view).data() == numbers.data());
}

TEST_CASE("Float4_e2m1fn_x2 is two numbers, the first one in the low bits") {
    // Val0 is 1.5 (0011), val1 is -6 (1111); then 0.5 and 0.
    std::vector<c10::Float4_e2m1fn_x2> pairs{c10::Float4_e2m1fn_x2(0xF3), c10::Float4_e2m1fn_x2(0x01)};
    const mp::packed_span<mp::float4_e2m1fn> view = mp::view_from_torch(std::span(pairs));
    REQUIRE(view.size() == 4);
    CHECK(float(view[0]) == 1.5F);
    CHECK(float(view[1]) == -6.0F);
    CHECK(float(view[2]) == 0.5F);
    CHECK(float(view[3]) == 0.0F);
    const mp::packed_span<const mp::float4_e2m1fn> fixed =
        mp::view_from_torch(std::span<const c10::Float4_e2m1fn_x2>(pairs));
    CHECK(float(fixed[1]) == -6.0F);
    const tensor<c10::Float4_e2m1fn_x2> t{pairs.data(), {2, 1}, {1, 1}, ScalarType::Float4_e2m1fn_x2};
    const mp::packed_span<mp::float4_e2m1fn> all = mp::torch_packed(t);
    REQUIRE(all.size() == 4);
    all[3] = mp::float4_e2m1fn{2};
    CHECK(pairs[1].val_ == 0x41);
    CHECK(float(mp::torch_packed<const mp::float4_e2m1fn>(t)[0]) == 1.5F);
}

TEST_CASE("a dtype calls the function with its type") {
    const auto name = []<class T>(std::type_identity<T>) { return mp::detail::torch_name<T>; };
    CHECK(mp::dispatch_torch(ScalarType::Float, name) == "Float");
    CHECK(mp::dispatch_torch(ScalarType::Double, name) == "Double");
    CHECK(mp::dispatch_torch(ScalarType::Half, name) == "Half");
    CHECK(mp::dispatch_torch(ScalarType::BFloat16, name) == "BFloat16");
    CHECK(mp::dispatch_torch(ScalarType::Float8_e4m3fn, name) == "Float8_e4m3fn");
    CHECK(mp::dispatch_torch(ScalarType::Float8_e5m2, name) == "Float8_e5m2");
    CHECK(mp::dispatch_torch(ScalarType::Float8_e4m3fnuz, name) == "Float8_e4m3fnuz");
    CHECK(mp::dispatch_torch(ScalarType::Float8_e5m2fnuz, name) == "Float8_e5m2fnuz");
    CHECK(mp::dispatch_torch(ScalarType::Float8_e8m0fnu, name) == "Float8_e8m0fnu");
    CHECK(mp::dispatch_torch<mp::float4_e2m1fn>(ScalarType::Float4_e2m1fn_x2, name) == "Float4_e2m1fn_x2");
    CHECK_THROWS_WITH_AS(
        mp::dispatch_torch(ScalarType::Int, name),
        "mp::dispatch_torch: type is 'Int'; it must be one of Float, Double, Half, BFloat16, Float8_e4m3fn, "
        "Float8_e5m2, Float8_e4m3fnuz, Float8_e5m2fnuz, Float8_e8m0fnu",
        mp::argument_error);
    // Only those that are named are compiled.
    int calls = 0;
    const auto only_half = [&](std::type_identity<mp::half>) { ++calls; };
    mp::dispatch_torch<mp::half>(ScalarType::Half, only_half);
    CHECK(calls == 1);
    CHECK_THROWS_AS(mp::dispatch_torch<mp::half>(ScalarType::Float, only_half), mp::argument_error);
    CHECK_THROWS_AS(mp::dispatch_torch(ScalarType::Float4_e2m1fn_x2, name), mp::argument_error);
}

TEST_CASE("matrices of strided tensors") {
    std::array<mp::half, 12> memory;
    for (std::size_t i = 0; i < 12; ++i) memory[i] = mp::half(static_cast<int>(i));
    const auto of = [&](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
        return tensor<mp::half>{memory.data(), std::move(sizes), std::move(strides), ScalarType::Half};
    };
    const auto view = [&](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
        return mp::torch_view<const mp::half>(of(std::move(sizes), std::move(strides)));
    };
    const auto rows = view({3, 4}, {4, 1});
    CHECK(rows.order == mp::storage_order::row_major);
    CHECK(rows.leading_dimension == 4);
    CHECK(elements(rows) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    const auto columns = view({4, 3}, {1, 4});
    CHECK(columns.order == mp::storage_order::column_major);
    CHECK(columns.leading_dimension == 4);
    CHECK(elements(columns) == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    const auto slice = view({3, 2}, {4, 1});
    CHECK(slice.leading_dimension == 4);
    CHECK(elements(slice) == std::vector<float>{0, 1, 4, 5, 8, 9});
    CHECK(elements(view({2, 3}, {1, 4})) == std::vector<float>{0, 4, 8, 1, 5, 9});
    // Strides of dimensions of one element may be anything.
    CHECK(elements(view({1, 4}, {0, 1})) == std::vector<float>{0, 1, 2, 3});
    CHECK(elements(view({1, 3}, {7, 4})) == std::vector<float>{0, 4, 8});
    CHECK(elements(view({3, 1}, {4, 0})) == std::vector<float>{0, 4, 8});
    CHECK(elements(view({3, 1}, {1, 9})) == std::vector<float>{0, 1, 2});
    CHECK(elements(view({1, 1}, {0, 0})) == std::vector<float>{0});
    for (const auto& empty : {view({0, 4}, {4, 1}), view({4, 0}, {1, 1}), view({0, 0}, {0, 0})}) {
        CHECK(empty.rows * empty.columns == 0);
        CHECK(empty.leading_dimension >= empty.columns);
    }
    mp::torch_view<mp::half>(of({3, 4}, {4, 1}))(2, 3) = mp::half{-1};
    CHECK(memory[11] == mp::half{-1});

    CHECK_THROWS_WITH_AS(
        view({3, 2}, {4, 2}),
        "mp::torch_view: (tensor.stride(0), tensor.stride(1)) is '(4, 2)'; it must be 1 in one place and in "
        "the other at least the length of a row or column, for a tensor of (3, 2); contiguous() makes "
        "such a copy",
        mp::argument_error);
    CHECK(mp::fits_torch_view(of({4, 3}, {1, 4})));
    CHECK(!mp::fits_torch_view(of({3, 2}, {4, 2})));
    CHECK(!mp::fits_torch_view(of({12}, {1})));
    CHECK_THROWS_AS(view({3, 4}, {0, 1}), mp::argument_error);  // expand()
    CHECK_THROWS_AS(view({3, 4}, {1, 0}), mp::argument_error);
    CHECK_THROWS_AS(view({3, 4}, {1, 1}), mp::argument_error);  // windows of a vector
    CHECK_THROWS_AS(view({3, 1}, {0, 1}), mp::argument_error);
    CHECK_THROWS_WITH_AS(view({12}, {1}), "mp::torch_view: tensor.dim() is 1; it must be 2",
                         mp::argument_error);
    CHECK_THROWS_AS((void)mp::torch_view<mp::bfloat16>(of({3, 4}, {4, 1})), mp::argument_error);
}

TEST_CASE("all elements of a contiguous tensor") {
    std::array<float, 12> memory{};
    const auto of = [&](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
        return mp::torch_span<float>(
            tensor<float>{memory.data(), std::move(sizes), std::move(strides), ScalarType::Float});
    };
    CHECK(of({2, 3, 2}, {6, 2, 1}).size() == 12);
    std::array<std::int64_t, 3> labels{4, 5, 6};
    const tensor<std::int64_t> indices{labels.data(), {3}, {1}, ScalarType::Long};
    CHECK(mp::torch_span<const std::int64_t>(indices)[2] == 6);
    CHECK_THROWS_WITH_AS(
        (void)mp::torch_span<const std::int32_t>(indices),
        "mp::torch_span: the dtype of the tensor is 'Long'; it must be Int for a view of such elements",
        mp::argument_error);
    CHECK(of({2, 1, 2}, {2, 99, 1}).size() == 4);
    CHECK(of({}, {}).size() == 1);
    CHECK(of({0, 5}, {1, 1}).empty());
    CHECK_THROWS_WITH_AS(
        of({2, 3}, {4, 1}),
        "mp::torch_span: tensor.stride(0) is 4; it must be 3, without gaps; contiguous() makes such a copy",
        mp::argument_error);
    CHECK_THROWS_AS(of({4, 3}, {1, 4}), mp::argument_error);
}

/// A tensor that tells who only reads it, and one that is negated when it is read.
struct watchful : tensor<float> {
    bool* written;
    bool negative = false;
    [[nodiscard]] bool is_neg() const { return negative; }
    [[nodiscard]] const void* const_data_ptr() const { return memory; }
    [[nodiscard]] void* data_ptr() const {
        *written = true;
        return memory;
    }
};

TEST_CASE("reading asks for memory to read") {
    float memory[2] = {};
    bool written = false;
    watchful t{{memory, {2}, {1}, ScalarType::Float}, &written};
    (void)mp::torch_span<const float>(t);
    CHECK(!written);
    (void)mp::torch_span<float>(t);
    CHECK(written);
    t.negative = true;
    CHECK_THROWS_AS((void)mp::torch_span<const float>(t), mp::argument_error);
}

}  // namespace torch_checks
