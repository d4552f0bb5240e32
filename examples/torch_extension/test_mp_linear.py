# SPDX-License-Identifier: MIT
"""python3 test_mp_linear.py: the op beside torch's own. Skips, saying so, where torch is not installed."""

import unittest

try:
    import torch
except ImportError:
    torch = None

if torch:
    import mp_linear


def _numbers(*shape, dtype, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@unittest.skipIf(torch is None, "PyTorch is not installed: pip install torch")
class LinearTest(unittest.TestCase):
    def check(self, got, exact, sums):
        """One rounding of a sum in float: half a unit of the result, and the error of the sum."""
        unit = torch.finfo(got.dtype).eps
        bound = unit / 2 * exact.abs() * 1.001 + sums * torch.finfo(torch.float32).eps
        self.assertEqual(got.shape, exact.shape)
        self.assertTrue(bool(((got.double() - exact).abs() <= bound).all()))

    def test_forward_and_backward_in_every_dtype(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            x = _numbers(3, 5, 40, dtype=dtype, seed=1).requires_grad_()
            layer = mp_linear.Linear(40, 24, dtype=dtype)
            dy = _numbers(3, 5, 24, dtype=dtype, seed=2)
            y = layer(x)
            y.backward(dy)
            exact = [t.detach().double().requires_grad_() for t in (x, layer.weight, layer.bias)]
            reference = torch.nn.functional.linear(*exact)
            reference.backward(dy.double())
            self.check(y, reference, sums=100)
            for got, wanted in zip((x, layer.weight, layer.bias), exact):
                self.assertEqual(got.grad.dtype, dtype)
                self.check(got.grad, wanted.grad, sums=100)

    def test_gradcheck(self):
        x, w, b = (_numbers(*s, dtype=torch.float64, seed=3).requires_grad_() for s in ((4, 3), (5, 3), (5,)))
        self.assertTrue(torch.autograd.gradcheck(mp_linear.linear, (x, w, b)))
        self.assertTrue(torch.autograd.gradcheck(lambda x, w: mp_linear.linear(x, w, None), (x, w)))
        # The gradient of a sum is one number, expanded.
        mp_linear.linear(x, w, b).sum().backward()
        self.assertTrue(torch.equal(b.grad, torch.full((5,), 4.0, dtype=torch.float64)))

    def test_strided_tensors_are_read_in_place(self):
        x = _numbers(40, 12, dtype=torch.bfloat16, seed=4)
        w = _numbers(24, 99, dtype=torch.bfloat16, seed=5)
        for left, right in ((x.t(), w[:, 7:47]), (x.t()[::2], w[:, ::2][:, :40])):
            y = mp_linear.linear(left, right, None)
            self.assertTrue(torch.equal(y, mp_linear.linear(left.contiguous(), right.contiguous(), None)))

    def test_bits_do_not_depend_on_threads(self):
        x, w = _numbers(300, 500, dtype=torch.float32, seed=6), _numbers(200, 500, dtype=torch.float32, seed=7)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        one = mp_linear.linear(x, w, None)
        torch.set_num_threads(3)
        three = mp_linear.linear(x, w, None)
        torch.set_num_threads(threads)
        self.assertTrue(torch.equal(one, three))

    def test_errors_name_dtype_and_shape(self):
        x, w = torch.ones(2, 3), torch.ones(4, 3)
        with self.assertRaisesRegex(RuntimeError, "'Long'; it must be one of Float, Double, Half, BFloat16"):
            mp_linear.linear(x.long(), w.long(), None)
        with self.assertRaisesRegex(RuntimeError, "w is of Half"):
            mp_linear.linear(x, w.half(), None)
        with self.assertRaisesRegex(RuntimeError, "must equal x.columns, which is 3"):
            mp_linear.linear(x, torch.ones(4, 2), None)

    def test_torch_finds_nothing_to_complain_about(self):
        args = tuple(_numbers(*s, dtype=torch.float32, seed=8).requires_grad_() for s in ((2, 4, 3), (5, 3), (5,)))
        torch.library.opcheck(mp_linear.linear, args, test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))

    def test_it_trains(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(mp_linear.Linear(8, 32), torch.nn.Tanh(), mp_linear.Linear(32, 1))
        x = _numbers(256, 8, dtype=torch.float32, seed=9)
        target = x[:, :1] * x[:, 1:2]
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(150):
            loss = torch.nn.functional.mse_loss(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 10)


if __name__ == "__main__":
    unittest.main()
