// SPDX-License-Identifier: MIT
/// \file
/// oneDNN's conversions of arrays and matrix products, set up outside of the time that is measured.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

// Of the OpenMP library that oneDNN is linked with: its threads are set for each row.
extern "C" void omp_set_num_threads(int);

namespace bench::onednn {

using data_type = dnnl::memory::data_type;

inline const dnnl::engine& engine() {
    static const dnnl::engine result(dnnl::engine::kind::cpu, 0);
    return result;
}

inline dnnl::stream& stream() {
    static dnnl::stream result(engine());
    return result;
}

/// Its version, and the instructions that it uses: "2.6.3, up to AMX".
inline std::string description() {
    const dnnl_version_t* const version = dnnl_version();
    std::string text = std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                       std::to_string(version->patch);
    switch (dnnl::get_effective_cpu_isa()) {
        case dnnl::cpu_isa::avx512_core_amx:
            return text + ", up to AMX";
        case dnnl::cpu_isa::avx512_core_bf16:
            return text + ", up to AVX512_BF16";
        case dnnl::cpu_isa::avx512_core_vnni:
        case dnnl::cpu_isa::avx512_core:
            return text + ", up to AVX-512";
        case dnnl::cpu_isa::avx2:
            return text + ", up to AVX2";
        default:
            return text;
    }
}

/// A conversion of arrays between two types, on one thread.
class reorder {
public:
    reorder(data_type from, data_type to) : from_(from), to_(to) {}

    void operator()(const void* from, void* to, std::size_t count) {
        prepared& it = prepare(count);
        it.from.set_data_handle(const_cast<void*>(from));
        it.to.set_data_handle(to);
        it.convert.execute(stream(), it.from, it.to);
        stream().wait();
    }

private:
    struct prepared {
        dnnl::memory from;
        dnnl::memory to;
        dnnl::reorder convert;
    };

    prepared& prepare(std::size_t count) {
        omp_set_num_threads(1);
        const auto found = sizes_.find(count);
        if (found != sizes_.end()) return found->second;
        const dnnl::memory::dims shape = {static_cast<dnnl::memory::dim>(count)};
        const auto memory = [&](data_type type) {
            return dnnl::memory(dnnl::memory::desc(shape, type, dnnl::memory::format_tag::a), engine(),
                                nullptr);
        };
        const dnnl::memory from = memory(from_);
        const dnnl::memory to = memory(to_);
        return sizes_.emplace(count, prepared{from, to, dnnl::reorder(from, to)}).first->second;
    }

    data_type from_;
    data_type to_;
    std::map<std::size_t, prepared> sizes_;
};

/// The product c = a b of row-major matrices, m x k and k x n.
class product {
public:
    /// Whether B is reordered once, beforehand, into the layout that oneDNN likes best.
    enum class layout { plain, packed };

    /// Nothing where this oneDNN, or this processor, has no such product.
    static std::optional<product> make(int m, int n, int k, data_type a_type, data_type b_type,
                                       data_type c_type, layout of_b, int threads, const void* a,
                                       const void* b, void* c) {
        omp_set_num_threads(threads);
        using tag = dnnl::memory::format_tag;
        const dnnl::memory::desc a_shape({m, k}, a_type, tag::ab);
        const dnnl::memory::desc b_plain({k, n}, b_type, tag::ab);
        const dnnl::memory::desc b_shape({k, n}, b_type, of_b == layout::plain ? tag::ab : tag::any);
        const dnnl::memory::desc c_shape({m, n}, c_type, tag::ab);
        try {
            const dnnl::matmul::desc wanted(a_shape, b_shape, c_shape);
            const dnnl::matmul::primitive_desc found(wanted, engine());
            product result;
            result.threads_ = threads;
            result.a_ = dnnl::memory(a_shape, engine(), const_cast<void*>(a));
            result.c_ = dnnl::memory(c_shape, engine(), c);
            dnnl::memory b_memory(b_plain, engine(), const_cast<void*>(b));
            if (found.weights_desc() == b_plain) {
                result.b_ = b_memory;
            } else {
                result.b_ = dnnl::memory(found.weights_desc(), engine());
                dnnl::reorder(b_memory, result.b_).execute(stream(), b_memory, result.b_);
                stream().wait();
            }
            result.multiply_ = dnnl::matmul(found);
            return result;
        } catch (const dnnl::error&) {
            return std::nullopt;
        }
    }

    void operator()() {
        multiply_.execute(stream(), {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
        stream().wait();
    }

    /// To be called before the runs that are timed.
    void use_threads() const { omp_set_num_threads(threads_); }

private:
    product() = default;

    int threads_ = 1;
    dnnl::memory a_;
    dnnl::memory b_;
    dnnl::memory c_;
    dnnl::matmul multiply_;
};

}  // namespace bench::onednn
