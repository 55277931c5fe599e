"""ONNX's backend tests on Tessera: every case, by value. Started by `./dev onnx-suite`, in the environment that it makes."""

import argparse
import fnmatch
import json
import sys
from pathlib import Path

import cases
import judge
import onnx
import runs
import schemas
import summary

ROOT = Path(__file__).resolve().parents[2]


def parse_words():
    parser = argparse.ArgumentParser(prog="./dev onnx-suite", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CASE", help="names or globs; all cases where none is given")
    parser.add_argument("--devices", default="reference,cpu", help="where to run them (reference,cpu)")
    parser.add_argument("--threads", type=int, default=2, help="threads of a session (2)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "onnx_suite", help="cases, outputs and results")
    parser.add_argument("--runner", type=Path, default=ROOT / "build" / "release" / "bin" / "tessera_onnx_runner")
    parser.add_argument("--gaps", action="store_true", help="print what does not hold by operators and cause")
    parser.add_argument("--errors", action="store_true", help="print each case that does not hold")
    return parser.parse_args()


def judge_device(words, device, chosen):
    """The text of what is wrong, by case name; empty where it holds."""
    sets = [(case, index) for case in chosen for index in range(case.data_sets)]
    answers = runs.run_all(words.runner, device, words.threads, sets, words.folder / "outputs" / device)
    drawn = [pair for pair in sets if judge.mode_of(pair[0]) == "property"]
    second = dict(zip([(case.name, index) for case, index in drawn],
                      runs.run_all(words.runner, device, words.threads, drawn, words.folder / "outputs" / f"{device}_again")))
    errors = {case.name: "" for case in chosen}
    for (case, index), (answer, folder) in zip(sets, answers):
        again = second.get((case.name, index), (None, None))[1]
        errors[case.name] = errors[case.name] or judge.judge(case, index, answer, folder, again)
    return errors


def main():
    words = parse_words()
    all_cases = cases.load(words.folder / "cases")
    chosen = [case for case in all_cases if not words.names or any(fnmatch.fnmatch(case.name, name) for name in words.names)]
    if not chosen:
        sys.exit("tessera: onnx-suite: no case of that name")
    devices = words.devices.split(",")
    try:
        errors = {device: judge_device(words, device, chosen) for device in devices}
    except runs.Failed as problem:
        sys.exit(f"tessera: onnx-suite: {problem}")
    results = {
        "schema": "tessera.onnx_suite/1.0",
        "onnx": onnx.__version__,
        "devices": devices,
        "cases": [
            {
                "name": case.name,
                "category": case.category,
                "operators": case.operators,
                "mode": judge.mode_of(case),
                "errors": {device: errors[device][case.name] for device in devices},
            }
            for case in chosen
        ],
    }
    target = words.folder / ("results.json" if len(chosen) == len(all_cases) else "results_some.json")
    target.write_text(json.dumps(results, indent=1))
    print("\n".join(summary.score_table(results)))
    failed = {device: summary.failures(results, device) for device in devices}
    if any(failed.values()):
        print("\n" + "\n".join(summary.cause_table(results)))
    if words.gaps:
        print("\n" + "\n".join(summary.gap_table(results)))
    for device in devices if words.errors else []:
        for case, error in failed[device]:
            print(f"{device}: {case['name']}: {error}")
    lacking = schemas.check(ROOT / "docs" / "operators.md")
    print("\nONNX's schemas that the op table lacks: " + ("none" if not lacking else "\n  ".join(["", *lacking])))
    print(f"\nverdicts of all cases: {target}")
    sys.exit(1 if lacking or any(failed.values()) else 0)


if __name__ == "__main__":
    main()
