"""Is what came out what the case asks for? By value, as ONNX's own runner compares; by property or by refusal where no value can be asked."""

import numpy as np
import onnx
from cases import from_file, numbered
from exact import EXACT, is_as_good
from onnx.backend.test.runner import Runner

DRAWN = {"Bernoulli", "RandomUniformLike"}  # a function body of Bernoulli draws by the latter
TRAINING = "ai.onnx.preview.training"


def mode_of(case):
    """How a case is judged: "value", "exact" (by value, or else against the exact result), "property" (random zeros and ones), or
    "refusal" (training, which is no inference)."""
    if f"{TRAINING}::Gradient" in case.operators:
        return "refusal"
    if case.name in EXACT:
        return "exact"
    return "property" if DRAWN & set(case.operators) else "value"


def difference(expected, found, rtol, atol):
    """What is wrong with a value; empty where it is right."""
    if isinstance(expected, list):
        if not isinstance(found, list):
            return f"expected a sequence, found {type(found).__name__}"
        if len(expected) != len(found):
            return f"expected {len(expected)} elements, found {len(found)}"
        problems = (difference(*pair, rtol, atol) for pair in zip(expected, found))
        return next((f"element {i}: {text}" for i, text in enumerate(problems) if text), "")
    if expected is None or found is None:
        return "" if expected is found else f"expected {describe(expected)}, found {describe(found)}"
    if describe(expected) != describe(found):
        return f"expected {describe(expected)}, found {describe(found)}"
    try:
        Runner.assert_similar_outputs([expected], [found], rtol, atol)
    except AssertionError as problem:
        return "values differ: " + " ".join(str(problem).split())
    return ""


def describe(value):
    return "nothing" if value is None else f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else type(value).__name__


def not_drawn(expected, found):
    """What is wrong with random zeros and ones."""
    if describe(expected) != describe(found):
        return f"expected {describe(expected)}, found {describe(found)}"
    numbers = np.asarray(found, dtype=np.float64)
    return "" if np.isin(numbers, (0, 1)).all() else "expected zeros and ones, found other numbers"


def outputs_differ(case, data_set, folder, compare):
    """What is wrong with the outputs in `folder`."""
    model = onnx.load(case.model, load_external_data=False)
    expected_files = numbered(case.data_set(data_set), "output")
    found_files = numbered(folder, "output")
    if len(expected_files) != len(found_files):
        return f"expected {len(expected_files)} outputs, found {len(found_files)}"
    for info, expected, found in zip(model.graph.output, expected_files, found_files):
        text = compare(from_file(expected, info.type), from_file(found, info.type))
        if text:
            return f"output '{info.name}': {text}"
    return ""


def exactly_differ(case, data_set, folder):
    """What is wrong with the outputs in `folder` beside the exact ones."""
    model = onnx.load(case.model, load_external_data=False)
    files = numbered(case.data_set(data_set), "input")
    inputs = {info.name: from_file(path, info.type) for info, path in zip(model.graph.input, files)}
    attributes = {a.name: onnx.helper.get_attribute_value(a) for node in model.graph.node for a in node.attribute}
    exact = iter(EXACT[case.name](inputs, attributes))
    return outputs_differ(
        case, data_set, folder,
        lambda expected, found: f"expected {describe(expected)}, found {describe(found)}"
        if describe(expected) != describe(found)
        else is_as_good(next(exact), expected, found, case.rtol, case.atol),
    )


def judge(case, data_set, answer, folder, again=None):
    """The text of what is wrong, empty where the case holds. `answer` is the runner's; `folder` has the outputs, `again` those of
    a second run, where one was asked for."""
    mode = mode_of(case)
    if mode == "refusal":
        if "error" not in answer:
            return "expected a refusal, found that it ran"
        missing = [word for word in (TRAINING, "Gradient") if word not in answer["error"]]
        return f"the refusal does not name {missing[0]}: {answer['error']}" if missing else ""
    if "error" in answer:
        return answer["error"]
    if mode in ("value", "exact"):
        text = outputs_differ(case, data_set, folder, lambda a, b: difference(a, b, case.rtol, case.atol))
        return exactly_differ(case, data_set, folder) if text and mode == "exact" else text
    return outputs_differ(case, data_set, folder, not_drawn) or (same_again(folder, again) if has_seed(case) else "")


def has_seed(case):
    model = onnx.load(case.model, load_external_data=False)
    return any(attribute.name == "seed" for node in model.graph.node for attribute in node.attribute)


def same_again(folder, again):
    same = [path.read_bytes() for path in numbered(folder, "output")] == [path.read_bytes() for path in numbered(again, "output")]
    return "" if same else "the same seed gave another result in a second run"
