// SPDX-License-Identifier: MIT
/// \file
/// Launches on the simulated GPU as a graph.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/launch_recorder.hpp>
#include <mp/device/simt/simulated_gpu.hpp>
#include <mp/error.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What mp::cuda_graph is on a device, on the simulated GPU: so that tests notice what a graph takes along
/// that a later launch should have read from memory. The executor has a recorder.
class simulated_graph {
public:
    /// Keeps what body() enqueues on the executor, which is not run, in place of what was kept before.
    ///
    /// \throws argument_error  exec.recorder is null
    /// \throws state_error     the executor is being captured, or body() waits for it
    template <arch Arch, class Body>
    void capture(const simulated_gpu<Arch>& exec, Body&& body) {
        if (exec.recorder == nullptr) {
            detail::throw_argument("mp::simulated_graph::capture", "exec.recorder", "null",
                                   "must be an mp::simt::launch_recorder");
        }
        exec.recorder->begin();
        const std::exception_ptr failure = detail::exception_of([&] { body(); });
        exec.recorder->end();
        auto kept = exec.recorder->take();
        if (failure) std::rethrow_exception(failure);
        actions_ = std::move(kept);
    }
    /// Runs what was captured.
    template <arch Arch>
    void launch(const simulated_gpu<Arch>& /*exec*/) const {
        for (const auto& it : actions_) it->run();
    }
    [[nodiscard]] bool empty() const noexcept { return actions_.empty(); }
    /// Number of launches and clears.
    [[nodiscard]] std::size_t nodes() const noexcept { return actions_.size(); }

private:
    std::vector<std::unique_ptr<simt::launch_recorder::action>> actions_;
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The graph of an executor, specialised beside it.
template <class Executor>
struct graph_of;

template <arch Arch>
struct graph_of<simulated_gpu<Arch>> {
    using type = simulated_graph;
};

}}  // namespace mp::detail
