// SPDX-License-Identifier: MIT
// Compiled for any processor, and with MP_STATIC_TARGET for certain ones.
#include "kernels.hpp"

#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <cstdint>

#if !defined(MP_STATIC_TARGET)
#define results results_of_any_target
#define refusal refusal_of_any_target
#endif

namespace {

struct checksum {
    std::uint64_t value = 14695981039346656037U;

    template <class Value, std::size_t Count>
    void add(const Value (&numbers)[Count]) {
        for (const Value x : numbers) value = (value ^ mp::round_to<mp::half>(x).bits()) * 1099511628211U;
    }
};

template <class Value>
void use(checksum& sum) {
    constexpr std::size_t size = 19;
    const mp::cpu exec{.products = mp::accumulation::ordered};
    float values[size * size];
    float products[size * size];
    Value a[size * size];
    Value b[size * size];
    for (std::size_t i = 0; i < size * size; ++i) values[i] = static_cast<float>(i % 37) * 0.13F - 2.0F;
    mp::convert(exec, values, a);
    mp::multiply(exec, a, a, b);
    mp::add(exec, a, b, b);
    mp::exp(exec, a, a);
    mp::gemm(exec, 1.0F, mp::row_major(a, size, size), mp::row_major(b, size, size), 0.0F,
             mp::row_major(products, size, size));
    sum.add(a);
    sum.add(b);
    sum.add(products);
}

}  // namespace

std::uint64_t results() {
    checksum sum;
    use<mp::half>(sum);
    use<mp::bfloat16>(sum);
    return sum.value;
}

std::string refusal(mp::instruction_set isa) {
    const float from[] = {1.0F};
    mp::half to[1];
    try {
        mp::convert(mp::cpu{.instructions = isa}, from, to);
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "";
}
