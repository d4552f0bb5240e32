// SPDX-License-Identifier: MIT
// What an optimizer refuses to train, and how it says so.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

template <class Weight, class Gradient>
std::string refusal(std::vector<mp::parameter<Weight, Gradient>> parameters) {
    return thrown<mp::argument_error>([&] { mp::sgd<Weight, Gradient> optimizer(std::move(parameters)); });
}

}  // namespace

TEST_CASE("no parameters at all") {
    CHECK(refusal<float, float>({}) == "mp::sgd: parameters.size() is 0; it must be at least 1");
    CHECK(holds(
        thrown<mp::argument_error>([] { mp::adamw<float> optimizer(std::vector<mp::parameter<float>>{}); }),
        "mp::adamw: parameters.size() is 0"));
}

TEST_CASE("a gradient of another size than its weights") {
    std::vector<mp::half> weights(4);
    std::vector<mp::half> gradient(3);
    CHECK(refusal<mp::half, mp::half>({{"fc.weight", weights, gradient}}) ==
          "mp::sgd: parameters[0] ('fc.weight').gradient.size() is 3; it must be 0 or equal the number of "
          "weights, which is 4");
}

TEST_CASE("null with a size") {
    std::vector<float> values(4);
    const std::span<float> null(static_cast<float*>(nullptr), 4);
    CHECK(refusal<float, float>({{"first", null, values}}) ==
          "mp::sgd: parameters[0] ('first').weights.data() is null; it must point to memory, for the size is "
          "4");
    CHECK(refusal<float, float>({{"", values, null}}) ==
          "mp::sgd: parameters[0].gradient.data() is null; it must point to memory, for the size is 4");
}

TEST_CASE("arrays that overlap, within a parameter and across") {
    std::vector<float> memory(10);
    const std::span<float> all(memory);
    CHECK(refusal<float, float>({{"w", all.first(5), all.subspan(4, 5)}}) ==
          "mp::sgd: parameters[0] ('w').weights and parameters[0] ('w').gradient overlap; every array must "
          "have "
          "memory of its own");
    CHECK(holds(refusal<float, float>({{"a", all.first(2), all.subspan(2, 2)},
                                       {"b", all.subspan(4, 2), all.subspan(6, 2)},
                                       {"c", all.subspan(3, 1), {}}}),
                "parameters[0] ('a').gradient and parameters[2] ('c').weights overlap"));
    CHECK(refusal<float, float>({{"a", all.first(2), all.subspan(2, 2)},
                                 {"b", all.subspan(4, 2), all.subspan(6, 2)}}) == "(nothing was thrown)");
    // Different types on the same bytes.
    const std::span<mp::half> halves(reinterpret_cast<mp::half*>(memory.data() + 1), 2);
    CHECK(holds(refusal<mp::half, float>({{"w", halves, all.first(2)}}), "overlap"));
}

TEST_CASE("empty arrays, also several at one address, are no trouble") {
    std::vector<float> memory(2);
    mp::adamw<float> optimizer({{"empty", {}, {}},
                                {"also", std::span(memory).first(0), {}},
                                {"w", std::span(memory).first(1), std::span(memory).last(1)}});
    memory[1] = 1.0F;
    optimizer.step();
    CHECK(memory[0] != 0.0F);
    CHECK(optimizer.parameter_name(1) == std::string_view("also"));
    CHECK(optimizer.parameters().size() == 3);
    CHECK(optimizer.master_weights(0).empty());
    mp::sgd<float> nothing(std::vector<mp::parameter<float>>(2));
    nothing.step();
    CHECK(nothing.bytes_per_parameter() == 0.0);
    CHECK(nothing.check_gradients(1.0F).checked == 0);
    CHECK(thrown<mp::argument_error>([&] { static_cast<void>(optimizer.parameter_name(3)); }) ==
          "mp::optimizer_base::parameter_name: index is 3; it must be less than the number of parameters, "
          "which "
          "is 3");
    CHECK(holds(thrown<mp::argument_error>([&] { static_cast<void>(optimizer.master_weights(3)); }),
                "index is 3;"));
}
