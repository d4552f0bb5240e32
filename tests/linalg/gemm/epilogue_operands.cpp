// SPDX-License-Identifier: MIT
// What epilogues read and write is compared with the matrices of every product before anything is written.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/linalg/gemm/batched.hpp>
#include <mp/linalg/gemm/epilogue_gradients.hpp>
#include <mp/linalg/gemm/epilogue_outputs.hpp>
#include <mp/linalg/gemm/grouped.hpp>
#include <mp/linalg/gemm/grouped_scaled.hpp>
#include <mp/linalg/gemm/scaled.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr std::ptrdiff_t rows = 12;
constexpr std::ptrdiff_t columns = 20;
constexpr std::ptrdiff_t k = 16;
constexpr std::size_t elements = rows * columns;
using memory = std::vector<float>;

memory numbers(std::size_t count, float first) {
    memory result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = first + static_cast<float>(i * 37 % 64) * 0.125F;
    return result;
}

template <class Function>
std::string refusal(Function f) {
    try {
        f();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "none";
}
std::string overlaps(const std::string& written, const std::string& other) {
    return "mp::gemm: " + written + " overlaps " + other + "; they must not share elements, because " +
           written + " is written while " + other + " is in use";
}

/// Operands of one product, with room around C.
struct product {
    memory a = numbers(rows * k, -1);
    memory b = numbers(k * columns, -2);
    memory c = numbers(3 * elements, -3);
    memory other = numbers(elements, -4);
    std::array<float, 1> amax{};

    [[nodiscard]] float* first() { return c.data() + elements; }
    [[nodiscard]] mp::matrix_view<float> of_c() { return mp::row_major(first(), rows, columns); }

    template <class Epilogue>
    void run(const Epilogue& epilogue) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), rows, k), mp::row_major(b.data(), k, columns), 0.5F,
                 of_c(), epilogue);
    }
    /// Why the product is refused; nothing may be written then.
    template <class Epilogue>
    std::string refused(const Epilogue& epilogue) {
        const product before = *this;
        const std::string message = refusal([&] { run(epilogue); });
        if (message == "none") return message;
        return before.a == a && before.b == b && before.c == c && before.other == other && before.amax == amax
                   ? message
                   : "written before: " + message;
    }
};

const auto through = [](float value, std::ptrdiff_t, std::ptrdiff_t) { return value; };

}  // namespace

TEST_CASE("a matrix that an epilogue reads is C at the same place in the same order, or separate") {
    const auto check = [](const std::string& name, auto make) {
        product p;
        const auto refused = [&](auto view) { return p.refused(make(view)); };
        const std::string expected = overlaps("c", name);
        constexpr auto size = static_cast<std::ptrdiff_t>(elements);
        for (const std::ptrdiff_t shift :
             {1 - size, -columns, std::ptrdiff_t{-1}, std::ptrdiff_t{1}, columns, size - 1}) {
            CAPTURE(shift);
            CHECK(refused(mp::row_major<const float>(p.first() + shift, rows, columns)) == expected);
        }
        CHECK(refused(mp::column_major<const float>(p.first(), rows, columns)) == expected);
        CHECK(refused(mp::row_major<const float>(p.first(), rows, columns, columns + 1)) == expected);
        CHECK(refused(mp::row_major(reinterpret_cast<const mp::bfloat16*>(p.first()), rows, columns)) ==
              expected);
        // Behind C and before it.
        CHECK(refused(mp::row_major<const float>(p.first() + size, rows, columns)) == "none");
        CHECK(refused(mp::row_major<const float>(p.first() - size, rows, columns)) == "none");

        product at_c;
        product elsewhere;
        elsewhere.other.assign(at_c.first(), at_c.first() + size);
        at_c.run(make(mp::row_major<const float>(at_c.first(), rows, columns)));
        elsewhere.run(make(mp::row_major<const float>(elsewhere.other.data(), rows, columns)));
        CHECK(at_c.c == elsewhere.c);
    };
    check("residual", [](auto view) { return mp::add_residual(view); });
    check("preactivation", [](auto view) { return mp::dgelu(view); });
    check("preactivation", [](auto view) { return mp::dgelu_tanh(view); });
    check("preactivation", [](auto view) { return mp::dsilu(view); });
    check("preactivation", [](auto view) { return mp::drelu(view); });
    check("residual", [](auto view) {
        return mp::compose(through,
                           mp::compose(mp::compose(mp::relu_epilogue{}, mp::add_residual(view)), through));
    });
}

TEST_CASE("biases and scales lie outside of C") {
    product p;
    const auto within = [&](std::ptrdiff_t shift, std::ptrdiff_t size) {
        return std::span<const float>(p.first() + shift, static_cast<std::size_t>(size));
    };
    for (const std::ptrdiff_t shift :
         {1 - columns, std::ptrdiff_t{0}, std::ptrdiff_t{5}, rows * columns - 1}) {
        CAPTURE(shift);
        CHECK(p.refused(mp::bias_per_column(within(shift, columns))) == overlaps("c", "bias"));
        CHECK(p.refused(mp::scale_per_column(within(shift, columns))) == overlaps("c", "scale"));
    }
    CHECK(p.refused(mp::bias_per_row(within(3, rows))) == overlaps("c", "bias"));
    CHECK(p.refused(mp::scale_per_row(within(3, rows))) == overlaps("c", "scale"));
    CHECK(p.refused(mp::quantize_to<mp::float8_e4m3fn>(static_cast<const float*>(p.first() + 7))) ==
          overlaps("c", "scale"));
    CHECK(p.refused(mp::bias_per_column(within(-columns, columns))) == "none");
    CHECK(p.refused(mp::bias_per_column(within(rows * columns, columns))) == "none");

    // Between the rows of C, and one row that is its own bias.
    const auto view = mp::row_major(p.first(), rows / 2, columns, 2 * columns);
    const auto multiply = [&](mp::matrix_view<float> c, const auto& epilogue) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(p.a.data(), c.rows, k), mp::row_major(p.b.data(), k, columns),
                 0.0F, c, epilogue);
    };
    CHECK_NOTHROW(multiply(view, mp::bias_per_column(within(columns, columns))));
    CHECK_THROWS_AS(multiply(view, mp::bias_per_column(within(columns + 1, columns))), mp::argument_error);
    const memory bias(p.first(), p.first() + columns);
    memory expected(columns);
    multiply(mp::row_major(expected.data(), 1, columns), mp::bias_per_column(bias));
    multiply(mp::row_major(p.first(), 1, columns), mp::bias_per_column(within(0, columns)));
    CHECK(memory(p.first(), p.first() + columns) == expected);
}

TEST_CASE("what an epilogue writes overlaps no operand of the product and no other operand of the chain") {
    product p;
    const auto matrix = [](float* data) { return mp::row_major(data, rows, columns); };
    const auto store = [&](float* data) { return mp::store_auxiliary(matrix(data)); };
    memory wide_a = numbers(elements + rows * k, 0);
    const auto over_a = [&](float* data) {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(wide_a.data() + elements, rows, k),
                 mp::row_major(p.b.data(), k, columns), 0.0F, p.of_c(), store(data));
    };
    CHECK(refusal([&] { over_a(wide_a.data() + 1); }) == overlaps("auxiliary", "a"));
    CHECK(refusal([&] { over_a(wide_a.data()); }) == "none");
    CHECK(p.refused(store(p.first())) == overlaps("c", "auxiliary"));
    CHECK(p.refused(store(p.first() + elements - 1)) == overlaps("c", "auxiliary"));
    CHECK(p.refused(mp::store_auxiliary(mp::column_major(p.first(), rows, columns))) ==
          overlaps("c", "auxiliary"));

    CHECK(p.refused(mp::amax_into(p.first() + 9)) == overlaps("c", "amax"));
    CHECK(p.refused(mp::amax_into(p.a.data() + 9)) == overlaps("amax", "a"));
    CHECK(p.refused(mp::amax_into(p.b.data() + k * columns - 1)) == overlaps("amax", "b"));
    CHECK(p.refused(mp::amax_into(p.amax.data())) == "none");

    float* const other = p.other.data();
    CHECK(p.refused(mp::compose(store(other), mp::amax_into(other + 5))) == overlaps("auxiliary", "amax"));
    CHECK(p.refused(mp::compose(mp::amax_into(other + 5), store(other))) == overlaps("amax", "auxiliary"));
    CHECK(p.refused(mp::compose(store(other), mp::compose(through, store(other)))) ==
          overlaps("auxiliary", "auxiliary"));
    CHECK(p.refused(mp::compose(mp::bias_per_column(std::span<const float>(other, columns)), store(other))) ==
          overlaps("auxiliary", "bias"));
    CHECK(p.refused(mp::compose(mp::amax_into(p.amax.data()),
                                mp::quantize_to<mp::float8_e4m3fn>(
                                    static_cast<const float*>(p.amax.data())))) == overlaps("amax", "scale"));
    CHECK(p.refused(mp::compose(mp::add_residual(matrix(p.first() + elements + 1)),
                                store(p.first() + elements))) == overlaps("auxiliary", "residual"));
    // Each element is read before it is written.
    CHECK(p.refused(mp::compose(mp::add_residual(matrix(other)), store(other))) == "none");
    CHECK(p.refused(mp::compose(store(other), mp::amax_into(p.amax.data()))) == "none");
}

TEST_CASE("every product compares the operands of its epilogue") {
    product p;
    memory second = numbers(elements, 1);
    const auto a = mp::row_major(p.a.data(), rows, k);
    const auto b = mp::row_major(p.b.data(), k, columns);
    const auto shifted = mp::row_major<const float>(p.first() + 1, rows, columns);
    const auto same = mp::row_major<const float>(p.first(), rows, columns);
    const mp::cpu cpu{};
    const mp::matrix_batch batch_of_c{mp::row_major(p.first() - elements, rows, columns),
                                      static_cast<std::ptrdiff_t>(elements)};
    const mp::matrix_batch batch_of_a{a, 0};
    const mp::matrix_batch batch_of_b{b, 0};
    const std::vector<std::int32_t> counts{5, 7};
    const std::vector<std::int32_t> of_rows{0, 5, rows};
    const std::vector<std::int32_t> of_k{0, 9, k};

    const auto batched = [&](const auto& epilogue) {
        return refusal([&] { mp::gemm_batched(cpu, 2, 1, batch_of_a, batch_of_b, 0, batch_of_c, epilogue); });
    };
    const auto masked = [&](const auto& epilogue) {
        return refusal([&] {
            mp::gemm_masked(cpu, 1, batch_of_a, batch_of_b, std::span(counts), 0, batch_of_c, epilogue);
        });
    };
    const auto along_k = [&](const auto& epilogue) {
        return refusal([&] { mp::gemm_grouped_k(cpu, 1, a, b, std::span(of_k), 0, batch_of_c, epilogue); });
    };
    const auto along_m = [&](const auto& epilogue) {
        return refusal(
            [&] { mp::gemm_grouped_m(cpu, 1, a, batch_of_b, std::span(of_rows), 0, p.of_c(), epilogue); });
    };
    const auto check_batch = [&](const auto& run) {
        CHECK(run(mp::add_residual(shifted)) == overlaps("c", "residual"));
        // One matrix is read for both C, of which the other is written by then.
        CHECK(run(mp::add_residual(same)) == overlaps("c", "residual"));
        CHECK(run(mp::add_residual(mp::row_major<const float>(second.data(), rows, columns))) == "none");
        CHECK(run(mp::amax_into(p.first() + 3)) == overlaps("c", "amax"));
        CHECK(run(mp::amax_into(p.first() - 1)) == overlaps("c", "amax"));
        CHECK(run(mp::amax_into(p.b.data())) == overlaps("amax", "b"));
        CHECK(run(mp::amax_into(p.amax.data())) == "none");
    };
    check_batch(batched);
    check_batch(masked);
    check_batch(along_k);
    CHECK(along_m(mp::add_residual(shifted)) == overlaps("c", "residual"));
    CHECK(along_m(mp::add_residual(same)) == "none");
    CHECK(along_m(mp::amax_into(p.a.data())) == overlaps("amax", "a"));

    // Lists of groups are read while C is written.
    const std::span<const std::int32_t> within(reinterpret_cast<const std::int32_t*>(p.first() + 4), 2);
    p.first()[4] = p.first()[5] = 0.0F;
    CHECK(refusal([&] {
              mp::gemm_grouped_m(cpu, 1, a, batch_of_b, within, 0, p.of_c());
          }).starts_with("mp::gemm_grouped_m: c overlaps offsets; they must not share elements"));
    CHECK(refusal([&] {
              mp::gemm_grouped_k(cpu, 1, a, b, within, 0, mp::matrix_batch{p.of_c()});
          }).starts_with("mp::gemm_grouped_k: c overlaps offsets; they must not share elements"));
    CHECK(refusal([&] {
              mp::gemm_masked(cpu, 1, batch_of_a, batch_of_b, within, 0, batch_of_c);
          }).starts_with("mp::gemm_masked: c overlaps counts; they must not share elements"));

    const auto packed = mp::packed_b<float>(cpu, b);
    CHECK(refusal([&] { mp::gemm(cpu, 1, a, packed, 0, p.of_c(), mp::dgelu(shifted)); }) ==
          overlaps("c", "preactivation"));
    CHECK(refusal([&] { mp::gemm(cpu, 1, a, packed, 0, p.of_c(), mp::amax_into(p.a.data())); }) ==
          overlaps("amax", "a"));
}

TEST_CASE("products of 8 bits, with scales and emulated, compare the operands of their epilogues") {
    product p;
    std::vector<mp::float8_e4m3fn> eights(rows * k, mp::float8_e4m3fn(1));
    std::vector<mp::float8_e4m3fn> more(k * columns, mp::float8_e4m3fn(1));
    std::vector<float> scales(columns, 1.0F);
    std::vector<std::int8_t> integers(rows * k, 1);
    std::vector<std::int8_t> more_integers(k * columns, 1);
    const auto a = mp::row_major(eights.data(), rows, k);
    const auto b = mp::row_major(more.data(), k, columns);
    const mp::k_block_scales a_scales{mp::row_major<const float>(scales.data(), rows, 1)};
    const mp::k_block_scales b_scales{mp::row_major<const float>(scales.data(), 1, columns)};
    const auto shifted = mp::row_major<const float>(p.first() + 1, rows, columns);
    using emulated = mp::emulated<mp::arch::sm_90>;

    const auto scaled = [&](const auto& exec, const auto& epilogue) {
        return refusal(
            [&] { mp::gemm_scaled(exec, 1.0F, a, a_scales, b, b_scales, 0.0F, p.of_c(), epilogue); });
    };
    CHECK(scaled(mp::cpu{}, mp::add_residual(shifted)) == overlaps("c", "residual"));
    CHECK(scaled(mp::cpu{}, mp::amax_into(scales.data() + rows)) == overlaps("amax", "b_scales.values"));
    CHECK(scaled(emulated{}, mp::add_residual(shifted)) == overlaps("c", "residual"));
    CHECK(scaled(emulated{}, mp::amax_into(scales.data() + rows)) == overlaps("amax", "b_scales.values"));
    const std::vector<std::int32_t> offsets{0, k};
    CHECK(refusal([&] {
              mp::gemm_scaled_grouped_k(mp::cpu{}, 1, a, a_scales, b, b_scales, std::span(offsets), 0,
                                        mp::matrix_batch{p.of_c()}, mp::amax_into(scales.data()));
          }) == overlaps("amax", "a_scales.values"));

    const auto emulate = [&](const auto& epilogue) {
        return refusal([&] {
            mp::gemm(emulated{}, 1.0F, mp::row_major(integers.data(), rows, k),
                     mp::row_major(more_integers.data(), k, columns), 0.0F, p.of_c(), epilogue);
        });
    };
    CHECK(emulate(mp::add_residual(shifted)) == overlaps("c", "residual"));
    CHECK(emulate(mp::amax_into(reinterpret_cast<float*>(integers.data() + 4))) == overlaps("amax", "a"));
    CHECK(emulate(mp::amax_into(p.amax.data())) == "none");
    CHECK(refusal([&] {
              mp::gemm(emulated{}, 1.0F, a, b, 0.0F, p.of_c(),
                       mp::amax_into(reinterpret_cast<float*>(more.data() + 8)));
          }) == overlaps("amax", "b"));
}
