// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::absent;
using mp::ops::attention_options;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::compute_type_t<ac::fp16, mp::ops::scaled_dot_product_attention_op,
                                              mp::matrix_view<const float>, mp::matrix_view<const bfloat16>>,
                           half>);
static_assert(std::same_as<ac::compute_type_t<ac::bf16, mp::ops::scaled_dot_product_attention_backward_op,
                                              mp::matrix_view<const float>>,
                           bfloat16>);

const float infinity = std::numeric_limits<float>::infinity();

/// A problem in numbers of type Wide, by the definition, with whole matrices.
template <class Wide>
struct reference {
    std::ptrdiff_t heads, queries, keys, head_dim, value_head_dim;
    bool causal;
    Wide scale;
    matrix<double> q, k, v, mask;

    reference(std::ptrdiff_t h, std::ptrdiff_t nq, std::ptrdiff_t nk, std::ptrdiff_t d, std::ptrdiff_t dv,
              bool c)
        : heads(h),
          queries(nq),
          keys(nk),
          head_dim(d),
          value_head_dim(dv),
          causal(c),
          scale(1 / sqrt(Wide(static_cast<double>(d)))),
          q(h * nq, d),
          k(h * nk, d),
          v(h * nk, dv),
          mask(h * nq, nk) {
        q.randomize(1);
        k.randomize(2);
        v.randomize(3);
        mask.fill([](auto, auto) { return 0.0; });
    }

    /// Rounds what all matrices hold to a format, queries and keys to twice their size.
    template <class Value>
    void round_all() {
        for (auto* m : {&q, &k, &v}) {
            const double factor = m == &v ? 1 : 2;
            m->fill([&](auto r, auto c) {
                return static_cast<double>(mp::round_to<Value>(factor * m->view(r, c)));
            });
        }
    }

    bool hidden(std::ptrdiff_t row, std::ptrdiff_t key) const {
        return (causal && key > row % queries) || std::isinf(mask.view(row, key));
    }

    /// The probabilities of a row, zeros if it sees nothing; and the logarithm of the sum.
    std::vector<Wide> probabilities(std::ptrdiff_t row, Wide* log_sum = nullptr) const {
        using std::exp;
        using std::log;
        std::vector<Wide> p(static_cast<std::size_t>(keys));
        Wide sum = 0;
        for (std::ptrdiff_t key = 0; key < keys; ++key) {
            if (hidden(row, key)) continue;
            Wide score = 0;
            for (std::ptrdiff_t c = 0; c < head_dim; ++c) {
                score += Wide(q.view(row, c)) * Wide(k.view(row / queries * keys + key, c));
            }
            p[static_cast<std::size_t>(key)] = exp(scale * score + Wide(mask.view(row, key)));
            sum += p[static_cast<std::size_t>(key)];
        }
        if (log_sum != nullptr) *log_sum = log(sum);
        for (Wide& value : p) value = sum == 0 ? Wide(0) : Wide(value / sum);
        return p;
    }

    Wide output(std::ptrdiff_t row, std::ptrdiff_t c) const {
        const auto p = probabilities(row);
        Wide sum = 0;
        for (std::ptrdiff_t key = 0; key < keys; ++key) {
            sum += p[static_cast<std::size_t>(key)] * Wide(v.view(row / queries * keys + key, c));
        }
        return sum;
    }
};

template <class Value>
double unit_roundoff() {
    return std::ldexp(1.0, -mp::layout_of<mp::detail::format_of_t<Value>>::precision);
}

template <class Value>
matrix<Value> stored(const matrix<double>& from, storage_order order, std::ptrdiff_t padding) {
    matrix<Value> to(from.view.rows, from.view.columns, padding, order);
    to.fill([&](auto r, auto c) { return mp::round_to<Value>(from.view(r, c)); });
    return to;
}

enum class masking { none, shared, per_row };

/// The output and the logarithms of the sums against 50 digits.
template <class Q, class K, class V, class Y>
void check_forward(storage_order order, bool causal, masking kind, std::ptrdiff_t queries,
                   std::ptrdiff_t keys) {
    using wide = boost::multiprecision::cpp_bin_float_50;
    reference<wide> exact(2, queries, keys, 5, 7, causal);
    exact.template round_all<mp::float8_e4m3fn>();  // every format of the test holds these
    const bool shared = kind == masking::shared;
    if (kind != masking::none) {
        exact.mask.fill([&](auto r, auto c) {
            const auto i = shared ? r % queries : r;
            return (i + 2 * c) % 5 == 0 ? -static_cast<double>(infinity)
                                        : 0.25 * static_cast<double>((i + c) % 3);
        });
    }
    const auto q = stored<Q>(exact.q, order, 1);
    const auto k = stored<K>(exact.k, order, 2);
    const auto v = stored<V>(exact.v, order, 0);
    const auto mask = stored<half>(exact.mask, order, 0);
    matrix<Y> y(2 * queries, 7, 3, order);
    std::vector<mp::ops::softmax_statistics> statistics(static_cast<std::size_t>(2 * queries));
    const auto run = [&](const auto& m) {
        mp::ops::scaled_dot_product_attention<ac::off>(mp::cpu{}, q.view, k.view, v.view, m, y.view,
                                                       {.heads = 2, .causal = causal}, statistics);
    };
    if (kind == masking::none) {
        run(absent);
    } else if (shared) {
        run(mask.view.block(0, 0, queries, keys));
    } else {
        run(mask.view);
    }
    // The exponentials are rounded to the format of v, of magnitude below 1, and so is the result to that of
    // y. Scores of a few units have float errors of some 2^-22, which are relative ones of the exponentials;
    // exponentials below the smallest numbers of v's format lose at most half their distance each.
    const double lost =
        0.5 * static_cast<double>(std::numeric_limits<V>::denorm_min()) * static_cast<double>(keys);
    const double bound = unit_roundoff<V>() + 0x1p-20 + lost;
    bool y_is_right = true, statistics_are_right = true;
    for (std::ptrdiff_t row = 0; row < 2 * queries; ++row) {
        wide log_sum;
        const auto p = exact.probabilities(row, &log_sum);
        const auto found = statistics[static_cast<std::size_t>(row)].log_sum();
        const bool empty = std::all_of(p.begin(), p.end(), [](const wide& x) { return x == 0; });
        statistics_are_right =
            statistics_are_right && (empty ? found == -static_cast<double>(infinity)
                                           : std::abs(found - static_cast<double>(log_sum)) < 0x1p-20);
        for (std::ptrdiff_t c = 0; c < 7; ++c) {
            const auto expected = static_cast<double>(exact.output(row, c));
            const double error = std::abs(static_cast<double>(y.view(row, c)) - expected);
            const double last = unit_roundoff<Y>() * std::abs(expected) +
                                0.5 * static_cast<double>(std::numeric_limits<Y>::denorm_min());
            y_is_right = y_is_right && error <= bound + last * (1 + bound);
        }
    }
    CHECK(y_is_right);
    CHECK(statistics_are_right);
    CHECK(y.padding_is_untouched());
}

TEST_CASE("attention is softmax(scale q k^T + mask) v, in every mix of formats, orders and masks") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        for (const bool causal : {false, true}) {
            for (const masking kind : {masking::none, masking::shared, masking::per_row}) {
                check_forward<float, float, float, float>(order, causal, kind, 6, 9);
                check_forward<half, half, half, half>(order, causal, kind, 9, 6);
                check_forward<bfloat16, float, half, bfloat16>(order, causal, kind, 7, 7);
                check_forward<mp::float8_e4m3fn, half, mp::float8_e4m3fn, float>(order, causal, kind, 4, 5);
            }
        }
    }
    for (const bool causal : {false, true}) {  // several blocks of queries, the last one smaller
        check_forward<float, half, float, float>(storage_order::row_major, causal, masking::none, 131, 90);
        check_forward<float, float, half, float>(storage_order::row_major, causal, masking::per_row, 70, 150);
    }
}

/// dq, dk and dv against central differences of L = sum of dy * attention(q, k, v) in double.
void check_backward(bool causal, bool masked, bool saved, std::optional<float> scale, storage_order order) {
    reference<double> exact(2, 5, 4, 3, 6, causal);
    exact.round_all<half>();
    if (scale) exact.scale = static_cast<double>(*scale);
    if (masked) {
        exact.mask.fill([&](auto r, auto c) {
            return r == 3 || (r + c) % 3 == 0 ? -static_cast<double>(infinity) : 0.5 * static_cast<double>(c);
        });
    }
    matrix<double> t(10, 6);
    t.randomize(5);
    t.fill([&](auto r, auto c) { return static_cast<double>(half(t.view(r, c))); });
    const auto loss = [&] {
        double sum = 0;
        for (std::ptrdiff_t r = 0; r < 10; ++r) {
            const auto p = exact.probabilities(r);
            for (std::ptrdiff_t key = 0; key < 4; ++key) {
                for (std::ptrdiff_t c = 0; c < 6; ++c) {
                    sum += t.view(r, c) * p[static_cast<std::size_t>(key)] * exact.v.view(r / 5 * 4 + key, c);
                }
            }
        }
        return sum;
    };
    const auto q = stored<half>(exact.q, order, 1), k = stored<half>(exact.k, order, 0);
    const auto v = stored<half>(exact.v, order, 2), dy = stored<half>(t, order, 0);
    const auto mask = cast<float>(exact.mask);
    matrix<float> dq(10, 3, 1, order), dk(8, 3, 2, order), dv(8, 6, 0, order), y(10, 6);
    std::vector<mp::ops::softmax_statistics> statistics(10);
    const attention_options options{.heads = 2, .causal = causal, .scale = scale};
    mp::ops::scaled_dot_product_attention<ac::off>(mp::cpu{}, q.view, k.view, v.view, mask.view, y.view,
                                                   options, statistics);
    if (!saved) statistics.clear();
    mp::ops::scaled_dot_product_attention_backward<ac::off>(mp::cpu{}, q.view, k.view, v.view, mask.view,
                                                            dy.view, dq.view, dk.view, dv.view, options,
                                                            statistics);
    // Differences with step h are off by h^2 / 6 times a third derivative, below 10 here.
    bool all_close = true;
    const auto compare = [&](const matrix<float>& found, matrix<double>& variable) {
        for (std::ptrdiff_t r = 0; r < variable.view.rows; ++r) {
            for (std::ptrdiff_t c = 0; c < variable.view.columns; ++c) {
                const double expected = ops_test::derivative(variable.view(r, c), loss, 0x1p-13);
                all_close = all_close && std::abs(static_cast<double>(found.view(r, c)) - expected) < 2e-6;
            }
        }
    };
    compare(dq, exact.q);
    compare(dk, exact.k);
    compare(dv, exact.v);
    CHECK(all_close);
    CHECK(dq.padding_is_untouched());
    CHECK(dk.padding_is_untouched());
}

TEST_CASE("the gradients of attention are those of central differences") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        for (int bits = 0; bits < 8; ++bits) {
            check_backward((bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, std::nullopt, order);
            check_backward((bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0.75F, order);
        }
    }
}

/// Queries, keys and values of several blocks, for tests that compare the op with itself.
struct problem {
    matrix<float> q{3 * 100, 8}, k{3 * 80, 8}, v{3 * 80, 6}, dy{3 * 100, 6}, mask{100, 80};
    attention_options options{.heads = 3, .causal = true};

    problem() {
        unsigned seed = 1;
        for (auto* m : {&q, &k, &v, &dy, &mask}) m->randomize(seed++);
    }
};

struct results {
    matrix<float> y{300, 6}, dq{300, 8}, dk{240, 8}, dv{240, 6};
    std::vector<mp::ops::softmax_statistics> statistics = std::vector<mp::ops::softmax_statistics>(300);

    template <class Policy, class Value>
    void run(mp::cpu exec, const matrix<Value>& q, const matrix<Value>& k, const matrix<Value>& v,
             const matrix<float>& mask, const matrix<Value>& dy, const attention_options& options) {
        mp::ops::scaled_dot_product_attention<Policy>(exec, q.view, k.view, v.view, mask.view, y.view,
                                                      options, statistics);
        mp::ops::scaled_dot_product_attention_backward<Policy>(
            exec, q.view, k.view, v.view, mask.view, dy.view, dq.view, dk.view, dv.view, options, statistics);
    }
    bool operator==(const results& other) const {
        return same_bits(y, other.y) && same_bits(dq, other.dq) && same_bits(dk, other.dk) &&
               same_bits(dv, other.dv) && statistics == other.statistics;
    }
};

template <class Low>
void check_equal_to_casting_by_hand(const problem& p) {
    results region, by_hand;
    region.run<ac::by_region>(mp::cpu{}, p.q, p.k, p.v, p.mask, p.dy, p.options);
    by_hand.run<ac::off>(mp::cpu{}, cast<Low>(p.q), cast<Low>(p.k), cast<Low>(p.v), p.mask, cast<Low>(p.dy),
                         p.options);
    CHECK(region.statistics == by_hand.statistics);  // float in both
    CHECK(same_bits(region.y, cast<Low>(by_hand.y)));
    CHECK(same_bits(region.dq, cast<Low>(by_hand.dq)));
    CHECK(same_bits(region.dk, cast<Low>(by_hand.dk)));
    CHECK(same_bits(region.dv, cast<Low>(by_hand.dv)));
    results plain;
    plain.run<ac::off>(mp::cpu{}, p.q, p.k, p.v, p.mask, p.dy, p.options);
    CHECK_FALSE(region == plain);
}

TEST_CASE("autocast of attention equals casting by hand, bit for bit, and leaves the log sums in float") {
    const problem p;
    {
        const mp::autocast_region region(mp::precision::fp16);
        check_equal_to_casting_by_hand<half>(p);
    }
    const mp::autocast_region region(mp::precision::bf16);
    check_equal_to_casting_by_hand<bfloat16>(p);
}

TEST_CASE(
    "a mask is added to the scores as it is, whatever the region, a list or a policy make of the rest") {
    // Three scores of zero, and biases that half and bfloat16 round to equal ones.
    matrix<float> q(1, 1), k(3, 1), v(3, 1), mask(1, 3), y(1, 1), dy(1, 1), dv(3, 1);
    q.fill([](auto, auto) { return 0.0F; });
    k.fill([](auto, auto) { return 0.0F; });
    v.fill([](auto r, auto) { return static_cast<float>(r + 1); });
    dy.fill([](auto, auto) { return 1.0F; });
    const float biases[] = {2000.3F, 2000.0F, 1999.6F};
    mask.fill([&](auto, auto c) { return biases[c]; });
    double weights[3], sum = 0, expected = 0;
    for (int i = 0; i < 3; ++i) sum += weights[i] = std::exp(static_cast<double>(biases[i]) - 2000);
    for (int i = 0; i < 3; ++i) expected += (i + 1) * weights[i] / sum;
    const auto check = [&](double bound, auto policy, const auto& added) {
        using Policy = decltype(policy);
        mp::ops::scaled_dot_product_attention<Policy>(mp::cpu{}, q.view, k.view, v.view, added, y.view);
        CHECK(std::fabs(static_cast<double>(y.view(0, 0)) - expected) < bound);
        mp::ops::scaled_dot_product_attention_backward<Policy>(mp::cpu{}, q.view, k.view, v.view, added,
                                                               dy.view, absent, absent, dv.view);
        for (int i = 0; i < 3; ++i) {
            CHECK(std::fabs(static_cast<double>(dv.view(i, 0)) - weights[i] / sum) < bound);
        }
    };
    check(1e-6, ac::off{}, mask.view);
    check(2e-3, ac::fp16{}, mask.view);
    check(2e-2, ac::bf16{}, mask.view);
    const ac::buffer_version version;
    for (const auto precision : {mp::precision::fp16, mp::precision::bf16, mp::precision::fp8}) {
        const mp::autocast_region region(precision);
        check(precision == mp::precision::fp16 ? 2e-3 : 2e-2, ac::by_region{}, mask.view);
        check(precision == mp::precision::fp16 ? 2e-3 : 2e-2, ac::by_region{},
              ac::cached(mp::matrix_view<const float>(mask.view), version));
    }
    // Nor does it decide the precision: an op that promotes its arguments stays in half.
    const auto low = cast<half>(q), low_keys = cast<half>(k), low_values = cast<half>(v);
    matrix<half> low_y(1, 1);
    ac::cast_ledger ledger;
    const mp::autocast_region promoting(
        {.cpu = mp::precision::fp16,
         .rules = {{"scaled_dot_product_attention", mp::op_category::promote}},
         .ledger = &ledger});
    mp::ops::scaled_dot_product_attention(mp::cpu{}, low.view, low_keys.view, low_values.view, mask.view,
                                          low_y.view);
    CHECK(std::fabs(static_cast<double>(low_y.view(0, 0)) - expected) < 2e-3);
    CHECK(ledger.casts().empty());
}

TEST_CASE("attention does not depend on the number of threads") {
    problem p;
    for (const std::ptrdiff_t heads : {1, 2, 3}) {
        results one, three;
        p.options.heads = heads;
        const std::ptrdiff_t queries = 300 / heads, keys = 240 / heads;
        matrix<float> mask(queries, keys);
        mask.randomize(9);
        one.run<ac::off>({.threads = 1}, p.q, p.k, p.v, mask, p.dy, p.options);
        three.run<ac::off>({.threads = 3}, p.q, p.k, p.v, mask, p.dy, p.options);
        CHECK(one == three);
    }
}

TEST_CASE("gradients of attention that nobody needs are not computed") {
    const problem p;
    results all, some;
    all.run<ac::off>(mp::cpu{}, p.q, p.k, p.v, p.mask, p.dy, p.options);
    const auto backward = [&](const auto& dq, const auto& dk, const auto& dv) {
        mp::ops::scaled_dot_product_attention_backward(mp::cpu{}, p.q.view, p.k.view, p.v.view, p.mask.view,
                                                       p.dy.view, dq, dk, dv, p.options, all.statistics);
    };
    backward(some.dq.view, absent, absent);
    backward(absent, some.dk.view, absent);
    backward(absent, absent, some.dv.view);
    backward(absent, absent, absent);
    CHECK(same_bits(some.dq, all.dq));
    CHECK(same_bits(some.dk, all.dk));
    CHECK(same_bits(some.dv, all.dv));
}

TEST_CASE("a query that sees no key gives zeros and has gradients of zero") {
    matrix<half> q(2, 2), k(2, 2), v(2, 2), y(2, 2), dy(2, 2), dq(2, 2), dk(2, 2), dv(2, 2), mask(2, 2);
    for (auto* m : {&q, &k, &v, &dy}) m->randomize(3);
    // Query 0 sees nothing; query 1 sees key 1 only.
    mask.fill([](auto r, auto c) { return half(r == 1 && c == 1 ? 0.0F : -infinity); });
    std::vector<mp::ops::softmax_statistics> statistics(2);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, mask.view, y.view, {},
                                          statistics);
    CHECK(y.view(0, 0).bits() == 0);
    CHECK(y.view(0, 1).bits() == 0);
    CHECK(y.view(1, 0) == v.view(1, 0));
    CHECK(statistics[0].max == -infinity);
    for (const bool saved : {true, false}) {
        if (!saved) statistics.clear();
        mp::ops::scaled_dot_product_attention_backward(mp::cpu{}, q.view, k.view, v.view, mask.view, dy.view,
                                                       dq.view, dk.view, dv.view, {}, statistics);
        CHECK(dq.elements == std::vector<half>(4, half(0)));
        CHECK(dk.elements == std::vector<half>(4, half(0)));
        CHECK(dv.view(0, 0) == half(0));
        CHECK(dv.view(1, 0) == dy.view(1, 0));
        CHECK(dv.view(1, 1) == dy.view(1, 1));
    }
}

TEST_CASE("keys that are taken out have no influence, whatever their scores are") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    matrix<float> q(3, 2), k(3, 2), v(3, 2), y(3, 2), changed(3, 2), mask(3, 3);
    q.randomize(1);
    k.randomize(2);
    v.randomize(3);
    mask.fill([](auto, auto c) { return c == 1 ? -infinity : 0.0F; });
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, mask.view, y.view,
                                          {.causal = true});
    k.view(1, 0) = nan;
    k.view(1, 1) = infinity;
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, mask.view, changed.view,
                                          {.causal = true});
    CHECK(same_bits(y, changed));
    k.view(2, 0) = nan;  // seen by the last query only
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, mask.view, changed.view,
                                          {.causal = true});
    CHECK(changed.view(1, 0) == y.view(1, 0));
    CHECK(mp::isnan(changed.view(2, 0)));
}

TEST_CASE("NaN and overflow reach the output and the gradients") {
    matrix<half> q(2, 1), k(2, 1), v(2, 1), y(2, 1), dy(2, 1), dq(2, 1), dk(2, 1), dv(2, 1);
    for (auto* m : {&q, &k, &v, &dy}) m->fill([](auto, auto) { return half(1); });
    q.view(0, 0) = std::numeric_limits<half>::infinity();
    std::vector<mp::ops::softmax_statistics> statistics(2);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, absent, y.view, {}, statistics);
    CHECK(mp::isnan(y.view(0, 0)));
    CHECK(y.view(1, 0) == half(1));
    CHECK(mp::isnan(statistics[0].max));
    for (const bool saved : {true, false}) {
        if (!saved) statistics.clear();
        mp::ops::scaled_dot_product_attention_backward(mp::cpu{}, q.view, k.view, v.view, absent, dy.view,
                                                       dq.view, dk.view, dv.view, {}, statistics);
        CHECK(mp::isnan(dq.view(0, 0)));
        CHECK(mp::isnan(dk.view(1, 0)));
        CHECK(mp::isnan(dv.view(0, 0)));
    }
}

TEST_CASE("large scores do not overflow the exponentials, and equal ones give the average") {
    matrix<half> q(1, 1), k(2, 1), v(2, 1), y(1, 1);
    q.view(0, 0) = half(60000);
    k.view(0, 0) = half(60000);
    k.view(1, 0) = half(-60000);
    v.view(0, 0) = half(3);
    v.view(1, 0) = half(5);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, absent, y.view);
    CHECK(y.view(0, 0) == half(3));
    k.view(1, 0) = half(60000);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, absent, y.view);
    CHECK(y.view(0, 0) == half(4));
    // The exponentials are rounded, not the probabilities: a thousandth has no exact place in half.
    matrix<half> zeros(1000, 1), ones(1000, 1);
    zeros.fill([](auto, auto) { return half(0); });
    ones.fill([](auto, auto) { return half(1); });
    matrix<float> average(1, 1);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, zeros.view, ones.view, absent, average.view);
    CHECK(average.view(0, 0) == 1.0F);
}

TEST_CASE("the exponentials are rounded to the format of v before they meet it") {
    // Two keys with exponentials 1 and e^-1, and only the second one has a value.
    matrix<float> q(1, 1), k(2, 1), y(1, 1);
    matrix<bfloat16> v(2, 1);
    q.view(0, 0) = 1;
    k.view(0, 0) = 1;
    k.view(1, 0) = 0;
    v.view(0, 0) = bfloat16(0);
    v.view(1, 0) = bfloat16(1);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, k.view, v.view, absent, y.view);
    const double rounded = 0x1.78p-2;  // of e^-1 = 0x1.78b56p-2, to 8 bits
    CHECK(static_cast<double>(y.view(0, 0)) == doctest::Approx(rounded / (1 + std::exp(-1.0))).epsilon(1e-6));
}

TEST_CASE("attention without queries, keys or values is defined") {
    matrix<float> none(0, 3), q(4, 3), k(2, 3), v(2, 5), y(4, 5), dq(4, 3), dk(2, 3), dv(2, 5), no_y(0, 5);
    for (auto* m : {&q, &k, &v, &y}) m->randomize(1);
    mp::ops::scaled_dot_product_attention(mp::cpu{}, none.view, k.view, v.view, absent, no_y.view,
                                          {.heads = 2});
    mp::ops::scaled_dot_product_attention_backward(mp::cpu{}, none.view, k.view, v.view, absent, no_y.view,
                                                   none.view, dk.view, dv.view, {.heads = 2});
    CHECK(dk.elements == std::vector<float>(6, 0.0F));
    CHECK(dv.elements == std::vector<float>(10, 0.0F));
    mp::ops::scaled_dot_product_attention(mp::cpu{}, q.view, none.view, no_y.view, absent, y.view,
                                          {.heads = 2});
    CHECK(y.elements == std::vector<float>(20, 0.0F));
    mp::ops::scaled_dot_product_attention_backward(mp::cpu{}, q.view, none.view, no_y.view, absent, y.view,
                                                   dq.view, absent, absent, {.heads = 2});
    CHECK(dq.elements == std::vector<float>(12, 0.0F));
}

TEST_CASE("attention names the argument that does not fit, and writes nothing") {
    const mp::cpu exec{};
    matrix<float> q(4, 3), k(6, 3), v(6, 5), y(4, 5), mask(2, 3);
    for (auto* m : {&q, &k, &v, &mask}) m->randomize(1);
    std::vector<mp::ops::softmax_statistics> statistics(4, {7.0F, 1.0F});
    const auto fails = [&](auto qv, auto kv, auto vv, auto mv, auto yv,
                           attention_options options = {.heads = 2},
                           std::span<mp::ops::softmax_statistics> rows = {}) {
        const auto call = [&] {
            mp::ops::scaled_dot_product_attention(exec, qv, kv, vv, mv, yv, options, rows);
        };
        std::string message = message_of(call);
        const mp::autocast_region region(mp::precision::fp16);
        CHECK(message_of(call) == message);
        CHECK(y.elements == std::vector<float>(20, -88.0F));
        CHECK(statistics == std::vector<mp::ops::softmax_statistics>(4, {7.0F, 1.0F}));
        REQUIRE(message.starts_with("mp::ops::scaled_dot_product_attention: "));
        return message.substr(39);
    };
    const auto m = mask.view;
    // Never read or written, as the call fails.
    const std::span over_y(reinterpret_cast<mp::ops::softmax_statistics*>(y.view.data), 4);
    CHECK(fails(q.view, k.view, v.view, m, y.view, {.heads = 0}) ==
          "options.heads is 0; it must be at least 1");
    CHECK(fails(q.view, k.view, v.view, m, y.view, {.heads = 3}) ==
          "q.rows is 4; it must be a multiple of options.heads, which is 3");
    CHECK(fails(q.view, k.view, v.view, m, y.view, {.heads = 4}) ==
          "k.rows is 6; it must be a multiple of options.heads, which is 4");
    CHECK(fails(q.view, k.view, v.view, m, y.view, {.heads = 2, .scale = infinity}) ==
          "options.scale is inf; it must be finite");
    CHECK(fails(q.view.block(0, 0, 4, 2), k.view, v.view, m, y.view) ==
          "k.columns is 3; it must equal q.columns, which is 2");
    CHECK(fails(q.view, k.view, v.view.block(0, 0, 4, 5), m, y.view) ==
          "v.rows is 4; it must equal k.rows, which is 6");
    CHECK(fails(q.view, k.view, v.view, m.block(0, 0, 1, 3), y.view) ==
          "mask.rows is 1; it must be q.rows / options.heads, which is 2, or q.rows, which is 4");
    CHECK(fails(q.view, k.view, v.view, m.block(0, 0, 2, 2), y.view) ==
          "mask.columns is 2; it must equal k.rows / options.heads, which is 3");
    CHECK(fails(q.view, k.view, v.view, absent, y.view.block(0, 0, 2, 5)) ==
          "y.rows is 2; it must equal q.rows, which is 4");
    CHECK(fails(q.view, k.view, v.view, absent, y.view.block(0, 0, 4, 3)) ==
          "y.columns is 3; it must equal v.columns, which is 5");
    CHECK(fails(q.view, k.view, v.view, m, y.view, {.heads = 2}, std::span(statistics).first(3)) ==
          "statistics.size() is 3; it must equal q.rows, which is 4");
    CHECK(fails(q.view, k.view, v.view, m, y.view, {.heads = 2}, over_y) ==
          "statistics overlaps y; they must not share elements, because statistics is written while y is in "
          "use");
    CHECK(fails(mp::row_major(y.view.data, 4, 3), k.view, v.view, m, y.view) ==
          "y overlaps q; they must not share elements, because y is written while q is in use");
    CHECK(message_of([&] {
              mp::ops::scaled_dot_product_attention(mp::cpu{.threads = 0}, q.view, k.view, v.view, absent,
                                                    y.view);
          }) == "mp::ops::scaled_dot_product_attention: exec.threads is 0; it must be at least 1");

    matrix<float> dy(4, 5), dq(4, 3), dk(6, 3), dv(6, 5);
    dy.randomize(2);
    const auto backward_fails = [&](auto dyv, auto dqv, auto dkv, auto dvv) {
        std::string message = message_of([&] {
            mp::ops::scaled_dot_product_attention_backward(exec, q.view, k.view, v.view, m, dyv, dqv, dkv,
                                                           dvv, {.heads = 2});
        });
        CHECK(dq.elements == std::vector<float>(12, -88.0F));
        REQUIRE(message.starts_with("mp::ops::scaled_dot_product_attention_backward: "));
        return message.substr(48);
    };
    CHECK(backward_fails(dy.view.block(0, 0, 4, 4), dq.view, dk.view, dv.view) ==
          "dy.columns is 4; it must equal v.columns, which is 5");
    CHECK(backward_fails(dy.view, dq.view.block(0, 0, 3, 3), dk.view, dv.view) ==
          "dq.rows is 3; it must equal q.rows, which is 4");
    CHECK(backward_fails(dy.view, dq.view, dk.view.block(0, 0, 6, 2), dv.view) ==
          "dk.columns is 2; it must equal k.columns, which is 3");
    CHECK(backward_fails(dy.view, dq.view, dk.view, dv.view.block(0, 0, 5, 5)) ==
          "dv.rows is 5; it must equal v.rows, which is 6");
    CHECK(backward_fails(dy.view, dq.view, k.view, dv.view) ==
          "dk overlaps k; they must not share elements, because dk is written while k is in use");
    CHECK(backward_fails(dy.view, mp::row_major(dk.view.data, 4, 3), dk.view, dv.view) ==
          "dk overlaps dq; they must not share elements, because dk is written while dq is in use");
}

}  // namespace
