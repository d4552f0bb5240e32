// SPDX-License-Identifier: MIT
// What the presets do in short sequences, written by hand from the rules of their systems: the scale after
// every event, with the marks that traces::table explains.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <string>

#include "frontends/compat/preset_traces.hpp"

using traces::repeated;
using traces::table;

TEST_CASE("with a window of 4, PyTorch grows after clean step 4, 8 and 12") {
    CHECK(table(mp::pytorch_policy{.initial_scale = 8.0F, .growth_interval = 4}, "ccccccccccccc") ==
          "8 8 8 16+ 16 16 16 32+ 32 32 32 64+ 64");
    CHECK(table(mp::pytorch_policy{.initial_scale = 8.0F, .growth_interval = 2}, "cicciccnbcc") ==
          "8 4- 4 8+ 4- 4 8+ 4- 2- 2 4+");
}

TEST_CASE("with a window of 4, DeepSpeed grows after clean step 5, 9 and 13") {
    const std::string grows = "8 8 8 8 16+ 16 16 16 32+ 32 32 32 64+ 64";
    CHECK(table(mp::deepspeed_policy{.initial_scale = 8.0, .loss_scale_window = 4}, "cccccccccccccc") ==
          grows);
    CHECK(table(mp::deepspeed_fused_policy{.initial_scale = 8.0, .loss_scale_window = 4}, "cccccccccccccc") ==
          grows);
}

TEST_CASE("PyTorch refuses to grow to infinity, the sharded scaler and Keras do it and stay there") {
    const std::string refused =
        "8.50705917e+37+ 1.70141183e+38+ 1.70141183e+38= 1.70141183e+38= "
        "8.50705917e+37- 1.70141183e+38+";
    const std::string infinite = "8.50705917e+37+ 1.70141183e+38+ inf+ inf+ inf- inf+";
    CHECK(table(mp::pytorch_policy{.initial_scale = 0x1p125F, .growth_interval = 1}, "ccccic") == refused);
    CHECK(table(mp::tensorflow_policy{0x1p125F, 1}, "ccccic") == refused);
    CHECK(table(mp::jmp_policy{.loss_scale = 0x1p125F, .period = 1}, "ccccic") == refused);
    CHECK(table(mp::apex_hysteresis_policy{0x1p125F, 2.0, 0.5, 1, 1}, "ccccic") == refused);
    CHECK(table(mp::sharded_pytorch_policy{.initial_scale = 0x1p125F, .growth_interval = 1}, "ccccic") ==
          infinite);
    CHECK(table(mp::keras_policy{0x1p125F, 1}, "ccccic") == infinite);
    CHECK(table(mp::megatron_policy{.initial_scale = 0x1p125F, .growth_interval = 1, .hysteresis = 1},
                "ccccic") == infinite);
}

TEST_CASE("the sharded scaler rounds its factors to float, PyTorch does not") {
    // 9 times 1.1 is nearest to another float than 9 times the float next to 1.1; the same holds for 0.7.
    CHECK(table(mp::pytorch_policy{9.0F, 1.1, 0.7, 1}, "c") == "9.89999962+");
    CHECK(table(mp::sharded_pytorch_policy{9.0F, 0.7, 1.1, 1}, "c") == "9.90000057+");
    CHECK(table(mp::pytorch_policy{9.0F, 1.1, 0.7, 1}, "i") == "6.30000019-");
    CHECK(table(mp::sharded_pytorch_policy{9.0F, 0.7, 1.1, 1}, "i") == "6.29999971-");
    // A factor so close to 1 that it is 1 as float never grows.
    CHECK(table(mp::sharded_pytorch_policy{8.0F, 0.5, 1.0 + 0x1p-40, 2}, "cccc") == "8 8 8 8");
}

TEST_CASE("TensorFlow has a floor of 1, Keras has none") {
    CHECK(table(mp::tensorflow_policy{4.0F, 2}, "iiiicc") == "2- 1- 1_ 1_ 1 2+");
    CHECK(table(mp::tensorflow_policy{5.0F, 2}, "iii") == "2.5- 1.25- 1_");
    CHECK(table(mp::keras_policy{4.0F, 2}, "iiiicc") == "2- 1- 0.5- 0.25- 0.25 0.5+");
}

TEST_CASE("jmp's factor is an integer, by which it divides") {
    CHECK(table(mp::jmp_policy{.loss_scale = 9.0F, .period = 3, .factor = 3}, "cccciii") ==
          "9 9 27+ 27 9- 3- 1-");
    CHECK(table(mp::jmp_policy{.loss_scale = 16.0F, .period = 2, .factor = 10, .min_loss_scale = 0.5F},
                "iiccn") == "1.60000002- 0.5_ 0.5 5+ 0.5-");
}

TEST_CASE("Apex's amp stops at its ceiling and goes on counting") {
    CHECK(table(mp::apex_policy{4.0, 2, 0.0, 12.0}, "cccccci") == "4 8+ 8 12^ 12 12^ 6-");
    CHECK(table(mp::apex_policy{4.0, 2, 3.0, 12.0}, "iicc") == "3_ 3_ 3 6+");
    CHECK(table(mp::apex_policy{64.0, 2, 0.0, 12.0}, "ci") == "12 6-");
}

TEST_CASE("Apex's fp16_utils counts windows from the last overflow") {
    // Iteration -1 counts as an overflow, so the first growth is in iteration 2.
    CHECK(table(mp::apex_fp16_utils_policy{8.0, 2.0, 3}, "cccccciccc") == "8 8 16+ 16 16 32+ 16- 16 16 32+");
    CHECK(table(mp::apex_fp16_utils_policy{3.0, 2.0, 3}, "iii") == "1.5- 1_ 1_");
}

TEST_CASE("with a hysteresis of 2 and every other step clean, budgets that clean steps refill never shrink") {
    const std::string_view alternating = "icicicic";
    CHECK(table(mp::megatron_policy{.initial_scale = 64.0F}, alternating) == "64a 64 32- 32 16- 16 8- 8");
    CHECK(table(mp::deepspeed_policy{.initial_scale = 64.0}, alternating) == "64a 64 32- 32 16- 16 8- 8");
    CHECK(table(mp::deepspeed_policy{.initial_scale = 64.0, .consecutive_hysteresis = true}, alternating) ==
          "64a 64 64a 64 64a 64 64a 64");
    CHECK(table(mp::apex_hysteresis_policy{.initial_scale = 64.0F}, alternating) ==
          "64a 64 64a 64 64a 64 64a 64");
    CHECK(table(mp::deepspeed_fused_policy{.initial_scale = 64.0}, alternating) == "32- 32 16- 16 8- 8 4- 4");
}

TEST_CASE("only growth refills Megatron's budget") {
    CHECK(table(mp::megatron_policy{.initial_scale = 64.0F, .growth_interval = 2, .hysteresis = 3},
                "iiiicicciiii") == "64a 64a 32- 16- 16 8- 8 16+ 16a 16a 8- 4-");
    CHECK(table(mp::apex_hysteresis_policy{.initial_scale = 64.0F, .growth_interval = 2, .hysteresis = 3},
                "iiiiciicciii") == "64a 64a 32- 16- 16 16a 16a 16 32+ 32a 32a 16-");
}

TEST_CASE("Megatron's floor clamps, and its default starts at 2^32") {
    CHECK(table(mp::megatron_policy{.initial_scale = 4.0F, .min_scale = 1.5F, .hysteresis = 1}, "iii") ==
          "2- 1.5_ 1.5_");
    CHECK(table(mp::megatron_policy{.hysteresis = 1}, "iii") == "2.14748365e+09- 1.07374182e+09- 536870912-");
}

TEST_CASE("an absorbed overflow puts off DeepSpeed's growth all the same") {
    CHECK(table(mp::deepspeed_policy{.initial_scale = 8.0, .loss_scale_window = 2}, "ccicccc") ==
          "8 8 8a 8 8 16+ 16");
}

TEST_CASE("DeepSpeed with ZeRO fails at its floor, without it stays there") {
    CHECK(table(mp::deepspeed_policy{.initial_scale = 4.0, .loss_scale_window = 2, .hysteresis = 1},
                "iiiicccii") == "2- 1- 1! 1! 1 1 2+ 1- 1!");
    CHECK(table(mp::deepspeed_policy{.initial_scale = 3.0, .hysteresis = 1}, "iii") == "1.5- 1_ 1!");
    CHECK(table(mp::deepspeed_policy{.initial_scale = 2.0, .hysteresis = 2}, "iicii") == "2a 1- 1 1! 1!");
    CHECK(table(mp::deepspeed_policy{.initial_scale = 4.0,
                                     .loss_scale_window = 2,
                                     .hysteresis = 1,
                                     .raise_error_at_min_scale = false},
                "iiiiccc") == "2- 1- 1_ 1_ 1 1 2+");
    CHECK(table(mp::deepspeed_fused_policy{.initial_scale = 4.0, .loss_scale_window = 2}, "iiiiccc") ==
          "2- 1- 1_ 1_ 1 1 2+");
    CHECK(table(mp::deepspeed_fused_policy{.initial_scale = 1.0, .min_loss_scale = 0.25}, "iii") ==
          "0.5- 0.25- 0.25_");
}

TEST_CASE("MXNet's lag doubles the skipped step and ends one notch too low") {
    // The overflow at 8 shows in the scale an iteration later; that one overflows at 8 as well.
    CHECK(table(mp::mxnet_policy{8.0, 2.0, 3}, "iicccccc") == "8- 4- 2 2 2+ 4 4 4+");
    CHECK(table(mp::mxnet_policy{8.0, 2.0, 2, 16.0}, "cccccci") == "8 8+ 16 16^ 16 16^ 16-");
}

TEST_CASE("fairseq tolerates a share of overflows since the scale last changed") {
    CHECK(table(mp::fairseq_policy{8.0, 2.0, 3}, "cccccciccc") == "8 8 16+ 16 16 32+ 16- 16 16 32+");
    // 1 of 1 is not tolerated; then 1 of 5 is, 2 of 6 are not, and the count begins anew.
    CHECK(table(mp::fairseq_policy{.init_scale = 8.0, .tolerance = 0.25}, "icccciicccci") ==
          "4- 4 4 4 4 4a 2- 2 2 2 2 2a");
    // 1 of 4 is no less than a quarter.
    CHECK(table(mp::fairseq_policy{.init_scale = 8.0, .tolerance = 0.25}, "ccci") == "8 8 8 4-");
    // Growth begins the count of iterations anew, but not that of overflows: here 2 of 4.
    CHECK(table(mp::fairseq_policy{8.0, 2.0, 3, 0.5}, "cciccccci") == "8 8 8a 8 8 16+ 16 16 8-");
}

TEST_CASE("fairseq stops at its threshold and fails at its minimum") {
    CHECK(table(mp::fairseq_policy{.init_scale = 8.0, .threshold = 3.0}, "iii") == "4- 3_ 3_");
    CHECK(table(mp::fairseq_policy{.init_scale = 8.0, .scale_window = 2, .min_loss_scale = 2.0}, "iicci") ==
          "4- 4! 4 8+ 4-");
    CHECK(table(mp::fairseq_policy{.init_scale = 8.0, .threshold = 2.0, .min_loss_scale = 2.0}, "iii") ==
          "4- 4! 4!");
}

TEST_CASE("OpenSeq2Seq starts at its ceiling") {
    CHECK(table(mp::openseq2seq_policy{1.0F, 8.0F, 2.0F, 2}, "cciccccc") == "8 8^ 4- 4 8+ 8 8^ 8");
    CHECK(table(mp::openseq2seq_policy{3.0F, 8.0F, 2.0F, 2}, "iiicc") == "4- 3_ 3_ 3 6+");
}

TEST_CASE("Chainer doubles until the first overflow and then creeps") {
    CHECK(table(mp::chainer_policy{1}, "ccciccicc") == "2+ 4+ 8+ 4- 8+ 16+ 8- 16+ 32+");
    CHECK(table(mp::chainer_policy{2}, "ccciccc") == "2+ 4+ 8+ 4- 5.65685425+ 8+ 11.3137085+");
    CHECK(table(mp::chainer_policy{}, repeated("c", 17)) ==
          "2+ 4+ 8+ 16+ 32+ 64+ 128+ 256+ 512+ 1024+ 2048+ 4096+ 8192+ 16384+ 32768+ 65504^ 65504^");
    CHECK(table(mp::chainer_policy{1}, "iic") == "1_ 1_ 2+");
}

TEST_CASE("static_policy says unchanged whatever comes") {
    CHECK(table(mp::static_policy{128.0F}, "cinbc") == "128 128 128 128 128");
}

TEST_CASE("a scale whose inverse is not a float is said to have vanished") {
    CHECK(table(mp::pytorch_policy{.initial_scale = 0x1p-126F}, "iic") ==
          "5.87747175e-39- 2.93873588e-39v 2.93873588e-39");
    CHECK(table(mp::apex_policy{.init_scale = 0x1p-126}, "iic") ==
          "5.87747175e-39- 2.93873588e-39v 2.93873588e-39");
}
