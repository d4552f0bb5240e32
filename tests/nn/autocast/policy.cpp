// SPDX-License-Identifier: MIT
// Policies are types, so most of these tests pass or fail when this file is compiled.
// alone: it specialises templates of the library
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/float8.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace {

using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::half;
using mp::op_category;
namespace ac = mp::autocast;

struct matmul_op {
    static constexpr std::string_view name = "matmul";
    static constexpr auto category = op_category::lower_precision;
};
struct exp_op {
    static constexpr std::string_view name = "exp";
    static constexpr auto category = op_category::full_precision;
};
struct add_op {
    static constexpr std::string_view name = "add";
    static constexpr auto category = op_category::promote_widest;
};
struct reshape_op {
    static constexpr std::string_view name = "reshape";
    static constexpr auto category = op_category::pass_through;
};
struct binary_cross_entropy_op {
    static constexpr std::string_view name = "binary_cross_entropy";
    static constexpr auto category = op_category::banned;
};
struct softmax_op {
    static constexpr std::string_view name = "softmax";
    static constexpr auto category = op_category::full_precision;
};

template <class Policy, class Op, class Expected, class... Arguments>
constexpr bool computes_in = std::same_as<ac::compute_type_t<Policy, Op, Arguments...>, Expected> &&
                             std::same_as<ac::output_type_t<Policy, Op, Arguments...>, Expected>;

// The words of TensorFlow name the same categories.
static_assert(op_category::allow == op_category::lower_precision);
static_assert(op_category::deny == op_category::full_precision);
static_assert(op_category::infer == op_category::promote_widest);
static_assert(op_category::clear == op_category::pass_through);

// lower_precision: everything eligible goes to the low precision, whatever it was.
static_assert(computes_in<ac::fp16, matmul_op, half, float, float>);
static_assert(computes_in<ac::fp16, matmul_op, half, half, half>);
static_assert(computes_in<ac::fp16, matmul_op, half, half, float>);
static_assert(computes_in<ac::fp16, matmul_op, half, bfloat16, bfloat16>);
static_assert(computes_in<ac::fp16, matmul_op, half, float8_e4m3fn, float>);
static_assert(computes_in<ac::bf16, matmul_op, bfloat16, float, float>);
static_assert(computes_in<ac::bf16, matmul_op, bfloat16, half, bfloat16>);
static_assert(computes_in<ac::off, matmul_op, float, float, float>);
static_assert(computes_in<ac::off, matmul_op, half, half, half>);
static_assert(computes_in<ac::off, matmul_op, float, half, float>);
static_assert(computes_in<ac::policy<float8_e4m3fn>, matmul_op, float8_e4m3fn, float, half>);

// full_precision: everything eligible goes to float.
static_assert(computes_in<ac::fp16, exp_op, float, half>);
static_assert(computes_in<ac::fp16, exp_op, float, float>);
static_assert(computes_in<ac::bf16, exp_op, float, bfloat16, half>);
static_assert(computes_in<ac::off, exp_op, half, half>);

// promote_widest: the widest of the arguments, and the low precision plays no part.
static_assert(computes_in<ac::fp16, add_op, float, half, float>);
static_assert(computes_in<ac::fp16, add_op, float, float, half>);
static_assert(computes_in<ac::fp16, add_op, half, half, half>);
static_assert(computes_in<ac::fp16, add_op, bfloat16, bfloat16, bfloat16>);
static_assert(computes_in<ac::bf16, add_op, float, half, bfloat16>);
static_assert(computes_in<ac::bf16, add_op, half, float8_e5m2, half>);
static_assert(computes_in<ac::bf16, add_op, double, half, double>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, add_op, half, half, float>, float>);
static_assert(std::same_as<ac::cast_type_t<ac::bf16, add_op, half, half, bfloat16>, float>);

// pass_through: nothing is cast.
static_assert(std::same_as<ac::cast_type_t<ac::fp16, reshape_op, float, float, bfloat16>, float>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, reshape_op, bfloat16, float, bfloat16>, bfloat16>);
static_assert(computes_in<ac::fp16, reshape_op, half, half>);

// Eligibility as in PyTorch: double is not cast, and integers are no data for it.
static_assert(computes_in<ac::fp16, matmul_op, double, double, double>);
static_assert(computes_in<ac::fp16, matmul_op, double, float, double>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, matmul_op, float, float, double>, half>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, matmul_op, double, float, double>, double>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, matmul_op, long double, long double>, long double>);
static_assert(computes_in<ac::fp16, exp_op, double, double>);
static_assert(computes_in<ac::fp16, matmul_op, half, float, int, std::uint8_t>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, matmul_op, int, float, int>, void>);
static_assert(computes_in<ac::fp16, matmul_op, void, int, int>);
static_assert(computes_in<ac::fp16, exp_op, void>);

// Views count by their elements; an array that is only written has no say; next to arrays, numbers are
// parameters such as alpha and have none either.
using float_input = std::span<const float>;
using half_input = std::span<const half>;
static_assert(computes_in<ac::fp16, matmul_op, half, float_input, float_input>);
static_assert(computes_in<ac::fp16, matmul_op, half, std::span<float>, std::span<float, 4>>);
static_assert(computes_in<ac::fp16, add_op, half, half_input, ac::output_operand<std::span<float>, false>>);
static_assert(computes_in<ac::fp16, add_op, half, half_input, float>);
static_assert(computes_in<ac::fp16, add_op, half, mp::cpu, half_input, std::span<const int>>);
static_assert(std::same_as<ac::cast_type_t<ac::fp16, matmul_op, float, float_input, float>, void>);

// Data that autocast would overlook is told from parameters.
static_assert(mp::detail::data_but_no_operand<float*>);
static_assert(mp::detail::data_but_no_operand<const half* const&>);
static_assert(mp::detail::data_but_no_operand<float (&)[3]>);
static_assert(mp::detail::data_but_no_operand<std::array<half, 2>&>);
static_assert(!mp::detail::data_but_no_operand<float>);
static_assert(!mp::detail::data_but_no_operand<half&>);
static_assert(!mp::detail::data_but_no_operand<int*>);
static_assert(!mp::detail::data_but_no_operand<void*>);
static_assert(!mp::detail::data_but_no_operand<std::span<const float>>);
static_assert(!mp::detail::data_but_no_operand<std::span<const int>>);
static_assert(!mp::detail::data_but_no_operand<std::string_view>);
static_assert(!mp::detail::data_but_no_operand<mp::cpu>);

// widest_t does not depend on the order.
static_assert(std::same_as<ac::widest_t<half, bfloat16>, float>);
static_assert(std::same_as<ac::widest_t<bfloat16, half>, float>);
static_assert(std::same_as<ac::widest_t<float8_e4m3fn, float8_e5m2>, float>);
static_assert(std::same_as<ac::widest_t<float8_e4m3fn, float8_e5m2, half>, half>);
static_assert(std::same_as<ac::widest_t<half, float8_e4m3fn, float8_e5m2>, half>);
static_assert(std::same_as<ac::widest_t<float8_e4m3fn, bfloat16>, bfloat16>);
static_assert(std::same_as<ac::widest_t<half, int, double>, double>);
static_assert(std::same_as<ac::widest_t<half, bfloat16, double>, double>);
static_assert(std::same_as<ac::widest_t<double, long double>, long double>);
static_assert(std::same_as<ac::widest_t<int, char>, void>);
static_assert(std::same_as<ac::widest_t<>, void>);

// To hold a type is to hold its smallest and largest numbers, its infinities and its NaN.
struct small_numbers {  // multiples of 2^-21, below 2^-4
    static constexpr const char* name = "small_numbers";
    static constexpr int exponent_bits = 4, fraction_bits = 2, bias = 20;
    static constexpr bool is_signed = true, has_infinity = false;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::all_ones;
};
struct with_infinity {
    static constexpr const char* name = "with_infinity";
    static constexpr int exponent_bits = 4, fraction_bits = 2, bias = 7;
    static constexpr bool is_signed = true, has_infinity = true;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::ieee;
};
struct up_to_384 {
    static constexpr const char* name = "up_to_384";
    static constexpr int exponent_bits = 4, fraction_bits = 2, bias = 7;
    static constexpr bool is_signed = true, has_infinity = false;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::all_ones;
};
struct up_to_480 {
    static constexpr const char* name = "up_to_480";
    static constexpr int exponent_bits = 4, fraction_bits = 3, bias = 7;
    static constexpr bool is_signed = true, has_infinity = false;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::none;
};
static_assert(std::same_as<ac::widest_t<float8_e4m3fn, mp::basic_float<small_numbers>>, float>);
static_assert(std::same_as<ac::widest_t<float8_e4m3fn, mp::basic_float<with_infinity>>, float>);
static_assert(std::same_as<ac::widest_t<mp::basic_float<up_to_384>, float8_e4m3fn>, float8_e4m3fn>);
static_assert(std::same_as<ac::widest_t<float8_e4m3fn, mp::basic_float<up_to_480>>, float>);
static_assert(std::same_as<ac::widest_t<mp::basic_float<up_to_480>, half>, half>);

// Bans hold where the policy casts at all.
static_assert(!ac::allowed<ac::fp16, binary_cross_entropy_op>);
static_assert(!ac::allowed<ac::bf16, binary_cross_entropy_op>);
static_assert(ac::allowed<ac::off, binary_cross_entropy_op>);
static_assert(ac::allowed<ac::fp16, matmul_op>);

// Overrides: for the op they name, in the policy they are part of.
using tuned = ac::policy<half, ac::override_op<softmax_op, op_category::lower_precision>,
                         ac::override_op<matmul_op, op_category::banned>,
                         ac::override_op<binary_cross_entropy_op, op_category::full_precision>>;
static_assert(computes_in<tuned, softmax_op, half, float>);
static_assert(computes_in<tuned, exp_op, float, half>);
static_assert(!ac::allowed<tuned, matmul_op>);
static_assert(ac::allowed<tuned, binary_cross_entropy_op>);
static_assert(computes_in<tuned, binary_cross_entropy_op, float, half>);
static_assert(computes_in<ac::fp16, softmax_op, float, half>);

// A policy is any type with the members of policy; its low precision may depend on the op.
struct weights_in_float8 {
    static constexpr bool enabled = true;
    static constexpr std::string_view name = "weights_in_float8";
    template <class Op>
    using low_precision = std::conditional_t<std::same_as<Op, matmul_op>, float8_e4m3fn, bfloat16>;
    template <class Op>
    static constexpr op_category category = op_category::lower_precision;
};
static_assert(computes_in<weights_in_float8, matmul_op, float8_e4m3fn, float, float>);
static_assert(computes_in<weights_in_float8, softmax_op, bfloat16, float>);

struct log_op {
    static constexpr std::string_view name = "log";
    static constexpr auto category = op_category::full_precision;
};

}  // namespace

// A specialisation is the other way to override.
template <>
constexpr auto mp::autocast::category_of<mp::autocast::bf16, log_op> = mp::op_category::lower_precision;

namespace {

static_assert(computes_in<ac::bf16, log_op, bfloat16, float>);
static_assert(computes_in<ac::fp16, log_op, float, float>);

TEST_CASE("names of categories and types are those of the code") {
    CHECK(mp::name_of(op_category::lower_precision) == "lower_precision");
    CHECK(mp::name_of(op_category::full_precision) == "full_precision");
    CHECK(mp::name_of(op_category::promote_widest) == "promote_widest");
    CHECK(mp::name_of(op_category::pass_through) == "pass_through");
    CHECK(mp::name_of(op_category::banned) == "banned");
    CHECK(mp::name_of(static_cast<op_category>(99)) == "unknown");
    CHECK(ac::type_name<half>() == "half");
    CHECK(ac::type_name<bfloat16>() == "bfloat16");
    CHECK(ac::type_name<float>() == "float");
    CHECK(ac::type_name<long double>() == "long double");
    CHECK(ac::type_name<int>() == "none");
}

TEST_CASE("explain names the rule that decided and the types") {
    constexpr auto plain = ac::explain<ac::fp16, matmul_op, float, int, double>();
    static_assert(plain.category == op_category::lower_precision);
    static_assert(!plain.overridden && plain.allowed);
    CHECK(plain.op == "matmul");
    CHECK(plain.policy == "half");
    CHECK(plain.compute_type == "double");
    CHECK(plain.arguments[0].from == "float");
    CHECK(plain.arguments[0].to == "half");
    CHECK(plain.arguments[1].from == "none");
    CHECK(plain.arguments[2].to == "double");

    CHECK(ac::explain<ac::bf16, matmul_op, float, float>().text() ==
          "matmul under policy bfloat16: float and reduced arguments are cast to the low precision of the "
          "policy "
          "(category lower_precision, the op's own); computes in bfloat16, returns bfloat16");
    CHECK(ac::explain<weights_in_float8, matmul_op, float>().policy == "weights_in_float8");
    CHECK(ac::explain<tuned, softmax_op, float>().overridden);
    CHECK(ac::explain<tuned, softmax_op, float>().output_type == "half");
    CHECK(ac::explain<ac::fp16, exp_op, half>().compute_type == "float");
    CHECK(ac::explain<ac::fp16, add_op, half, bfloat16>().compute_type == "float");
    CHECK(
        ac::explain<ac::off, exp_op, half>().text() ==
        "exp under policy off: autocast is off and arguments stay as they are (category full_precision, the "
        "op's own); computes in half, returns half");
    CHECK(ac::explain<ac::fp16, binary_cross_entropy_op, float>().text() ==
          "binary_cross_entropy under policy half: the op must not run under autocast (category banned, the "
          "op's "
          "own)");
    CHECK_FALSE(ac::explain<ac::fp16, binary_cross_entropy_op, float>().allowed);
}

TEST_CASE("explain by region answers for the region that the thread is in") {
    CHECK(ac::explain<ac::by_region, matmul_op, float>().policy == "off");
    const mp::autocast_region region(mp::precision::bf16);
    CHECK(ac::explain<ac::by_region, matmul_op, float>().compute_type == "bfloat16");
    const mp::autocast_region inner(mp::precision::fp16);
    CHECK(ac::explain<ac::by_region, matmul_op, float>().compute_type == "half");
}

}  // namespace
