// SPDX-License-Identifier: MIT
// Graphs, which are what streams have recorded.
#include "state.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace ptx::runtime { namespace {

/// Whether all steps come before what this stream would do next.
bool is_joined(const capture& it, std::vector<std::size_t> open) {
    std::vector<bool> reached(it.steps.size());
    while (!open.empty()) {
        const std::size_t step = open.back();
        open.pop_back();
        if (reached[step]) continue;
        reached[step] = true;
        open.insert(open.end(), it.steps[step].behind.begin(), it.steps[step].behind.end());
    }
    return std::ranges::find(reached, false) == reached.end();
}

void run_graph(CUgraphExec_st& graph, CUstream_st& in) {
    state().order->prepare(in);
    in.knows.join(graph.launched);
    const std::vector<graph_step>& steps = graph.work->steps;
    for (const auto& branch : graph.branches) branch->knows = in.knows;
    std::vector<progress> done(graph.branches.empty() ? 0 : steps.size());
    for (std::size_t k = 0; k < steps.size(); ++k) {
        CUstream_st& branch = steps[k].branch == 0 ? in : *graph.branches[steps[k].branch - 1];
        if (done.empty()) {
            run_work(steps[k].run, branch);
            continue;
        }
        for (const std::size_t before : steps[k].behind) branch.knows.join(done[before]);
        run_work(steps[k].run, branch);
        done[k] = branch.knows;
    }
    for (const progress& it : done) in.knows.join(it);
    graph.launched = in.knows;
}

}  // namespace

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* to) {
    *to = stream_of(stream).is_capturing() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    if (stream == nullptr || stream->is_capturing()) return report(cudaErrorStreamCaptureUnsupported);
    stream->recorded = std::make_shared<capture>();
    stream->branch = 0;
    stream->behind.clear();
    return state().sticky;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* to) {
    *to = nullptr;
    if (stream == nullptr || !stream->is_capturing()) return report(cudaErrorIllegalState);
    stream->recorded->has_ended = true;
    if (!is_joined(*stream->recorded, stream->behind)) return report(cudaErrorStreamCaptureUnjoined);
    *to = new CUgraph_st{stream->recorded};
    return state().sticky;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t graph, unsigned long long) {
    *to = new CUgraphExec_st{graph->work};
    for (std::size_t k = 1; k < graph->work->branches; ++k)
        (*to)->branches.push_back(state().order->open(false));
    return state().sticky;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    // Nodes themselves have no handles here; nobody asks for more than their number.
    if (nodes != nullptr) return report(cudaErrorNotSupported);
    *count = graph->work->steps.size();
    return state().sticky;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
    if (executable->work->steps.size() != graph->work->steps.size() ||
        executable->work->branches != graph->work->branches) {
        result->result = cudaGraphExecUpdateErrorTopologyChanged;
        return report(cudaErrorGraphExecUpdateFailure);
    }
    executable->work = graph->work;
    result->result = cudaGraphExecUpdateSuccess;
    return state().sticky;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    if (state().sticky != cudaSuccess) return state().sticky;
    if (!stream_of(stream).is_capturing()) {
        run_graph(*graph, stream_of(stream));
        return cudaSuccess;
    }
    for (const graph_step& step : graph->work->steps) enqueue(stream, step.run);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    for (const auto& branch : graph->branches) state().order->close(*branch);
    delete graph;
    return state().sticky;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return state().sticky;
}

}  // extern "C"
