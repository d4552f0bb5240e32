// SPDX-License-Identifier: MIT
// Which work of streams happens before which. All is done when it is enqueued, but a device need not do it in that order:
// only behind what was enqueued on the same stream, behind events that the stream waits for, and behind what the host
// had waited for. The default stream is the legacy one: it waits for blocking streams, and they for it.
#pragma once

#include "../interpreter/streams.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace ptx::runtime {

/// For each stream how many of its launches and copies have happened: a vector clock.
class progress {
public:
    [[nodiscard]] std::uint32_t of(std::uint32_t stream) const {
        return stream < done_.size() ? done_[stream] : 0;
    }
    void raise(std::uint32_t stream, std::uint32_t done);
    void join(const progress& other);
    [[nodiscard]] bool covers(const progress& other) const;

private:
    std::vector<std::uint32_t> done_{};
};

using graph_work = std::function<void(CUstream_st&)>;

/// What is recorded into a graph: launches and copies, in branches as streams have them.
struct graph_step {
    graph_work run{};
    std::size_t branch = 0;
    std::vector<std::size_t> behind{};  ///< steps that come before it
};
struct capture {
    std::vector<graph_step> steps{};
    std::size_t branches = 1;
    bool has_ended = false;
};

}  // namespace ptx::runtime

/// What streams, events and graphs are behind their handles.
struct CUstream_st {
    CUstream_st(std::uint32_t stream_number, bool is_blocking)
        : number(stream_number), blocking(is_blocking) {}

    std::uint32_t number;
    bool blocking;                   ///< waits for the default stream
    ptx::runtime::progress knows{};  ///< what happens before its next work
    std::shared_ptr<ptx::runtime::capture> recorded{};
    std::size_t branch = 0;
    std::vector<std::size_t> behind{};  ///< steps of the graph before its next one

    [[nodiscard]] bool is_capturing() const { return recorded && !recorded->has_ended; }
};
struct CUevent_st {
    double seconds = 0;
    ptx::runtime::progress at{};
    std::shared_ptr<ptx::runtime::capture> recorded{};  ///< where it was recorded into a graph
    std::vector<std::size_t> behind{};
};
struct CUgraph_st {
    std::shared_ptr<const ptx::runtime::capture> work{};
};
struct CUgraphExec_st {
    std::shared_ptr<const ptx::runtime::capture> work{};
    std::vector<std::unique_ptr<CUstream_st>> branches{};  ///< behind the first, which is the stream's
    ptx::runtime::progress launched{};                     ///< launches follow each other
};

namespace ptx::runtime {

/// What has been enqueued, and what of it the host knows to be done.
class device_order {
public:
    device_order() { lines_[0].stream = &default_stream; }
    device_order(const device_order&) = delete;
    device_order& operator=(const device_order&) = delete;

    [[nodiscard]] std::unique_ptr<CUstream_st> open(bool blocking);
    void close(CUstream_st& it);
    [[nodiscard]] bool is_open(const CUstream_st* it) const;

    /// Tells a stream what its next work is behind by the rules of the default stream.
    void prepare(CUstream_st& it);
    /// Calls run(position) for a launch or a copy, which makes the clock go on, and remembers it.
    template <class Run>
    void run(CUstream_st& in, std::string_view name, const function* entry, const std::uint32_t& clock,
             Run run) {
        const stream_position where = begin(in);
        const std::uint32_t before = clock;
        run(where);
        end(in, {before + 1, clock, in.number, name, entry});
    }
    /// Calls f() as soon as the host knows that what is on a stream now is done.
    void when_done(const CUstream_st& in, std::function<void()> f) {
        waiting_.push_back({in.knows, std::move(f)});
    }

    void host_waits_for(const progress& what);
    void host_waits_for_all();
    /// Whether the host knows that this is done.
    [[nodiscard]] bool is_done(const progress& what) const { return host_.covers(what); }

    CUstream_st default_stream{0, true};

private:
    struct line {
        std::uint32_t count = 0;               ///< of launches and copies
        std::deque<stream_work> unfinished{};  ///< the last of them, which the host has not waited for
        CUstream_st* stream = nullptr;         ///< null when it has been destroyed
    };
    struct waiting {
        progress for_what;
        std::function<void()> then;
    };
    stream_position begin(CUstream_st& in);
    void end(CUstream_st& in, const stream_work& done);

    std::vector<line> lines_ = std::vector<line>(1);
    progress host_{};
    progress closed_{};  ///< of blocking streams that are no more
    std::vector<waiting> waiting_{};
};

}  // namespace ptx::runtime
