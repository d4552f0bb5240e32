// SPDX-License-Identifier: MIT
// What tensor cores do where models of them disagree or are silent, question by question (questions.hpp): the
// program writes every sum with the bits that the device returned and those of mp's model, and prints how
// often they differ.
#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "architectures.hpp"
#include "device.hpp"
#include "questions.hpp"
#include "tensor_cores.hpp"

namespace {

using bench::gpu::device;
using bench::gpu::question;

struct close_file {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using file_pointer = std::unique_ptr<std::FILE, close_file>;

/// The codes of an operand, in hexadecimal, with spaces between them.
template <class Input>
std::string codes(const std::uint32_t (&words)[8]) {
    std::string text;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(words);
    for (std::size_t i = 0; i < sizeof words; i += sizeof(Input)) {
        if (i != 0) text += ' ';
        for (std::size_t j = sizeof(Input); j-- > 0;) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", bytes[i + j]);
            text += digits;
        }
    }
    return text;
}

template <class Input, class Sum, bool ByWarpgroups>
void probe(device& on, std::FILE* file, const char* operands) {
    const mp::gpu_properties gpu = mp::properties_of(on.exec());
    constexpr auto kernel = ByWarpgroups ? mp::gpu_gemm_kernel::wgmma : mp::gpu_gemm_kernel::mma;
    if (!mp::detail::can_run<Input>(gpu, kernel)) return;
    const char* const sum = std::is_same_v<Sum, mp::half> ? "fp16" : "fp32";
    const char* const instruction = ByWarpgroups ? "wgmma" : "mma.sync";
    bench::gpu::questioner<Input, Sum> about;
    for (const auto& [topic, questions] : about.topics(device::is_simulated ? 40 : 20000)) {
        const auto answers = bench::gpu::ask<Input, Sum, ByWarpgroups>(on, questions);
        // Of random ones the first few are enough, and those that the model does not have.
        const std::size_t kept = topic.starts_with("random") ? 200 : questions.size();
        std::size_t different = 0;
        bench::gpu::with_architecture(on.capability(), [&]<mp::arch Arch>() {
            constexpr auto rule =
                mp::block_rule_of(Arch, mp::detail::operand_kind_of<Input>, std::is_same_v<Sum, mp::half>);
            if constexpr (rule.products != 0) {
                for (std::size_t i = 0; i < questions.size(); ++i) {
                    const auto expected =
                        bench::gpu::answer_of_model<Arch, Input, Sum, ByWarpgroups>(questions[i]);
                    different += expected != answers[i] ? 1u : 0u;
                    if (i >= kept && expected == answers[i]) continue;
                    std::fprintf(file, "%s,%s,%s,%s,%s,%s,%08x,%08x,%08x\n", topic.c_str(), instruction,
                                 operands, sum, codes<Input>(questions[i].a).c_str(),
                                 codes<Input>(questions[i].b).c_str(), questions[i].addend, answers[i],
                                 expected);
                }
            }
        });
        std::printf("| %s %s to %s | %s | %zu | %zu |\n", instruction, operands, sum, topic.c_str(),
                    questions.size(), different);
        std::fflush(stdout);
    }
}

void run(const std::string& path) {
    const file_pointer file(std::fopen(path.c_str(), "w"));
    if (file == nullptr) throw std::runtime_error("cannot write " + path);
    device on;
    std::fprintf(file.get(), "# %s\n", on.description().c_str());
    std::fputs("topic,instruction,operands,sum,a,b,addend,result,model\n", file.get());
    std::printf("%s\n\n| instruction | questions about | asked | other than the model |\n|---|---|---|---|\n",
                on.description().c_str());
    probe<mp::half, float, false>(on, file.get(), "fp16");
    probe<mp::half, mp::half, false>(on, file.get(), "fp16");
    probe<mp::bfloat16, float, false>(on, file.get(), "bf16");
    probe<mp::tfloat32, float, false>(on, file.get(), "tf32");
    probe<mp::float8_e4m3fn, float, false>(on, file.get(), "e4m3");
    probe<mp::float8_e5m2, float, false>(on, file.get(), "e5m2");
    probe<mp::half, float, true>(on, file.get(), "fp16");
    probe<mp::bfloat16, float, true>(on, file.get(), "bf16");
    probe<mp::tfloat32, float, true>(on, file.get(), "tf32");
    probe<mp::float8_e4m3fn, float, true>(on, file.get(), "e4m3");
    probe<mp::float8_e5m2, float, true>(on, file.get(), "e5m2");
    if (std::fflush(file.get()) != 0) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2) throw std::runtime_error("say the file that the answers go to, and nothing else");
        run(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return 1;
    }
}
