"""The cases of ONNX's backend tests, as files: those that its generators make, and those that its package carries."""

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

CARRIED = ("simple", "pytorch-converted", "pytorch-operator")  # kinds that the package carries as files


@dataclass
class Case:
    """One model, and what its inputs must give."""

    name: str
    category: str
    folder: str
    rtol: float
    atol: float
    operators: list = field(default_factory=list)  # "domain::Operator", sorted; bodies and functions included
    data_sets: int = 1

    @property
    def model(self):
        return Path(self.folder) / "model.onnx"

    def data_set(self, index):
        return Path(self.folder) / f"test_data_set_{index}"


def numbered(folder, prefix):
    """prefix_0.pb, prefix_1.pb, ... of `folder`, as many as there are."""
    files = []
    while (path := folder / f"{prefix}_{len(files)}.pb").exists():
        files.append(path)
    return files


def to_proto(value, info):
    """The message that holds `value`, of the kind that the graph declares."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def from_file(path, type_proto):
    """The value of a file, by the type that the graph declares."""
    content = path.read_bytes()
    if type_proto.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if type_proto.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def operators_of(model):
    """All operators of the model, those of its functions and bodies included."""
    found = set()

    def visit(nodes):
        for node in nodes:
            found.add(f"{node.domain}::{node.op_type}" if node.domain else node.op_type)
            for attribute in node.attribute:
                for graph in [attribute.g, *attribute.graphs]:
                    visit(graph.node)

    visit(model.graph.node)
    for function in model.functions:
        visit(function.node)
    return sorted(found)


def write_generated(case, folder):
    """Writes a case that exists in memory only."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for index, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{index}"
        data.mkdir()
        for prefix, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            if len(values) != len(infos):
                raise ValueError(f"{case.name}: expected {len(infos)} {prefix}s, found {len(values)}")
            for number, (value, info) in enumerate(zip(values, infos)):
                (data / f"{prefix}_{number}.pb").write_bytes(to_proto(value, info).SerializeToString())


def generate(folder):
    """Makes all cases; gives them in a fixed order. The generators draw from NumPy's global generator: it gets a fixed seed."""
    from onnx.backend.test import loader

    np.random.seed(0)
    cases = []
    with np.errstate(all="ignore"):
        generated = loader.load_model_tests(kind="node")
    for case in generated:
        target = folder / "node" / case.name
        write_generated(case, target)
        cases.append(Case(case.name, "node", str(target), case.rtol, case.atol, operators_of(case.model), len(case.data_sets)))
    for kind in CARRIED:
        for case in loader.load_model_tests(kind=kind):
            sets = len(list(Path(case.model_dir).glob("test_data_set_*")))
            model = onnx.load(Path(case.model_dir) / "model.onnx")
            cases.append(Case(case.name, kind, case.model_dir, case.rtol, case.atol, operators_of(model), sets))
    return sorted(cases, key=lambda case: (case.category, case.name))


def load(folder):
    """The cases, made where `folder` lacks those of the installed version."""
    index = folder / "cases.json"
    if index.exists():
        stored = json.loads(index.read_text())
        if stored["onnx"] == onnx.__version__:
            return [Case(**case) for case in stored["cases"]]
    shutil.rmtree(folder, ignore_errors=True)
    cases = generate(folder)
    index.write_text(json.dumps({"onnx": onnx.__version__, "cases": [asdict(case) for case in cases]}, indent=1))
    return cases
