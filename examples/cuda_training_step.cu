// SPDX-License-Identifier: MIT
// Mixed-precision training in which the host only waits: half weights, activations and gradients in tensor
// cores, float master weights, a dynamic loss scale and an optimizer that live on the device. One iteration
// is captured into a CUDA graph and replayed; the host looks at the loss and the scale now and then, and
// reads what has happened to the scale from the events that the device keeps.
//
// After the backward pass two passes over all parameters are left: one that finds infinities and NaNs and the
// norm of the gradients, and one that takes the scale out of them, clips them, and updates weights and state.
//
// A network of one hidden layer learns what another, random one computes. The loss scale begins far too high,
// so that the first steps overflow, are skipped, and bring it down.
#include <mp/cuda.hpp>

#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

namespace {

constexpr std::ptrdiff_t batch = 1024;
constexpr std::ptrdiff_t inputs = 64;
constexpr std::ptrdiff_t hidden = 256;
constexpr std::ptrdiff_t outputs = 16;
constexpr double largest_norm = 1.0;
const mp::sgd_options options{.learning_rate = 0.1, .momentum = 0.5};
const mp::pytorch_policy policy{.initial_scale = 0x1p40F, .growth_interval = 200};

/// Keeps the events of all iterations between two looks of the host.
using loss_scaler = mp::gpu_loss_scaler<mp::cuda_stream, mp::pytorch_policy, 128>;
using loss_scale = loss_scaler::scale_type;

/// An epilogue of one's own: the gradient passes where the activation was positive.
struct relu_gradient {
    mp::matrix_view<const mp::half> activation;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        return static_cast<float>(activation(row, column)) > 0.0F ? value : 0.0F;
    }
};

/// gradient = scale * d loss / d output, for loss = mean((output - target)^2), which is added up besides.
__global__ void loss_kernel(const float* output, const float* target, std::size_t size,
                            const loss_scale* scale, mp::half* gradient, float* loss) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const float difference = output[i] - target[i];
    gradient[i] = mp::half(2.0F * difference / static_cast<float>(size) * scale->current_scale());
    atomicAdd(loss, difference * difference / static_cast<float>(size));
}

unsigned blocks_for(std::size_t size) {
    return static_cast<unsigned>((size + 255) / 256);
}

std::vector<float> random_values(std::size_t size, float deviation, std::mt19937& random) {
    std::vector<float> values(size);
    std::normal_distribution<float> draw(0.0F, deviation);
    for (float& value : values) value = draw(random);
    return values;
}

/// A weight matrix: float master, half copy, its gradient, still scaled, and its momentum.
struct weights {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    mp::device_buffer<float> master;
    mp::device_buffer<float> momentum;
    mp::device_buffer<mp::half> values;
    mp::device_buffer<mp::half> gradient;

    weights(mp::cuda_stream stream, std::ptrdiff_t r, std::ptrdiff_t c, const std::vector<float>& begin)
        : rows(r),
          columns(c),
          master(stream, begin),
          momentum(begin.size()),
          values(begin.size()),
          gradient(begin.size()) {
        momentum.fill_bytes(stream, 0);
        mp::convert(stream, master, values);
    }
    mp::matrix_view<mp::half> view() { return mp::row_major(values.data(), rows, columns); }
    mp::matrix_view<mp::half> gradient_view() { return mp::row_major(gradient.data(), rows, columns); }

    /// The arrays as the optimizer takes them.
    mp::gpu_parameter<mp::half> parameter() {
        return {.weights = values.span(),
                .gradient = gradient.span(),
                .masters = master.span(),
                .momentum = momentum.span()};
    }
};

/// A line about an iteration that changed the scale.
void tell(const mp::scale_event& event) {
    const double before = static_cast<double>(event.change.before);
    const double after = static_cast<double>(event.change.after);
    if (event.change.kind == mp::scale_change_kind::backed_off) {
        std::printf(
            "           iteration %llu: %llu infinities and %llu NaNs, the first in array %llu, scale %g -> "
            "%g\n",
            static_cast<unsigned long long>(event.iteration),
            static_cast<unsigned long long>(event.seen.infinities),
            static_cast<unsigned long long>(event.seen.nans),
            static_cast<unsigned long long>(event.parameter), before, after);
    } else if (event.change.kind == mp::scale_change_kind::grown) {
        std::printf("           iteration %llu: clean for long, scale %g -> %g\n",
                    static_cast<unsigned long long>(event.iteration), before, after);
    }
}

void train(int iterations) {
    mp::unique_cuda_stream stream;
    std::mt19937 random(1);
    const auto deviation = [](std::ptrdiff_t fan_in) { return std::sqrt(2.0F / static_cast<float>(fan_in)); };

    // The data: what a random network makes of random inputs.
    const std::vector<float> x = random_values(batch * inputs, 1.0F, random);
    const std::vector<float> teacher1 = random_values(inputs * hidden, deviation(inputs), random);
    const std::vector<float> teacher2 = random_values(hidden * outputs, deviation(hidden), random);
    std::vector<float> h(batch * hidden);
    std::vector<float> targets(batch * outputs);
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(x.data(), batch, inputs),
             mp::row_major(teacher1.data(), inputs, hidden), 0.0F, mp::row_major(h.data(), batch, hidden),
             mp::relu_epilogue{});
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(h.data(), batch, hidden),
             mp::row_major(teacher2.data(), hidden, outputs), 0.0F,
             mp::row_major(targets.data(), batch, outputs));

    const mp::device_buffer<float> target(stream, targets);
    const mp::device_buffer<float> x_float(stream, x);
    mp::device_buffer<mp::half> x_half(x.size());
    mp::convert(stream, x_float, x_half);
    weights first(stream, inputs, hidden, random_values(inputs * hidden, deviation(inputs), random));
    weights second(stream, hidden, outputs, random_values(hidden * outputs, deviation(hidden), random));
    mp::device_buffer<mp::half> activation(batch * hidden);
    mp::device_buffer<mp::half> activation_gradient(batch * hidden);
    mp::device_buffer<float> output(batch * outputs);
    mp::device_buffer<mp::half> output_gradient(batch * outputs);
    mp::device_buffer<float> loss(1);
    loss_scaler scaler(stream, policy);
    mp::gpu_optimizer optimizer(stream, std::vector{first.parameter(), second.parameter()}, options);
    mp::synchronize(stream);

    const auto view = [](auto& buffer, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        return mp::row_major(buffer.data(), rows, columns);
    };
    const auto x_view = view(x_half, batch, inputs);
    const auto h_view = view(activation, batch, hidden);
    const auto dh_view = view(activation_gradient, batch, hidden);
    const auto dy_view = view(output_gradient, batch, outputs);

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t iteration = nullptr;
    mp::check_cuda(cudaStreamBeginCapture(stream.get().stream, cudaStreamCaptureModeGlobal),
                   "cudaStreamBeginCapture");
    mp::training_iteration step(scaler, optimizer);
    loss.fill_bytes(stream, 0);
    mp::gemm(stream, 1.0F, x_view, first.view(), 0.0F, h_view, mp::relu_epilogue{});
    mp::gemm(stream, 1.0F, h_view, second.view(), 0.0F, view(output, batch, outputs));
    loss_kernel<<<blocks_for(output.size()), 256, 0, stream.get().stream>>>(
        output.data(), target.data(), output.size(), step.scale(), output_gradient.data(), loss.data());
    mp::check_cuda(cudaGetLastError(), "loss_kernel");
    mp::gemm(stream, 1.0F, mp::transposed(h_view), dy_view, 0.0F, second.gradient_view());
    mp::gemm(stream, 1.0F, dy_view, mp::transposed(second.view()), 0.0F, dh_view, relu_gradient{h_view});
    mp::gemm(stream, 1.0F, mp::transposed(x_view), dh_view, 0.0F, first.gradient_view());
    step.clip_gradient_norm(largest_norm);
    step.finish();
    mp::check_cuda(cudaStreamEndCapture(stream.get().stream, &graph), "cudaStreamEndCapture");
    mp::check_cuda(cudaGraphInstantiate(&iteration, graph, 0), "cudaGraphInstantiate");

    std::printf("iteration      loss  gradient       scale  skipped\n");
    std::uint64_t told = 0;
    for (int i = 1; i <= iterations; ++i) {
        mp::check_cuda(cudaGraphLaunch(iteration, stream.get().stream), "cudaGraphLaunch");
        if (i % std::max(iterations / 10, 1) != 0 && i != 1) continue;
        const loss_scale now = scaler.state();
        std::printf("%9d  %8.5f  %8.5f  %10g  %7llu\n", i, static_cast<double>(loss.to_host(stream)[0]),
                    optimizer.read_gradient_norm().norm, static_cast<double>(now.current_scale()),
                    now.skipped);
        for (const mp::scale_event& event : now.events()) {
            if (event.iteration >= told) tell(event);
        }
        told = now.iterations;
    }
    mp::check_cuda(cudaGraphExecDestroy(iteration), "cudaGraphExecDestroy");
    mp::check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

}  // namespace

int main() {
    try {
        int devices = 0;
        mp::check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        train(1000);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cuda_training_step: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
