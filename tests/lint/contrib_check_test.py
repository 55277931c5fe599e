#!/usr/bin/env python3
"""Tests of scripts/contrib_check: what counts as equal, and that every case is a model."""

import os
import sys
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "scripts" / "contrib_check"))
sys.dont_write_bytecode = True

try:  # in the environment of `./dev contrib`
    import numpy as np
    import onnx
    from case import Case, Input, difference
except ImportError:
    onnx = None


@unittest.skipIf(onnx is None, "onnx is not installed here")
class Differences(unittest.TestCase):
    def test_reals_are_judged_by_tolerance(self):
        case = Case("Gelu", "x", [np.zeros(2, np.float32)], tolerance=(1e-3, 0.0))
        expected = np.array([1.0, 100.0], np.float32)
        self.assertEqual(difference(case, 0, expected, expected + np.array([0.0005, 0.05], np.float32)), "")
        self.assertEqual(
            difference(case, 0, expected, expected + np.array([0.5, 0], np.float32)),
            "1 of 2 elements differ, by up to 0.5: at [0] expected 1, found 1.5",
        )

    def test_whole_numbers_are_judged_by_steps(self):
        expected, found = np.array([3, 4], np.uint8), np.array([4, 4], np.uint8)
        self.assertEqual(difference(Case("QLinearAdd", "x", [], steps=1), 0, expected, found), "")
        self.assertIn("1 of 2 elements differ", difference(Case("QLinearAdd", "x", []), 0, expected, found))

    def test_infinities_and_nan_stand_for_themselves(self):
        case = Case("Gelu", "x", [])
        values = np.array([np.inf, -np.inf, np.nan], np.float32)
        self.assertEqual(difference(case, 0, values, values), "")
        self.assertIn("2 of 3", difference(case, 0, values, np.array([np.inf, np.inf, 0], np.float32)))

    def test_types_and_shapes_come_first(self):
        self.assertEqual(
            difference(Case("Gelu", "x", []), 0, np.zeros(2, np.float32), np.zeros((2, 1), np.float32)),
            "expected float32[2], found float32[2, 1]",
        )

    def test_a_case_is_a_model_with_its_symbols_and_constants(self):
        case = Case("BiasGelu", "x", [Input(np.zeros((2, 3), np.float32), dims=["n", 3]), Input(np.zeros(3, np.float32), True)])
        model = case.model()
        self.assertEqual([i.name for i in model.graph.input], ["x0"])
        self.assertEqual(model.graph.input[0].type.tensor_type.shape.dim[0].dim_param, "n")
        self.assertEqual([t.name for t in model.graph.initializer], ["x1"])
        self.assertEqual(model.graph.node[0].domain, "com.microsoft")


if __name__ == "__main__":
    unittest.main()
