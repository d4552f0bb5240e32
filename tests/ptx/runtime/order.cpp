// SPDX-License-Identifier: MIT
#include "order.hpp"

#include <algorithm>

namespace ptx::runtime {

void progress::raise(std::uint32_t stream, std::uint32_t done) {
    if (stream >= done_.size()) done_.resize(stream + 1);
    done_[stream] = std::max(done_[stream], done);
}
void progress::join(const progress& other) {
    if (done_.size() < other.done_.size()) done_.resize(other.done_.size());
    for (std::size_t k = 0; k < other.done_.size(); ++k) done_[k] = std::max(done_[k], other.done_[k]);
}
bool progress::covers(const progress& other) const {
    for (std::size_t k = 0; k < other.done_.size(); ++k) {
        if (other.done_[k] > of(static_cast<std::uint32_t>(k))) return false;
    }
    return true;
}

std::unique_ptr<CUstream_st> device_order::open(bool blocking) {
    // A number is free again when the stream is no more and the host has waited for it.
    const auto is_free = [](const line& it) { return it.stream == nullptr && it.unfinished.empty(); };
    auto found = std::ranges::find_if(lines_, is_free);
    if (found == lines_.end()) found = lines_.emplace(lines_.end());
    auto made = std::make_unique<CUstream_st>(static_cast<std::uint32_t>(found - lines_.begin()), blocking);
    found->stream = made.get();
    return made;
}
void device_order::close(CUstream_st& it) {
    lines_[it.number].stream = nullptr;
    if (it.blocking) closed_.join(it.knows);
}
bool device_order::is_open(const CUstream_st* it) const {
    return std::ranges::any_of(lines_, [&](const line& of) { return of.stream == it; });
}

void device_order::prepare(CUstream_st& it) {
    if (it.number == 0) {
        it.knows.join(closed_);
        for (const line& other : lines_) {
            if (other.stream != nullptr && other.stream->blocking) it.knows.join(other.stream->knows);
        }
    } else if (it.blocking) {
        it.knows.join(default_stream.knows);
    }
}

stream_position device_order::begin(CUstream_st& in) {
    prepare(in);
    // What the host has waited for is in no list any more.
    stream_position where{in.number};
    for (std::uint32_t number = 0; number < lines_.size(); ++number) {
        const line& other = lines_[number];
        const std::size_t finished = other.count - other.unfinished.size();
        for (std::size_t k = std::max<std::size_t>(in.knows.of(number), finished); k < other.count; ++k) {
            where.beside.push_back(other.unfinished[k - finished]);
        }
    }
    std::ranges::sort(where.beside, {}, &stream_work::begin);
    return where;
}
void device_order::end(CUstream_st& in, const stream_work& done) {
    line& own = lines_[in.number];
    own.unfinished.push_back(done);
    in.knows.raise(in.number, ++own.count);
}

void device_order::host_waits_for(const progress& what) {
    host_.join(what);
    for (std::uint32_t number = 0; number < lines_.size(); ++number) {
        line& it = lines_[number];
        while (!it.unfinished.empty() && it.count - it.unfinished.size() < host_.of(number))
            it.unfinished.pop_front();
    }
    std::vector<waiting> ready;
    std::erase_if(waiting_, [&](waiting& it) {
        if (!host_.covers(it.for_what)) return false;
        ready.push_back(std::move(it));
        return true;
    });
    for (const waiting& it : ready) it.then();
}
void device_order::host_waits_for_all() {
    progress all;
    for (std::uint32_t number = 0; number < lines_.size(); ++number) all.raise(number, lines_[number].count);
    host_waits_for(all);
}

}  // namespace ptx::runtime
