// SPDX-License-Identifier: MIT
// Calls of ops in autocast regions: the types that are chosen, what kernels read after the casts, results
// after the casts back, and what a ledger counts of them. Kernels here only copy, so that nothing but casts
// is seen; ops of the library in regions are left out where few checksums are wanted.
#include <mp/autocast.hpp>
#include <mp/convert.hpp>

#include "formats.hpp"

#if !defined(MP_FEW_CHECKSUMS)
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/ops/softmax.hpp>
#endif

#include <array>
#include <span>
#include <type_traits>

namespace portability {

namespace {

constexpr mp::precision precisions[] = {mp::precision::fp16, mp::precision::bf16, mp::precision::fp8};

/// y = a, then y = b, read in the types of the kernel.
template <mp::op_category Category>
struct copy_op {
    static constexpr std::string_view name = "copy";
    static constexpr auto category = Category;
    static constexpr std::array<std::string_view, 3> argument_names = {"a", "b", "y"};
    checksum* seen;

    template <class A, class B, class Y>
    void operator()(std::span<const A> a, std::span<const B> b, std::span<Y> y) const {
        for (const std::string_view type :
             {mp::autocast::type_name<A>(), mp::autocast::type_name<B>(), mp::autocast::type_name<Y>()}) {
            seen->add(type);
        }
        seen->add(mp::autocast_active());
        for (const A& it : a) seen->add(it);
        for (const B& it : b) seen->add(it);
        for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = i % 2 == 0 ? mp::round_to<Y>(a[i]) : mp::round_to<Y>(b[i]);
        }
    }
};

/// The gradient of a copy, which goes through another format of 8 bits.
struct copy_backward_op : copy_op<mp::op_category::lower_precision> {
    static constexpr std::string_view name = "copy_backward";
    using forward_op = copy_op<mp::op_category::lower_precision>;
};

/// The larger of two numbers.
template <mp::op_category Category>
struct larger_op {
    static constexpr std::string_view name = "larger";
    static constexpr auto category = Category;
    constexpr auto operator()(auto a, auto b) const {
        using result = mp::autocast::widest_t<decltype(a), decltype(b)>;
        return a < b ? mp::round_to<result>(b) : mp::round_to<result>(a);
    }
};

void add_losses(checksum& to, const mp::autocast::cast_losses& it) {
    for (const std::uint64_t n :
         {it.elements, it.overflowed, it.flushed, it.subnormal, it.inexact, it.zeros}) {
        to.add(n);
    }
    to.add(it.largest);
    to.add(it.smallest);
}

void add_ledger(checksum& to, const mp::autocast::cast_ledger& ledger) {
    for (const auto& it : ledger.casts()) {
        for (const std::string& text : {it.op, it.argument, it.from, it.to}) to.add(text);
        to.add(it.direction);
        for (const std::uint64_t n : {it.casts, it.reused, it.bytes}) to.add(n);
        to.add(it.scaled);
        add_losses(to, it.losses);
    }
    for (const auto& it : ledger.inputs()) {
        to.add(it.type);
        for (const std::uint64_t n : {it.reads, it.elements, it.zeros}) to.add(n);
        to.add(it.largest);
        to.add(it.smallest);
    }
    for (const auto& it : ledger.ops()) {
        for (const std::string& text : {it.op, it.compute_type, it.rule}) to.add(text);
        to.add(it.category);
        to.add(it.active);
        to.add(it.calls);
    }
    if (const auto first = ledger.first_non_finite()) {
        to.add(first->argument);
        to.add(static_cast<std::uint64_t>(first->index));
        to.add(first->is_nan);
        to.add(first->origin);
    }
}

/// The op on floats and on numbers of a reduced format.
template <class Number, class Op>
void add_calls(checksum& to, const Op& op, const std::vector<float>& floats) {
    std::vector<Number> numbers(floats.size());
    mp::convert(mp::cpu{1, mp::instruction_set::portable}, floats, numbers);
    std::vector<float> y(floats.size());
    const std::span<const float> a(floats);
    const std::span<const Number> b(numbers);
    mp::autocast::dispatch(op, a, a, mp::autocast::out(std::span(y)));
    to.add(y);
    mp::autocast::dispatch(op, a, b, mp::autocast::out(std::span(y)));
    to.add(y);
    mp::autocast::dispatch(op, b, b, mp::autocast::out(std::span(numbers)));
    to.add(numbers);
}

template <mp::op_category Category>
void add_category(report& to, const std::vector<std::vector<float>>& arrays) {
    checksum sum;
    for (const mp::precision precision : precisions) {
        mp::autocast::cast_ledger ledger;
        const mp::autocast_region region({.cpu = precision, .ledger = &ledger});
        const copy_op<Category> op{&sum};
        for (const std::vector<float>& floats : arrays) {
            // In a promotion another format than that of the region is an error.
            constexpr bool any = Category != mp::op_category::promote;
            if (any || precision == mp::precision::fp16) add_calls<mp::half>(sum, op, floats);
            if (any || precision != mp::precision::fp16) add_calls<mp::bfloat16>(sum, op, floats);
        }
        const auto larger = mp::autocast::dispatch(larger_op<Category>{}, 0.1F, 0.1F);
        sum.add(larger);
        sum.add(mp::autocast::type_name<std::remove_cv_t<decltype(larger)>>());
        sum.add(mp::autocast::explain<mp::autocast::by_region, copy_op<Category>, std::span<const float>,
                                      std::span<const mp::half>>()
                    .text());
        add_ledger(sum, ledger);
    }
    to.add("autocast." + std::string(mp::name_of(Category)), sum);
}

/// A list that takes the copy for an op in full precision.
constexpr mp::autocast::op_rule rules[] = {{"copy", mp::op_category::full_precision},
                                           {"larger", mp::op_category::lower_precision}};
constexpr mp::autocast::op_list list{"list", rules, mp::op_category::lower_precision};

void add_gradients(report& to, const std::vector<std::vector<float>>& arrays) {
    checksum sum;
    const mp::autocast_region region(mp::precision::fp8);
    for (const std::vector<float>& floats : arrays)
        add_calls<mp::half>(sum, copy_backward_op{{&sum}}, floats);
    to.add("autocast.fp8_gradients", sum);
}

/// Regions in regions, each of which changes the category.
void add_nested(report& to, const std::vector<float>& floats) {
    checksum sum;
    const copy_op<mp::op_category::lower_precision> op{&sum};
    add_calls<mp::half>(sum, op, floats);
    const mp::autocast_region region(mp::precision::fp16, list);
    add_calls<mp::half>(sum, op, floats);
    {
        const mp::autocast_region inner(
            {.cpu = mp::precision::bf16, .rules = {{"copy", mp::op_category::promote_widest}}});
        add_calls<mp::half>(sum, op, floats);
        const mp::autocast_region off(mp::precision::off);
        add_calls<mp::half>(sum, op, floats);
    }
    add_calls<mp::half>(sum, op, floats);
    to.add("autocast.nested_regions", sum);
}

#if !defined(MP_FEW_CHECKSUMS)
void add_ops(report& to) {
    constexpr mp::cpu exec{.threads = 1, .products = mp::accumulation::ordered};
    constexpr std::ptrdiff_t batch = 5, in = 19, out = 11;
    const auto matrix = [](auto& values, std::ptrdiff_t rows) {
        return mp::row_major(values.data(), rows, static_cast<std::ptrdiff_t>(values.size()) / rows);
    };
    checksum sum;
    for (const mp::precision precision : precisions) {
        const mp::autocast_region region(precision);
        auto x = plain_floats(batch * in, 241), w = plain_floats(out * in, 242), b = plain_floats(out, 243);
        auto dy = plain_floats(batch * out, 244, 100, 30);
        std::vector<float> y(dy.size()), p(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
        mp::ops::linear(exec, matrix(x, batch), matrix(w, out), b, matrix(y, batch));
        mp::ops::softmax(exec, matrix(y, batch), matrix(p, batch));
        mp::ops::linear_backward(exec, matrix(x, batch), matrix(w, out), matrix(dy, batch), matrix(dx, batch),
                                 matrix(dw, out), db);
        for (const auto& values : {y, p, dx, dw, db}) sum.add(values);
    }
    to.add("autocast.ops", sum);
}
#endif

}  // namespace

void add_autocast_checksums(report& to) {
    using mp::op_category;
    // Signalling NaNs become quiet in passing through the x87 unit, so there are none.
    std::vector<float> hard = hard_floats(501, 231);
    for (float& x : hard) {
        if (mp::isnan(x)) x = std::bit_cast<float>(0x7fc00000U);
    }
    // The scales of float8 factors follow from the largest number: a power of two and its neighbours, what
    // is subnormal in float, and what is not.
    std::vector<std::vector<float>> arrays = {hard, plain_floats(301, 232), plain_floats(77, 233, 0, 1),
                                              plain_floats(77, 234, 1, 20), std::vector<float>(5)};
    for (const std::uint32_t largest : {0x43e00000U, 0x40e00000U, 0x30dfffffU, 0x6ce00001U, 0x000e0000U}) {
        std::vector<float>& array = arrays.emplace_back();
        for (const std::uint32_t bits : {largest, largest / 2 | 0x80000000U, largest - largest / 50}) {
            array.push_back(std::bit_cast<float>(bits));
        }
    }
    add_category<op_category::lower_precision>(to, arrays);
    add_category<op_category::full_precision>(to, arrays);
    add_category<op_category::full_precision_output>(to, arrays);
    add_category<op_category::append_output_type>(to, arrays);
    add_category<op_category::promote>(to, arrays);
    add_category<op_category::promote_widest>(to, arrays);
    add_gradients(to, arrays);
    add_nested(to, hard);
#if !defined(MP_FEW_CHECKSUMS)
    add_ops(to);
#endif
}

}  // namespace portability
