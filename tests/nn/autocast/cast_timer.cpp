// SPDX-License-Identifier: MIT
// What a cast timer counts, against counts by hand.
#include <doctest/doctest.h>
#include <mp/gpu.hpp>
#include <mp/nn/autocast/cast_timer.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "nn/autocast/ledger_ops.hpp"

namespace {

namespace ac = mp::autocast;
using namespace ledger_ops;
using mp::precision;

template <class Op>
void copy(const std::vector<float>& x, std::vector<float>& y) {
    ac::dispatch(Op{}, std::span<const float>(x), ac::out(std::span<float>(y)));
}

TEST_CASE("casts of arguments and results are timed, and nothing else") {
    const std::vector<float> x(1000, 1.5F);
    std::vector<float> y(1000);
    ac::cast_timer casts;
    copy<low_copy>(x, y);
    const auto start = std::chrono::steady_clock::now();
    {
        const mp::autocast_region region({.cpu = precision::bf16, .ledger = &casts});
        copy<full_copy>(x, y);
        CHECK(casts.casts() == 0);
        copy<low_copy>(x, y);
        CHECK(casts.casts() == 2);
        CHECK(casts.elements() == 2000);
        const mp::autocast_region off(precision::off);
        copy<low_copy>(x, y);
    }
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
    CHECK(casts.casts() == 2);
    CHECK(casts.seconds() > 0.0);
    CHECK(casts.seconds() < all.count());
    casts.clear();
    CHECK(casts.casts() == 0);
    CHECK(casts.elements() == 0);
    CHECK_FALSE(casts.seconds() > 0.0);
}

TEST_CASE("a cast that the cache has takes no time") {
    const std::vector<float> x(12, 1.5F), w(30, 2.5F);
    std::vector<float> y(12);
    ac::buffer_version version;
    ac::cast_timer casts;
    const mp::autocast_region region({.cpu = precision::fp16, .ledger = &casts});
    for (const std::uint64_t expected : {12 + 30 + 12, 2 * 24 + 30, 3 * 24 + 30}) {
        ac::dispatch(low_product{}, std::span<const float>(x), ac::cached(std::span<const float>(w), version),
                     ac::out(std::span<float>(y)));
        CHECK(casts.elements() == expected);
    }
    version.changed();
    ac::dispatch(low_product{}, std::span<const float>(x), ac::cached(std::span<const float>(w), version),
                 ac::out(std::span<float>(y)));
    CHECK(casts.elements() == 4 * 24 + 2 * 30);
    CHECK(casts.casts() == 4 * 2 + 2);
}

TEST_CASE("results that the op adds to are read and written in casts") {
    const std::vector<float> x(7, 1.5F);
    std::vector<float> y(7, 1.0F);
    ac::cast_timer casts;
    const mp::autocast_region region({.cpu = precision::bf16, .ledger = &casts});
    ac::dispatch(add_to_op{}, std::span<const float>(x), ac::in_out(std::span<float>(y)));
    CHECK(casts.casts() == 3);
    CHECK(casts.elements() == 21);
}

TEST_CASE("casts on a GPU count") {
    mp::host_workspace memory;
    const mp::simulated_gpu<mp::arch::sm_80> gpu{.workspace = &memory};
    std::vector<float> x(6, 1.5F), w(12, 0.5F), y(8);
    ac::cast_timer casts;
    const mp::autocast_region region({.cuda = precision::fp16, .ledger = &casts});
    mp::ops::matmul(gpu, mp::row_major(x.data(), 2, 3), mp::row_major(w.data(), 3, 4),
                    mp::row_major(y.data(), 2, 4));
    CHECK(casts.casts() == 3);
    CHECK(casts.elements() == 6 + 12 + 8);
}

/// Counts casts itself and wants no numbers.
class counter final : public ac::cast_observer {
public:
    std::vector<std::int64_t> begun;
    std::vector<std::string_view> ops;

    bool reads_values() const override { return false; }
    std::int64_t cast_begins() override { return ++count_; }
    void cast_ends(const ac::observed_call& call, std::size_t, ac::cast_direction, std::size_t,
                   std::int64_t number) override {
        begun.push_back(number);
        ops.push_back(call.op);
    }
    std::uint64_t called(const ac::observed_call&) override { return 0; }
    bool scans() const override { return false; }
    void multiplied(const ac::observed_call&, ac::product_size, std::string_view) override { refuse(); }
    void cast(const ac::observed_call&, std::size_t, ac::cast_direction, std::string_view, std::size_t,
              const ac::cast_target&, std::span<const float>, std::span<const float>, bool) override {
        refuse();
    }
    void reused(const ac::observed_call&, std::size_t, std::string_view, std::string_view, bool) override {
        refuse();
    }
    void read(const ac::observed_call&, std::size_t, const ac::cast_target&,
              std::span<const float>) override {
        refuse();
    }
    void not_finite(const ac::observed_call&, std::size_t, std::size_t, bool, ac::value_origin) override {
        refuse();
    }

private:
    [[noreturn]] static void refuse() { throw std::logic_error("numbers were not asked for"); }
    std::int64_t count_ = 0;
};

TEST_CASE("an observer that reads no values is told beginnings and ends alone") {
    const std::vector<float> x(5, 1.5F), w(5, 2.0F);
    std::vector<float> y(5);
    counter casts;
    const mp::autocast_region region({.cpu = precision::fp16, .ledger = &casts});
    copy<low_copy>(x, y);
    ac::dispatch(low_product{}, std::span<const float>(x), std::span<const float>(w),
                 ac::out(std::span<float>(y)));
    CHECK(casts.begun == std::vector<std::int64_t>{1, 2, 3, 4, 5});
    CHECK(casts.ops == std::vector<std::string_view>{"copy", "copy", "product", "product", "product"});
}

}  // namespace
