// SPDX-License-Identifier: MIT
// Runs small programs of PTX.
#pragma once

#include "interpreter/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ptx_test {

/// A kernel `test` with one parameter, the address of memory: `body` finds it in %rd1, and its thread in %r1.
inline std::string kernel(std::string_view body, std::string_view before = "") {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n" + std::string(before) +
           ".visible .entry test(.param .u64 memory)\n{\n"
           ".reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .f32 %f<64>;\n.reg .b64 %rd<64>;\n"
           ".reg .f64 %d<16>;\n"
           "ld.param.u64 %rd1, [memory];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n" +
           std::string(body) + "\nret;\n}\n";
}

/// Runs a text with `threads` threads on memory that begins as `values`, and returns what it is then.
template <class Value>
std::vector<Value> run(const std::string& text, std::vector<Value> values, std::uint32_t threads = 1,
                       ptx::launch_configuration shape = {}) {
    ptx::global_memory memory;
    ptx::program code(text, memory);
    const std::size_t bytes = values.size() * sizeof(Value);
    const std::uint64_t address = memory.allocate(bytes);
    std::memcpy(reinterpret_cast<void*>(address), values.data(), bytes);
    memory.mark_written(address, bytes);
    std::vector<std::byte> parameters(8);
    std::memcpy(parameters.data(), &address, 8);
    shape.threads[0] = threads;
    ptx::launch(code, "test", shape, parameters);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), bytes);
    return values;
}

/// The message with which a program stops, or nothing.
template <class Value>
std::string failure_of(const std::string& text, std::vector<Value> values, std::uint32_t threads = 1) {
    try {
        run(text, std::move(values), threads);
    } catch (const ptx::failure& error) {
        return error.what();
    }
    return {};
}

/// Whether a message says this.
inline bool says(const std::string& message, std::string_view part) {
    return message.find(part) != std::string::npos;
}

/// The word that instructions leave in %r2, for %r10 to %r13 as given.
inline std::uint32_t result32(std::string_view instructions, std::vector<std::uint32_t> in) {
    in.resize(4);
    const std::string text = kernel("ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd1];\n" +
                                    std::string(instructions) + "\nst.global.u32 [%rd1], %r2;");
    return run(text, in)[0];
}
/// And in %rd2, for %rd10 and %rd11.
inline std::uint64_t result64(std::string_view instructions, std::vector<std::uint64_t> in) {
    in.resize(2);
    const std::string text = kernel("ld.global.v2.u64 {%rd10, %rd11}, [%rd1];\n" + std::string(instructions) +
                                    "\nst.global.u64 [%rd1], %rd2;");
    return run(text, in)[0];
}

}  // namespace ptx_test
