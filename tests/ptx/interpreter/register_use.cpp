// SPDX-License-Identifier: MIT
// Reads of registers that nothing has written. On the ways through a function most registers are written before they
// are read whatever way a lane takes; only of the others it is kept at run time which lanes have written them.
#include "decoder.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace ptx {

namespace {

/// Registers that have been written for sure, a bit each.
using register_set = std::vector<std::uint64_t>;

void keep_common(register_set& to, const register_set& from, bool& changed) {
    for (std::size_t k = 0; k < to.size(); ++k) {
        const std::uint64_t both = to[k] & from[k];
        changed = changed || both != to[k];
        to[k] = both;
    }
}
bool contains(const register_set& it, std::size_t number) {
    return (it[number / 64] >> (number % 64) & 1U) != 0;
}

/// Instructions that follow each other; the first of them alone is a target.
struct stretch {
    std::size_t begin = 0, end = 0;
    register_set written{};  ///< at its begin
};

class analysis {
public:
    analysis(function& of, const std::vector<register_use>& uses) : of_(of), uses_(uses) {
        for (const register_use& it : uses_) {
            for (const std::int32_t at : it.reads) {
                if (at >= 0) number(at);
            }
            for (const std::int32_t at : it.writes) number(at);
            if (it.guard >= 0) number(it.guard);
        }
    }

    /// Registers that may be read before they are written.
    std::vector<std::int32_t> doubtful() {
        find_stretches();
        propagate();
        std::vector<std::int32_t> result;
        for (const stretch& it : stretches_) {
            register_set now = it.written;
            for (std::size_t k = it.begin; k < it.end; ++k) {
                const auto read = [&](std::int32_t at) {
                    if (at >= 0 && !contains(now, numbers_[at])) result.push_back(at);
                };
                for (const std::int32_t at : uses_[k].reads) read(at);
                if (uses_[k].guard >= 0) read(uses_[k].guard);
                write(now, k);
            }
        }
        std::ranges::sort(result);
        result.erase(std::ranges::unique(result).begin(), result.end());
        return result;
    }

private:
    void number(std::int32_t at) { numbers_.try_emplace(at, numbers_.size()); }
    void write(register_set& to, std::size_t k) {
        const register_use& use = uses_[k];
        const bool is_there =
            use.is == register_use::kind::computes || std::ranges::all_of(use.reads, [&](std::int32_t at) {
                return at < 0 || contains(to, numbers_[at]);
            });
        if (is_there && of_.code[k].guard >= 0) return;
        for (const std::int32_t at : use.writes) {
            const std::size_t it = numbers_[at];
            const std::uint64_t bit = std::uint64_t{1} << (it % 64);
            to[it / 64] = is_there ? to[it / 64] | bit : to[it / 64] & ~bit;
        }
    }
    void find_stretches() {
        const std::size_t size = of_.code.size();
        std::vector<bool> begins(size + 1);
        begins[0] = true;
        for (std::size_t k = 0; k < size; ++k) {
            const instruction& i = of_.code[k];
            if (i.is == instruction::kind::branch) begins[static_cast<std::size_t>(i.target)] = true;
            if (i.is == instruction::kind::branch || i.is == instruction::kind::leave) begins[k + 1] = true;
        }
        const register_set all((numbers_.size() + 63) / 64, ~std::uint64_t{0});
        for (std::size_t k = 0; k < size; ++k) {
            if (begins[k]) {
                stretch_at_[k] = stretches_.size();
                stretches_.push_back({k, k, all});
            }
            stretches_.back().end = k + 1;
        }
        std::ranges::fill(stretches_[0].written, 0U);
    }
    void propagate() {
        bool changed = true;
        while (changed) {
            changed = false;
            for (const stretch& it : stretches_) {
                register_set now = it.written;
                for (std::size_t k = it.begin; k < it.end; ++k) write(now, k);
                const instruction& last = of_.code[it.end - 1];
                const bool jumps = last.is == instruction::kind::branch;
                const bool stays = last.guard >= 0 || (!jumps && last.is != instruction::kind::leave);
                const auto reach = [&](std::size_t to) {
                    keep_common(stretches_[stretch_at_[to]].written, now, changed);
                };
                if (jumps) reach(static_cast<std::size_t>(last.target));
                if (stays && it.end < of_.code.size()) reach(it.end);
            }
        }
    }

    function& of_;
    const std::vector<register_use>& uses_;
    std::map<std::int32_t, std::size_t> numbers_{};
    std::vector<stretch> stretches_{};
    std::map<std::size_t, std::size_t> stretch_at_{};
};

}  // namespace

void watch_registers(function& of, const std::vector<register_use>& uses) {
    const std::vector<std::int32_t> doubtful = analysis(of, uses).doubtful();
    of.watched_begin = of.frame_bytes;
    of.watched = doubtful.size();
    of.frame_bytes = (of.frame_bytes + doubtful.size() * sizeof(lane_mask) + 127) / 128 * 128;
    const auto watched = [&](const std::vector<std::int32_t>& list, bool keep_places = false) {
        std::vector<std::int32_t> result;
        for (const std::int32_t at : list) {
            const auto found = std::ranges::lower_bound(doubtful, at);
            if (found == doubtful.end() || *found != at) {
                if (keep_places) result.push_back(-1);
                continue;
            }
            result.push_back(static_cast<std::int32_t>(
                of.watched_begin + static_cast<std::size_t>(found - doubtful.begin()) * sizeof(lane_mask)));
        }
        return result;
    };
    for (std::size_t k = 0; k < uses.size(); ++k) {
        const std::vector<std::int32_t> guard =
            uses[k].guard >= 0 ? watched({uses[k].guard}) : std::vector<std::int32_t>{};
        const bool selects = uses[k].is == register_use::kind::selects;
        register_use use{watched(uses[k].reads, selects), watched(uses[k].writes),
                         guard.empty() ? -1 : guard[0], uses[k].is};
        if (selects && std::ranges::count(use.reads, -1) == 3) use.reads.clear();
        if (use.reads.empty() && use.writes.empty() && use.guard < 0) continue;
        of.code[k].watches = std::make_shared<const register_use>(std::move(use));
    }
}

}  // namespace ptx
