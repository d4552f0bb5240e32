// SPDX-License-Identifier: MIT
// Streams, events and graphs.
#include "state.hpp"

#include <cuda_runtime.h>

#include <chrono>
#include <utility>

namespace ptx::runtime {

CUstream_st& stream_of(cudaStream_t stream) {
    return stream == nullptr ? state().default_stream : *stream;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
    CUstream_st& it = stream_of(stream);
    if (it.is_capturing) {
        it.captured.push_back(std::move(work));
        return cudaSuccess;
    }
    work();
    // A kernel that failed is told by the calls behind it, as by a device.
    return cudaSuccess;
}

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* to) {
    *to = new CUstream_st;
    return state().sticky;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned) {
    return cudaStreamCreate(to);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return state().sticky;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (stream_of(stream).is_capturing) return report(cudaErrorStreamCaptureUnsupported);
    return state().sticky;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
    return state().sticky;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
    return state().sticky;
}
cudaError_t cudaDeviceSynchronize() {
    return state().sticky;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* to) {
    *to = stream_of(stream).is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream == nullptr || stream->is_capturing) return report(cudaErrorStreamCaptureUnsupported);
    stream->is_capturing = true;
    stream->captured.clear();
    return state().sticky;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* to) {
    if (stream == nullptr || !stream->is_capturing) return report(cudaErrorIllegalState);
    stream->is_capturing = false;
    *to = new CUgraph_st{std::exchange(stream->captured, {})};
    return state().sticky;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t graph, unsigned long long) {
    *to = new CUgraphExec_st{graph->work};
    return state().sticky;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    // Nodes themselves have no handles here; nobody asks for more than their number.
    if (nodes != nullptr) return report(cudaErrorNotSupported);
    *count = graph->work.size();
    return state().sticky;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
    if (executable->work.size() != graph->work.size()) {
        result->result = cudaGraphExecUpdateErrorTopologyChanged;
        return report(cudaErrorGraphExecUpdateFailure);
    }
    executable->work = graph->work;
    result->result = cudaGraphExecUpdateSuccess;
    return state().sticky;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    if (state().sticky != cudaSuccess) return state().sticky;
    for (const auto& work : graph->work) enqueue(stream, work);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete graph;
    return state().sticky;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
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
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    event->seconds = seconds();
    return state().sticky;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return state().sticky;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
    return state().sticky;
}
cudaError_t cudaEventElapsedTime(float* to, cudaEvent_t begin, cudaEvent_t end) {
    *to = static_cast<float>((end->seconds - begin->seconds) * 1e3);
    return state().sticky;
}

}  // extern "C"
