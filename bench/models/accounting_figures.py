"""The figures of the accounting benchmark, as pure functions: what a run was predicted to take, what it took, and where they part.

A record of a model is {"name"} with what summarise() makes, or with {"failed": why}. Times are in us.
"""

import math

import figures

LONG_US = 1000  # a shorter run is not judged by what is unaccounted: the clock itself takes part of it

# What is asked, and the limit up to which it holds. Each name can be given another limit on the command line.
TARGETS = {
    "unaccounted_each": ("|unaccounted| / measured, each model whose run takes over 1 ms", 0.05),
    "error_median": ("|predicted / measured - 1|, median of the models", 0.10),
    "error_each": ("|predicted / measured - 1|, each model", 0.25),
}


def predicted_us(instruction):
    """Of all calls in a run. Where nothing could be measured now, the plan's own price stands."""
    price_us = instruction["price_us"]
    return instruction["calls"] * (instruction["plan_us"] if price_us is None else price_us)


def _sums(instructions, key_of):
    """{"instructions", "predicted_us", "measured_us"} by key, in the order in which keys come first."""
    groups = {}
    for instruction in instructions:
        group = groups.setdefault(
            key_of(instruction), {"instructions": 0, "predicted_us": 0.0, "measured_us": 0.0}
        )
        group["instructions"] += 1
        group["predicted_us"] += predicted_us(instruction)
        group["measured_us"] += instruction["span_us"]
    return groups


def kernel_errors(instructions):
    """What each kernel took beyond its price (negative: less), the largest error first; what has no kernel is "runtime"."""
    sums = _sums(instructions, lambda instruction: instruction["kernel"] or "runtime")
    errors = [
        {"kernel": kernel, **group, "error_us": group["measured_us"] - group["predicted_us"]}
        for kernel, group in sums.items()
    ]
    return sorted(errors, key=lambda error: -abs(error["error_us"]))


def regions(instructions):
    """Predicted and measured time of each region: a run of instructions on one device."""
    sums = _sums(instructions, lambda one: (one["method"], one["region"], one["device"]))
    return [
        {"method": method, "region": region, "device": device, **group}
        for (method, region, device), group in sums.items()
    ]


def summarise(answer):
    """The figures of one model from what its worker says. Parts are medians over the runs, and so is what no part covers."""
    totals = answer["total_us"]
    covered = [sum(parts) for parts in zip(*answer["parts_us"].values())]
    instructions = answer["instructions"]
    return {
        "version": answer["version"],
        "caches": answer["caches"],
        "runs": len(totals),
        "predicted_us": sum(map(predicted_us, instructions)),
        "planned_us": sum(one["calls"] * one["plan_us"] for one in instructions),
        "measured_us": figures.median(totals),
        "parts_us": {part: figures.median(us) for part, us in answer["parts_us"].items()},
        "unaccounted_us": figures.median([total - part for total, part in zip(totals, covered)]),
        "not_measured": sum(one["price_us"] is None and bool(one["kernel"]) for one in instructions),
        "busy_prices": sum(one["busy"] for one in instructions),
        "others_share": answer["others_share"],
        "regions": regions(instructions),
        "kernels": kernel_errors(instructions),
        "instructions": instructions,
    }


def error(record):
    """|predicted / measured - 1|; infinite where the model failed."""
    if "failed" in record:
        return math.inf
    return abs(record["predicted_us"] / record["measured_us"] - 1)


def unaccounted_share(record):
    """Of the measured time, without its sign; infinite where the model failed."""
    if "failed" in record:
        return math.inf
    return abs(record["unaccounted_us"]) / record["measured_us"]


def is_long(record):
    return record.get("measured_us", math.inf) > LONG_US


def _median_verdict(limit, errors):
    """Models that failed break it, whatever the median of the others."""
    verdict = figures.verdict_of_each("error_median", TARGETS["error_median"][0], limit, errors)
    done = [value for value in errors.values() if math.isfinite(value)]
    verdict["value"] = figures.median(done) if done else None
    verdict["not_held_by"] = [entry for entry in verdict["not_held_by"] if entry[1] is None]
    if errors:
        holds = verdict["value"] is not None and verdict["value"] <= limit
        verdict["held"] = holds and not verdict["not_held_by"]
    return verdict


def verdicts(records, limits=None):
    """One verdict per target, as figures.verdicts() has them. `limits`: other limits, by name of the target."""
    limit = {name: target[1] for name, target in TARGETS.items()} | (limits or {})
    shares = {one["name"]: unaccounted_share(one) for one in records if is_long(one)}
    errors = {one["name"]: error(one) for one in records}
    each = {"unaccounted_each": shares, "error_each": errors}
    found = {
        name: figures.verdict_of_each(name, TARGETS[name][0], limit[name], values)
        for name, values in each.items()
    }
    found["error_median"] = _median_verdict(limit["error_median"], errors)
    return [found[name] for name in TARGETS]
