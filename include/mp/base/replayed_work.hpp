// SPDX-License-Identifier: MIT
/// \file
/// What the host does around each replay of captured work.
#pragma once

#include <mp/config.hpp>

#include <algorithm>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Base of objects whose work on a device can be captured into a graph, and that keep state on the host beside it,
/// such as versions of what they write. They stay in place as long as the graph.
class replayed_work {
public:
    /// Called before the graph is launched: enqueues what the captured work relies on.
    virtual void before_replay() = 0;
    /// Called after it: what the host would have done.
    virtual void after_replay() = 0;

    /// While it lives, collects the objects that enqueue work from its thread. Recorders end in reverse order.
    class [[nodiscard]] recorder {
    public:
        [[nodiscard]] explicit recorder(std::vector<replayed_work*>& list) noexcept
            : list_(list), outer_(innermost()) {
            innermost() = this;
        }
        recorder(const recorder&) = delete;
        recorder& operator=(const recorder&) = delete;
        ~recorder() { innermost() = outer_; }

    private:
        friend replayed_work;
        std::vector<replayed_work*>& list_;
        recorder* outer_;
    };

protected:
    replayed_work() = default;
    replayed_work(const replayed_work&) = default;
    replayed_work& operator=(const replayed_work&) = default;
    ~replayed_work() = default;

    /// Reports that this object enqueues work.
    void takes_part() {
        for (recorder* it = innermost(); it != nullptr; it = it->outer_) {
            if (std::find(it->list_.begin(), it->list_.end(), this) == it->list_.end())
                it->list_.push_back(this);
        }
    }

private:
    /// Thread-local, as that of base/write_watch.hpp.
    static recorder*& innermost() noexcept {
        static constinit thread_local recorder* now = nullptr;
        return now;
    }
};

}}  // namespace mp::detail
