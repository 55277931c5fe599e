#!/usr/bin/env python3
"""Does a run take what its prices say? Predicted against measured time, and what no part of the accounting covers.

Each model is compiled with prices measured in this session. Then one process takes the price of every kernel of the plan anew and
runs the artefact, in turn, in several rounds: both meet the same clock and the same neighbours. Predicted is the sum of these
prices, measured the median run, from its trace. No factor is fitted to anything.

The table and verdicts go to standard output, progress to standard error. Exit codes: 0 measured (targets may be missed), 1 a model
failed, or there was nothing to measure, 2 usage.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import accounting_figures
import accounting_table
import catalogue
import compare
import processes
from compare import ROOT, say


def parse_limit(word):
    name, _, value = word.partition("=")
    if name not in accounting_figures.TARGETS:
        known = ", ".join(accounting_figures.TARGETS)
        raise argparse.ArgumentTypeError(f"expected one of {known}, found '{name}'")
    return name, float(value)


def parse_arguments(words):
    parser = argparse.ArgumentParser(
        prog="./dev bench accounting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help="name or glob; all float models by default")
    add("--rounds", type=int, default=5, help="of prices and runs, in turn (5)")
    add("--runs", type=int, default=5, help="of the artefact in a round, at least (5)")
    add("--seconds", type=float, default=0.3, help="of runs in a round, at least (0.3)")
    add("--threads", type=int, default=2, help="of one inference (2)")
    add("--cost-table", type=Path, help="prices to plan with (measured for this session alone)")
    add(
        "--measure",
        choices=["off", "missing", "all"],
        default="missing",
        help="which of them to measure first (missing)",
    )
    add("--measure-seconds", type=float, default=60, help="time for that, per compilation (60)")
    add("--json", type=Path, default=ROOT / "build" / "bench_accounting.json", help="all figures")
    add(
        "--limit",
        type=parse_limit,
        action="append",
        default=[],
        metavar="TARGET=VALUE",
        help="another limit of " + ", ".join(accounting_figures.TARGETS),
    )
    add(
        "--shared",
        type=Path,
        default=Path(os.environ.get("TESSERA_SHARED", ROOT.parent / "shared")),
        help="folder with models/",
    )
    add("--filled", type=Path, default=ROOT / "build" / "models", help="where filled models are")
    add("--build", type=Path, default=ROOT / "build" / "release", help="build of Tessera")
    options = parser.parse_args(words)
    options.precision = "fp32"
    return options


def worker_command(options, artefact, inputs):
    words = {
        "model": artefact,
        "inputs": inputs,
        "threads": options.threads,
        "rounds": options.rounds,
        "runs": options.runs,
        "seconds": options.seconds,
    }
    runner = options.build / "bench" / "models" / "tessera_accounting_runner"
    return [runner] + [str(word) for name, value in words.items() for word in (f"--{name}", value)]


def measure_model(options, name, model):
    """The record of one model (accounting_figures.py)."""
    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as work:
        bench = compare.Bench(options, name, model, Path(work))
        record = {"name": name, "shapes": bench.shapes}
        try:
            record["compile"] = bench.compile(options.threads)
            command = worker_command(
                options, bench.artefact(options.threads), bench.folder / "inputs.npz"
            )
            return record | accounting_figures.summarise(processes.run_worker(command))
        except (processes.Failed, OSError) as failure:
            return record | {"failed": str(failure)}


def progress_line(index, count, record):
    text = record.get("failed") or (
        f"predicted {record['predicted_us'] / 1000:.3f}, measured {record['measured_us'] / 1000:.3f} ms"
    )
    return f"[{index}/{count}] {record['name']}: {text}"


def report(options, records, skipped, seconds):
    """Prints table and verdicts, writes the JSON."""
    verdicts = accounting_figures.verdicts(records, dict(options.limit))
    print(accounting_table.render(records, verdicts, skipped))
    keys = ("threads", "rounds", "runs", "seconds", "measure", "measure_seconds")
    content = {
        "schema": "tessera.bench_accounting/1.0",
        "machine": compare.machine(),
        "settings": {key: getattr(options, key) for key in keys},
        "models": records,
        "skipped": skipped,
        "verdicts": verdicts,
        "time_s": seconds,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    say(f"wrote {options.json} after {seconds:.0f} s")


def main():
    options = parse_arguments(sys.argv[1:])
    begin = time.monotonic()
    try:
        models, skipped = compare.find_models(options)
    except catalogue.UnknownModel as error:
        say(f"bench accounting: {error}")
        return 2
    if not models:
        say(f"bench accounting: no model below {options.shared / 'models'}")
        return 1
    records = []
    with tempfile.TemporaryDirectory(prefix="tessera-prices-") as session:
        options.cost_table = options.cost_table or Path(session) / "prices.json"
        for name, path in models.items():
            records.append(measure_model(options, name, path))
            say(progress_line(len(records), len(models), records[-1]))
    report(options, records, skipped, time.monotonic() - begin)
    return 1 if any("failed" in record for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
