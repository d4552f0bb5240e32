// SPDX-License-Identifier: MIT
/// \file
/// NVIDIA's own matrix product, to compare with.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/device/cuda/device_buffer.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>
#include <mp/tfloat32.hpp>

#include <cublasLt.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "newest_cublaslt.hpp"

namespace bench::gpu {

/// The functions of the library, which is looked for when the program runs: it need not be where this is compiled.
struct cublaslt_functions {
    decltype(&cublasLtGetVersion) version;
    decltype(&cublasLtGetStatusString) status_string;
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtMatmulDescCreate) desc_create;
    decltype(&cublasLtMatmulDescDestroy) desc_destroy;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
    decltype(&cublasLtMatmul) matmul;

    /// Functions of the newest library with the major version of the header: among the paths in MP_CUBLASLT, separated
    /// by ':', otherwise the one that the system finds. Null if there is none.
    static const cublaslt_functions* find() {
        static const cublaslt_functions* const found = [] {
            const std::string usual = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
            const char* const paths = std::getenv("MP_CUBLASLT");
            void* const library = load_newest_cublaslt(paths == nullptr ? usual : paths, CUBLAS_VER_MAJOR);
            const cublaslt_functions* const result = library == nullptr ? nullptr : load(library);
            if (result == nullptr) {
                std::printf("without cuBLASLt %d: not found\n", CUBLAS_VER_MAJOR);
            } else {
                std::printf("cuBLASLt %zu\n", result->version());
            }
            return result;
        }();
        return found;
    }

private:
    static const cublaslt_functions* load(void* library) {
        static cublaslt_functions it{};
        bool complete = true;
        const auto take = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            complete = complete && function != nullptr;
        };
        take(it.version, "cublasLtGetVersion");
        take(it.status_string, "cublasLtGetStatusString");
        take(it.create, "cublasLtCreate");
        take(it.destroy, "cublasLtDestroy");
        take(it.desc_create, "cublasLtMatmulDescCreate");
        take(it.desc_destroy, "cublasLtMatmulDescDestroy");
        take(it.desc_set, "cublasLtMatmulDescSetAttribute");
        take(it.preference_create, "cublasLtMatmulPreferenceCreate");
        take(it.preference_destroy, "cublasLtMatmulPreferenceDestroy");
        take(it.preference_set, "cublasLtMatmulPreferenceSetAttribute");
        take(it.layout_create, "cublasLtMatrixLayoutCreate");
        take(it.layout_destroy, "cublasLtMatrixLayoutDestroy");
        take(it.heuristic, "cublasLtMatmulAlgoGetHeuristic");
        take(it.matmul, "cublasLtMatmul");
        return complete ? &it : nullptr;
    }
};

inline void check_cublas(cublasStatus_t status, const char* call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw std::runtime_error(std::string(call) + ": " + cublaslt_functions::find()->status_string(status));
}

template <class Value>
inline constexpr cudaDataType_t cublas_type = std::is_same_v<Value, mp::half>            ? CUDA_R_16F
                                              : std::is_same_v<Value, mp::bfloat16>      ? CUDA_R_16BF
                                              : std::is_same_v<Value, mp::float8_e4m3fn> ? CUDA_R_8F_E4M3
                                              : std::is_same_v<Value, mp::float8_e5m2>   ? CUDA_R_8F_E5M2
                                                                                         : CUDA_R_32F;

/// What all products share. Only where there is the library: see cublaslt_functions::find().
class cublaslt_library {
public:
    static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

    cublaslt_library() : workspace_(workspace_bytes) {
        check_cublas(library().create(&handle_), "cublasLtCreate");
    }
    cublaslt_library(const cublaslt_library&) = delete;
    cublaslt_library& operator=(const cublaslt_library&) = delete;
    ~cublaslt_library() { static_cast<void>(library().destroy(handle_)); }

    [[nodiscard]] cublasLtHandle_t handle() const { return handle_; }
    [[nodiscard]] void* workspace() { return workspace_.data(); }

private:
    static const cublaslt_functions& library() { return *cublaslt_functions::find(); }

    cublasLtHandle_t handle_ = nullptr;
    mp::device_buffer<std::byte> workspace_;
};

/// c = a b by the algorithm that cuBLASLt's heuristics put first. c is row-major, which is the transposed
/// product of the transposed factors for a library whose matrices are column-major.
template <class Input, class Output>
class cublaslt_product {
public:
    /// With `fast`, products of 8 bits are added up in the tensor cores alone, without being promoted.
    cublaslt_product(cublaslt_library& library, mp::matrix_view<Input> a, mp::matrix_view<Input> b,
                     mp::matrix_view<Output> c, bool fast = false)
        : library_(&library), a_(a.data), b_(b.data), c_(c.data) {
        constexpr auto compute =
            std::is_same_v<Input, mp::tfloat32> ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
        check_cublas(of().desc_create(&operation_, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
        // The first factor has to become n x k, the second one k x m.
        set(CUBLASLT_MATMUL_DESC_TRANSA,
            b.order == mp::storage_order::column_major ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(CUBLASLT_MATMUL_DESC_TRANSB,
            a.order == mp::storage_order::column_major ? CUBLAS_OP_T : CUBLAS_OP_N);
        if (sizeof(Input) == 1) {
            set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(fast ? 1 : 0));
        }
        b_layout_ = layout(b);
        a_layout_ = layout(a);
        c_layout_ = layout(c);
        cublasLtMatmulPreference_t preference = nullptr;
        check_cublas(of().preference_create(&preference), "cublasLtMatmulPreferenceCreate");
        const std::size_t most = cublaslt_library::workspace_bytes;
        check_cublas(
            of().preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
            "cublasLtMatmulPreferenceSetAttribute");
        int found = 0;
        cublasLtMatmulHeuristicResult_t result{};
        const cublasStatus_t status = of().heuristic(library.handle(), operation_, b_layout_, a_layout_,
                                                     c_layout_, c_layout_, preference, 1, &result, &found);
        static_cast<void>(of().preference_destroy(preference));
        available_ = status == CUBLAS_STATUS_SUCCESS && found == 1;
        algorithm_ = result.algo;
    }
    cublaslt_product(const cublaslt_product&) = delete;
    cublaslt_product& operator=(const cublaslt_product&) = delete;
    ~cublaslt_product() {
        for (const cublasLtMatrixLayout_t it : {a_layout_, b_layout_, c_layout_}) {
            if (it != nullptr) static_cast<void>(of().layout_destroy(it));
        }
        if (operation_ != nullptr) static_cast<void>(of().desc_destroy(operation_));
    }

    /// Whether the library has a way for these matrices.
    [[nodiscard]] bool is_available() const { return available_; }

    void enqueue(mp::cuda_stream exec) const {
        const float alpha = 1;
        const float beta = 0;
        check_cublas(of().matmul(library_->handle(), operation_, &alpha, b_, b_layout_, a_, a_layout_, &beta,
                                 c_, c_layout_, c_, c_layout_, &algorithm_, library_->workspace(),
                                 cublaslt_library::workspace_bytes, exec.stream),
                     "cublasLtMatmul");
    }

private:
    static const cublaslt_functions& of() { return *cublaslt_functions::find(); }

    template <class Value>
    void set(cublasLtMatmulDescAttributes_t attribute, Value value) {
        check_cublas(of().desc_set(operation_, attribute, &value, sizeof value),
                     "cublasLtMatmulDescSetAttribute");
    }

    /// The matrix as it lies in memory.
    template <class Value>
    static cublasLtMatrixLayout_t layout(mp::matrix_view<Value> view) {
        const bool column_major = view.order == mp::storage_order::column_major;
        cublasLtMatrixLayout_t result = nullptr;
        check_cublas(of().layout_create(&result, cublas_type<std::remove_const_t<Value>>,
                                        static_cast<std::uint64_t>(column_major ? view.rows : view.columns),
                                        static_cast<std::uint64_t>(column_major ? view.columns : view.rows),
                                        view.leading_dimension),
                     "cublasLtMatrixLayoutCreate");
        return result;
    }

    cublaslt_library* library_;
    const void* a_;
    const void* b_;
    void* c_;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t a_layout_ = nullptr;
    cublasLtMatrixLayout_t b_layout_ = nullptr;
    cublasLtMatrixLayout_t c_layout_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
    bool available_ = false;
};

}  // namespace bench::gpu
