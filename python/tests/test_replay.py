# SPDX-License-Identifier: MIT
import mixed_precision as mp
import numpy as np
import pytest


def grad_scaler(largest, interval=2000, scale=65536.0):
    """torch.amp.GradScaler by its documentation."""
    scales, skipped, good = [], [], 0
    for step, magnitude in enumerate(largest):
        scales.append(scale)
        if magnitude * scale > 65504:
            skipped.append(step)
            scale, good = scale / 2, 0
        else:
            good += 1
            if good == interval:
                scale, good = scale * 2, 0
    return scales, skipped, scale


def test_pytorch_is_its_documentation():
    largest = np.exp2(np.random.default_rng(8).uniform(-12, 1, 9000))
    (result,) = mp.replay(largest, "pytorch")
    scales, skipped, final = grad_scaler(largest)
    assert result.scales == scales and result.skipped_steps == skipped and result.final_scale == final
    assert result.skips == len(skipped) and result.iterations == 9000 and result.failed_at is None
    assert (result.first_scale, result.smallest_scale, result.largest_scale) == (65536, min(scales + [final]), max(scales + [final]))
    assert not result.underflow_known


def test_gradients_tell_underflow():
    generator = np.random.default_rng(9)
    steps = [[generator.standard_normal((20, 30)).astype(np.float32) * 2.0**-20, generator.standard_normal(7) * 2.0**-20]
             for _ in range(5)]
    step = mp.trace_step(steps[0])
    assert step.largest == max(np.abs(g).max() for g in steps[0]) and sum(n for _, n in step.exponents) == 607
    scaled, unscaled = mp.replay(steps, ["pytorch", "none"])
    everything = np.concatenate([np.concatenate([g.ravel() for g in s]) for s in steps]).astype(np.float64)
    share = np.mean(np.abs(everything) < 2.0**-25)
    assert unscaled.underflow_known and unscaled.mean_underflow == pytest.approx(share, rel=1e-6)
    assert scaled.mean_underflow < 1e-3
    # In bfloat16 nothing is lost without a scale.
    assert mp.replay(steps, "none", format="bfloat16")[0].mean_underflow == 0


def test_all_policies_and_their_table():
    trace = [1.0, 2.0**-3, np.array([np.nan, 1.0]), 0.5, mp.TraceStep(largest=1.0, infinite=True)] * 20
    results = mp.replay(trace)
    assert [r.name for r in results] == list(mp.POLICIES) and len(results) == 19
    by_name = {r.name: r for r in results}
    assert by_name["none"].skips == 40 and by_name["none"].largest_scale == 1
    assert by_name["static"].scales == [1024.0] * len(by_name["static"].scales)
    table = mp.replay_table(results)
    assert all(name in table for name in mp.POLICIES) and "skips" in table
    assert mp.replay([np.inf, 1.0], "pytorch")[0].skips == 1


@pytest.mark.parametrize("call, words", [
    (lambda: mp.replay([1.0], "torch"), "policies has 'torch'; it must have some of pytorch"),
    (lambda: mp.replay([1.0, -1.0], "pytorch"), r"trace\[1\].largest is -1.0; it must be finite and not negative"),
    (lambda: mp.replay([1.0], "pytorch", format="float8_e8m0fnu"), "format is 'float8_e8m0fnu'; it must have a sign"),
    (lambda: mp.replay([mp.TraceStep(1.0, exponents=((3, 1), (2, 1)))], "pytorch"), "ascending order"),
])
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
