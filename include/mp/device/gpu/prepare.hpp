// SPDX-License-Identifier: MIT
/// \file
/// Launches that are made ready once and enqueued often.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A launch, or a clear, that is kept.
template <class Executor>
class prepared_action {
public:
    prepared_action() = default;
    prepared_action(const prepared_action&) = delete;
    prepared_action& operator=(const prepared_action&) = delete;
    virtual ~prepared_action() = default;
    virtual void enqueue(const Executor& exec) const = 0;
};

/// A kernel with its parameters, tensor maps among them.
template <class Executor, class Kernel>
class prepared_kernel final : public prepared_action<Executor> {
public:
    prepared_kernel(std::string_view function, const simt::launch_size& size, const Kernel& kernel)
        : function_(function), size_(size), kernel_(kernel) {}
    void enqueue(const Executor& exec) const override { launch(function_, exec, size_, kernel_); }

private:
    std::string function_;
    simt::launch_size size_;
    Kernel kernel_;
};

template <class Executor>
class prepared_clear final : public prepared_action<Executor> {
public:
    prepared_clear(void* to, std::size_t bytes) : to_(to), bytes_(bytes) {}
    void enqueue(const Executor& exec) const override { executor_memory<Executor>::clear(exec, to_, bytes_); }

private:
    void* to_;
    std::size_t bytes_;
};

template <class Executor>
using prepared_actions = std::vector<std::shared_ptr<const prepared_action<Executor>>>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The executor of a call within mp::prepare: what the call would enqueue on Executor is kept.
template <gpu_executor Executor>
class preparing_executor {
public:
    preparing_executor(const Executor& exec, detail::prepared_actions<Executor>& actions)
        : workspace(detail::workspace_of(exec)), exec_(exec), actions_(&actions) {}

    /// Memory of ops, that of the executor.
    mp::workspace* workspace;

    /// The executor for which launches are prepared.
    [[nodiscard]] const Executor& target() const { return exec_; }
    /// Keeps an action.
    void add(std::shared_ptr<const detail::prepared_action<Executor>> action) const {
        actions_->push_back(std::move(action));
    }

private:
    Executor exec_;
    detail::prepared_actions<Executor>* actions_;
};

/// Launches that have been prepared, by mp::prepare. A call enqueues them in their order, to the same bits as the
/// call that they are of. Copies share what is kept. A call changes nothing of this, so that several threads may
/// call at a time.
template <gpu_executor Executor>
class prepared_launches {
public:
    /// Nothing.
    prepared_launches() = default;
    /// Of a device: see device_number.
    prepared_launches(int device, detail::prepared_actions<Executor> actions)
        : device_(device), actions_(std::move(actions)) {}

    /// Enqueues them on the executor, which may be another stream of the same device; nothing where there are
    /// none. Can be captured into a graph.
    ///
    /// \throws argument_error  the device of the executor is another one
    /// \throws cuda_error      a launch fails
    void operator()(const Executor& exec) const {
        if (actions_.empty()) return;
        if (device_number(exec) != device_) {
            detail::throw_argument(
                "mp::prepared_launches", "exec's device", device_number(exec),
                "must be the one that they were prepared for, which is " + detail::error_text(device_));
        }
        for (const auto& it : actions_) it->enqueue(exec);
    }

    /// Number of launches.
    [[nodiscard]] std::size_t size() const noexcept { return actions_.size(); }
    [[nodiscard]] bool empty() const noexcept { return actions_.empty(); }

private:
    int device_ = 0;
    detail::prepared_actions<Executor> actions_;
};

/// Makes launches ready that are enqueued often, on the same matrices: calls body(exec') with an executor that keeps what
/// it is given to launch in place of enqueueing it. What products do before they launch is then done once: they check
/// their arguments, choose a kernel, and have the driver encode the tensor maps of wgmma.
///
///     const auto product = mp::prepare(stream, [&](const auto& exec) {
///         mp::gemm(exec, plan, 1, a, b, 0, c, mp::relu_epilogue{}, workspace.span());
///     });
///     for (...) product(stream);
///
/// For all products on GPUs (mp::gemm, gemm_batched, gemm_grouped_m, gemm_scaled ...), and whatever else only
/// launches kernels, several calls among them. Arguments are kept as they are, as a graph keeps them: alpha, beta and
/// the addresses. All memory that the calls name must stay where it is for as long as the launches are used; that
/// holds for the executor's workspace, too, of which what the calls take is free for others again when this returns: where
/// others use it on another stream, or it may grow, the calls get one of their own. What changes from time to time is read
/// from device memory.
///
/// Nothing is enqueued. Throws what body() throws, and state_error where it copies between host and device.
template <gpu_executor Executor, class Body>
[[nodiscard]] prepared_launches<detail::executor_handle_t<Executor>> prepare(const Executor& exec,
                                                                             Body&& body) {
    using handle = detail::executor_handle_t<Executor>;
    detail::prepared_actions<handle> actions;
    std::forward<Body>(body)(preparing_executor<handle>(detail::executor_handle(exec), actions));
    return {device_number(exec), std::move(actions)};
}

/// The device for which launches are prepared.
template <class Executor>
[[nodiscard]] int device_number(const preparing_executor<Executor>& exec) {
    return device_number(exec.target());
}
template <class Executor>
[[nodiscard]] gpu_properties properties_of(const preparing_executor<Executor>& exec) {
    return properties_of(exec.target());
}

}}  // namespace mp

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

/// Keeps a launch. Throws argument_error for what no device can run.
template <class Executor, class Kernel>
void launch(std::string_view function, const preparing_executor<Executor>& exec, const launch_size& size,
            const Kernel& kernel) {
    static_cast<void>(shape_of_launch<Kernel>(function, size));
    exec.add(std::make_shared<const mp::detail::prepared_kernel<Executor, Kernel>>(function, size, kernel));
}

/// A map for the executor for which launches are prepared.
template <class Executor>
[[nodiscard]] tensor_map make_tensor_map(const preparing_executor<Executor>& exec,
                                         const tensor_tiles& tiles) {
    return make_tensor_map(exec.target(), tiles);
}

}}  // namespace mp::simt

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Executor>
struct is_gpu_executor<preparing_executor<Executor>> : std::true_type {};

template <class Executor>
inline constexpr auto compiled_capabilities<preparing_executor<Executor>> = compiled_capabilities<Executor>;

template <class Executor>
struct executor_memory<preparing_executor<Executor>> {
    using executor = preparing_executor<Executor>;
    using memory = executor_memory<Executor>;
    static void copy_to_host(const executor& /*exec*/, void* /*to*/, const void* /*from*/,
                             std::size_t /*bytes*/) {
        refuse();
    }
    static void copy_to_device(const executor& /*exec*/, void* /*to*/, const void* /*from*/,
                               std::size_t /*bytes*/) {
        refuse();
    }
    static void clear(const executor& exec, void* to, std::size_t bytes) {
        exec.add(std::make_shared<const prepared_clear<Executor>>(to, bytes));
    }
    static std::shared_ptr<void> allocate(const executor& exec, std::size_t bytes) {
        return memory::allocate(exec.target(), bytes);
    }
    static bool can_keep(const executor& /*exec*/) { return false; }
    static const void* queue(const executor& exec) { return memory::queue(exec.target()); }

private:
    static void refuse() {
        throw_error(state_error("mp::prepare: a copy between host and device cannot be kept"));
    }
};

}}  // namespace mp::detail
