// SPDX-License-Identifier: MIT
#pragma once

#include "numbers/format/p3109_cases.hpp"

/// Compares the operations of IEEE P3109 on scaled numbers and on blocks with the transcription of the
/// report.
namespace p3109_cases {

using report::format;
using report::real;

constexpr std::size_t size = 5;
using codes = std::array<std::uint64_t, size>;

inline real times(const real& a, const real& b) {
    const real both[]{a, b};
    return apply(report::named("multiply"), both);
}
/// ωBlockDecode
template <class S, class X>
std::vector<real> values(std::uint64_t scale, const codes& x) {
    std::vector<real> result;
    for (const std::uint64_t code : x)
        result.push_back(times(decode(format_of<S>, scale), decode(format_of<X>, code)));
    return result;
}
inline real reduce(const char* name, real result, const std::vector<real>& x) {
    for (const real& one : x) {
        const real both[]{result, one};
        result = apply(report::named(name), both);
    }
    return result;
}

template <class T>
std::uint64_t random_code(oracle::random_bits& random) {
    const format& f = format_of<T>;
    const std::uint64_t edges[]{
        0, 1, report::max_finite(f), f.codes() - 1, f.codes() - 2, f.codes() / 2, f.codes() / 4};
    return random.below(6) == 0 ? edges[random.below(7)] : random.next() % f.codes();
}
template <class T>
codes random_codes(oracle::random_bits& random) {
    codes result{};
    const bool finite = random.below(4) != 0;
    for (std::uint64_t& code : result) {
        do {
            code = random_code<T>(random);
        } while (finite && decode(format_of<T>, code).kind != 'F');
    }
    return result;
}
template <class S, class X>
operations::block<S, X, size> block_of(std::uint64_t scale, const codes& x) {
    operations::block<S, X, size> result{oracle::value_of<S>(scale), {}};
    for (std::size_t i = 0; i < size; ++i) result.elements[i] = oracle::value_of<X>(x[i]);
    return result;
}

/// Everything in section 5 for two random blocks, into R beside scale factors of S3.
template <class S1, class X1, class S2, class X2, class S3, class R>
void compare_blocks(tally& to, int count, std::uint64_t seed) {
    oracle::random_bits random(seed);
    const auto ways = projections(5);
    const auto way = [&] { return ways[random.below(static_cast<std::uint32_t>(ways.size()))]; };
    const format& f = format_of<R>;
    for (int n = 0; n < count; ++n) {
        const std::uint64_t s1 = random_code<S1>(random);
        const std::uint64_t s2 = random_code<S2>(random);
        const std::uint64_t s3 = random_code<S3>(random);
        const codes x1 = random_codes<X1>(random);
        const codes x2 = random_codes<X2>(random);
        const auto a = block_of<S1, X1>(s1, x1);
        const auto b = block_of<S2, X2>(s2, x2);
        const S3 scale = oracle::value_of<S3>(s3);
        const real factor = decode(format_of<S3>, s3);
        const std::vector<real> v1 = values<S1, X1>(s1, x1);
        const std::vector<real> v2 = values<S2, X2>(s2, x2);
        const report::projection p = way();
        const mp::projection q = library_projection(p);

        std::vector<real> products;
        for (std::size_t i = 0; i < size; ++i) products.push_back(times(v1[i], v2[i]));
        to.compare("reduce_add", operations::block_reduce_add<R>(a, q),
                   project(f, p, p3109_cases::reduce("add", {}, v1)), p, {s1});
        to.compare("reduce_multiply", operations::block_reduce_multiply<R>(a, q),
                   project(f, p, p3109_cases::reduce("multiply", report::dyadic(false, 1, 0), v1)), p, {s1});
        to.compare("dot", operations::block_dot_product<R>(a, b, q),
                   project(f, p, p3109_cases::reduce("add", {}, products)), p, {s1, s2});

        const report::projection of_scale = way();
        std::vector<real> magnitudes;
        for (const std::uint64_t code : x1)
            magnitudes.push_back(report::magnitude(decode(format_of<X1>, code)));
        const real largest = p3109_cases::reduce("maximum_finite", report::special('N'), magnitudes);
        const std::uint64_t s = project(format_of<S3>, of_scale, largest);
        const auto scaled =
            operations::convert_to_block_max_abs_finite<S3, R>(a.elements, library_projection(of_scale), q);
        const auto converted = operations::convert_to_block<R>(a.elements, scale, q);
        const auto back = operations::convert_from_block<R>(a, q);
        to.compare("max_abs_finite", scaled.scale, s, of_scale, {x1[0], x1[1], x1[2]});
        for (std::size_t i = 0; i < size; ++i) {
            const real x = decode(format_of<X1>, x1[i]);
            to.compare("max_abs_finite", scaled.elements[i],
                       project_scaled(f, p, decode(format_of<S3>, s), x), p, {s, x1[i]});
            to.compare("to_block", converted.elements[i], project_scaled(f, p, factor, x), p, {s3, x1[i]});
            to.compare("from_block", back[i], project(f, p, v1[i]), p, {s1, x1[i]});
        }
        for_each_unary<R>([&](const char* name, auto, auto function) {
            const auto result = function(a, scale, q);
            for (std::size_t i = 0; i < size; ++i) {
                const real exact = apply(report::named(name), &v1[i]);
                to.compare(name, result.elements[i], project_scaled(f, p, factor, exact), p, {s1, x1[i], s3});
            }
        });
        for_each_binary<R>([&](const char* name, auto, auto function) {
            const real both[]{v1[0], v2[0]};
            to.compare(name, function(a.scale, a.elements[0], b.scale, b.elements[0], q),
                       project(f, p, apply(report::named(name), both)), p, {s1, x1[0], s2});
        });
        const auto sums = operations::block_add<R>(a, b, scale, q);
        const auto roots = operations::block_hypot<R>(a, b, scale, q);
        const auto fused = operations::block_fma<R>(a, b, a, scale, q);
        const auto added = operations::block_faa<R>(a, b, a, scale, q);
        const auto limited = operations::block_clamp<R>(a, a, b, scale, q);
        for (std::size_t i = 0; i < size; ++i) {
            const real v[]{v1[i], v2[i], v1[i]};
            const real limits[]{v1[i], v1[i], v2[i]};
            const auto compare = [&](const char* name, R result, const real* operands) {
                to.compare(name, result, project_scaled(f, p, factor, apply(report::named(name), operands)),
                           p, {s1, x1[i], x2[i]});
            };
            compare("add", sums.elements[i], v);
            compare("hypot", roots.elements[i], v);
            compare("fma", fused.elements[i], v);
            compare("faa", added.elements[i], v);
            compare("clamp", limited.elements[i], limits);
        }
        to.compare("fma",
                   operations::scaled_fma<R>(a.scale, a.elements[1], b.scale, b.elements[1], a.scale,
                                             a.elements[2], q),
                   project(f, p, apply(report::named("fma"), std::array{v1[1], v2[1], v1[2]}.data())), p,
                   {s1, s2});
    }
}

}  // namespace p3109_cases
