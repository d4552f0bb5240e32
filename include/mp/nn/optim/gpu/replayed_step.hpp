// SPDX-License-Identifier: MIT
/// \file
/// A step that is enqueued launch by launch once, and as one graph from then on.
#pragma once

#include <mp/base/replayed_work.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/launch_recorder.hpp>
#include <mp/executor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Runs one step again and again. The first time body() is called as it is, so that memory grows to what a
/// step needs; the second time what it enqueues is captured into a graph; from then on the graph is launched,
/// which costs the host some microseconds however many kernels there are.
///
///     mp::replayed_step step(stream);
///     for (...) {
///         inputs.send();                                   // mp::step_inputs: tokens, learning rate, counters
///         step.run([&] { forward(); backward(); iteration.finish(); });
///     }
///
/// body() always does the same: it neither waits for the device nor looks at results, and what changes from
/// step to step it has kernels read from device memory. What it uses stays where it is: its workspace must not
/// grow later, so what runs beside it takes another one. An autocast region around it says
/// {.keep_casts = false}: casts that are kept in the first step would not be in the workspace.
///
/// Launches advance the versions of weights as the steps of optimizers in body() do, and follow weights that something
/// else has written meanwhile. Optimizers and stores that body() uses must outlive this object.
///
/// \tparam Executor  cuda_stream; or a simulated_gpu, with a recorder
template <gpu_executor Executor>
class replayed_step {
public:
    explicit replayed_step(Executor exec) : exec_(exec) {}

    /// Throws what body() throws, and errors of the capture: cuda_error, or those of simulated_graph.
    template <class Body>
    void run(Body&& body) {
        if (runs_ == 0) {
            record([&] { body(); });
        } else {
            for (detail::replayed_work* it : work_) it->before_replay();
            if (runs_ == 1) record([&] { graph_.capture(exec_, body); });
            graph_.launch(exec_);
            for (detail::replayed_work* it : work_) it->after_replay();
        }
        runs_ = runs_ == 0 ? 1 : 2;
    }

    /// The step will be another one, of other sizes or options: it begins as at first.
    void forget() noexcept { runs_ = 0; }

    /// Launches in the graph; 0 before it is captured.
    [[nodiscard]] std::size_t nodes() const noexcept { return graph_.nodes(); }

private:
    Executor exec_;
    typename detail::graph_of<Executor>::type graph_;
    template <class Function>
    void record(const Function& enqueue) {
        work_.clear();
        const detail::replayed_work::recorder recorder(work_);
        enqueue();
    }

    std::vector<detail::replayed_work*> work_;  ///< that body() enqueues
    int runs_ = 0;                              ///< 0: none, 1: one, 2: captured
};

template <gpu_executor Executor>
replayed_step(const Executor&) -> replayed_step<detail::executor_handle_t<Executor>>;

}}  // namespace mp
