// SPDX-License-Identifier: MIT
/// \file
/// Launches on the simulated GPU that are kept to run again, as a CUDA graph keeps those of a stream; and the graph.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/simulated_gpu.hpp>
#include <mp/error.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::simt {

/// What a simulated GPU has enqueued while it was captured. Between begin() and end() its kernels do not run:
/// their arguments are kept as they are, and replay() runs them in order, on what memory holds by then. Not
/// synchronised. Usually behind mp::replayed_step:
///
///     mp::simt::launch_recorder recorder;
///     const mp::simulated_gpu<mp::arch::sm_80> gpu{.workspace = &workspace, .recorder = &recorder};
class launch_recorder {
public:
    /// One thing to do again.
    class action {
    public:
        action() = default;
        action(const action&) = delete;
        action& operator=(const action&) = delete;
        virtual ~action() = default;
        /// Does it again.
        virtual void run() const = 0;
    };

    [[nodiscard]] bool recording() const noexcept { return recording_; }
    /// Number of actions.
    [[nodiscard]] std::size_t size() const noexcept { return actions_.size(); }

    /// Forgets what was kept, and records. Throws state_error while it does.
    void begin() {
        if (recording_) {
            mp::detail::throw_error(
                state_error("mp::simt::launch_recorder::begin: the simulated GPU is being captured already"));
        }
        actions_.clear();
        recording_ = true;
    }
    void end() noexcept { recording_ = false; }
    /// What was kept.
    [[nodiscard]] std::vector<std::unique_ptr<action>> take() { return std::exchange(actions_, {}); }

    /// Keeps an action, while it records.
    void add(std::unique_ptr<action> one) { actions_.push_back(std::move(one)); }

    /// Throws where work that waits for the device is asked for while it is captured, as CUDA refuses it.
    static void refuse_wait(const launch_recorder* recorder, std::string_view what) {
        if (recorder == nullptr || !recorder->recording()) return;
        mp::detail::throw_joined<state_error>(
            {what, ": the simulated GPU is being captured, and this waits for it"});
    }

private:
    std::vector<std::unique_ptr<action>> actions_;
    bool recording_ = false;
};

}  // namespace mp::simt

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
