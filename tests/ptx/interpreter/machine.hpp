// SPDX-License-Identifier: MIT
// What runs: functions whose instructions are decoded, and clusters, blocks and warps with their registers. A warp runs
// an instruction for all lanes that have come to it; lanes that took different ways are groups, which go on one after
// the other in any order and unite where they meet.
#pragma once

#include "memory.hpp"
#include "text.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptx {

using lane_mask = std::uint32_t;
inline constexpr int warp_lanes = 32;

struct warp;
struct block;
struct cluster;
struct group;
struct instruction;
struct function;
struct program;

/// Where an operand lies: a register of the function, a constant of it, or a special register of the warp. Registers
/// of up to 4 bytes take a word in each of 32 lanes, longer ones 8 bytes; predicates are a bit a lane.
struct operand {
    enum class place : std::uint8_t { none, frame, constant, special };
    place in = place::none;
    std::uint8_t bytes = 0;  ///< width as declared; 0 is a predicate
    bool negated = false;
    std::int32_t at = 0;

    [[nodiscard]] bool is_used() const { return in != place::none; }
};

using action = void (*)(warp&, const instruction&, lane_mask);
/// False where the lanes have to wait; then `group::waits_for` says for what.
using attempt = bool (*)(warp&, const instruction&, lane_mask, group&);

/// Registers that an instruction reads and writes: where they lie, or where the mask of lanes is that have written them.
struct register_use {
    std::vector<std::int32_t> reads{}, writes{};
    std::int32_t guard = -1;
    /// What copies a value may copy one that is not there, as long as nothing else reads it. A selection has the two
    /// values and the predicate as reads, -1 for numbers.
    enum class kind : std::uint8_t { computes, copies, selects } is = kind::computes;
};

struct instruction {
    enum class kind : std::uint8_t { plain, blocking, branch, call, leave };
    kind is = kind::plain;
    bool guard_negated = false;
    std::int32_t guard = -1;  ///< of the predicate, in the frame
    action run = nullptr;
    attempt try_run = nullptr;
    std::array<operand, 5> o{};
    std::int64_t value = 0;   ///< what is added to an address, and other constants
    std::int32_t target = 0;  ///< of a branch
    std::int32_t line = 0;
    std::array<std::int32_t, 4> detail{};
    std::vector<operand> list{};  ///< the elements of vectors
    const function* callee = nullptr;
    std::vector<std::array<std::int32_t, 3>> copies{};  ///< parameters of a call: from, to, bytes
    std::string_view text{};
    std::shared_ptr<const register_use>
        watches{};  ///< masks of registers that may be read before they are written
};

struct function {
    std::string name{};
    program* owner = nullptr;
    const function_text* source = nullptr;
    bool is_decoded = false;
    std::vector<instruction> code{};
    std::vector<std::uint64_t> constants{};
    std::size_t frame_bytes = 0;
    std::size_t watched_begin = 0;  ///< in the frame: a mask of lanes for each register that is watched
    std::size_t watched = 0;
    std::size_t local_bytes = 0;
    std::size_t shared_bytes = 0;                  ///< static
    std::vector<std::size_t> parameter_offsets{};  ///< in the buffer of a launch, or in local memory
    std::size_t parameter_bytes = 0;
    std::vector<std::size_t> result_offsets{};
};

/// A module that is loaded: its variables have addresses.
struct program {
    explicit program(std::string text, global_memory& memory);

    /// Decodes the function if need be.
    const function& find(std::string_view name);
    [[nodiscard]] bool has(std::string_view name) const { return functions.contains(std::string(name)); }

    module_text source;
    global_memory& memory;
    std::unordered_map<std::string, function> functions;
    std::unordered_map<std::string_view, std::uint64_t> addresses;  ///< of .global and .const
    std::unordered_map<std::string_view, std::size_t> shared;       ///< offsets of .shared of the module
    std::string_view dynamic_shared{};
    std::size_t shared_bytes = 0;
    int architecture = 0;  ///< 80, 90 ...
};

enum class wait : std::uint8_t { nothing, other_lanes, block_barrier, cluster_barrier, memory_barrier };

struct call_link {
    const function* caller;
    std::int32_t at;
    std::size_t frame;
    std::size_t local;
    bool operator==(const call_link&) const = default;
};

/// Lanes that are at the same instruction.
struct group {
    lane_mask lanes = 0;
    std::int32_t at = 0;
    const function* code = nullptr;
    std::size_t frame = 0;  ///< offset of the registers of the function
    std::size_t local = 0;  ///< and of its local memory
    wait waits_for = wait::nothing;
    bool passed = false;  ///< what it waited for has happened
    int barrier = 0;
    int votes = 0, voters = 0;  ///< what bar.red at that barrier told
    std::vector<call_link> stack{};
};

/// A copy that a thread has begun and nobody has waited for.
struct pending_copy {
    std::uint32_t to;
    std::uint64_t from;
    int bytes;
    int valid;
};

struct warp {
    block* in = nullptr;
    int number = 0;
    std::array<std::byte*, 4> base{};  ///< by operand::place, for the group that runs
    std::size_t local_base = 0;
    const instruction* current = nullptr;
    lane_mask live = 0;
    lane_mask carry = 0;  ///< CC.CF
    lane_mask dependent =
        0;  ///< lanes that have to come to griddepcontrol.wait before they touch global memory
    int cluster_ticket = -1;  ///< phase of the barrier of the cluster at which it has arrived
    std::vector<group> groups{};
    std::vector<std::uint64_t> registers{};
    std::vector<std::uint64_t> special{};
    std::vector<std::byte> local{};
    std::size_t local_stride = 0;
    /// For each lane copies of the groups that are not complete; the last group is open.
    std::array<std::deque<std::vector<pending_copy>>, warp_lanes> copies{};
    std::array<std::deque<std::vector<std::function<void()>>>, warp_lanes> bulk_stores{};
    std::deque<std::vector<std::function<void()>>> products{};  ///< of wgmma
    bool products_fenced = false;
    std::array<lane_order, warp_lanes> order{};
    std::uint32_t unit_clock = 0;  ///< of the unit that multiplies for it

    [[noreturn]] void fail(int lane, const std::string& what) const;
};

struct block_barrier {
    int arrived = 0;
    int expected = 0;           ///< 0: all threads
    int votes = 0, voters = 0;  ///< of bar.red
    gathering knows{};
};

struct block {
    cluster* in = nullptr;
    int rank = 0;
    std::uint32_t number = 0;
    std::array<std::uint32_t, 3> coordinates{};
    std::vector<warp> warps{};
    shared_memory shared{};
    std::array<block_barrier, 16> barriers{};
    int live_threads = 0;
};

struct launch_configuration {
    std::array<std::uint32_t, 3> grid{1, 1, 1};
    std::array<std::uint32_t, 3> threads{1, 1, 1};
    std::uint32_t cluster = 1;  ///< blocks along x
    std::size_t dynamic_shared = 0;
    std::uint64_t seed = 1;
    bool is_programmatic = false;  ///< may begin before the kernel before it on the stream has ended
};

/// Random numbers that choose who runs.
class random_source {
public:
    explicit random_source(std::uint64_t seed) : state_(seed * 0x9E37'79B9'7F4A'7C15U + 1) {}
    std::uint32_t operator()() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>(state_ >> 32);
    }
    /// Below `count`.
    std::uint32_t below(std::size_t count) {
        return static_cast<std::uint32_t>((std::uint64_t{(*this)()} * count) >> 32);
    }

private:
    std::uint64_t state_;
};

struct cluster {
    const function* entry = nullptr;
    program* code = nullptr;
    global_memory* memory = nullptr;
    const launch_configuration* shape = nullptr;
    std::vector<std::byte> parameters{};
    std::vector<block> blocks{};
    random_source random{1};
    std::vector<std::function<void()>> transfers{};  ///< of the unit that copies, in any order
    int cluster_arrived = 0;
    int cluster_phase = 0;
    gathering cluster_knows{};
    known cluster_known{};    ///< of the phase that has ended
    std::uint32_t begin = 0;  ///< clock
    std::uint32_t agents = 0;
    launch_order* in_launch = nullptr;
    std::uint64_t steps = 0;
};

/// Runs a kernel to its end. Throws failure.
void launch(program& code, std::string_view entry, const launch_configuration& shape,
            const std::vector<std::byte>& parameters, const stream_position& in_stream = {});
/// Lanes times instructions that have been run by this process.
std::uint64_t executed_instructions();

/// Does the copies of lanes that leave.
void finish_copies(warp& w, lane_mask m);

/// Lets groups try again that wait for this.
void wake(cluster& all, wait reason);
void check_block_barriers(block& it);
void check_cluster_barrier(cluster& all);

// --- registers

template <class Value>
struct lane_storage {
    using type = std::conditional_t<sizeof(Value) == 8, std::uint64_t, std::uint32_t>;
};
template <class Value>
using lane_word = typename lane_storage<Value>::type;

inline std::byte* place_of(const warp& w, const operand& o) {
    return w.base[static_cast<std::size_t>(o.in)] + o.at;
}
/// The 32 lanes of an operand as words of 4 or 8 bytes.
template <class Word>
Word* words(const warp& w, const operand& o) {
    return reinterpret_cast<Word*>(place_of(w, o));
}
inline lane_mask& predicate(const warp& w, const operand& o) {
    return *reinterpret_cast<lane_mask*>(place_of(w, o));
}
inline lane_mask read_predicate(const warp& w, const operand& o) {
    return o.negated ? ~predicate(w, o) : predicate(w, o);
}
inline void write_predicate(const warp& w, const operand& o, lane_mask m, lane_mask value) {
    if (!o.is_used()) return;
    lane_mask& p = predicate(w, o);
    p = (p & ~m) | (value & m);
}
/// A value of any width, with zeros in front, and back.
inline std::uint64_t read_lane(const warp& w, const operand& o, int lane) {
    return o.bytes == 8 ? words<std::uint64_t>(w, o)[lane] : words<std::uint32_t>(w, o)[lane];
}
inline void write_lane(const warp& w, const operand& o, int lane, std::uint64_t value) {
    if (!o.is_used()) return;
    if (o.bytes == 8) {
        words<std::uint64_t>(w, o)[lane] = value;
    } else {
        words<std::uint32_t>(w, o)[lane] =
            static_cast<std::uint32_t>(o.bytes == 4 ? value : value & ((1U << (8 * o.bytes)) - 1));
    }
}

/// Calls f(lane) for the lanes of a mask; the loop over all of them is for the compiler's vectors.
template <class Function>
void for_lanes(lane_mask m, Function f) {
    if (m == ~lane_mask{0}) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
        for (int lane = 0; lane < warp_lanes; ++lane) f(lane);
    } else {
        for (; m != 0; m &= m - 1) f(std::countr_zero(m));
    }
}

}  // namespace ptx
