// SPDX-License-Identifier: MIT
// Gradients of all ranks as one: in every wire format, through ranks that are threads.
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

/// A value for rank, place and step, with digits of every weight.
float drawn(int rank, std::size_t place, int step) {
    std::uint64_t x = static_cast<std::uint64_t>(rank) * 0x9E3779B97F4A7C15U + place * 0xBF58476D1CE4E5B9U +
                      static_cast<std::uint64_t>(step) * 0x94D049BB133111EBU;
    x ^= x >> 31;
    x *= 0x7FB5D329728EA185U;
    x ^= x >> 27;
    const double unit = static_cast<double>(x >> 11) * 0x1p-53;
    return static_cast<float>((unit - 0.5) * std::ldexp(1.0, static_cast<int>(x % 13) - 8));
}

/// Rounded to nearest even with `digits` digits, by the definition; for numbers that are normal in the format.
float rounded(float value, int digits) {
    int exponent = 0;
    const double fraction = std::frexp(static_cast<double>(value), &exponent);
    return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits));
}
float in_wire(float value, mp::wire_format wire) {
    if (wire == mp::wire_format::bfloat16) return rounded(value, 8);
    if (wire == mp::wire_format::half) return static_cast<float>(mp::half(value));
    return value;
}

template <class Gradient>
struct model {
    mp::parameter_store<Gradient> store;
    explicit model(std::vector<std::ptrdiff_t> sizes) {
        for (std::size_t i = 0; i < sizes.size(); ++i) store.add_vector("p" + std::to_string(i), sizes[i]);
        store.build(1);
    }
};

template <class Gradient>
void check_sums(int ranks, mp::wire_format wire, bool mean, std::size_t bucket_bytes, int threads) {
    const std::vector<std::ptrdiff_t> sizes{3, 5000, 1, 64, 12345, 1, 4096};
    std::vector<std::vector<Gradient>> results(static_cast<std::size_t>(ranks));
    mp::run_loopback(ranks, [&](auto& self) {
        model<Gradient> mine(sizes);
        mp::gradient_reduction reduction(mp::cpu{.threads = threads}, self,
                                         {.wire = wire, .bucket_bytes = bucket_bytes, .mean = mean},
                                         mine.store);
        for (int step = 0; step < 2; ++step) {
            for (auto& it : mine.store.parameters()) {
                for (std::size_t i = 0; i < it.gradient.size(); ++i) {
                    it.gradient[i] = static_cast<Gradient>(drawn(self.rank(), i + it.weights.size(), step));
                }
            }
            static_cast<void>(reduction.backward(1.0F));
            reduction.finish();
        }
        std::vector<Gradient>& result = results[static_cast<std::size_t>(self.rank())];
        for (auto& it : mine.store.parameters())
            result.insert(result.end(), it.gradient.begin(), it.gradient.end());
        CHECK(reduction.statistics().steps == 2);
    });
    std::size_t wrong = 0, at = 0;
    for (const std::ptrdiff_t size : sizes) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i, ++at) {
            float sum = 0;
            for (int r = 0; r < ranks; ++r) {
                const auto stored = static_cast<float>(
                    static_cast<Gradient>(drawn(r, i + static_cast<std::size_t>(size), 1)));
                const float sent = in_wire(stored, wire);
                sum = r == 0 ? sent : sum + sent;
            }
            if (mean) sum /= static_cast<float>(ranks);
            const auto expected = static_cast<Gradient>(in_wire(sum, wire));
            if (ranks == 1) continue;
            for (const auto& result : results) {
                if (std::memcmp(&result[at], &expected, sizeof expected) != 0) ++wrong;
            }
        }
    }
    CHECK(wrong == 0);
    // One rank is left as it is.
    if (ranks == 1) CHECK(results[0][0] == static_cast<Gradient>(drawn(0, 3, 1)));
}

}  // namespace

TEST_CASE(
    "gradients become the mean or the sum over ranks, in float, in the order of the ranks, rounded once") {
    using enum mp::wire_format;
    for (const int ranks : {1, 2, 3, 4, 7}) {
        CAPTURE(ranks);
        for (const auto wire : {as_stored, float32, bfloat16, half}) {
            CAPTURE(mp::name_of(wire));
            check_sums<float>(ranks, wire, true, 30000, 1);
        }
        check_sums<float>(ranks, as_stored, false, 1, 2);
        check_sums<mp::bfloat16>(ranks, as_stored, true, 1 << 20, 1);
        check_sums<mp::half>(ranks, float32, true, 20000, 1);
    }
}

TEST_CASE("parameters that lie anywhere are reduced like those of a store") {
    std::vector<std::vector<float>> results(3);
    mp::run_loopback(3, [&](auto& self) {
        std::vector<float> w(10), dw(10), b(4), db(4), no_gradient(5);
        const std::vector<mp::parameter<float>> parameters{
            {"w", w, dw}, {"frozen", no_gradient, {}}, {"b", b, db}};
        mp::gradient_reduction reduction(mp::cpu{}, self, {}, parameters);
        CHECK(reduction.bucket_count() == 1);
        std::fill(dw.begin(), dw.end(), static_cast<float>(self.rank()));
        std::fill(db.begin(), db.end(), static_cast<float>(3 * self.rank()));
        static_cast<void>(reduction.backward(1.0F));
        reduction.finish();
        auto& result = results[static_cast<std::size_t>(self.rank())];
        result = dw;
        result.insert(result.end(), db.begin(), db.end());
    });
    std::vector<float> expected(14, 1.0F);
    std::fill(expected.begin() + 10, expected.end(), 3.0F);
    for (const auto& it : results) CHECK(it == expected);
}

namespace {

/// y = w2 w1 x with a loss of y; the gradients of w2, then of w1, then of w2 again where it is tied.
struct chain {
    mp::parameter_store<float> store;
    mp::trained_tensor<float> w1 = store.add_matrix("w1", 70, 70, mp::initializers::normal(0.1));
    mp::trained_tensor<float> w2 = store.add_matrix("w2", 70, 70, mp::initializers::normal(0.1));
    mp::tensor<float> x{5, 70}, h{5, 70}, dh{5, 70}, dx{5, 70}, dy{5, 70};

    explicit chain(int rank) {
        store.build(7);
        for (std::size_t i = 0; i < x.values().size(); ++i) {
            x.values()[i] = drawn(rank, i, 100);
            dy.values()[i] = drawn(rank, i, 101);
        }
    }
    template <class Policy>
    void backward(int times = 1) {
        const mp::cpu exec;
        mp::ops::linear<Policy>(exec, x.view(), w1.weights(), mp::ops::absent, h.view());
        for (int i = 0; i < times; ++i) {
            mp::ops::linear_backward<Policy>(exec, h.view(), w2.weights(), dy.view(), dh.view(),
                                             mp::ops::add_to(w2.gradient(), i != 0), mp::ops::absent);
        }
        mp::ops::linear_backward<Policy>(exec, x.view(), w1.weights(), dh.view(), dx.view(), w1.gradient(),
                                         mp::ops::absent);
    }
};

}  // namespace

TEST_CASE_TEMPLATE("buckets are sent while the backward pass goes on, from the second step on", Policy,
                   mp::autocast::off, mp::autocast::by_region) {
    std::vector<std::vector<float>> early(2), late(2);
    for (const bool overlaps : {false, true}) {
        mp::run_loopback(2, [&](auto& self) {
            chain net(self.rank());
            mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 20000, .compare_sent = false},
                                             net.store);
            REQUIRE(reduction.bucket_count() == 2);
            for (int step = 0; step < 3; ++step) {
                if (overlaps) {
                    const auto overlap = reduction.backward(1.0F);
                    net.backward<Policy>(2);
                } else {
                    static_cast<void>(reduction.backward(1.0F));
                    net.backward<Policy>(2);
                }
                reduction.finish();
            }
            // The last bucket waits for finish(), and with it goes what is to be agreed.
            CHECK(reduction.statistics().buckets_early == (overlaps ? 2 : 0));
            CHECK(reduction.statistics().buckets == 6);
            CHECK(reduction.statistics().bytes_sent == 3 * (2 * 4 * 70 * 70 + 2 * 32));
            const auto gradients = net.store.gradients();
            (overlaps ? early : late)[static_cast<std::size_t>(self.rank())].assign(gradients.begin(),
                                                                                    gradients.end());
        });
    }
    CHECK(early[0] == early[1]);
    CHECK(early[0] == late[0]);
    CHECK(late[1] == late[0]);
}

TEST_CASE("a gradient that is written again after it was sent is an error on all ranks") {
    std::atomic<int> refused = 0;
    mp::run_loopback(3, [&](auto& self) {
        chain net(self.rank());
        mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 20000}, net.store);
        for (int step = 0; step < 3; ++step) {
            {
                const auto overlap = reduction.backward(1.0F);
                net.backward<mp::autocast::off>(step == 2 && self.rank() == 1 ? 3 : 1);
            }
            if (step < 2) {
                reduction.finish();
            } else if (holds(
                           thrown<mp::state_error>([&] { reduction.finish(); }),
                           "mp::gradient_reduction::finish: the gradient of parameters[1] ('w2') was written "
                           "once more")) {
                ++refused;
            }
        }
        // It goes on.
        static_cast<void>(reduction.backward(1.0F));
        reduction.finish();
    });
    CHECK(refused == 3);
}

#ifdef NDEBUG
static_assert(!mp::reduction_options{}.compare_sent);
#else
static_assert(mp::reduction_options{}.compare_sent);
#endif

TEST_CASE("a gradient that one rank changes by hand after it was sent is found on all ranks") {
    for (const auto wire : {mp::wire_format::as_stored, mp::wire_format::bfloat16}) {
        mp::run_loopback(2, [&](auto& self) {
            chain net(self.rank());
            mp::gradient_reduction reduction(
                mp::cpu{}, self, {.wire = wire, .bucket_bytes = 20000, .compare_sent = true}, net.store);
            for (int step = 0; step < 3; ++step) {
                {
                    const auto overlap = reduction.backward(1.0F);
                    net.backward<mp::autocast::off>(1);
                }
                const auto last = net.store.parameters().back();
                if (step == 2 && self.rank() == 1) last.gradient[0] += 1.0F;
                const std::string message = thrown<mp::state_error>([&] { reduction.finish(); });
                CHECK(holds(message, "was changed after it had been sent") == (step == 2));
            }
        });
    }
}

TEST_CASE("fewer writes than before, and passes without ops, are sent at the end") {
    mp::run_loopback(2, [&](auto& self) {
        chain net(self.rank());
        mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 20000}, net.store);
        for (int step = 0; step < 4; ++step) {
            const auto gradient = net.w2.gradient_values();
            {
                const auto overlap = reduction.backward(1.0F);
                if (step < 2) net.backward<mp::autocast::off>(2 - step);
            }
            std::fill(gradient.begin(), gradient.end(), static_cast<float>(self.rank()));
            reduction.finish();
            CHECK(gradient[17] == 0.5F);
        }
    });
}

TEST_CASE("infinities and NaNs of one rank are on all") {
    for (const auto wire : {mp::wire_format::as_stored, mp::wire_format::bfloat16, mp::wire_format::half}) {
        mp::run_loopback(3, [&](auto& self) {
            model<float> mine({100});
            mp::gradient_reduction reduction(mp::cpu{}, self, {.wire = wire}, mine.store);
            const auto gradient = mine.store.gradients();
            if (self.rank() == 1) gradient[3] = std::numeric_limits<float>::infinity();
            if (self.rank() == 2) gradient[5] = std::numeric_limits<float>::quiet_NaN();
            gradient[7] = 40000.0F * 65.0F;  // beyond half
            static_cast<void>(reduction.backward(1.0F));
            reduction.finish();
            CHECK(gradient[3] == std::numeric_limits<float>::infinity());
            CHECK(std::isnan(gradient[5]));
            CHECK(std::isinf(gradient[7]) == (wire == mp::wire_format::half));
        });
    }
}

TEST_CASE("ranks with other models, options, scales or steps are found") {
    const auto differs = [](auto make, const char* text) {
        std::atomic<int> found = 0;
        mp::run_loopback(3, [&](auto& self) {
            if (holds(thrown<mp::rank_error>([&] { make(self); }), text)) ++found;
        });
        CAPTURE(text);
        CHECK(found == 3);
    };
    differs(
        [](auto& self) {
            model<float> mine(self.rank() == 1 ? std::vector<std::ptrdiff_t>{5, 7, 8}
                                               : std::vector<std::ptrdiff_t>{5, 6, 8});
            mp::gradient_reduction reduction(mp::cpu{}, self, {}, mine.store);
        },
        "mp::gradient_reduction: the ranks differ: the size of parameters[1] ('p1') is ");
    differs(
        [](auto& self) {
            std::vector<float> w(4), dw(4);
            const std::vector<mp::parameter<float>> all{{self.rank() == 0 ? "a" : "b", w, dw}};
            mp::gradient_reduction reduction(mp::cpu{}, self, {}, all);
        },
        "the checksum of the name of parameters[0]");
    differs(
        [](auto& self) {
            // Of one size, but not the same.
            model<mp::half> halves({5});
            model<mp::bfloat16> others({5});
            if (self.rank() == 1) {
                mp::gradient_reduction reduction(mp::cpu{}, self, {}, others.store);
            } else {
                mp::gradient_reduction reduction(mp::cpu{}, self, {}, halves.store);
            }
        },
        "the checksum of the type of the gradients in bucket 0 is ");
    differs(
        [](auto& self) {
            model<float> mine({5});
            mp::gradient_reduction reduction(
                mp::cpu{}, self,
                {.wire = self.rank() == 2 ? mp::wire_format::half : mp::wire_format::bfloat16}, mine.store);
        },
        "options.wire is ");
    differs(
        [](auto& self) {
            model<float> mine({5000, 5000, 5000});
            mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 1}, mine.store);
            static_cast<void>(reduction.backward(self.rank() == 2 ? 512.0F : 1024.0F));
            reduction.finish();
        },
        "mp::gradient_reduction::finish: the loss scale is ");
}

TEST_CASE("the order of calls is checked") {
    model<float> mine({10});
    mp::single_rank alone;
    mp::gradient_reduction reduction(mp::cpu{}, alone, {}, mine.store);
    CHECK(holds(thrown<mp::state_error>([&] { reduction.finish(); }), "call backward(scale) before"));
    static_cast<void>(reduction.backward(1.0F, false));
    static_cast<void>(reduction.backward(1.0F));
    CHECK(holds(thrown<mp::state_error>([&] { static_cast<void>(reduction.backward(1.0F)); }),
                "have not been reduced; call finish()"));
    reduction.finish();
    CHECK(thrown<mp::argument_error>([&] {
              mp::gradient_reduction(mp::cpu{}, alone, {.bucket_bytes = 0}, mine.store);
          }) == "mp::gradient_reduction: options.bucket_bytes is 0; it must be positive");
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { mp::gradient_reduction(mp::cpu{}, alone, {.in_flight = 0}, mine.store); }),
                "options.in_flight is 0"));
}

TEST_CASE("a rank that ends ends the others, and one that does not come is an error after a time") {
    std::atomic<int> told = 0;
    const std::string first = thrown<std::runtime_error>([&] {
        mp::run_loopback(3, [&](auto& self) {
            const auto train = [&] {
                model<float> mine({5000});
                mp::gradient_reduction reduction(mp::cpu{}, self, {}, mine.store);
                static_cast<void>(reduction.backward(1.0F));
                if (self.rank() == 1) throw std::runtime_error("out of luck");
                reduction.finish();
            };
            if (self.rank() == 1) return train();
            if (holds(thrown<mp::rank_error>(train), "rank 1 has ended")) ++told;
        });
    });
    CHECK(first == "out of luck");
    CHECK(told == 2);

    std::atomic<int> timeouts = 0;
    mp::run_loopback(
        2,
        [&](auto& self) {
            model<float> mine({5000});
            mp::gradient_reduction reduction(mp::cpu{}, self, {}, mine.store);
            static_cast<void>(reduction.backward(1.0F));
            if (self.rank() == 1) return;
            if (holds(thrown<mp::rank_timeout>([&] { reduction.finish(); }),
                      "mp::gradient_reduction::finish"))
                ++timeouts;
        },
        std::chrono::milliseconds(50));
    CHECK(timeouts == 1);
}
