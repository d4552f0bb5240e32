// SPDX-License-Identifier: MIT
// The training loop for GPUs on the simulated one, against the same steps put together on the host from the
// exact model of the tensor cores and the library's functions for the CPU.
#include "train_digits/device_training.hpp"

#include <mp/gemm.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/data.hpp"
#include "common/random.hpp"
#include "device/gpu/simulated_device.hpp"
#include "examples/thrown.hpp"
#include "examples/workplace.hpp"
#include "train_digits/options.hpp"

namespace {

using examples::digits;
using examples::image_pixels;
using examples::train_digits::network;
using mp::half;

constexpr std::array<std::size_t, 4> widths{image_pixels, 16, 16, examples::digit_classes};
constexpr std::size_t batch = 16;
constexpr std::uint64_t seed = 5;
constexpr float weight = 0x1p-2F;
const mp::sgd_options options{.learning_rate = 0.1 / 0.25, .momentum = 0.9};

/// The simulated GPU as the program sees a device.
struct simulated : gpu_test::simulated_device {
    using gpu_test::simulated_device::simulated_device;
    void wait() const {}
};

/// Pictures of noise; the digit is where the first of ten pixels is brightest.
digits noise(std::size_t count, std::uint64_t from) {
    examples::random_numbers random(from);
    digits result;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<float> image(image_pixels);
        for (float& pixel : image) pixel = std::round(8.0F + 8.0F * random.symmetric()) / 16.0F;
        const auto brightest = std::max_element(image.begin(), image.begin() + 10);
        result.labels.push_back(static_cast<int>(brightest - image.begin()));
        result.pixels.insert(result.pixels.end(), image.begin(), image.end());
    }
    return result;
}

template <class Value>
bool same_bits(std::span<const Value> a, const std::vector<Value>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), b.size() * sizeof(Value)) == 0;
}

/// A training on the host whose products are those of tensor cores.
class host_training {
public:
    explicit host_training(const mp::pytorch_policy& policy)
        : scaler(policy),
          model(widths, batch, seed),
          parameters(model.parameters()),
          optimizer(parameters, options) {}

    /// The logits.
    const std::vector<half>& forward(const digits& of) {
        std::vector<half> images(of.pixels.size());
        mp::convert(mp::cpu{}, of.pixels, images);
        outputs.assign(1, images);
        for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
            std::vector<half> y(of.size() * widths[i + 1]);
            const auto x = rows(outputs[i], widths[i]);
            const auto w = mp::transposed(
                mp::row_major(parameters[2 * i].weights.data(), size(widths[i + 1]), size(widths[i])));
            const auto bias = mp::bias_per_column(parameters[2 * i + 1].weights);
            if (i + 2 < widths.size()) {
                mp::gemm(tensor_cores, 1.0F, x, w, 0.0F, rows(y, widths[i + 1]),
                         mp::compose(bias, mp::relu_epilogue{}));
            } else {
                mp::gemm(tensor_cores, 1.0F, x, w, 0.0F, rows(y, widths[i + 1]), bias);
            }
            outputs.push_back(y);
        }
        return outputs.back();
    }

    /// The loss of the batch.
    float step(const digits& of) {
        forward(of);
        const float loss = loss_with_gradient(of.labels);
        for (std::size_t i = widths.size() - 1; i-- > 0;) {
            const auto dy = rows(gradient, widths[i + 1]);
            const auto x = rows(outputs[i], widths[i]);
            const auto out = size(widths[i + 1]);
            const auto in = size(widths[i]);
            mp::gemm(tensor_cores, 1.0F, mp::transposed(dy), x, 0.0F,
                     mp::row_major(parameters[2 * i].gradient.data(), out, in));
            mp::ops::sum<mp::autocast::off>(mp::cpu{}, dy, parameters[2 * i + 1].gradient,
                                            mp::ops::per::column);
            std::vector<half> next(batch * widths[i]);
            mp::gemm(tensor_cores, 1.0F, dy, mp::row_major(parameters[2 * i].weights.data(), out, in), 0.0F,
                     rows(next, widths[i]));
            if (i > 0)
                mp::ops::relu_backward<mp::autocast::off>(mp::cpu{}, x, rows(next, widths[i]),
                                                          rows(next, widths[i]));
            gradient = next;
        }
        applied = static_cast<bool>(scaler.step(optimizer));
        scaler.update();
        return loss;
    }

    bool applied = false;
    mp::dynamic_loss_scaler scaler;
    network<half> model;
    std::vector<mp::parameter<half>> parameters;
    mp::sgd<half, half, float> optimizer;

private:
    static std::ptrdiff_t size(std::size_t of) { return static_cast<std::ptrdiff_t>(of); }
    static mp::matrix_view<half> rows(std::vector<half>& of, std::size_t columns) {
        return mp::row_major(of.data(), size(of.size() / columns), size(columns));
    }

    /// The loss on a GPU is not the CPU's to the last bit, so it is computed by the former's function and
    /// checked by the latter's.
    float loss_with_gradient(const std::vector<int>& labels) {
        const std::size_t classes = widths.back();
        const auto logits = rows(outputs.back(), classes);
        const mp::ops::loss_factors factors{.weight = weight, .scale = scaler.current_scale()};
        std::vector<float> row_losses(batch);
        std::vector<float> cpu(batch * classes);
        gradient.assign(batch * classes, half{});
        float loss = 0.0F;
        mp::ops::softmax_cross_entropy_with_gradient(mp::simulated_gpu<mp::arch::sm_80>{}, logits, labels,
                                                     &loss, std::span(row_losses), rows(gradient, classes),
                                                     factors);
        loss /= weight;
        mp::ops::softmax_cross_entropy_backward<mp::autocast::off>(
            mp::cpu{}, logits, labels, mp::row_major(cpu.data(), size(batch), size(classes)), factors);
        const float expected = mp::ops::softmax_cross_entropy<mp::autocast::off>(mp::cpu{}, logits, labels);
        CHECK(std::abs(loss - expected) <= 0x1p-20F * std::max(1.0F, expected));
        for (std::size_t i = 0; i < cpu.size(); ++i) {
            const float found = static_cast<float>(gradient[i]);
            const bool overflows = std::abs(cpu[i]) >= 65520.0F;
            CHECK((overflows || std::abs(found - cpu[i]) <= 0x1p-10F * std::abs(cpu[i]) + 0x1p-24F));
            CHECK(mp::isinf(gradient[i]) == overflows);
        }
        return loss;
    }

    static constexpr mp::emulated<mp::arch::sm_80> tensor_cores{};
    std::vector<std::vector<half>> outputs;  // of each layer, with the images in front
    std::vector<half> gradient;
};

/// A training on the simulated GPU with the same beginning.
struct device_training {
    using trainer = examples::train_digits::device_trainer<simulated, half, float, mp::pytorch_policy>;

    device_training(const mp::pytorch_policy& policy, std::uint64_t schedule, std::size_t steps)
        : device(schedule), on_device(device, widths, batch, seed, options, weight, policy, true, steps) {}

    void step(const digits& of, std::size_t note) {
        examples::train_digits::device_digits<simulated, half> images(device, of);
        on_device.step(images.images(0, batch), images.labels(0, batch), note);
    }

    simulated device;
    trainer on_device;
};

void check_same(host_training& host, device_training& gpu) {
    network<half> copy(widths, batch, 0);
    gpu.on_device.model().copy_to(gpu.device, copy);
    const auto copied = copy.parameters();
    for (std::size_t i = 0; i < copied.size(); ++i) {
        CAPTURE(i);
        CHECK(std::ranges::equal(copied[i].weights, host.parameters[i].weights,
                                 [](half a, half b) { return a.bits() == b.bits(); }));
        CHECK(std::ranges::equal(copied[i].gradient, host.parameters[i].gradient, [](half a, half b) {
            return a.bits() == b.bits() || (mp::isnan(a) && mp::isnan(b));
        }));
        CHECK(same_bits(host.optimizer.master_weights(i), gpu.device.get(gpu.on_device.masters()[i])));
        CHECK(same_bits(host.optimizer.momentum(i), gpu.device.get(gpu.on_device.momenta()[i])));
    }
    CHECK(gpu.on_device.current_scale() == host.scaler.current_scale());
}

TEST_CASE("steps on a GPU have the bits of the tensor-core model and the CPU's functions, growth included") {
    const mp::pytorch_policy policy{.initial_scale = 1024.0F, .growth_interval = 2};
    host_training host(policy);
    device_training gpu(policy, 3, 3);
    std::vector<float> losses;
    std::vector<float> scales;
    for (std::size_t step = 0; step < 3; ++step) {
        const digits images = noise(batch, step);
        scales.push_back(host.scaler.current_scale());
        losses.push_back(host.step(images));
        CHECK(host.applied);
        gpu.step(images, step);
        check_same(host, gpu);
    }
    const auto notes = gpu.on_device.take_notes();
    CHECK(scales == std::vector<float>{1024.0F, 1024.0F, 2048.0F});
    for (std::size_t step = 0; step < 3; ++step) {
        CHECK(notes[step].loss == losses[step]);
        CHECK(notes[step].scale == scales[step]);
        CHECK(notes[step].applied == 1);
    }
}

TEST_CASE("a scale that is too large overflows, and the step that is skipped touches nothing but the scale") {
    const mp::pytorch_policy policy{.initial_scale = 0x1p21F};
    host_training host(policy);
    device_training gpu(policy, 0, 2);
    network<half> before(widths, batch, seed);
    const auto begin = before.parameters();
    const digits images = noise(batch, 9);

    host.step(images);
    CHECK_FALSE(host.applied);
    gpu.step(images, 0);
    check_same(host, gpu);
    CHECK(gpu.on_device.current_scale() == 0x1p20F);
    for (std::size_t i = 0; i < begin.size(); ++i) {
        CHECK(std::ranges::equal(begin[i].weights, host.parameters[i].weights));
        const auto momentum = gpu.device.get(gpu.on_device.momenta()[i]);
        CHECK(std::ranges::count(momentum, 0.0F) == static_cast<std::ptrdiff_t>(momentum.size()));
    }
    const auto notes = gpu.on_device.take_notes();
    CHECK(notes[0].applied == 0);
    CHECK(notes[0].scale == 0x1p21F);
}

TEST_CASE("a training on a GPU fills the record as one on the CPU does") {
    const examples::split_digits data{noise(2 * batch + 3, 1), noise(batch + 5, 2)};
    int epochs = 0;
    const examples::train_digits::training_task task{
        .data = &data, .epochs = 2, .seed = seed, .loss_weight = 0.25, .after_epoch = [&] { ++epochs; }};
    simulated device;
    const mp::pytorch_policy policy{.initial_scale = 0x1p21F};
    const auto record =
        examples::train_digits::train_on_device<half, float>(device, task, policy, true, widths, batch);

    host_training host(policy);
    examples::batches deal(data.training, batch, seed);
    std::vector<float> scales;
    std::vector<std::size_t> skipped;
    for (int epoch = 0; epoch < 2; ++epoch) {
        double loss = 0.0;
        for (int step = 0; step < 2; ++step) {
            scales.push_back(host.scaler.current_scale());
            loss += static_cast<double>(host.step(deal.next()));
            if (!host.applied) skipped.push_back(scales.size() - 1);
        }
        CHECK(record.losses[static_cast<std::size_t>(epoch)] == loss / 2);
    }
    CHECK(epochs == 2);
    CHECK(record.losses.size() == 2);
    CHECK(record.scales == scales);
    CHECK(record.skipped == skipped);
    CHECK(skipped.size() >= 1);
    CHECK(skipped.size() < 4);
    CHECK(record.final_scale == static_cast<double>(host.scaler.current_scale()));
    CHECK(record.bytes_per_parameter == 12.0);
    CHECK(record.seconds > 0.0);
    // Exact gradients of two steps: of 1546 weights and biases, and of the outputs of the layers.
    CHECK(record.gradients.parameters.count == 2 * (64 * 16 + 16 + 16 * 16 + 16 + 16 * 10 + 10));
    CHECK(record.gradients.outputs.count == 2 * batch * (16 + 16 + 10));
    CHECK(record.gradients.steps >= 1);
    CHECK(record.gradients.mean_relative_error() > 0.0);
    CHECK(record.gradients.mean_relative_error() < 0.01);
    const std::vector<half>& logits = host.forward(data.test);
    std::size_t right = 0;
    for (std::size_t i = 0; i < data.test.size(); ++i) {
        const auto row = std::span(logits).subspan(i * widths.back(), widths.back());
        right += std::ranges::max_element(row) - row.begin() == data.test.labels[i] ? 1 : 0;
    }
    CHECK(record.accuracy == doctest::Approx(static_cast<double>(right) / static_cast<double>(batch + 5)));
}

TEST_CASE("the device is cpu or cuda, and presets are for the CPU") {
    namespace train_digits = examples::train_digits;
    const auto parse = [](std::vector<std::string_view> arguments) {
        static constexpr std::string_view known[] = {"fp32"};
        return train_digits::parse_options(arguments, known);
    };
    CHECK(parse({}).device == train_digits::device::cpu);
    CHECK(parse({"--device", "cpu", "--preset", "jmp"}).device == train_digits::device::cpu);
    CHECK(parse({"--device=cuda"}).device == train_digits::device::cuda);
    for (const std::string wrong : {"tpu", "", "CUDA", "cuda:0"}) {
        CHECK(examples_test::user_error_of([&] { parse({"--device", wrong}); }) ==
              "--device is '" + wrong + "'; it must be cpu or cuda");
    }
    for (const auto& arguments : {std::vector<std::string_view>{"--preset", "jmp", "--device", "cuda"},
                                  {"--device", "cuda", "--preset", "jmp"}}) {
        CHECK(examples_test::user_error_of([&] {
                  parse(arguments);
              }).starts_with("--preset is for --device cpu"));
    }
}

TEST_CASE("where the program finds no CUDA device, it says in one line why, and does nothing else") {
    const examples::workplace here(MP_TRAIN_DIGITS);
    const auto run = here.run("--device cuda --epochs 1 --repeats 1 --recipe fp32 --loss-weight 1");
    const bool built_without = run.error.find("built without CUDA") != std::string::npos;
    if (run.code == 0) {  // there is one
        CHECK(run.out.find("1 epochs, on ") != std::string::npos);
        CHECK_FALSE(built_without);
        return;
    }
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK(run.error.starts_with("train_digits: --device cuda: "));
    CHECK(std::count(run.error.begin(), run.error.end(), '\n') == 1);
    CHECK(built_without == (run.error.find("MP_BUILD_CUDA=ON") != std::string::npos));
    CHECK((built_without || run.error.find("cudaError") != std::string::npos));
    CHECK_FALSE(std::filesystem::exists(here.path("train_digits.html")));
}

}  // namespace
