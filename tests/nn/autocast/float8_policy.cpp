// SPDX-License-Identifier: MIT
// The float8 hybrid: which argument goes through which format, and with which scale.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/matrix_operand.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "numbers/format/flushing_scope.hpp"

namespace {

using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::op_category;
namespace ac = mp::autocast;

struct layer_op {
    static constexpr std::string_view name = "layer";
    static constexpr auto category = op_category::lower_precision;
    static constexpr std::array<std::string_view, 3> argument_names = {"x", "bias", "y"};
    static constexpr std::array<std::string_view, 1> product_operands = {"x"};
    template <class X, class B, class Y>
    void operator()(std::span<const X> x, std::span<const B> bias, std::span<Y> y) const {
        for (std::size_t i = 0; i < x.size(); ++i)
            y[i] = static_cast<Y>(static_cast<float>(x[i]) + static_cast<float>(bias[i]));
    }
};
struct layer_backward_op {
    static constexpr std::string_view name = "layer_backward";
    static constexpr auto category = op_category::lower_precision;
    using forward_op = layer_op;
    static constexpr std::array<std::string_view, 3> argument_names = {"x", "dy", "dx"};
    template <class X, class G, class DX>
    void operator()(std::span<const X> x, std::span<const G> dy, std::span<DX> dx) const {
        for (std::size_t i = 0; i < x.size(); ++i)
            dx[i] = static_cast<DX>(static_cast<float>(dy[i]) + 0.0F * static_cast<float>(x[i]));
    }
};

/// Multiplies no matrices.
struct twice_op {
    static constexpr std::string_view name = "twice";
    static constexpr auto category = op_category::lower_precision;
    static constexpr bool computes_in_float = true;
    template <class X, class Y>
    void operator()(std::span<const X> x, std::span<Y> y) const {
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<Y>(2.0F * static_cast<float>(x[i]));
    }
};

static_assert(std::same_as<ac::fp8_hybrid::quantised<layer_op, 0>, float8_e4m3fn>);
static_assert(std::same_as<ac::fp8_hybrid::quantised<twice_op, 0>, void>);
static_assert(std::same_as<ac::fp8_hybrid::quantised<layer_op, 1>, void>);
static_assert(std::same_as<ac::fp8_hybrid::quantised<layer_backward_op, 0>, float8_e4m3fn>);
static_assert(std::same_as<ac::fp8_hybrid::quantised<layer_backward_op, 1>, float8_e5m2>);
static_assert(std::same_as<ac::compute_type_t<ac::fp8_hybrid, layer_op, float>, bfloat16>);

/// x rounded to a format of `bits` significant bits and least exponent `least`, scaled so that the largest
/// magnitude is in (max / 2, max]; in double, from the definition.
double quantised(double x, double amax, double max, int bits, int least) {
    if (x == 0.0 || amax == 0.0) return x;
    const double scale = std::exp2(std::floor(std::log2(max / amax)));
    const double scaled = x * scale;
    const int exponent = std::max(std::ilogb(scaled), least);
    const double unit = std::exp2(exponent - bits + 1);
    return std::nearbyint(scaled / unit) * unit / scale;
}

std::vector<float> through_forward(const std::vector<float>& x) {
    std::vector<float> y(x.size());
    const std::vector<float> zeros(x.size());
    ac::call<ac::fp8_hybrid>(layer_op{}, std::span<const float>(x), std::span<const float>(zeros),
                             ac::out(std::span<float>(y)));
    return y;
}

TEST_CASE("forward factors are e4m3 after scaling by the power of two that fits their largest magnitude") {
    for (const float size : {1.0F, 3e-5F, 7e8F, 448.0F, 449.0F, 224.0F, 0x1p-100F}) {
        std::vector<float> x;
        for (int i = -40; i <= 40; ++i) x.push_back(size * static_cast<float>(std::sin(i * 0.7)) / 1.0F);
        x.push_back(size);
        x.push_back(size * 1e-4F);
        double amax = 0.0;
        for (const float value : x) amax = std::max(amax, static_cast<double>(std::fabs(value)));
        const auto y = through_forward(x);
        for (std::size_t i = 0; i < x.size(); ++i) {
            CAPTURE(x[i]);
            CHECK(static_cast<double>(y[i]) == quantised(static_cast<double>(x[i]), amax, 448.0, 4, -6));
        }
    }
}

TEST_CASE("an op without a product runs in bfloat16 and is not quantised, in a region and by a policy") {
    const std::vector<float> x = {1.0F, 1.0078125F, 300.0F};  // the second has a bit that e4m3 has not
    std::vector<float> in_region(3), by_policy(3);
    ac::call<ac::fp8_hybrid>(twice_op{}, std::span<const float>(x), ac::out(std::span<float>(by_policy)));
    const mp::autocast_region region(mp::precision::fp8);
    ac::dispatch(twice_op{}, std::span<const float>(x), ac::out(std::span<float>(in_region)));
    CHECK(in_region == std::vector<float>{2.0F, 2.015625F, 600.0F});
    CHECK(by_policy == in_region);
    const auto why = ac::explain<ac::by_region, twice_op, std::span<const float>, std::span<float>>();
    CHECK(why.compute_type == "bfloat16");
    CHECK(why.arguments[0].through == "none");
    CHECK(ac::explain<ac::by_region, layer_backward_op, std::span<const float>, std::span<const float>,
                      std::span<float>>()
              .arguments[1]
              .through == "float8_e5m2");
}

TEST_CASE("the incoming gradient is e5m2, other arguments of backward e4m3") {
    const std::vector<float> x = {1.0F, 0.3F, -0.7F};
    const std::vector<float> dy = {1e-6F, 0.37e-6F, -0.11e-9F};
    std::vector<float> dx(3);
    ac::call<ac::fp8_hybrid>(layer_backward_op{}, std::span<const float>(x), std::span<const float>(dy),
                             ac::out(std::span<float>(dx)));
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(static_cast<double>(dx[i]) ==
              quantised(static_cast<double>(dy[i]), static_cast<double>(1e-6F), 57344.0, 3, -14));
    }
}

TEST_CASE("zeros, infinities and NaNs stay, and do not spoil the scale of the rest") {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x = {0.0F,      infinity, 1.0F, std::numeric_limits<float>::quiet_NaN(),
                                  -infinity, 0.3F};
    const auto y = through_forward(x);
    CHECK(y[0] == 0.0F);
    CHECK(y[1] == infinity);
    CHECK(y[2] == 1.0F);
    CHECK(mp::isnan(y[3]));
    CHECK(y[4] == -infinity);
    CHECK(static_cast<double>(y[5]) == quantised(static_cast<double>(0.3F), 1.0, 448.0, 4, -6));
    CHECK(through_forward({0.0F, -0.0F}) == std::vector<float>{0.0F, 0.0F});
    CHECK(through_forward({}).empty());
    // The smallest floats: the scale stops at a power of two that is a float.
    CHECK(through_forward({0x1p-130F}) == std::vector<float>{0x1p-130F});
}

#if TEST_CAN_FLUSH
TEST_CASE("factors are subnormal floats, and are counted, also where the processor flushes those") {
    const std::vector<float> tiny = {0x1p-130F, 0x1.8p-131F, 0x1p-149F};
    mp::autocast::cast_ledger ledger;
    std::vector<float> y;
    {
        const mp::autocast_region region({.cpu = mp::precision::fp8, .ledger = &ledger});
        const flushing_scope flushing;
        y.resize(tiny.size());
        ac::dispatch(layer_op{}, std::span<const float>(tiny), std::span<const float>(tiny),
                     ac::out(std::span<float>(y)));
    }
    // The last is 2^-23 of what the largest becomes, and lost.
    CHECK(through_forward(tiny) == std::vector<float>{0x1p-130F, 0x1.8p-131F, 0.0F});
    const auto casts = ledger.casts();
    REQUIRE(!casts.empty());
    const mp::autocast::cast_losses& losses = casts[0].losses;
    CHECK(losses.zeros == 0);
    CHECK(losses.flushed == 1);
    CHECK(losses.largest == 0x1p-130);
    CHECK(losses.smallest == 0x1p-149);
}
#endif

TEST_CASE("the bias is not quantised, and a region of precision fp8 does the same as the static policy") {
    const std::vector<float> x = {0.1F, 0.77F};
    const std::vector<float> bias = {0.123F, 0.456F};
    std::vector<float> y(2);
    const mp::autocast_region region(mp::precision::fp8);
    ac::dispatch(layer_op{}, std::span<const float>(x), std::span<const float>(bias),
                 ac::out(std::span<float>(y)));
    for (std::size_t i = 0; i < 2; ++i) {
        const auto factor =
            static_cast<float>(quantised(static_cast<double>(x[i]), static_cast<double>(x[1]), 448.0, 4, -6));
        CHECK(y[i] == static_cast<float>(bfloat16(factor + static_cast<float>(bfloat16(bias[i])))));
    }
    const auto why = ac::explain<ac::by_region, layer_op, std::span<const float>, std::span<const float>>();
    CHECK(why.arguments[0].through == "float8_e4m3fn");
    CHECK(why.arguments[0].to == "bfloat16");
    CHECK(why.arguments[1].through == "none");
    CHECK(why.policy == "fp8_hybrid");
}

}  // namespace
