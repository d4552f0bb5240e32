// SPDX-License-Identifier: MIT
/// \file
/// What is simulated: the measured rank, links, wires, and numbers of ranks.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "simulation.hpp"

namespace bench::ranks {

/// A step of two ranks that was measured.
struct measured_step {
    std::string wire;
    double bucket_bytes = 0;
    bool shard = false;
    double all = 0;
    double waited = 0;
};

/// What bench/torch/ddp.py --timeline writes: a line for each number.
struct measured_rank {
    rank_times times;
    double tokens = 0;                     ///< of a step
    double parameters = 0;                 ///< elements of all gradients
    std::map<std::string, double> reduce;  ///< by wire: seconds that the processor takes for an element
    double copy = 0;                       ///< seconds a byte, through shared memory
    double together = 1;                   ///< a step of one rank while others train beside it
    std::vector<measured_step> two;
};

/// Throws std::runtime_error for a file that cannot be read.
inline measured_rank read_times(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read '" + path + "'");
    measured_rank it;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        std::istringstream words(line);
        std::string key, wire;
        double value = 0, more = 0;
        if (!(words >> key) || key[0] == '#') continue;
        const auto is = [&](std::string_view name) { return key == name && words >> value; };
        if (is("forward")) {
            it.times.forward = 1e-3 * value;
        } else if (is("backward")) {
            it.times.backward = 1e-3 * value;
        } else if (is("update")) {
            it.times.update = 1e-3 * value;
        } else if (is("tokens")) {
            it.tokens = value;
        } else if (is("copy")) {
            it.copy = 1e-9 * value;
        } else if (is("together")) {
            it.together = value;
        } else if (key == "reduce" && words >> wire >> value) {
            it.reduce[wire] = 1e-9 * value;
        } else if (key == "gradient" && words >> value >> more) {
            it.times.gradients.push_back({1e-3 * value, more});
            it.parameters += more;
        } else if (measured_step two; key == "two" && words >> two.wire >> two.bucket_bytes >> two.shard >>
                                                          two.all >> two.waited) {
            two.all *= 1e-3;
            two.waited *= 1e-3;
            it.two.push_back(two);
        } else {
            throw std::runtime_error(path + ": line " + std::to_string(number) + " is '" + line + "'");
        }
    }
    if (it.times.gradients.empty())
        throw std::runtime_error(path + ": there is no line 'gradient <ms> <elements>'");
    return it;
}

/// A processor that is `speed` times as fast as the measured one.
inline measured_rank faster(measured_rank it, double speed) {
    it.times.forward /= speed;
    it.times.backward /= speed;
    it.times.update /= speed;
    for (gradient& each : it.times.gradients) each.ready /= speed;
    for (auto& [wire, seconds] : it.reduce) seconds /= speed;
    it.copy /= speed;
    return it;
}

struct named_link {
    std::string_view name;
    network_link over;
    bool copies;  ///< by the processor, as shared memory and sockets do
};

/// Round numbers of such networks; not measured.
inline constexpr std::array links{
    named_link{"10 Gbit/s Ethernet, TCP", {.latency = 30e-6, .overhead = 5e-6, .bandwidth = 1.1e9}, true},
    named_link{"100 Gbit/s, RDMA", {.latency = 2e-6, .overhead = 0.5e-6, .bandwidth = 12e9}, false},
    named_link{"400 Gbit/s, RDMA", {.latency = 2e-6, .overhead = 0.5e-6, .bandwidth = 48e9}, false}};

inline network_link link_of(const named_link& it, const measured_rank& one) {
    network_link over = it.over;
    over.copy = it.copies ? one.copy : 0;
    return over;
}
/// Two processors that share memory: who sends or receives copies, and nothing else takes time.
inline network_link shared_memory(const measured_rank& one) {
    return {.latency = 2e-6, .overhead = 1e-6, .copy = one.copy};
}

struct variant {
    std::string_view name;
    std::string_view style;
    std::string_view wire;
    bool shard;
};
inline constexpr std::array variants{variant{"float32", "float", "float32", false},
                                     variant{"bfloat16", "bfloat", "bfloat16", false},
                                     variant{"half", "half", "half", false},
                                     variant{"float32, sharded", "float sharded", "float32", true},
                                     variant{"bfloat16, sharded", "bfloat sharded", "bfloat16", true},
                                     variant{"half, sharded", "half sharded", "half", true}};

/// The reduction of a variant, with buckets of the size that mp::reduction_options has by default.
inline reduction reduction_of(const measured_rank& one, std::string_view wire, bool shard, int ranks) {
    reduction how;
    how.ranks = ranks;
    how.wire_size = wire == "float32" ? 4 : 2;
    how.shard = shard;
    const auto found = one.reduce.find(std::string(wire));
    const double cost = found == one.reduce.end() ? 0 : found->second;
    // Gradients travel as float from where they lie; else thirds, which only matters to what overlaps.
    how.costs = wire == "float32" ? element_costs{0, cost, 0} : element_costs{cost / 3, cost / 3, cost / 3};
    return how;
}

inline std::vector<int> rank_counts() {
    std::vector<int> all;
    for (int n = 1; n <= 1024; n *= 2) all.push_back(n);
    return all;
}

/// A step with the best buckets.
struct best_step {
    step it;
    double bucket_bytes;
};
inline best_step best_of(const rank_times& one, const network_link& over, reduction how) {
    how.bucket_bytes = best_bucket_bytes(one, over, how);
    return {simulate(one, over, how), how.bucket_bytes};
}
/// The part of a rank's tokens a second that is left when others train with it.
inline double efficiency(const rank_times& one, double step) {
    return (one.forward + one.backward + one.update) / step;
}

}  // namespace bench::ranks
