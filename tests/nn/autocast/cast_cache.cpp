// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using mp::autocast_region;
using mp::half;
using mp::op_category;
using mp::precision;
namespace ac = mp::autocast;

/// What the kernel read, and where it lay.
struct sighting {
    const void* address = nullptr;
    std::vector<float> values;
};

struct read_op {
    static constexpr std::string_view name = "read";
    static constexpr auto category = op_category::lower_precision;
    sighting* seen;

    template <class W>
    void operator()(std::span<const W> w) const {
        seen->address = w.data();
        seen->values.assign(w.size(), 0.0F);
        for (std::size_t i = 0; i < w.size(); ++i) seen->values[i] = static_cast<float>(w[i]);
    }
};

class weights {
public:
    explicit weights(std::size_t size, float value = 1.0F) : values_(size, value) {}
    sighting read() const {
        sighting seen;
        ac::dispatch(read_op{&seen}, ac::cached(std::span<const float>(values_), version_));
        return seen;
    }
    void set(float value) { values_.assign(values_.size(), value); }
    ac::buffer_version& version() { return version_; }
    std::vector<float>& values() { return values_; }

private:
    std::vector<float> values_;
    ac::buffer_version version_;
};

TEST_CASE("a cached cast is made once and used again") {
    const weights w(3, 0.1F);
    const autocast_region region(precision::fp16);
    const auto first = w.read();
    const auto second = w.read();
    CHECK(first.address == second.address);
    CHECK(second.values == std::vector<float>(3, static_cast<float>(half(0.1F))));
    const auto statistics = mp::autocast_cache()->statistics();
    CHECK(statistics.hits == 1);
    CHECK(statistics.misses == 1);
}

TEST_CASE("an update in place is seen as soon as the version says so") {
    weights w(2, 1.0F);
    const auto trusting = std::make_shared<ac::cast_cache>(ac::cast_cache::default_max_bytes, false);
    const autocast_region region({.cpu = precision::bf16, .cache = trusting});
    CHECK(w.read().values[0] == 1.0F);
    w.set(2.0F);
    CHECK(w.read().values[0] == 1.0F);  // nobody has told: this is the hazard that the version is there for
    w.version().changed();
    CHECK(w.read().values[0] == 2.0F);
    CHECK(mp::autocast_cache()->statistics().invalidations == 1);
    CHECK(mp::autocast_cache()->contents().size() == 1);
}

TEST_CASE("a cache that compares finds an update that nobody has told of, where it changes the cast") {
    weights w(2, 1.0F);
    const auto comparing = std::make_shared<ac::cast_cache>(ac::cast_cache::default_max_bytes, true);
    const autocast_region region({.cpu = precision::bf16, .cache = comparing});
    CHECK(w.read().values[0] == 1.0F);
    CHECK(w.read().values[0] == 1.0F);
    CHECK(comparing->statistics().hits == 1);
    w.set(1.0F + 0x1p-20F);  // the same number in bfloat16
    CHECK(w.read().values[0] == 1.0F);
    w.values()[1] = 2.0F;
    std::string message;
    try {
        w.read();
    } catch (const mp::state_error& error) {
        message = error.what();
    }
    CHECK(message ==
          "mp::autocast: an array of 2 elements of type float that was passed as cached() has been written "
          "since it was cast, and changed() of its buffer_version was not called (weights_changed() of an "
          "mp::parameter_store calls it)");
    w.version().changed();
    CHECK(w.read().values[1] == 2.0F);
    // What nobody asked for is there in debug builds alone.
    CHECK(ac::cast_cache().compares() == (MP_CHECK_KEPT_CASTS != 0));
}

TEST_CASE("formats, shapes and addresses have casts of their own") {
    weights w(4, 0.1F);
    const autocast_region region(precision::fp16);
    const auto in_half = w.read();
    {
        const autocast_region inner(precision::bf16);
        CHECK(w.read().address != in_half.address);
        CHECK(w.read().values[0] == static_cast<float>(mp::bfloat16(0.1F)));
    }
    CHECK(w.read().address == in_half.address);
    sighting seen;
    const std::span<const float> all(w.values());
    ac::dispatch(read_op{&seen}, ac::cached(all.first(2), w.version()));
    CHECK(seen.values.size() == 2);
    ac::dispatch(read_op{&seen}, ac::cached(all.last(2), w.version()));
    CHECK(seen.values.size() == 2);
    CHECK(mp::autocast_cache()->contents().size() == 4);
}

TEST_CASE("a new buffer at the address of a dead one is not mistaken for it") {
    const autocast_region region(precision::fp16);
    std::array<float, 2> memory = {1.0F, 1.0F};
    sighting seen;
    for (int i = 0; i < 50; ++i) {
        memory.fill(static_cast<float>(i));
        const ac::buffer_version version;  // the next one often has the address of this one
        ac::dispatch(read_op{&seen}, ac::cached(std::span<const float>(memory), version));
        REQUIRE(seen.values[0] == static_cast<float>(i));
    }
    CHECK(mp::autocast_cache()->statistics().hits == 0);
}

TEST_CASE("nothing is kept where nothing is cast") {
    weights w(2);
    CHECK(w.read().address == w.values().data());  // outside of regions
    CHECK(mp::autocast_cache() == nullptr);
    const autocast_region region(precision::fp16);
    {
        const autocast_region off(precision::off);
        CHECK(w.read().address == w.values().data());
    }
    CHECK(mp::autocast_cache()->contents().empty());
    // A static call casts each time.
    sighting seen;
    ac::call<ac::fp16>(read_op{&seen}, ac::cached(std::span<const float>(w.values()), w.version()));
    CHECK(seen.values.size() == 2);
    CHECK(mp::autocast_cache()->contents().empty());
}

TEST_CASE("a region may keep no casts, and then those inside keep none") {
    weights w(2, 0.1F);
    const autocast_region region({.cpu = precision::fp16, .keep_casts = false});
    CHECK(mp::autocast_cache() == nullptr);
    CHECK(w.read().values == std::vector<float>(2, static_cast<float>(half(0.1F))));
    const autocast_region inside({.cpu = precision::bf16, .cache = std::make_shared<ac::cast_cache>()});
    CHECK(mp::autocast_cache() == nullptr);
    w.set(2.0F);
    CHECK(w.read().values == std::vector<float>(2, 2.0F));
}

TEST_CASE("the bound in bytes holds: what was used longest ago goes, and what is too large is not kept") {
    const auto cache = std::make_shared<ac::cast_cache>(20);
    const weights a(4);  // 8 bytes as half
    const weights b(4);
    const weights c(4);
    const weights large(11);
    const autocast_region region({.cpu = precision::fp16, .cache = cache});
    a.read();
    b.read();
    CHECK(cache->bytes() == 16);
    a.read();
    c.read();  // b goes
    CHECK(cache->bytes() == 16);
    CHECK(cache->statistics().evictions == 1);
    const auto before = cache->statistics().hits;
    a.read();
    c.read();
    CHECK(cache->statistics().hits == before + 2);
    b.read();
    CHECK(cache->statistics().evictions == 2);
    large.read();
    CHECK(cache->statistics().too_large == 1);
    CHECK(cache->bytes() == 16);
    const auto contents = cache->contents();
    REQUIRE(contents.size() == 2);
    CHECK(contents[1].elements == 4);
    CHECK(contents[1].bytes == 8);
    CHECK(contents[1].from == "float");
    CHECK(contents[1].to == "half");
    CHECK(contents[1].version == 0);
    CHECK(cache->max_bytes() == 20);
}

TEST_CASE("the cache ends with the outermost region, and not with those inside") {
    const weights w(2);
    std::shared_ptr<ac::cast_cache> cache;
    {
        const autocast_region outer(precision::fp16);
        cache = mp::autocast_cache();
        {
            const autocast_region inner(precision::fp16);
            w.read();
            CHECK(mp::autocast_cache() == cache);
        }
        CHECK(cache->contents().size() == 1);
    }
    CHECK(cache->contents().empty());
    CHECK(cache->bytes() == 0);
    const autocast_region again(precision::fp16);
    CHECK(mp::autocast_cache() != cache);
}

TEST_CASE("a cache of the caller's can outlive regions, and the versions keep it right") {
    weights w(2);
    const auto cache = std::make_shared<ac::cast_cache>();
    for (int step = 0; step < 3; ++step) {
        const autocast_region region({.cpu = precision::bf16, .cache = cache, .keep_cache = true});
        w.read();
    }
    CHECK(cache->statistics().hits == 2);
    w.set(4.0F);
    w.version().changed();
    {
        const autocast_region region({.cpu = precision::bf16, .cache = cache});
        CHECK(w.read().values[0] == 4.0F);
    }
    CHECK(cache->contents().empty());  // keep_cache was not asked for
}

TEST_CASE("threads share the cache of the region that they were sent from, and do not end it") {
    constexpr int threads = 4;
    constexpr int rounds = 200;
    weights w(64, 0.0F);
    const autocast_region region(precision::fp16);
    const auto token = mp::capture_autocast();
    std::atomic<int> wrong = 0;
    for (int round = 0; round < 5; ++round) {
        const auto value = static_cast<float>(round);
        w.set(value);
        w.version().changed();
        std::vector<std::thread> workers;
        for (int i = 0; i < threads; ++i) {
            workers.emplace_back([&] {
                for (int n = 0; n < rounds; ++n) {
                    const autocast_region mine(token);
                    const autocast_region nested(n % 2 == 0 ? precision::fp16 : precision::bf16);
                    const auto seen = w.read();
                    for (const float it : seen.values) wrong += it == value ? 0 : 1;
                }
            });
        }
        for (std::thread& worker : workers) worker.join();
    }
    CHECK(wrong == 0);
    const auto statistics = mp::autocast_cache()->statistics();
    CHECK(statistics.hits + statistics.misses == 5 * threads * rounds);
    CHECK(statistics.misses <= 5 * 2 * threads);
    CHECK(mp::autocast_cache()->contents().size() == 2);
}

TEST_CASE("a cast in use outlives its eviction") {
    const auto cache = std::make_shared<ac::cast_cache>();
    const ac::buffer_version version;
    const ac::cast_cache::key key{&version, 1, {1}, "float", "half", "half"};
    cache->keep(key, version, 0, std::make_shared<int>(7), sizeof(int));
    const auto held = cache->find(key, version, 0);
    cache->clear();
    CHECK(*static_cast<const int*>(held.get()) == 7);
    CHECK(cache->find(key, version, 0) == nullptr);
    // A slower thread's cast of an older version does not replace a newer one.
    cache->keep(key, version, 2, std::make_shared<int>(2), sizeof(int));
    cache->keep(key, version, 1, std::make_shared<int>(1), sizeof(int));
    CHECK(*static_cast<const int*>(cache->find(key, version, 2).get()) == 2);
}

TEST_CASE("the memory of an outdated cast is handed on, unless somebody still reads it") {
    ac::cast_cache cache;
    const ac::buffer_version version;
    const ac::cast_cache::key key{&version, 1, {1}, "float", "half", "half"};
    const int* const memory = [&] {
        auto cast = std::make_shared<int>(7);
        const int* const address = cast.get();
        cache.keep(key, version, 0, std::move(cast), sizeof(int));
        return address;
    }();
    std::shared_ptr<void> outdated;
    {
        const auto held = cache.find(key, version, 0, &outdated);
        CHECK(held.get() == memory);
        CHECK(outdated == nullptr);
        CHECK(cache.find(key, version, 1, &outdated) == nullptr);
        CHECK(outdated == nullptr);
        CHECK(*static_cast<const int*>(held.get()) == 7);
        cache.keep(key, version, 1, held, sizeof(int));
    }
    CHECK(cache.find(key, version, 2, &outdated) == nullptr);
    CHECK(outdated.get() == memory);
    CHECK(outdated.use_count() == 1);
    CHECK(cache.bytes() == 0);
    CHECK(cache.contents().empty());
}

}  // namespace
