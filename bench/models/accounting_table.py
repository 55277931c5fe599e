"""The table and verdicts of the accounting benchmark, as text."""

from table import DISTURBED, grid, milliseconds, verdict_line

SHOWN_KERNELS = 3


def _kernel(error, measured_us):
    """A kernel, and its share in the error of the whole: positive where it took longer than its price says."""
    return f"{error['kernel']} {100 * error['error_us'] / measured_us:+.1f}%"


def _row(record):
    if "failed" in record:
        return [record["name"], "failed"] + [""] * 5
    measured_us = record["measured_us"]
    return [
        record["name"],
        record["caches"],
        milliseconds(record["predicted_us"]),
        milliseconds(measured_us),
        f"{record['predicted_us'] / measured_us:.3f}",
        f"{100 * record['unaccounted_us'] / measured_us:.1f}%",
        ", ".join(_kernel(error, measured_us) for error in record["kernels"][:SHOWN_KERNELS]),
    ]


def accounting_table(records):
    header = ["accounting, ms", "caches", "predicted", "measured", "ratio", "unaccounted"]
    return grid([*header, "longer than their price, of measured"], [_row(one) for one in records])


def notes(records, skipped):
    """A line for each model that failed, was skipped, or whose figures are less than sure."""
    lines = []
    for record in records:
        name = record["name"]
        if "failed" in record:
            lines.append(f"{name}: {record['failed']}")
            continue
        if record["others_share"] > DISTURBED:
            share = 100 * record["others_share"]
            lines.append(f"{name}: disturbed: other work took {share:.0f} % of the cores")
        if record["busy_prices"]:
            lines.append(f"{name}: prices taken while others used a core: {record['busy_prices']}")
        if record["not_measured"]:
            lines.append(f"{name}: prices of the plan, not to be measured: {record['not_measured']}")
    return lines + [f"{name}: skipped: {why}" for name, why in skipped.items()]


def render(records, verdicts, skipped):
    parts = [accounting_table(records), "\n".join(notes(records, skipped))]
    parts.append("\n".join(verdict_line(verdict) for verdict in verdicts))
    return "\n\n".join(part for part in parts if part) + "\n"
