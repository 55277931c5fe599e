"""One operator with drawn attributes and inputs: the model, what must come out, and how far off that may be."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 21
DOMAIN = "com.microsoft"
FLOAT = (2e-5, 2e-5)  # of an element, and of the largest one
HALF = (4e-3, 4e-3)


@dataclass
class Input:
    """An input: its elements, whether the model holds them as a constant, and the names that its sizes bear."""

    value: np.ndarray
    constant: bool = False
    dims: list = None  # sizes and names of sizes; the sizes themselves where it is None


@dataclass
class Case:
    """`inputs` holds Input, arrays and None (omitted). Where ONNX Runtime has no kernel for the CPU, `expected` gives the outputs, or
    `instead` is a case that means the same and that it runs."""

    op: str
    label: str
    inputs: list
    attributes: dict = field(default_factory=dict)
    outputs: list = field(default_factory=lambda: ["y"])  # "" leaves one out
    tolerance: tuple = FLOAT
    steps: int = 0  # whole numbers may be off by that many
    domain: str = DOMAIN
    expected: object = None
    instead: object = None
    compare: object = None  # (output index, array) -> the part of it that means something
    name: str = ""

    def __post_init__(self):
        self.inputs = [i if i is None or isinstance(i, Input) else Input(np.asarray(i)) for i in self.inputs]

    @property
    def fed(self):
        """The inputs that the model does not hold, with their names."""
        return {f"x{i}": one for i, one in enumerate(self.inputs) if one is not None and not one.constant}

    def model(self):
        def type_of(value):
            return helper.np_dtype_to_tensor_dtype(value.dtype)

        names = ["" if one is None else f"x{i}" for i, one in enumerate(self.inputs)]
        node = helper.make_node(self.op, names, self.outputs, name=self.op, domain=self.domain, **self.attributes)
        infos = [
            helper.make_tensor_value_info(name, type_of(one.value), one.dims or list(one.value.shape)) for name, one in self.fed.items()
        ]
        constants = [numpy_helper.from_array(one.value, f"x{i}") for i, one in enumerate(self.inputs) if one is not None and one.constant]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs if name]
        graph = helper.make_graph([node], self.op, infos, outputs, constants)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def difference(case, index, expected, found):
    """What is wrong with output `index`; empty where it is right."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return f"expected {expected.dtype}{list(expected.shape)}, found {found.dtype}{list(found.shape)}"
    if case.compare is not None:
        expected, found = case.compare(index, expected), case.compare(index, found)
    if expected.dtype.kind not in "fiu" and str(expected.dtype) != "bfloat16":
        return "" if np.array_equal(expected, found) else "values differ"
    wanted, have = expected.astype(np.float64), found.astype(np.float64)
    if expected.dtype.kind in "iu":
        allowed = np.full(wanted.shape, float(case.steps))
    else:
        sizes = np.abs(np.where(np.isfinite(wanted), wanted, 0))
        allowed = case.tolerance[1] * sizes.max(initial=0) + case.tolerance[0] * sizes
    with np.errstate(invalid="ignore"):
        off = np.abs(wanted - have)
        wrong = ~((off <= allowed) | (wanted == have) | (np.isnan(wanted) & np.isnan(have)))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} elements differ, by up to {off[wrong].max():.3g}: at {list(at)} expected {wanted[at]:.7g}, found {have[at]:.7g}"
