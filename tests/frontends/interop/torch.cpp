// SPDX-License-Identifier: MIT
// Numbers and tensors of PyTorch, by types that are made like its own; torch_headers.cpp has the real ones.
// alone: its stand-ins are in namespace c10
#include "torch_stand_ins.hpp"

#include "torch_checks.hpp"

namespace own {

struct number {
    std::uint16_t x;
};
enum class dtype : int { Float, Half, Double, BFloat16 };

}  // namespace own

/// A class of one's own takes part when it says what it is.
template <>
struct mp::torch_counterpart<own::number> : std::type_identity<mp::bfloat16> {};

namespace {

struct Half {  // not PyTorch's
    std::uint16_t x;
};

TEST_CASE("other classes are no numbers of PyTorch unless they say so") {
    static_assert(!mp::torch_number<Half> && !mp::torch_number<c10::eight_bits<0>>);
    static_assert(mp::torch_number<own::number>);
    CHECK(mp::from_torch(own::number{0x3FC0}) == mp::bfloat16{1.5F});
}

TEST_CASE("an older PyTorch has fewer dtypes, and enumerations without names tell numbers") {
    const auto size = []<class T>(std::type_identity<T>) { return sizeof(T); };
    CHECK(mp::dispatch_torch(own::dtype::Double, size) == 8);
    CHECK(mp::dispatch_torch<mp::float8_e4m3fn, mp::half>(own::dtype::Half, size) == 2);
    CHECK_THROWS_WITH_AS((mp::dispatch_torch<mp::float8_e4m3fn, mp::half>(own::dtype::Float, size)),
                         "mp::dispatch_torch: type is 'ScalarType 0'; it must be one of Float8_e4m3fn, Half",
                         mp::argument_error);
}

}  // namespace
