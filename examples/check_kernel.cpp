// SPDX-License-Identifier: MIT
//
// A GPU kernel that is tested without a GPU: a transposition through shared memory. Without its barrier it is
// wrong on a device some of the time; here it is refused every time. And a tile without padding costs passes
// over the banks of shared memory that can be counted. With nvcc and a device, the same kernel is launched on
// an mp::cuda_stream.
#include <mp/simt.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

namespace {

constexpr int side = 32;

template <int Pitch, bool WithBarrier>
struct transpose_kernel {
    static constexpr int threads = 256;

    const float* from;
    float* to;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const mp::simt::shared_pointer<float> tile{};
        for (int row = thread.warp(); row < side; row += threads / 32) {
            thread.store(tile + (row * Pitch + thread.lane()),
                         thread.load(from + row * side + thread.lane()));
        }
        if constexpr (WithBarrier) thread.sync_block();
        for (int row = thread.warp(); row < side; row += threads / 32) {
            thread.store(to + row * side + thread.lane(), thread.load(tile + (thread.lane() * Pitch + row)));
        }
    }
};

template <int Pitch, bool WithBarrier>
bool transposes(const char* name) {
    std::vector<float> from(side * side);
    std::iota(from.begin(), from.end(), 0.0F);
    std::vector<float> to(side * side);
    mp::simt::access_statistics statistics;
    try {
        launch("transpose", mp::simulated_gpu<mp::arch::sm_80>{.seed = 1, .statistics = &statistics},
               mp::simt::launch_size{.shared_bytes = side * Pitch * sizeof(float)},
               transpose_kernel<Pitch, WithBarrier>{from.data(), to.data()});
    } catch (const mp::kernel_error& error) {
        std::printf("%s: %s\n", name, error.what());
        return false;
    }
    bool right = true;
    for (int row = 0; row < side; ++row) {
        for (int column = 0; column < side; ++column) {
            const auto at = [](int r, int c) { return static_cast<std::size_t>(r * side + c); };
            right = right && to[at(column, row)] == from[at(row, column)];
        }
    }
    std::printf("%s: %s, %llu passes over the banks more than needed\n", name, right ? "right" : "wrong",
                static_cast<unsigned long long>(statistics.bank_conflicts()));
    return right;
}

}  // namespace

int main() {
    const bool refused = !transposes<side + 1, false>("without a barrier");
    const bool slow = transposes<side, true>("with a barrier");
    const bool fast = transposes<side + 1, true>("with a barrier, rows one word longer");
    return refused && slow && fast ? 0 : 1;
}
