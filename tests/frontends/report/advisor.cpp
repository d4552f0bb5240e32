// SPDX-License-Identifier: MIT
// Advice about casts whose losses are known by construction.
#include <doctest/doctest.h>
#include <mp/frontends/report/advisor.hpp>
#include <mp/frontends/report/ledger_report.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/autocast/ledger_ops.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

namespace ac = mp::autocast;
using namespace ledger_ops;
using ac::finding;
using mp::op_category;
using mp::precision;

template <class Op>
void run(ac::cast_ledger& ledger, const std::vector<float>& x, precision value = precision::fp16) {
    std::vector<float> y(x.size());
    const mp::autocast_region region({.cpu = value, .ledger = &ledger});
    ac::dispatch(Op{}, std::span<const float>(x), ac::out(std::span<float>(y)));
}

template <class Op>
void run_product(ac::cast_ledger& ledger, const std::vector<float>& x, const std::vector<float>& w,
                 std::size_t outputs = 1, precision value = precision::fp16) {
    std::vector<float> y(outputs);
    const mp::autocast_region region({.cpu = value, .ledger = &ledger});
    ac::dispatch(Op{}, std::span<const float>(x), std::span<const float>(w), ac::out(std::span<float>(y)));
}

std::vector<ac::advice> of(finding what, const std::vector<ac::advice>& all) {
    std::vector<ac::advice> result;
    for (const ac::advice& it : all) {
        if (it.what == what) result.push_back(it);
    }
    return result;
}

double number(const ac::advice& it, std::string_view name) {
    const auto value = ac::number_of(it, name);
    REQUIRE(value);
    return *value;
}

}  // namespace

TEST_CASE("a run in which nothing is lost gets no advice") {
    ac::cast_ledger ledger;
    CHECK(ac::advise(ledger).empty());
    run<low_copy>(ledger, {1.0F, -2.0F, 0.5F});
    run<full_copy>(ledger, {1.0F, 1e30F});
    CHECK(ac::advise(ledger).empty());
    CHECK(ac::advice_text(ac::advise(ledger)) == "Nothing stands out.\n");
}

TEST_CASE("casts to half that overflow are to be in full precision or bfloat16") {
    ac::cast_ledger ledger;
    run<low_copy>(ledger, {1.0F, 300000.0F, -70000.0F, 2.0F, 0.0F});
    const auto list = ac::advise(ledger);
    const auto found = of(finding::overflow, list);
    REQUIRE(found.size() == 1);
    const ac::advice& it = found[0];
    CHECK(it.op == "copy");
    CHECK(it.argument == "x");
    CHECK(it.present == op_category::lower_precision);
    CHECK(it.proposed == op_category::full_precision);
    CHECK(number(it, "overflowed") == 2);
    CHECK(number(it, "share") == 0.5);
    CHECK(number(it, "amax") == 300000.0);
    CHECK(number(it, "largest of format") == 65504.0);
    CHECK(number(it, "exponent to scale by") == -3);  // 300000 / 4 is 75000, / 8 is 37500
    CHECK(holds(it.sentence, "The cast of 'x' of op 'copy' from float to half overflows for 2 numbers (50%"));
    CHECK(holds(it.sentence,
                "the largest magnitude is 300000, the largest of the format 65504. Scaled by 2^-3 or less it "
                "would fit"));
    CHECK(holds(it.sentence, "bfloat16"));
    // The infinity is named as well, and first.
    REQUIRE(list.size() == 2);
    CHECK(list[0].what == finding::non_finite);
    // Not above the share that the caller allows.
    CHECK(of(finding::overflow, ac::advise(ledger, {.overflowed_fraction = 0.5})).empty());
    CHECK(of(finding::overflow, ac::advise(ledger, {.overflowed_fraction = 0.49})).size() == 1);
}

TEST_CASE("a result too large for the caller's array is no reason for another category") {
    ac::cast_ledger ledger;
    const std::vector<float> x{300.0F};
    std::vector<mp::half> y(1);
    {
        const mp::autocast_region region({.cpu = precision::bf16, .ledger = &ledger});
        ac::dispatch(low_product{}, std::span<const float>(x), std::span<const float>(x),
                     ac::out(std::span<mp::half>(y)));
    }
    const auto found = of(finding::overflow, ac::advise(ledger));
    REQUIRE(found.size() == 1);
    CHECK(found[0].argument == "y");
    CHECK_FALSE(found[0].proposed);
    CHECK(holds(found[0].sentence, "The cast of the result 'y'"));
}

TEST_CASE("numbers that become zero: full precision for arguments, a larger loss scale for gradients") {
    ac::cast_ledger forward;
    // 2 of 8 numbers other than zero; the smallest is 2^-30.
    const std::vector<float> values{1.0F, 0.0F, 0x1p-26F, 0x1p-30F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
    run<low_copy>(forward, values);
    auto found = of(finding::flush, ac::advise(forward));
    REQUIRE(found.size() == 1);
    CHECK(found[0].proposed == op_category::full_precision);
    CHECK(number(found[0], "flushed") == 2);
    CHECK(number(found[0], "share") == 0.25);
    CHECK(number(found[0], "smallest") == 0x1p-30);
    CHECK(of(finding::flush, ac::advise(forward, {.flushed_fraction = 0.25})).empty());

    ac::cast_ledger backward;
    run<low_product_backward>(backward, values);
    found = of(finding::flush, ac::advise(backward));
    REQUIRE(found.size() == 1);
    CHECK(found[0].argument == "dy");
    CHECK_FALSE(found[0].proposed);
    CHECK(number(found[0], "exponent that keeps all") == 6);  // 2^-30 to 2^-24
    CHECK(number(found[0], "exponent that fits") == 13);      // 6 * 2^13 = 49152
    CHECK(holds(found[0].sentence, "scale the loss by 2^6 or more, up to 2^13"));

    ac::cast_ledger too_wide;
    run<low_product_backward>(too_wide, {0x1p-30F, 0x1p14F});
    found = of(finding::flush, ac::advise(too_wide));
    REQUIRE(found.size() == 1);
    CHECK(holds(found[0].sentence, "by up to 2^1 more than now"));
    CHECK(holds(found[0].sentence, "2^6 would keep all"));

    ac::cast_ledger full;
    run<low_product_backward>(full, {0x1p-30F, 0x1p15F});
    CHECK(holds(of(finding::flush, ac::advise(full)).at(0).sentence, "no further"));
}

TEST_CASE("of a backward op dy and the results are gradients, and its other named arguments are not") {
    const auto sentence = [](const char* op, const char* argument, ac::cast_direction direction) {
        ac::ledger_contents contents;
        contents.casts.push_back({.op = op,
                                  .argument = argument,
                                  .from = "float",
                                  .to = "half",
                                  .direction = direction,
                                  .casts = 1,
                                  .losses = {.elements = 2, .flushed = 1, .largest = 1.0, .smallest = 1e-9}});
        return ac::advise(contents).at(0).sentence;
    };
    const auto input = ac::cast_direction::input;
    CHECK(holds(sentence("my_backward", "dy", input), "It is a gradient: scale the loss"));
    CHECK(holds(sentence("anything", "dy", input), "It is a gradient: scale the loss"));
    CHECK(holds(sentence("my_backward", "dw", ac::cast_direction::output), "It is a gradient"));
    CHECK(holds(sentence("my_backward", "argument 3", input), "If it is a gradient: scale the loss"));
    CHECK_FALSE(holds(sentence("my_backward", "x", input), "gradient"));
    CHECK_FALSE(holds(sentence("linear", "argument 1", input), "gradient"));
}

TEST_CASE("loss scaling is not proposed for factors that are scaled by their largest anyway") {
    ac::cast_ledger ledger;
    run<low_product_backward>(ledger, {0x1p-40F, 0x1p-40F, 1.0F}, precision::fp8);
    const auto found = of(finding::flush, ac::advise(ledger));
    REQUIRE(found.size() == 1);
    CHECK(found[0].proposed == op_category::full_precision);
    CHECK(holds(found[0].sentence, "loss scaling would not help"));
}

TEST_CASE("a product in full precision is to be in low precision if all that it reads would fit") {
    const auto advice_for = [](const std::vector<float>& x, precision value) {
        ac::cast_ledger ledger;
        run_product<full_product>(ledger, x, {0.25F}, 1, value);
        return of(finding::needless_float, ac::advise(ledger));
    };
    const auto found = advice_for({1.0F, 0.0F, -60000.0F}, precision::fp16);
    REQUIRE(found.size() == 1);
    CHECK(found[0].op == "product");
    CHECK(found[0].present == op_category::full_precision);
    CHECK(found[0].proposed == op_category::lower_precision);
    CHECK(number(found[0], "amax") == 60000.0);
    CHECK(number(found[0], "smallest") == 0.25);
    CHECK(number(found[0], "largest of format") == 65504.0);
    CHECK(number(found[0], "smallest of format") == 0x1p-24);
    // Too large, or too small, for half; both fit bfloat16.
    for (const float value : {70000.0F, 0x1p-26F}) {
        CHECK(advice_for({1.0F, value}, precision::fp16).empty());
        CHECK(advice_for({1.0F, value}, precision::bf16).size() == 1);
    }
    // An op that multiplies no matrices stays as it is.
    ac::cast_ledger other;
    run<full_copy>(other, {1.0F});
    CHECK(ac::advise(other).empty());
    // A category that a rule of the region gave.
    ac::cast_ledger ruled;
    {
        std::vector<float> y(1);
        const std::vector<float> x{2.0F};
        const mp::autocast_region region(
            {.cpu = precision::fp16, .rules = {{"product", op_category::full_precision}}, .ledger = &ruled});
        ac::dispatch(low_product{}, std::span<const float>(x), std::span<const float>(x),
                     ac::out(std::span<float>(y)));
    }
    const auto by_rule = of(finding::needless_float, ac::advise(ruled));
    REQUIRE(by_rule.size() == 1);
    CHECK(holds(by_rule[0].sentence, "a rule of the region for 'product'"));
}

TEST_CASE("weights that are cast for every call are to be cached") {
    ac::cast_ledger ledger;
    for (int i = 0; i < 15; ++i) run_product<low_product>(ledger, {1.0F}, {2.0F, 3.0F});
    CHECK(of(finding::repeated_cast, ac::advise(ledger)).empty());
    run_product<low_product>(ledger, {1.0F}, {2.0F, 3.0F});
    const auto found = of(finding::repeated_cast, ac::advise(ledger));
    REQUIRE(found.size() == 1);  // not x, which is no weight
    CHECK(found[0].argument == "w");
    CHECK_FALSE(found[0].proposed);
    CHECK(number(found[0], "casts") == 16);
    CHECK(number(found[0], "bytes") == 16 * 2 * 6);
    CHECK(holds(found[0].sentence, "cached("));
    CHECK(of(finding::repeated_cast, ac::advise(ledger, {.repeated_casts = 17})).empty());
    CHECK(of(finding::repeated_cast, ac::advise(ledger, {.weights = {"x", "y"}})).at(0).argument == "x");

    ac::cast_ledger cached;
    const std::vector<float> w{2.0F};
    std::vector<float> y(1);
    ac::buffer_version version;
    const mp::autocast_region region({.cpu = precision::fp16, .ledger = &cached});
    for (int i = 0; i < 40; ++i) {
        if (i % 2 == 0) version.changed();
        ac::dispatch(low_product{}, std::span<const float>(w), ac::cached(std::span<const float>(w), version),
                     ac::out(std::span<float>(y)));
    }
    CHECK(cached.casts()[1].casts == 20);
    CHECK(of(finding::repeated_cast, ac::advise(cached)).empty());
}

TEST_CASE("the first value that is not finite is blamed on whoever made it") {
    ac::cast_ledger cast;
    run<low_copy>(cast, {1.0F, 70000.0F});
    auto found = of(finding::non_finite, ac::advise(cast));
    REQUIRE(found.size() == 1);
    CHECK(found[0].op == "copy");
    CHECK(found[0].argument == "x");
    CHECK(found[0].proposed == op_category::full_precision);
    CHECK(number(found[0], "element") == 1);
    CHECK(holds(found[0].sentence, "The cast of the argument made it"));

    ac::cast_ledger argument;
    run<low_copy>(argument, {std::numeric_limits<float>::infinity()});
    found = of(finding::non_finite, ac::advise(argument));
    REQUIRE(found.size() == 1);
    CHECK_FALSE(found[0].proposed);

    ac::cast_ledger kernel;
    run_product<low_product>(kernel, {60000.0F}, {2.0F});
    found = of(finding::non_finite, ac::advise(kernel));
    REQUIRE(found.size() == 1);
    CHECK(found[0].argument == "y");
    CHECK(found[0].proposed == op_category::full_precision);

    ac::cast_ledger full;
    run_product<full_product>(full, {3e38F}, {2.0F});
    found = of(finding::non_finite, ac::advise(full));
    REQUIRE(found.size() == 1);
    CHECK_FALSE(found[0].proposed);  // it is in full precision already
}

TEST_CASE("advice about a file from another run is that about its casts, categories unknown") {
    ac::cast_ledger ledger;
    run<low_copy>(ledger, {1.0F, 70000.0F, 0x1p-30F});
    const auto list = ac::advise(ac::read_ledger_csv(ac::ledger_csv(ledger)));
    REQUIRE(list.size() == 2);
    CHECK(list[0].what == finding::overflow);
    CHECK(list[1].what == finding::flush);
    CHECK_FALSE(list[0].present);
    CHECK(list[0].proposed == op_category::full_precision);
    CHECK(holds(ac::advice_text(list), "[category not known -> full_precision]"));
    // Counts without magnitudes contradict each other, but must do no harm.
    ac::ledger_contents strange;
    strange.casts.push_back({.op = "a", .argument = "dy", .from = "float", .to = "half", .losses = {}});
    strange.casts[0].losses = {.elements = 4, .overflowed = 2, .flushed = 2};
    CHECK(ac::advise(strange).size() == 2);
}

TEST_CASE("sizes of products are padded to multiples of 8, 16 and 32") {
    struct expectation {
        ac::operand_elements elements;
        std::ptrdiff_t m, n, k;
        std::ptrdiff_t padded_m, padded_n, padded_k;
        double added;
    };
    using kind = ac::operand_elements;
    for (const expectation& it : {expectation{kind::sixteen_bit, 64, 8, 10, 64, 8, 16, 0.6},
                                  expectation{kind::sixteen_bit, 8, 16, 24, 8, 16, 24, 0.0},
                                  expectation{kind::sixteen_bit, 1, 1, 1, 8, 8, 8, 511.0},
                                  expectation{kind::float8, 8, 16, 24, 16, 16, 32, 5.0 / 3.0},
                                  expectation{kind::block_scaled, 32, 33, 64, 32, 64, 64, 31.0 / 33.0},
                                  expectation{kind::block_scaled, 0, 5, 0, 0, 32, 0, 0.0}}) {
        const ac::padded_product padded = ac::padding_advice(it.m, it.n, it.k, it.elements);
        CHECK(padded.m == it.padded_m);
        CHECK(padded.n == it.padded_n);
        CHECK(padded.k == it.padded_k);
        CHECK(std::fabs(padded.added_work - it.added) <= 1e-12 * (1.0 + it.added));
        CHECK(padded.padded == (it.m != it.padded_m || it.n != it.padded_n || it.k != it.padded_k));
    }
    static_assert(ac::padding_advice(1, 1, 10, kind::sixteen_bit).k == 16);
    const auto message = [](std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, kind elements) {
        return thrown<mp::argument_error>([&] { (void)ac::padding_advice(m, n, k, elements); });
    };
    CHECK(holds(message(-1, 1, 1, kind::float8), "m is -1"));
    CHECK(holds(message(1, -5, 1, kind::float8), "n is -5"));
    CHECK(holds(message(1, 1, std::numeric_limits<std::ptrdiff_t>::max(), kind::float8),
                "k is 9223372036854775807"));
    CHECK(holds(message(1, 1, 1, static_cast<kind>(3)), "elements is 3"));
}

TEST_CASE("every product with sizes that tensor cores do not like is named with its dimensions") {
    ac::cast_ledger ledger;
    // The op of this test says m = x.size(), n = w.size(), k = y.size().
    run_product<low_product>(ledger, std::vector<float>(64, 1.0F), std::vector<float>(8, 1.0F), 10);
    run_product<low_product>(ledger, std::vector<float>(64, 1.0F), std::vector<float>(8, 1.0F), 16);
    run_product<low_product>(ledger, std::vector<float>(8, 1.0F), std::vector<float>(16, 1.0F), 24,
                             precision::fp8);
    run_product<full_product>(ledger, std::vector<float>(3, 1.0F), std::vector<float>(3, 1.0F), 3);
    const auto found = ac::check_dimensions(ledger);
    REQUIRE(found.size() == 2);
    CHECK(found[0].what == finding::dimension);
    CHECK(found[0].op == "product");
    CHECK(number(found[0], "k") == 16);
    CHECK(number(found[0], "multiple") == 8);
    CHECK(std::fabs(number(found[0], "added work") - 0.6) < 1e-12);
    CHECK(holds(found[0].sentence, "multiplies half matrices of m = 64, n = 8, k = 10"));
    CHECK(holds(found[0].sentence, "pad k = 10 -> 16, which adds 60% of work."));
    CHECK(holds(found[1].sentence, "float8 matrices"));
    CHECK(holds(found[1].sentence,
                "multiples of 16: pad m = 8 -> 16, k = 24 -> 32, which adds 166.7% of work."));
    CHECK(holds(ac::advice_text(found), "dimension: Op 'product'"));
}

TEST_CASE("shares that are none are refused") {
    const ac::cast_ledger ledger;
    const auto message = [&](const ac::advisor_options& options) {
        return thrown<mp::argument_error>([&] { (void)ac::advise(ledger, options); });
    };
    CHECK(holds(message({.overflowed_fraction = -0.1}), "options.overflowed_fraction is -0.1"));
    CHECK(holds(message({.flushed_fraction = 1.5}), "options.flushed_fraction is 1.5"));
    CHECK(holds(message({.flushed_fraction = std::numeric_limits<double>::quiet_NaN()}),
                "options.flushed_fraction is nan"));
}
