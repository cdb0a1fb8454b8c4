#!/usr/bin/env python3
"""The rows of PyTorch on GPUs (bench/peers/torch_cuda.py) without PyTorch: each op's expression becomes Python that knows all its names."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers"))
import torch_cuda  # noqa: E402


class Anything:
    """Stands for PyTorch and all that it gives."""

    def __getattr__(self, name):
        return self

    def __call__(self, *_, **__):
        return self

    def __iter__(self):
        return iter((self, self))

    def itself(self, *_):
        return self

    __mul__ = __rmul__ = __add__ = __radd__ = __sub__ = __truediv__ = __rtruediv__ = __getitem__ = __neg__ = itself


class TorchCuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.header = str(pathlib.Path(cls.folder.name) / "op_rows.h")
        functional = ROOT / "functional"
        ops = sorted(map(str, functional.glob("ops/*.toml")))
        subprocess.run([sys.executable, "-B", str(functional / "generate" / "main.py"), "bench", cls.header, *ops], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_op_has_a_call(self):
        calls = torch_cuda.expressions(self.header)
        self.assertGreater(len(calls), 150)
        names = {**torch_cuda.operands(Anything(), 10000), "torch": Anything()}
        for op, call in calls.items():
            with self.subTest(op=op):
                # Only names that are there; attributes are Anything's, or of the sizes.
                self.assertIsNotNone(eval(torch_cuda.in_python(call), {"__builtins__": {}, **names}))

    def test_signs_of_cpp(self):
        self.assertEqual(torch_cuda.in_python("torch::conv2d(images, filters, {}, 1, 1)"), "torch.conv2d(images, filters, None, 1, 1)")
        self.assertEqual(torch_cuda.in_python("torch::cat({m, o}, 1)"), "torch.cat([m, o], 1)")
        self.assertEqual(torch_cuda.in_python("torch::argsort(m, 1, false)"), "torch.argsort(m, 1, False)")

    def test_the_second_expression_is_the_peers(self):
        self.assertEqual(torch_cuda.expressions(self.header)["index_select"], "torch::index_select(m, 0, picks)")

    def test_a_line_without_a_second_expression_is_an_error(self):
        with self.assertRaises(ValueError):
            torch_cuda.end_of_call("eddy_add(x, y)")


if __name__ == "__main__":
    unittest.main()
