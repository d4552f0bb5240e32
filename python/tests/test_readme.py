# SPDX-License-Identifier: MIT
import pathlib
import re

import numpy as np


def test_the_code_of_the_readme_does_what_it_says(capsys):
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    it = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, it)
    mp = it["mp"]
    assert it["flags"] == mp.Flags.INEXACT | mp.Flags.OVERFLOW and it["h"].dtype == np.float16
    assert np.max(np.abs(it["exact"])) == 448
    np.testing.assert_array_equal(it["noisy"][32:].view(np.uint16), it["part"].view(np.uint16))
    np.testing.assert_array_equal(it["noisy"].view(np.uint16), it["again"].view(np.uint16))
    np.testing.assert_array_equal(it["w"].dequantize(), it["q"].dequantize())
    assert it["q"].report(it["x"]).clamped == 0
    assert 0.4 < it["error"].max_ulp <= 0.5
    printed = capsys.readouterr().out
    assert "flush to zero" in printed and "pytorch" in printed
