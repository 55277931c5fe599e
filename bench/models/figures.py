"""The figures of the model benchmark, as pure functions: medians, ratios, recovery, and whether the targets hold.

A result of an engine is either {"failed": why} or what summarise() makes. A record of a model is
  {"name", "engines": {engine: result}, "busy": {engine: result of summarise_busy() or {"failed": why}},
   "compile": {threads: {"price_hits", "price_misses"}}}
Times are in us, sizes in bytes, ratios Tessera's figure by the peer's: below 1 is better than the peer.
"""

import math

OWN = "tessera"
REFERENCE = "onnxruntime"
GUESSED_SHARE = 0.1  # of a plan's prices: with more estimates than this it is not judged by

# A run counts as being at full speed up to this multiple of the quiet latency, judged over so many runs.
FULL_SPEED = 1.1
RECOVERY_WINDOW = 5

# A load up to here is never too long, and up to this share of the reference's.
SHORT_LOAD_US = 5000
LOAD_SHARE = 0.1

# What is asked, and the limit up to which it holds. Each name can be given another limit on the command line.
TARGETS = {
    "latency_mean": ("geometric mean of latency / {reference}", 1.0),
    "latency_each": ("latency / better peer, each model", 1.3),
    "start_each": ("load + first run / {reference}'s, each model", 1 / 3),
    "load_each": ("load / larger of 5 ms and a tenth of {reference}'s, each model", 1.0),
    "memory_each": ("peak RSS less weights / better peer's, each model", 1.0),
    "busy_one_thread": ("busy core: latency / own quiet one-thread latency, each model", 1.1),
    "recovery_runs": ("runs until back at full speed, each model", 50),
}


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values, share):
    """The smallest value that `share` (0 to 1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def geometric_mean(values):
    """Of positive values; None of no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def spread(values):
    """(largest - smallest) / median."""
    return (max(values) - min(values)) / median(values)


def summarise(answers, weights_bytes):
    """What the workers of all rounds of one engine found, in one result: medians over the rounds, the p99 over all runs."""
    medians_us = [median(answer["latency_us"]) for answer in answers]
    result = {
        "latency_us": median(medians_us),
        "spread": spread(medians_us),
        "p99_us": percentile([us for answer in answers for us in answer["latency_us"]], 0.99),
        "start_us": median([answer["load_us"] + answer["first_run_us"] for answer in answers]),
        "round_latency_us": medians_us,
        "runs": sum(len(answer["latency_us"]) for answer in answers),
    }
    for key in ("load_us", "first_run_us", "baseline_rss_bytes", "peak_rss_bytes"):
        result[key] = median([answer[key] for answer in answers])
    result["others_share"] = max(answer["others_share"] for answer in answers)
    result["net_rss_bytes"] = result["peak_rss_bytes"] - weights_bytes
    result["added_rss_bytes"] = result["net_rss_bytes"] - result["baseline_rss_bytes"]
    return result


def split_phases(starts_us, latencies_us, spin_us):
    """Latencies of the runs before, during and after another process was spinning, in order.

    `spin_us`: (last moment without it, first with it, last with it, first without it). Runs across a border are dropped.
    """
    quiet_end, busy_begin, busy_end, after_begin = spin_us
    quiet, busy, after = [], [], []
    for start, latency in zip(starts_us, latencies_us):
        end = start + latency
        if end <= quiet_end:
            quiet.append(latency)
        elif start >= busy_begin and end <= busy_end:
            busy.append(latency)
        elif start >= after_begin:
            after.append(latency)
    return quiet, busy, after


def recovery_runs(latencies_us, full_speed_us):
    """How many runs pass until the median of the next RECOVERY_WINDOW is full speed again; None where that is not seen."""
    for first in range(len(latencies_us) - RECOVERY_WINDOW + 1):
        window = latencies_us[first : first + RECOVERY_WINDOW]
        if median(window) <= FULL_SPEED * full_speed_us:
            return first
    return None


def summarise_busy(one_thread_us, phases):
    """The result of a busy core: `phases` as split_phases() gives them, `one_thread_us` the quiet latency of one thread."""
    quiet, busy, after = phases
    if not quiet or not busy:
        return {"failed": f"too slow to be timed: {len(quiet)} quiet and {len(busy)} busy runs"}
    return {
        "one_thread_us": one_thread_us,
        "quiet_us": median(quiet),
        "busy_us": median(busy),
        "busy_p99_us": percentile(busy, 0.99),
        "busy_runs": len(busy),
        "after_runs": len(after),
        "recovery_runs": recovery_runs(after, median(quiet)),
        "after_us": after[:200],
    }


def figure(record, engine, key, part="engines"):
    """One figure of one engine; None where it failed or was not measured."""
    return record.get(part, {}).get(engine, {}).get(key)


def ratio(record, key, peers):
    """Tessera's figure by the best of `peers`: None where no peer has a positive one, infinite where Tessera has none."""
    theirs = [figure(record, peer, key) for peer in peers]
    theirs = [value for value in theirs if value is not None and value > 0]
    if not theirs:
        return None
    ours = figure(record, OWN, key)
    return math.inf if ours is None else ours / min(theirs)


def ratios(records, key, peers):
    """Ratios by name of the models that have one."""
    found = {record["name"]: ratio(record, key, peers) for record in records}
    return {name: value for name, value in found.items() if value is not None}


def mean_ratio(records, key, peer):
    """Geometric mean over the models that both engines did right; None where there are none."""
    return geometric_mean(
        [value for value in ratios(records, key, [peer]).values() if 0 < value < math.inf]
    )


def _load_values(records, reference):
    """Tessera's load by what is allowed, where the reference has one."""
    values = {}
    for record in records:
        theirs = figure(record, reference, "load_us")
        if theirs is not None:
            ours = figure(record, OWN, "load_us")
            allowed = max(SHORT_LOAD_US, LOAD_SHARE * theirs)
            values[record["name"]] = math.inf if ours is None else ours / allowed
    return values


def _busy_values(records, value_of):
    values = {}
    for record in records:
        result = record.get("busy", {}).get(OWN)
        if result is not None:
            values[record["name"]] = math.inf if "failed" in result else value_of(result)
    return values


def _planned_from_prices(records):
    """Those whose plan for one thread is no guess: a poor one would flatter what is held against it."""
    return [record for record in records if not _is_guessed(record.get("compile", {}).get("1"))]


def _is_guessed(compiled):
    if compiled is None:
        return False
    misses = compiled["price_misses"]
    return misses > GUESSED_SHARE * (misses + compiled["price_hits"])


def _recovery(result):
    runs = result["recovery_runs"]
    return math.inf if runs is None else runs


def _verdict(name, limit, reference, values):
    return verdict_of_each(name, TARGETS[name][0].format(reference=reference), limit, values)


def verdict_of_each(name, target, limit, values):
    """Of a target of each model; `values` by model, infinite where it failed. Its value is the worst that there is."""
    worse = sorted((model for model in values if not values[model] <= limit), key=values.get)
    return {
        "name": name,
        "target": target,
        "limit": limit,
        "judged": len(values),
        "value": max(filter(math.isfinite, values.values()), default=None),
        "held": None if not values else not worse,
        "not_held_by": [
            [model, values[model] if math.isfinite(values[model]) else None] for model in worse
        ],
    }


def _mean_verdict(limit, reference, values):
    """Models that Tessera failed on break it, whatever the mean of the others."""
    verdict = _verdict("latency_mean", limit, reference, values)
    done = [value for value in values.values() if math.isfinite(value)]
    verdict["value"] = geometric_mean(done)
    verdict["not_held_by"] = [entry for entry in verdict["not_held_by"] if entry[1] is None]
    if values:
        mean_holds = verdict["value"] is not None and verdict["value"] <= limit
        verdict["held"] = mean_holds and not verdict["not_held_by"]
    return verdict


def verdicts(records, peers, limits=None):
    """One verdict per target: its value (mean or worst), whether it is held (None: nothing to judge), and by whom not.

    Where ONNX Runtime is not among the peers, the first peer stands in for it. `limits`: other limits, by name of the target.
    """
    limit = {name: target[1] for name, target in TARGETS.items()} | (limits or {})
    reference = REFERENCE if REFERENCE in peers else (peers[0] if peers else "no peer")
    values = {
        "latency_each": ratios(records, "latency_us", peers),
        "start_each": ratios(records, "start_us", [reference]),
        "load_each": _load_values(records, reference),
        "memory_each": ratios(records, "net_rss_bytes", peers),
        "busy_one_thread": _busy_values(
            _planned_from_prices(records), lambda r: r["busy_us"] / r["one_thread_us"]
        ),
        "recovery_runs": _busy_values(records, _recovery),
    }
    mean = _mean_verdict(
        limit["latency_mean"], reference, ratios(records, "latency_us", [reference])
    )
    return [mean] + [_verdict(name, limit[name], reference, values[name]) for name in values]
