// SPDX-License-Identifier: MIT
/// \file
/// Launches on the simulated GPU that are kept to run again, as a CUDA graph keeps those of a stream.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>

#include <cstddef>
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
