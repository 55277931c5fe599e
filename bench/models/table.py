"""The tables and verdicts of the model benchmark, as text."""

from figures import OWN, figure, mean_ratio, ratio

SHORT = {"tessera": "Tessera", "onnxruntime": "ORT", "openvino": "OpenVINO"}
MIB = 1 << 20
DISTURBED = 0.05  # share of the cores that other work may take before a figure is called disturbed


def _number(value, scale):
    return "-" if value is None else f"{value / scale:.1f}"


def milliseconds(value_us):
    """Three significant digits, or so."""
    if value_us is None:
        return "-"
    value_ms = value_us / 1000
    return (
        f"{value_ms:.3f}"
        if value_ms < 1
        else f"{value_ms:.2f}" if value_ms < 100 else f"{value_ms:.0f}"
    )


def _ratio(value):
    """`-` where there is none, and where Tessera failed."""
    return "-" if value is None or value == float("inf") else f"{value:.2f}"


def grid(header, rows):
    """Columns as wide as their widest cell, the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def _latency_cells(record, engine):
    result = record["engines"].get(engine, {})
    if "failed" in result:
        return ["failed", "", ""]
    if not result:
        return ["-", "", ""]
    return [
        milliseconds(result["latency_us"]),
        f"{result['spread'] * 50:.0f}%" if len(result["round_latency_us"]) > 1 else "",
        milliseconds(result["p99_us"]),
    ]


def latency_table(records, engines):
    """`+-` is half of the distance between the fastest and the slowest round."""
    peers = [engine for engine in engines if engine != OWN]
    header = ["latency, ms"]
    for engine in engines:
        header += [SHORT[engine], "+-", "p99"]
    header += [f"/{SHORT[peer]}" for peer in peers] + ["/better"]
    rows = []
    for record in records:
        row = [record["name"]]
        for engine in engines:
            row += _latency_cells(record, engine)
        row += [_ratio(ratio(record, "latency_us", [peer])) for peer in peers]
        rows.append(row + [_ratio(ratio(record, "latency_us", peers))])
    means = [_ratio(mean_ratio(records, "latency_us", peer)) for peer in peers]
    rows.append(["geometric mean"] + [""] * 3 * len(engines) + means + [""])
    return grid(header, rows)


def start_table(records, engines):
    peers = [engine for engine in engines if engine != OWN]
    header = ["start, ms"]
    for word in ("load", "first"):
        header += [f"{word} {SHORT[engine]}" for engine in engines]
    for word in ("load", "load+first"):
        header += [f"{word} /{SHORT[peer]}" for peer in peers]
    rows = []
    for record in records:
        row = [record["name"]]
        for key in ("load_us", "first_run_us"):
            row += [milliseconds(figure(record, engine, key)) for engine in engines]
        for key in ("load_us", "start_us"):
            row += [_ratio(ratio(record, key, [peer])) for peer in peers]
        rows.append(row)
    row = ["geometric mean"] + [""] * 2 * len(engines)
    for key in ("load_us", "start_us"):
        row += [_ratio(mean_ratio(records, key, peer)) for peer in peers]
    return grid(header, [*rows, row])


def memory_table(records, engines):
    """net: peak RSS less weights. base: what the process had before it read anything. added: net less base."""
    peers = [engine for engine in engines if engine != OWN]
    header = ["memory, MiB", "weights"]
    for engine in engines:
        header += [f"{SHORT[engine]} net", "base"]
    for word in ("net", "added"):
        header += [f"{word} /{SHORT[peer]}" for peer in peers]
    keys = ("net_rss_bytes", "added_rss_bytes")
    rows = []
    for record in records:
        row = [record["name"], _number(record["weights_bytes"], MIB)]
        for engine in engines:
            for key in ("net_rss_bytes", "baseline_rss_bytes"):
                row.append(_number(figure(record, engine, key), MIB))
        row += [_ratio(ratio(record, key, [peer])) for key in keys for peer in peers]
        rows.append(row)
    means = [_ratio(mean_ratio(records, key, peer)) for key in keys for peer in peers]
    rows.append(["geometric mean", ""] + [""] * 2 * len(engines) + means)
    return grid(header, rows)


def _busy_cells(record, engine):
    result = record.get("busy", {}).get(engine)
    if result is None:
        return ["-"] * 6
    if "failed" in result:
        return ["failed"] + [""] * 5
    runs = result["recovery_runs"]
    return [
        milliseconds(result["one_thread_us"]),
        milliseconds(result["quiet_us"]),
        milliseconds(result["busy_us"]),
        _ratio(result["busy_us"] / result["one_thread_us"]),
        _ratio(result["busy_us"] / result["quiet_us"]),
        f">{result['after_runs']}" if runs is None else str(runs),
    ]


def busy_table(records, engines):
    header = ["busy core, ms"]
    for engine in engines:
        header += [f"{SHORT[engine]} 1 thr", "quiet", "busy", "/1 thr", "/quiet", "runs back"]
    rows = []
    for record in records:
        row = [record["name"]]
        for engine in engines:
            row += _busy_cells(record, engine)
        rows.append(row)
    return grid(header, rows)


def failures(records):
    """A line for each engine that gave no answer, or a wrong one."""
    lines = []
    for record in records:
        for part in ("engines", "busy"):
            for engine, result in record.get(part, {}).items():
                if "failed" in result:
                    where = " (busy core)" if part == "busy" else ""
                    lines.append(f"{record['name']}: {SHORT[engine]}{where}: {result['failed']}")
    return lines


def disturbances(records):
    """A line for each model during whose runs other work took much of the machine."""
    lines = []
    for record in records:
        shares = [
            figure(record, engine, "others_share", part) or 0
            for part in ("engines", "busy")
            for engine in record["engines"]
        ]
        if max(shares) > DISTURBED:
            text = f"disturbed: other work took up to {100 * max(shares):.0f} % of the cores"
            lines.append(f"{record['name']}: {text}")
    return lines


def verdict_line(verdict):
    """`held`, `NOT HELD` or `not judged`; the value (mean or worst) against its limit; the models that break it."""
    if verdict["held"] is None:
        return f"not judged  {verdict['target']}"
    state = "held       " if verdict["held"] else "NOT HELD   "
    value = "-" if verdict["value"] is None else f"{verdict['value']:.2f}"
    line = f"{state} {verdict['target']}: {value} (limit {verdict['limit']:g}, {verdict['judged']} models)"
    missing = "not seen" if verdict["name"] == "recovery_runs" else "failed"
    worse = [
        f"{model} {missing if value is None else f'{value:.2f}'}"
        for model, value in verdict["not_held_by"]
    ]
    return line + (f"; not by {', '.join(worse)}" if worse else "")


def render(records, engines, verdicts, skipped):
    parts = [table(records, engines) for table in (latency_table, start_table, memory_table)]
    if any(record.get("busy") for record in records):
        parts.append(busy_table(records, engines))
    notes = failures(records) + disturbances(records)
    notes += [f"{name}: skipped: {why}" for name, why in skipped.items()]
    if notes:
        parts.append("\n".join(notes))
    parts.append("\n".join(verdict_line(verdict) for verdict in verdicts))
    return "\n\n".join(parts) + "\n"
