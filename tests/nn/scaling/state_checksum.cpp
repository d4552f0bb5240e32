// SPDX-License-Identifier: MIT
// A saved scaler that was damaged is refused: every bit, every end, and the checksum by long division.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/scaling/saved_policies.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

using mp::argument_error;
using namespace saved_policies;

/// CRC-64/XZ as its definition has it: the remainder of a division of polynomials over one bit, written down
/// with the highest power first, where the bytes bring their lowest bit first and the first 64 bits are
/// flipped.
std::uint64_t divided(std::string_view text) {
    std::vector<int> bits;
    for (const char byte : text) {
        for (int i = 0; i < 8; ++i) bits.push_back(static_cast<unsigned char>(byte) >> i & 1);
    }
    bits.insert(bits.end(), 64, 0);
    for (std::size_t i = 0; i < 64; ++i) bits[i] ^= 1;
    const std::uint64_t polynomial = 0x42f0e1eba9ea3693;  // and x^64
    for (std::size_t i = 0; i + 64 < bits.size(); ++i) {
        if (bits[i] == 0) continue;
        for (std::size_t k = 0; k < 64; ++k) bits[i + 1 + k] ^= static_cast<int>(polynomial >> (63 - k) & 1);
    }
    std::uint64_t reflected = 0;
    for (std::size_t k = 0; k < 64; ++k) {
        reflected |= static_cast<std::uint64_t>(bits[bits.size() - 64 + k] ^ 1) << k;
    }
    return reflected;
}

const std::string documented =
    "mp loss scaler 2\n"
    "policy pytorch\n"
    "parameters\n"
    "initial_scale 0x1p+16\n"
    "growth_factor 0x1p+1\n"
    "backoff_factor 0x1p-1\n"
    "growth_interval 2000\n"
    "state\n"
    "growth_tracker 17\n"
    "scale 0x1p+15\n"
    "skipped 0\n"
    "disabled false\n"
    "end\n"
    "checksum e6b63090f8a966b0\n";

}  // namespace

TEST_CASE("the checksum is the one of .xz files") {
    CHECK(mp::detail::crc64("123456789") == 0x995dc9bbdf1939fa);  // the check value that is published with it
    CHECK(mp::detail::crc64("") == 0);
    for (const std::string& text : {documented, documented + "\x80\xff", std::string(100, '\0')}) {
        CHECK(mp::detail::crc64(text) == divided(text));
    }
    CHECK(mp::detail::checksum_text(0x0123456789abcdef) == "0123456789abcdef");
}

TEST_CASE("the text in the documentation is what is saved") {
    mp::saved_loss_scaler<mp::pytorch_policy> saved;
    saved.state = mp::initial_scale_state(saved.policy);
    saved.state.scale = 32768.0F;
    saved.state.growth.tracker = 17;
    CHECK(mp::save_state(saved) == documented);
    CHECK(mp::load_state<mp::pytorch_policy>(documented) == saved);
}

TEST_CASE("with any bit flipped it is refused, and so it is cut off anywhere") {
    for_each_policy([&](const auto& kind) {
        using policy_type = std::remove_cvref_t<decltype(kind.policy)>;
        CAPTURE(kind.name);
        const auto saved = after(kind.policy, 30, 5);
        const std::string text = mp::save_state(saved);
        std::size_t loaded = 0;
        const auto refused = [&](std::string_view damaged) {
            try {
                (void)mp::load_state<policy_type>(damaged);
                return false;
            } catch (const argument_error&) {
                return true;
            }
        };
        for (std::size_t i = 0; i < text.size(); ++i) {
            for (int bit = 0; bit < 8; ++bit) {
                std::string damaged = text;
                damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
                if (!refused(damaged)) ++loaded;
            }
        }
        CHECK(loaded == 0);
        // The last line may lack its end: nothing is missing then.
        for (std::size_t size = 0; size + 1 < text.size(); ++size) {
            if (!refused(std::string_view(text).substr(0, size))) ++loaded;
        }
        CHECK(loaded == 0);
        CHECK(mp::load_state<policy_type>(std::string_view(text).substr(0, text.size() - 1)) == saved);
        CHECK(refused(text + "\n"));
        CHECK(refused(text + text));
    });
}

TEST_CASE("a value that was changed for another valid one is refused with both checksums") {
    std::string changed = documented;
    changed.replace(changed.find("0x1p+15"), 7, "0x1p+14");
    const std::string message =
        thrown<argument_error>([&] { (void)mp::load_state<mp::pytorch_policy>(changed); });
    CHECK(message ==
          "mp::load_state: line 14: the checksum is 'e6b63090f8a966b0', and that of the lines "
          "before it is '" +
              mp::detail::checksum_text(divided(changed.substr(0, changed.find("checksum")))) +
              "': the text is not as it was saved");
    // Where the line itself is broken, that is said instead.
    changed = documented;
    changed.replace(changed.find("0x1p+15"), 7, "0x1p+1x");
    CHECK(holds(thrown<argument_error>([&] { (void)mp::load_state<mp::pytorch_policy>(changed); }),
                "line 10: scale is '0x1p+1x'"));
}
