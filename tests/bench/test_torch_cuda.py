#!/usr/bin/env python3
"""The rows of PyTorch on GPUs (bench/peers/torch_cuda.py) without PyTorch: each op's expression becomes Python that knows all its names. bench/ stands
in PYTHONPATH."""
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import rows

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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

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

    def test_every_row_that_has_this_peer_is_known(self):
        asked = [peer.row or row.asked() for row in rows.all_rows() for peer in row.peers if peer.program == "torch_cuda"]
        names = set(torch_cuda.expressions(self.header))
        self.assertGreater(len(asked), 500)
        for name in asked:
            step, op = torch_cuda.STEP.fullmatch(name), torch_cuda.OP.fullmatch(name)
            self.assertEqual([name in torch_cuda.CALLS, torch_cuda.ATTENTION.fullmatch(name) is not None, step is not None and step[2] in torch_cuda.NETWORKS,
                              op is not None and op[1] in names].count(True), 1, name)

    @unittest.mock.patch.multiple(torch_cuda, ADDS=20, BURST=10)
    def test_calls_and_attention_are_timed(self):
        for name, unit in [*((name, "ns") for name in torch_cuda.CALLS), ("sdpa_bf16_16", "us")]:
            told, samples = torch_cuda.measure(Anything(), name, {}, {}, 3)
            self.assertEqual((told, len(samples)), (unit, 3), name)
            self.assertGreater(min(samples), 0)

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
