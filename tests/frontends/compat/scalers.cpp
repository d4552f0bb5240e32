// SPDX-License-Identifier: MIT
// Every preset beside an interpreter of its system: the same scale, the same counters and the same skips
// after every event of many sequences. Tables written by hand are in scaler_tables.cpp.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "frontends/compat/preset_interpreters.hpp"
#include "frontends/compat/preset_interpreters_python.hpp"
#include "frontends/compat/preset_traces.hpp"

using traces::below_double;
using traces::beyond_double;
using traces::difference;
using traces::difference_in_sequences;
using traces::long_run;

TEST_CASE("pytorch_policy and GradScaler go the same way") {
    for (const int window : {1, 4, 7}) {
        CAPTURE(window);
        CHECK(difference_in_sequences(mp::pytorch_policy{.initial_scale = 1024.0F, .growth_interval = window},
                                      interpreters::pytorch{.scale = 1024.0F, .growth_interval = window},
                                      window) == "");
        // Products that round, in double and again to float.
        CHECK(difference_in_sequences(mp::pytorch_policy{3.3F, 1.1, 0.7, window},
                                      interpreters::pytorch{3.3F, 1.1, 0.7, window}, window) == "");
        CHECK(difference_in_sequences(mp::pytorch_policy{0x1p120F, 3.0, 1.0 / 3.0, window},
                                      interpreters::pytorch{0x1p120F, 3.0, 1.0 / 3.0, window}, window) == "");
    }
    CHECK(difference(mp::pytorch_policy{}, interpreters::pytorch{}, long_run(2000)) == "");
}

TEST_CASE(
    "sharded_pytorch_policy and ShardedGradScaler go the same way, to infinity and with float factors") {
    for (const int window : {1, 4, 7}) {
        CAPTURE(window);
        CHECK(difference_in_sequences(
                  mp::sharded_pytorch_policy{.initial_scale = 1024.0F, .growth_interval = window},
                  interpreters::sharded_pytorch{.scale = 1024.0F, .growth_interval = window}, window) == "");
        CHECK(difference_in_sequences(mp::sharded_pytorch_policy{3.3F, 0.7, 1.1, window},
                                      interpreters::sharded_pytorch{3.3F, 0.7, 1.1, window}, window) == "");
        CHECK(difference_in_sequences(mp::sharded_pytorch_policy{0x1p120F, 1.0 / 3.0, 3.0, window},
                                      interpreters::sharded_pytorch{0x1p120F, 1.0 / 3.0, 3.0, window},
                                      window) == "");
    }
    CHECK(difference(mp::sharded_pytorch_policy{}, interpreters::sharded_pytorch{}, long_run(2000)) == "");
}

TEST_CASE("tensorflow_policy and TensorFlow go the same way") {
    for (const int window : {1, 4, 7}) {
        for (const float scale : {1.0F, 1024.0F, 3.7F, 0x1p120F}) {
            CAPTURE(window);
            CAPTURE(scale);
            CHECK(difference_in_sequences(mp::tensorflow_policy{scale, window},
                                          interpreters::tensorflow{scale, window}, window) == "");
        }
    }
    CHECK(difference(mp::tensorflow_policy{}, interpreters::tensorflow{}, long_run(2000)) == "");
}

TEST_CASE("keras_policy and Keras go the same way, to infinity and to zero") {
    for (const int window : {1, 4, 7}) {
        for (const float scale : {1.0F, 1024.0F, 3.7F, 0x1p120F}) {
            CAPTURE(window);
            CAPTURE(scale);
            CHECK(difference_in_sequences(mp::keras_policy{scale, window}, interpreters::keras{scale, window},
                                          window) == "");
        }
    }
    CHECK(difference(mp::keras_policy{}, interpreters::keras{}, long_run(2000)) == "");
}

TEST_CASE("jmp_policy and jmp go the same way") {
    for (const int window : {1, 4, 7}) {
        for (const int factor : {2, 3, 10, 16777217, std::numeric_limits<int>::max()}) {
            for (const float least : {1.0F, 0.3F, 0x1p-100F}) {
                CAPTURE(window);
                CAPTURE(factor);
                CAPTURE(least);
                CHECK(difference_in_sequences(mp::jmp_policy{1000.3F, window, factor, least},
                                              interpreters::jmp{1000.3F, window, factor, least},
                                              window) == "");
            }
        }
    }
    CHECK(difference(mp::jmp_policy{}, interpreters::jmp{}, long_run(2000)) == "");
}

TEST_CASE("apex_policy and Apex's amp go the same way, with limits and below the floats") {
    for (const int window : {1, 4, 7}) {
        CAPTURE(window);
        CHECK(difference_in_sequences(mp::apex_policy{1024.0, window}, interpreters::apex{1024.0, window},
                                      window) == "");
        CHECK(difference_in_sequences(mp::apex_policy{1000.3, window, 7.5, 99999.25},
                                      interpreters::apex{1000.3, window, 7.5, 99999.25}, window) == "");
        // A floor above the scale lifts it at the first overflow.
        CHECK(difference_in_sequences(mp::apex_policy{4.0, window, 16.0},
                                      interpreters::apex{4.0, window, 16.0}, window) == "");
    }
    // The ceiling also bounds the initial scale.
    CHECK(difference_in_sequences(mp::apex_policy{.init_scale = 65536.0, .max_loss_scale = 512.0},
                                  interpreters::apex{.loss_scale = 512.0, .max_loss_scale = 512.0}, 4) == "");
    const double most = std::numeric_limits<double>::max();
    CHECK(difference(mp::apex_policy{.scale_window = 1, .max_loss_scale = most},
                     interpreters::apex{.scale_seq_len = 1, .max_loss_scale = most}, beyond_double()) == "");
    CHECK(difference(mp::apex_policy{.scale_window = 1}, interpreters::apex{.scale_seq_len = 1},
                     below_double()) == "");
    CHECK(difference(mp::apex_policy{}, interpreters::apex{}, long_run(2000)) == "");
    CHECK(difference(mp::apex_policy{}, interpreters::apex{}, traces::repeated("c", 20000)) == "");
}

TEST_CASE("apex_fp16_utils_policy and Apex's fp16_utils go the same way, beyond the floats") {
    for (const int window : {1, 4, 7}) {
        for (const double factor : {2.0, 1.3, 3.0}) {
            CAPTURE(window);
            CAPTURE(factor);
            CHECK(difference_in_sequences(mp::apex_fp16_utils_policy{1000.3, factor, window},
                                          interpreters::apex_fp16_utils{1000.3, factor, window},
                                          window) == "");
        }
    }
    for (const auto& events : {beyond_double(), below_double()}) {
        CHECK(difference(mp::apex_fp16_utils_policy{.scale_window = 1},
                         interpreters::apex_fp16_utils{.scale_window = 1}, events) == "");
    }
    CHECK(difference(mp::apex_fp16_utils_policy{}, interpreters::apex_fp16_utils{}, long_run(1000)) == "");
}

TEST_CASE("apex_hysteresis_policy and Apex's kernel go the same way") {
    for (const int window : {1, 4, 7}) {
        for (const int hysteresis : {1, 2, 3, 5}) {
            CAPTURE(window);
            CAPTURE(hysteresis);
            CHECK(difference_in_sequences(
                      mp::apex_hysteresis_policy{1024.0F, 2.0, 0.5, window, hysteresis},
                      interpreters::apex_hysteresis{1024.0F, 2.0, 0.5, window, hysteresis}, window) == "");
            CHECK(difference_in_sequences(mp::apex_hysteresis_policy{3.3F, 1.1, 0.7, window, hysteresis},
                                          interpreters::apex_hysteresis{3.3F, 1.1, 0.7, window, hysteresis},
                                          window) == "");
        }
    }
    CHECK(difference(mp::apex_hysteresis_policy{}, interpreters::apex_hysteresis{}, long_run(2000)) == "");
}

TEST_CASE("mxnet_policy and MXNet go the same way, one iteration late") {
    for (const int window : {1, 4, 7}) {
        CAPTURE(window);
        CHECK(difference_in_sequences(mp::mxnet_policy{1024.0, 2.0, window},
                                      interpreters::mxnet{1024.0, 2.0, window}, window) == "");
        CHECK(difference_in_sequences(mp::mxnet_policy{1000.3, 1.7, window, 99999.25},
                                      interpreters::mxnet{1000.3, 1.7, window, 99999.25}, window) == "");
    }
    const double most = std::numeric_limits<double>::max();
    CHECK(difference(mp::mxnet_policy{.scale_window = 1, .max_loss_scale = most},
                     interpreters::mxnet{.scale_seq_len = 1, .max_loss_scale = most}, beyond_double()) == "");
    CHECK(difference(mp::mxnet_policy{.scale_window = 1}, interpreters::mxnet{.scale_seq_len = 1},
                     below_double()) == "");
    CHECK(difference(mp::mxnet_policy{}, interpreters::mxnet{}, long_run(2000)) == "");
}

TEST_CASE("deepspeed_policy and DeepSpeed with ZeRO go the same way, in every combination of its options") {
    for (const int window : {1, 4, 7}) {
        for (const int hysteresis : {1, 2, 3}) {
            for (const bool consecutive : {false, true}) {
                for (const bool raise : {false, true}) {
                    for (const double scale : {1.0, 1024.0, 1000.3, 0x1p120}) {
                        CAPTURE(window);
                        CAPTURE(hysteresis);
                        CAPTURE(consecutive);
                        CAPTURE(raise);
                        CAPTURE(scale);
                        const mp::deepspeed_policy policy{scale, window, hysteresis, consecutive, 1.0, raise};
                        const interpreters::deepspeed system{scale,      window,      1.0,
                                                             hysteresis, consecutive, raise};
                        CHECK(difference_in_sequences(policy, system, window) == "");
                    }
                }
            }
        }
    }
    CHECK(difference_in_sequences(mp::deepspeed_policy{.initial_scale = 5.0, .min_loss_scale = 0.3},
                                  interpreters::deepspeed{.cur_scale = 5.0, .min_scale = 0.3}, 1000) == "");
    for (const auto& events : {beyond_double(), below_double()}) {
        CHECK(difference(mp::deepspeed_policy{.loss_scale_window = 1},
                         interpreters::deepspeed{.scale_window = 1}, events) == "");
    }
    CHECK(difference(mp::deepspeed_policy{}, interpreters::deepspeed{}, long_run(1000)) == "");
}

TEST_CASE("deepspeed_fused_policy and DeepSpeed without ZeRO go the same way") {
    for (const int window : {1, 4, 7}) {
        for (const double least : {1.0, 0.25, 0.3}) {
            CAPTURE(window);
            CAPTURE(least);
            CHECK(difference_in_sequences(mp::deepspeed_fused_policy{1000.3, window, least},
                                          interpreters::deepspeed_fused{1000.3, window, least},
                                          window) == "");
        }
    }
    for (const auto& events : {beyond_double(), below_double()}) {
        CHECK(difference(mp::deepspeed_fused_policy{.loss_scale_window = 1},
                         interpreters::deepspeed_fused{.scale_window = 1}, events) == "");
    }
    CHECK(difference(mp::deepspeed_fused_policy{}, interpreters::deepspeed_fused{}, long_run(1000)) == "");
}

TEST_CASE("megatron_policy and Megatron go the same way, to infinity and with the counter below zero") {
    for (const int window : {1, 4, 7}) {
        for (const int hysteresis : {1, 2, 3, 5}) {
            CAPTURE(window);
            CAPTURE(hysteresis);
            CHECK(difference_in_sequences(
                      mp::megatron_policy{1024.0F, 1.0F, 2.0F, 0.5F, window, hysteresis},
                      interpreters::megatron{1024.0F, 1.0F, 2.0F, 0.5F, window, hysteresis}, window) == "");
            CHECK(difference_in_sequences(mp::megatron_policy{3.3F, 0.1F, 1.1F, 0.7F, window, hysteresis},
                                          interpreters::megatron{3.3F, 0.1F, 1.1F, 0.7F, window, hysteresis},
                                          window) == "");
            CHECK(difference_in_sequences(
                      mp::megatron_policy{0x1p120F, 0x1p-127F, 2.0F, 0.3F, window, hysteresis},
                      interpreters::megatron{0x1p120F, 0x1p-127F, 2.0F, 0.3F, window, hysteresis},
                      window) == "");
        }
    }
    CHECK(difference(mp::megatron_policy{}, interpreters::megatron{}, long_run(1000)) == "");
}

TEST_CASE("fairseq_policy and fairseq go the same way, with tolerances, a threshold and its exception") {
    for (const int window : {1, 4, 7}) {
        for (const double tolerance : {0.0, 0.05, 0.25, 0.5, 1.0}) {
            for (const double threshold : {0.0, 2.0, 0.3}) {
                for (const double factor : {2.0, 1.5}) {
                    CAPTURE(window);
                    CAPTURE(tolerance);
                    CAPTURE(threshold);
                    CAPTURE(factor);
                    const mp::fairseq_policy policy{1000.3, factor, window, tolerance, threshold};
                    const interpreters::fairseq system{1000.3, factor, window, tolerance, threshold};
                    CHECK(difference_in_sequences(policy, system, window) == "");
                }
            }
        }
        // A threshold at the minimum: the exception comes as soon as it is reached.
        CHECK(difference_in_sequences(mp::fairseq_policy{8.0, 2.0, window, 0.05, 0.5, 0.5},
                                      interpreters::fairseq{8.0, 2.0, window, 0.05, 0.5, 0.5}, window) == "");
        // Already there: even an overflow that is tolerated raises.
        CHECK(difference_in_sequences(mp::fairseq_policy{8.0, 2.0, window, 0.25, 0.0, 8.0},
                                      interpreters::fairseq{8.0, 2.0, window, 0.25, 0.0, 8.0}, window) == "");
    }
    for (const auto& events : {beyond_double(), below_double()}) {
        CHECK(difference(mp::fairseq_policy{.scale_window = 1}, interpreters::fairseq{.scale_window = 1},
                         events) == "");
    }
    CHECK(difference(mp::fairseq_policy{}, interpreters::fairseq{}, long_run(2000)) == "");
    CHECK(difference(mp::fairseq_policy{.init_scale = 128.0, .tolerance = 0.05},
                     interpreters::fairseq{.loss_scale = 128.0, .tolerance = 0.05}, long_run(2000)) == "");
}

TEST_CASE("openseq2seq_policy and OpenSeq2Seq's back-off go the same way") {
    for (const int window : {1, 4, 7}) {
        for (const float factor : {2.0F, 1.3F, 3.0F}) {
            for (const float most : {16384.0F, 1000.3F, std::numeric_limits<float>::max()}) {
                CAPTURE(window);
                CAPTURE(factor);
                CAPTURE(most);
                CHECK(difference_in_sequences(mp::openseq2seq_policy{0.7F, most, factor, window},
                                              interpreters::openseq2seq{0.7F, most, factor, window},
                                              window) == "");
            }
        }
    }
    CHECK(difference(mp::openseq2seq_policy{}, interpreters::openseq2seq{}, long_run(2000)) == "");
}

TEST_CASE("chainer_policy and Chainer go the same way") {
    for (const int interval : {1, 2, 3, 7, 50}) {
        CAPTURE(interval);
        CHECK(difference_in_sequences(mp::chainer_policy{interval},
                                      interpreters::chainer{.interval = double(interval)}, interval) == "");
    }
    CHECK(difference(mp::chainer_policy{}, interpreters::chainer{}, long_run(1000)) == "");
    CHECK(difference(mp::chainer_policy{}, interpreters::chainer{}, "i" + long_run(1000)) == "");
    CHECK(difference(mp::chainer_policy{}, interpreters::chainer{}, traces::random_events(23, 20000, 700)) ==
          "");
}

TEST_CASE("static_policy stays where it is") {
    for (const bool skip : {false, true}) {
        CHECK(difference_in_sequences(mp::static_policy{128.5F, skip}, interpreters::constant{128.5F, skip},
                                      4) == "");
    }
}
