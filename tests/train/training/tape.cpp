// SPDX-License-Identifier: MIT
// A recorded backward pass against the same calls written by hand, bit for bit, and what a tape refuses.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/ops.hpp>
#include <mp/training.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/ops/reference.hpp"

namespace {

namespace layers = mp::layers;
namespace ac = mp::autocast;
using mp::ops::absent;
using mp::ops::add_to;
constexpr mp::cpu exec{};
constexpr std::ptrdiff_t rows = 6, width = 8, words = 5;

/// What the library says of a wrong use.
template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const mp::error& error) {
        return error.what();
    }
    return "";
}

template <class T>
std::vector<T> copy_of(std::span<T> values) {
    return {values.begin(), values.end()};
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Embedding, a linear layer, an mlp behind a norm and beside a residual, and a head.
template <class T>
struct model {
    mp::parameter_store<T> store;
    layers::embedding<T> table{store, "table", words, width, {.initial = mp::initializers::normal(0.7)}};
    layers::linear<T> first{store, "first", width, width};
    layers::layer_norm<T> norm{store, "norm", width};
    layers::mlp<T> feed{store, "feed", width, 2 * width};
    layers::linear<T> head{store, "head", width, words};
    mp::tensor<T> x{rows, width}, z{rows, width}, dlogits{rows, words}, dz{rows, width}, part{rows, width};
    std::vector<int> ids{3, 1, 4, 1, 0, 2}, labels{1, 4, 1, 0, 2, 3};

    model() { store.build(7); }

    auto by_hand(bool add) {
        using view = mp::matrix_view<const T>;
        table.forward(exec, ids, x.view());
        const view h = first.forward(exec, x.view());
        mp::ops::add(exec, h, feed.forward(exec, norm.forward(exec, h)), z.view());
        const view logits = head.forward(exec, z.view());
        const auto loss =
            mp::ops::softmax_cross_entropy_with_gradient(exec, logits, labels, dlogits.view(), {});
        head.backward(exec, dlogits.view(), add_to(dz.view(), false), add);
        feed.backward(exec, dz.view(), add_to(part.view(), false), add);
        norm.backward(exec, part.view(), add_to(dz.view()), add);
        first.backward(exec, dz.view(), add_to(part.view(), false), add);
        table.backward(exec, part.view(), add);
        return loss;
    }
    auto by_tape(mp::tape& tape, bool add) {
        return readme(tape, tape.call(table, exec, std::span<const int>(ids)), add ? 1 : 0);
    }
    /// The lines of docs/training.md.
    auto readme(mp::tape& tape, const auto& input, int micro) {
        const auto h = tape.call(first, exec, input);
        const auto y =
            tape.call(head, exec, tape.add(exec, h, tape.call(feed, exec, tape.call(norm, exec, h))));
        const auto loss =
            mp::ops::softmax_cross_entropy_with_gradient(exec, y.value(), labels, y.add_to_gradient());
        CHECK(tape.size() == 6);
        tape.backward(micro != 0);
        CHECK(tape.size() == 0);
        return loss;
    }
};

template <class T>
void compare() {
    model<T> hand, taped;
    mp::tape tape;
    for (const bool add : {false, true, false}) {
        CAPTURE(add);
        const auto loss = hand.by_hand(add);
        CHECK(taped.by_tape(tape, add) == loss);
        CHECK(same(copy_of(taped.store.gradients()), copy_of(hand.store.gradients())));
    }
    CHECK(tape.high_water() > 0);
}

TEST_CASE("gradients by a tape are those of a backward pass by hand, to the bit, in any format and region") {
    compare<float>();
    compare<mp::bfloat16>();
    compare<double>();
    const mp::autocast_region region(mp::precision::bf16);
    compare<float>();
}

TEST_CASE("the first use of a value writes its gradient, and the others add, also of one value twice") {
    mp::tape tape;
    mp::tensor<float> x(2, 3), dx(2, 3), other(2, 3);
    for (std::size_t i = 0; i < 6; ++i) {
        x.values()[i] = static_cast<float>(i);
        dx.values()[i] = 100;  // written over
        other.values()[i] = 1;
    }
    const auto v = tape.value(x.view(), dx.view());
    const auto twice = tape.add(exec, v, v);
    const auto y = tape.add(exec, other.view(), tape.add(exec, twice, v));  // a view has no gradient
    for (std::ptrdiff_t i = 0; i < 6; ++i) {
        CHECK(y.value()(i / 3, i % 3) == 3 * static_cast<float>(i) + 1);
    }
    mp::ops::add_backward(exec, mp::matrix_view<const float>(x.view()), y.add_to_gradient(), absent);
    tape.backward();
    for (std::size_t i = 0; i < 6; ++i) CHECK(dx.values()[i] == 3 * static_cast<float>(i));
}

TEST_CASE("a layer reads a view whose gradient nobody wants, and one that keeps the caller's") {
    mp::parameter_store<float> store;
    layers::linear<float> a(store, "a", width, width), b(store, "b", width, width);
    store.build(1);
    ops_test::matrix<float> x(rows, width), dy(rows, width), dx(rows, width), expected(rows, width);
    x.randomize(1);
    dy.randomize(2);
    const mp::matrix_view<const float> in = x.view, out_gradient = dy.view;
    mp::tape tape;
    const auto y = tape.call(a, exec, in);
    const auto z = tape.call(b, exec, tape.value(in, dx.view));
    mp::ops::add_backward(exec, out_gradient, y.add_to_gradient(), absent);
    mp::ops::add_backward(exec, out_gradient, z.add_to_gradient(), absent);
    tape.backward();
    const auto kept = copy_of(store.gradients());
    a.backward(exec, out_gradient, absent);
    b.backward(exec, out_gradient, expected.view);
    CHECK(same(copy_of(store.gradients()), kept));
    CHECK(same(dx.elements, expected.elements));
}

TEST_CASE(
    "recorded functions run in reverse, each once, with the argument of backward(), and are destroyed") {
    mp::tape tape;
    const auto alive = std::make_shared<int>();
    std::string order;
    for (const bool add : {false, true}) {
        order.clear();
        tape.record([&, alive] { order += 'a'; });
        tape.record([&, alive](bool adds) { order += adds ? "B" : "b"; });
        tape.record([&, alive] { order += 'c'; });
        CHECK(alive.use_count() == 4);
        tape.backward(add);
        CHECK(order == (add ? "cBa" : "cba"));
        CHECK(alive.use_count() == 1);
    }
    tape.record([alive] {});
    tape.clear();
    CHECK(tape.size() == 0);
    CHECK(alive.use_count() == 1);
    {
        mp::tape dropped;
        dropped.record([alive] {});
    }
    CHECK(alive.use_count() == 1);
}

TEST_CASE("an op of one's own is recorded with its values") {
    mp::tape tape;
    ops_test::matrix<float> x(rows, width), dy(rows, width), dx(rows, width), expected(rows, width);
    x.randomize(1);
    dy.randomize(2);
    const auto v = tape.value(x.view, dx.view);
    const auto y = tape.value(tape.matrix<float>(rows, width));
    mp::ops::relu(exec, v.value(), y.value());
    tape.record([=] { mp::ops::relu_backward(exec, v.value(), y.gradient(), v.add_to_gradient()); });
    mp::ops::add_backward(exec, dy.view, y.add_to_gradient(), absent);
    tape.backward();
    mp::ops::relu_backward(exec, x.view, dy.view, expected.view);
    CHECK(same(dx.elements, expected.elements));
}

TEST_CASE("each backward call runs in the autocast state of its forward call") {
    mp::tape tape;
    std::vector<mp::precision> seen;
    std::vector<std::string> names;
    const auto look = [&] {
        seen.push_back(mp::autocast_precision());
        names.push_back(std::string(mp::autocast_layer_path()));
    };
    for (int step = 0; step < 3; ++step) {
        seen.clear();
        names.clear();
        tape.record(look);
        {
            // Other regions at the same addresses.
            const mp::autocast_region region(step == 1 ? mp::precision::bf16 : mp::precision::fp16);
            const mp::autocast_layer layer(step == 1 ? "left" : "right");
            tape.record(look);
            tape.record(look);
            const mp::autocast_region off(mp::precision::off);
            tape.record(look);
        }
        const mp::autocast_region around(mp::precision::fp8);
        tape.backward();
        const auto inner = step == 1 ? mp::precision::bf16 : mp::precision::fp16;
        const std::string name = step == 1 ? "left" : "right";
        CHECK(seen == std::vector{mp::precision::off, inner, inner, mp::precision::off});
        CHECK(names == std::vector<std::string>{name, name, name, ""});
        CHECK(mp::autocast_precision() == mp::precision::fp8);
    }

    // Gradients of a product in half, the region having ended.
    mp::parameter_store<float> store;
    layers::linear<float> layer(store, "fc", width, width);
    store.build(1);
    ops_test::matrix<float> x(rows, width), dy(rows, width), dx(rows, width), low(rows, width);
    x.randomize(1);
    dy.randomize(2);
    std::optional<mp::autocast_region> region(mp::precision::fp16);
    const auto y = tape.call(layer, exec, tape.value(x.view, dx.view));
    region.reset();
    mp::ops::add_backward(exec, dy.view, y.add_to_gradient(), absent);
    tape.backward();
    region.emplace(mp::precision::fp16);
    layer.backward(exec, dy.view, add_to(low.view, false));
    CHECK(same(dx.elements, low.elements));
    region.reset();
    layer.backward(exec, dy.view, add_to(low.view, false));
    CHECK_FALSE(same(dx.elements, low.elements));
}

TEST_CASE("a backward pass without a forward pass, and a second one, are refused") {
    mp::tape tape;
    const std::string nothing =
        "mp::tape::backward: no call is recorded; a forward pass records calls, and one backward pass uses "
        "them up";
    const auto message = [&] { return message_of([&] { tape.backward(); }); };
    CHECK_THROWS_AS(tape.backward(), mp::state_error);
    CHECK(message() == nothing);
    tape.record([] {});
    tape.backward();
    CHECK(message() == nothing);
    tape.record([] {});
    tape.clear();
    CHECK(message() == nothing);
}

TEST_CASE("what makes no sense is refused, and names the call") {
    model<float> it;
    mp::tape tape;
    const mp::matrix_view<const float> x = it.x.view();
    const auto h = tape.call(it.first, exec, x);
    CHECK(
        message_of([&] { tape.call(it.first, exec, h); }) ==
        "mp::tape::call: the layer is on the tape already, and keeps only one input; make another layer, or "
        "call backward() or clear() first");
    CHECK(message_of([&] { tape.value(x, it.dlogits.view()); }) ==
          "mp::tape::value: gradient.columns is 5; it must equal view.columns, which is 8");
    CHECK(message_of([&] { tape.matrix<float>(-1, 2); }) ==
          "mp::tape::matrix: rows is -1; it must not be negative");
    CHECK(tape.size() == 1);

    // Nothing was added to the gradient of h.
    CHECK(
        message_of([&] { tape.backward(); }) ==
        "mp::tape_value::gradient: nothing was added to it; a result must be used by a later call or by the "
        "loss");
    CHECK(tape.size() == 0);
    const std::string ended =
        ": the step has ended; values of a tape are good until its backward() or clear()";
    CHECK(message_of([&] { static_cast<void>(h.value()); }) == "mp::tape_value::value" + ended);
    CHECK(message_of([&] { static_cast<void>(h.gradient()); }) == "mp::tape_value::gradient" + ended);
    CHECK(message_of([&] { tape.call(it.norm, exec, h); }) == "mp::tape_value::value" + ended);
    CHECK(message_of([&] { static_cast<void>(h.add_to_gradient()); }) ==
          "mp::tape_value::add_to_gradient" + ended);

    tape.record([&] { tape.record([] {}); });
    CHECK(message_of([&] { tape.backward(); }) == "mp::tape::record: called in a backward pass of this tape");
    tape.record([&] { tape.backward(); });
    CHECK(message_of([&] { tape.backward(); }) ==
          "mp::tape::backward: called in a backward pass of this tape");
    tape.record([&] { tape.clear(); });
    CHECK(message_of([&] { tape.backward(); }) == "mp::tape::clear: called in a backward pass of this tape");
    CHECK(tape.size() == 0);
}

TEST_CASE("an exception of a backward or forward call clears the tape, and the next step is as ever") {
    mp::tape tape;
    const auto alive = std::make_shared<int>();
    std::string order;
    tape.record([&, alive] { order += 'a'; });
    tape.record([&, alive] { throw std::runtime_error("of a call"); });
    tape.record([&, alive] { order += 'c'; });
    {
        const mp::autocast_region region(mp::precision::bf16);
        CHECK_THROWS_AS(tape.backward(), std::runtime_error);
        CHECK(mp::autocast_precision() == mp::precision::bf16);
    }
    CHECK(order == "c");
    CHECK(tape.size() == 0);
    CHECK(alive.use_count() == 1);

    model<float> hand, taped;
    tape.record([alive] {});
    const mp::matrix_view<const float> wrong = taped.dlogits.view();
    CHECK_THROWS_AS(tape.call(taped.first, exec, wrong), mp::argument_error);
    CHECK(tape.size() == 0);
    CHECK(alive.use_count() == 1);
    tape.record([alive] {});
    CHECK_THROWS_AS(tape.add(exec, wrong, mp::matrix_view<const float>(taped.x.view())), mp::argument_error);
    CHECK(tape.size() == 0);

    CHECK(hand.by_hand(false) == taped.by_tape(tape, false));
    CHECK(same(copy_of(taped.store.gradients()), copy_of(hand.store.gradients())));
}

static_assert(!std::is_copy_constructible_v<mp::tape> && !std::is_move_constructible_v<mp::tape>);
static_assert(!std::is_copy_assignable_v<mp::tape> && !std::is_move_assignable_v<mp::tape>);

}  // namespace
