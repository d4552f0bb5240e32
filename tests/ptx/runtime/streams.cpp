// SPDX-License-Identifier: MIT
// Streams and events.
#include "state.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ptx::runtime {

CUstream_st& stream_of(cudaStream_t stream) {
    return stream == nullptr ? state().order->default_stream : *stream;
}

cudaError_t enqueue(cudaStream_t stream, graph_work work) {
    CUstream_st& it = stream_of(stream);
    if (it.is_capturing()) {
        auto& steps = it.recorded->steps;
        steps.push_back({std::move(work), it.branch, std::exchange(it.behind, {steps.size()})});
        return cudaSuccess;
    }
    run_work(work, it);
    // A kernel that failed is told by the calls behind it, as by a device.
    return cudaSuccess;
}

void run_work(const graph_work& work, CUstream_st& in) {
    if (state().sticky != cudaSuccess) return;
    try {
        work(in);
    } catch (const failure& error) {
        break_device(error.what());
    }
}

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

cudaError_t wait_for(const progress& what) {
    state().order->host_waits_for(what);
    return state().sticky;
}
cudaError_t wait_for(const CUevent_st& event) {
    return event.recorded ? report(cudaErrorCapturedEvent) : wait_for(event.at);
}

}  // namespace

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned flags) {
    *to = state().order->open((flags & cudaStreamNonBlocking) == 0).release();
    return state().sticky;
}
cudaError_t cudaStreamCreate(cudaStream_t* to) {
    return cudaStreamCreateWithFlags(to, cudaStreamDefault);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    state().order->close(*stream);
    delete stream;
    return state().sticky;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (stream_of(stream).is_capturing()) return report(cudaErrorStreamCaptureUnsupported);
    return wait_for(stream_of(stream).knows);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return cudaStreamSynchronize(stream);
}
cudaError_t cudaDeviceSynchronize() {
    state().order->host_waits_for_all();
    return state().sticky;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    CUstream_st& it = stream_of(stream);
    if (!event->recorded) {
        if (it.is_capturing()) return report(cudaErrorStreamCaptureIsolation);
        state().order->prepare(it);
        it.knows.join(event->at);
        return state().sticky;
    }
    if (event->recorded->has_ended) return report(cudaErrorCapturedEvent);
    if (!it.is_capturing()) {
        it.recorded = event->recorded;
        it.branch = it.recorded->branches++;
        it.behind.clear();
    } else if (it.recorded != event->recorded) {
        return report(cudaErrorStreamCaptureMerge);
    }
    it.behind.insert(it.behind.end(), event->behind.begin(), event->behind.end());
    return state().sticky;
}

cudaError_t cudaEventCreate(cudaEvent_t* to) {
    *to = new CUevent_st;
    return state().sticky;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned) {
    return cudaEventCreate(to);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return state().sticky;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    CUstream_st& it = stream_of(stream);
    event->recorded = it.is_capturing() ? it.recorded : nullptr;
    event->behind = it.behind;
    if (event->recorded) return state().sticky;
    state().order->prepare(it);
    event->at = it.knows;
    event->seconds = seconds();
    return state().sticky;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return wait_for(*event);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    return wait_for(*event);
}
cudaError_t cudaEventElapsedTime(float* to, cudaEvent_t begin, cudaEvent_t end) {
    if (!state().order->is_done(begin->at) || !state().order->is_done(end->at))
        return report(cudaErrorNotReady);
    *to = static_cast<float>((end->seconds - begin->seconds) * 1e3);
    return state().sticky;
}

}  // extern "C"
