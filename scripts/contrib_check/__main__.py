"""The operators of com.microsoft on Tessera against ONNX Runtime: random models of one operator, by value. Started by `./dev contrib`."""

import argparse
import fnmatch
import shutil
import sys
from pathlib import Path

import attention
import engines
import layers
import numpy as np
import quantized
import rearranged
from case import difference

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {"layers": layers, "attention": attention, "quantized": quantized, "rearranged": rearranged}


def parse_words():
    parser = argparse.ArgumentParser(prog="./dev contrib", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CASE", help="names or globs (Attention*); all cases where none is given")
    parser.add_argument("--devices", default="reference,cpu", help="where to run them (reference,cpu)")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn sizes, attributes and elements (1)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "contrib", help="models, inputs and outputs")
    parser.add_argument("--runner", type=Path, default=ROOT / "build" / "release" / "bin" / "tessera_onnx_runner")
    return parser.parse_args()


def draw_cases(seed):
    """All cases, each family from a generator of its own."""
    cases = []
    for number, family in enumerate(FAMILIES.values()):
        drawn = family.cases(np.random.default_rng([seed, number]))
        for case in drawn:
            case.name = f"{case.op}/{case.label}"
            cases.append(case)
    return cases


def verdict(case, expected, found):
    """What is wrong with a run; empty where it is right."""
    if isinstance(found, str):
        return found
    for index, (want, have) in enumerate(zip(expected, found)):
        problem = difference(case, index, want, have)
        if problem:
            return f"output {index}: {problem}"
    return ""


def main():
    words = parse_words()
    cases = [c for c in draw_cases(words.seed) if not words.names or any(fnmatch.fnmatch(c.name, f"{name}*") for name in words.names)]
    if not cases:
        sys.exit("tessera: contrib: no case of that name")
    wrong = 0
    try:
        expected = [engines.expected_outputs(case) for case in cases]
        shutil.rmtree(words.folder / "cases", ignore_errors=True)
        tasks = [engines.write_task(case, words.folder / "cases" / case.name) for case in cases]
        for device in words.devices.split(","):
            results = engines.run_tessera(words.runner, device, cases, tasks, words.folder / "outputs" / device)
            for case, want, found in zip(cases, expected, results):
                problem = verdict(case, want, found)
                wrong += bool(problem)
                if problem:
                    print(f"{device}: {case.name}: {problem}")
    except engines.Failed as problem:
        sys.exit(f"tessera: contrib: {problem}")
    operators = len({case.op for case in cases})
    print(f"{len(cases)} models of {operators} operators on {words.devices}: {wrong} differ from what was expected (seed {words.seed})")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
