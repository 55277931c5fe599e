#!/usr/bin/env python3
"""Tests of scripts/onnx_suite: what holds, what does not, and how it is counted."""

import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "scripts" / "onnx_suite"))
sys.dont_write_bytecode = True
import summary  # noqa: E402: the path must be set first

try:  # in the environment of `./dev onnx-suite`
    import cases
    import exact
    import judge
    import numpy as np
    import onnx
    import schemas
except ImportError:
    onnx = None


def result(name, category="node", mode="value", operators=("Add",), **errors):
    return {"name": name, "category": category, "mode": mode, "operators": list(operators), "errors": errors}


def results(*cases_):
    return {"devices": ["reference", "cpu"], "cases": list(cases_)}


class Tables(unittest.TestCase):
    def test_scores_count_what_holds_by_category_and_by_mode(self):
        some = results(result("a", reference="", cpu="values differ: x"), result("b", "simple", "refusal", reference="", cpu=""))
        rows = [line.split() for line in summary.score_table(some)]
        self.assertIn(["node", "1", "1", "0"], rows)
        self.assertIn(["all", "2", "2", "1"], rows)
        self.assertIn(["by", "refusal", "1", "1", "1"], rows)

    def test_gaps_name_operators_and_cause(self):
        some = results(result("a", operators=["Det"], reference="m: the operator is not known", cpu="output 'y': values differ: 1"))
        text = "\n".join(summary.gap_table(some))
        self.assertRegex(text, r"Det +unsupported operator +1 +0")
        self.assertRegex(text, r"Det +wrong value +0 +1")

    def test_causes(self):
        for error, cause in (
            ("its process died of signal 11", "crash or no answer"),
            ("the model imports opset 99 of domain 'ai.onnx'", "unsupported opset"),
            ("output 'y': expected float32[2], found float32[3]", "wrong type or shape"),
            ("input 'X': expected fp32, found fp8_e5m2", "unsupported type"),
            ("something else", "other refusal"),
        ):
            self.assertEqual(summary.cause_of(error), cause)


@unittest.skipIf(onnx is None, "onnx is not installed here")
class Values(unittest.TestCase):
    def differs(self, expected, found):
        return judge.difference(expected, found, 1e-3, 1e-7)

    def test_equal_values_hold_and_others_do_not(self):
        one = np.array([1, np.nan, np.inf], np.float32)
        self.assertEqual(self.differs(one, one.copy()), "")
        self.assertIn("values differ", self.differs(one, np.array([1.01, np.nan, np.inf], np.float32)))
        self.assertIn("values differ", self.differs(one, np.array([1, 0, np.inf], np.float32)))

    def test_dtype_and_shape_count(self):
        one = np.ones((2, 1), np.float32)
        self.assertEqual(self.differs(one, one.astype(np.float64)), "expected float32[2, 1], found float64[2, 1]")
        self.assertEqual(self.differs(one, one.reshape(2)), "expected float32[2, 1], found float32[2]")

    def test_small_floats_and_strings_are_compared(self):
        for number in (onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT4E2M1, onnx.TensorProto.INT4, onnx.TensorProto.BFLOAT16):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
            one, two = (np.array([value], np.float32).astype(dtype) for value in (1, 2))
            self.assertEqual(self.differs(one, one.copy()), "")
            self.assertIn("values differ", self.differs(one, two), dtype)
        self.assertIn("values differ", self.differs(np.array(["a"], object), np.array(["b"], object)))

    def test_sequences_are_compared_element_by_element(self):
        one = [np.zeros(2, np.float32)]
        self.assertEqual(self.differs(one, [np.zeros(2, np.float32)]), "")
        self.assertEqual(self.differs(one, []), "expected 1 elements, found 0")
        self.assertIn("element 0: values differ", self.differs(one, [np.ones(2, np.float32)]))
        self.assertEqual(self.differs(None, None), "")
        self.assertEqual(self.differs(None, np.zeros(2, np.float32)), "expected nothing, found float32[2]")

    def test_drawn_values_are_zeros_and_ones(self):
        zeros = np.zeros(3, np.float32)
        self.assertEqual(judge.not_drawn(zeros, np.array([0, 1, 1], np.float32)), "")
        self.assertIn("zeros and ones", judge.not_drawn(zeros, np.array([0, 0.5, 1], np.float32)))
        self.assertIn("expected float32[3]", judge.not_drawn(zeros, zeros.astype(np.float64)))


@unittest.skipIf(onnx is None, "onnx is not installed here")
class Judgements(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def case(self, op_type, domain="", seed=None):
        """A case of one operator with one input and one output, two floats each."""
        attributes = {} if seed is None else {"seed": seed}
        floats = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
        node = onnx.helper.make_node(op_type, ["x"], ["y"], domain=domain, **attributes)
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", floats[:1], floats[1:]))
        made = cases.Case("c", "node", str(self.folder / "case"), 1e-3, 1e-7, cases.operators_of(model))
        made.data_set(0).mkdir(parents=True)
        made.model.write_bytes(model.SerializeToString())
        self.write(made.data_set(0), [1, 0])
        return made

    def write(self, folder, values):
        folder.mkdir(exist_ok=True)
        (folder / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(np.array(values, np.float32)).SerializeToString())
        return folder

    def test_by_value(self):
        case = self.case("Relu")
        self.assertEqual(judge.judge(case, 0, {}, self.write(self.folder / "same", [1, 0])), "")
        self.assertIn("output 'y': values differ", judge.judge(case, 0, {}, self.write(self.folder / "other", [1, 1])))
        self.assertEqual(judge.judge(case, 0, {}, self.folder), "expected 1 outputs, found 0")
        self.assertEqual(judge.judge(case, 0, {"error": "no"}, self.folder), "no")

    def test_by_the_exact_result(self):
        case = self.case("Relu")
        expected = self.write(case.data_set(0), [1, 0.01])
        (case.data_set(0) / "input_0.pb").write_bytes((expected / "output_0.pb").read_bytes())
        case.name = "test_exact"
        with unittest.mock.patch.dict(exact.EXACT, {case.name: lambda inputs, _: [np.floor(inputs["x"].astype(np.float64))]}):
            self.assertEqual(judge.mode_of(case), "exact")
            self.assertEqual(judge.judge(case, 0, {}, self.write(self.folder / "same", [1, 0.01])), "")
            self.assertEqual(judge.judge(case, 0, {}, self.write(self.folder / "better", [1, 0])), "")
            self.assertIn("from the exact ones by up to 0.02", judge.judge(case, 0, {}, self.write(self.folder / "off", [1, 0.02])))
            case.atol = 0.1
            self.assertIn("are nearer", judge.judge(case, 0, {}, self.write(self.folder / "worse", [1, -0.095])))
            (self.folder / "other").mkdir()
            self.assertIn("expected 1 outputs", judge.judge(case, 0, {}, self.folder / "other"))

    def test_by_property(self):
        case = self.case("Bernoulli", seed=1.0)
        one, other = self.write(self.folder / "one", [0, 1]), self.write(self.folder / "other", [1, 1])
        self.assertEqual(judge.judge(case, 0, {}, one, one), "")
        self.assertIn("another result", judge.judge(case, 0, {}, one, other))

    def test_by_refusal(self):
        case = self.case("Gradient", "ai.onnx.preview.training")
        self.assertIn("found that it ran", judge.judge(case, 0, {}, self.folder))
        self.assertIn("does not name", judge.judge(case, 0, {"error": "bad model"}, self.folder))
        self.assertEqual(judge.judge(case, 0, {"error": "operator 'Gradient' of 'ai.onnx.preview.training'"}, self.folder), "")


@unittest.skipIf(onnx is None, "onnx is not installed here")
class Schemas(unittest.TestCase):
    PAGE = "- `float`: fp32, fp64\n\n## ai.onnx\n\n| Relu | 1, 6 | T: float, int8 | cpu |\n"

    def test_the_page_is_read(self):
        self.assertEqual(schemas.read_page(self.PAGE), {("ai.onnx", "Relu"): ({1, 6}, {"fp32", "fp64", "int8"})})
        self.assertEqual(schemas.dtype_of("float6e2m3"), "fp6_e2m3")
        self.assertEqual(schemas.dtype_of("bfloat16"), "bf16")

    def test_what_it_lacks_is_named(self):
        wanted = [schema for schema in onnx.defs.get_all_schemas_with_history() if schema.name in ("Relu", "Det", "Gradient")]
        lines = schemas.gaps(schemas.read_page(self.PAGE), wanted)
        self.assertIn("ai.onnx: Det 11: no such operator", lines)
        self.assertIn("ai.onnx: Relu: no version 14", lines)
        self.assertIn("ai.onnx: Relu: no bf16, fp16, int16, int32, int64", lines)
        self.assertFalse([line for line in lines if "Gradient" in line])


if __name__ == "__main__":
    unittest.main()
