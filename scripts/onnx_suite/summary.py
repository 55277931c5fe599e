"""What came out of the suite, in tables. Knows only the JSON of the results."""

import re
from collections import Counter

# The first that matches names the cause.
CAUSES = (
    ("crash or no answer", re.compile(r"its process |no answer within")),
    ("unsupported operator", re.compile(r"the operator is not known|: version \d+ .*is not supported")),
    ("unsupported opset", re.compile(r"imports opset|has IR version")),
    ("wrong value", re.compile(r"values differ|expected zeros and ones|another result")),
    ("wrong type or shape", re.compile(r"^output '.*expected .*, found ")),
    ("unsupported type", re.compile(r"expected (fp|int|uint|bf|one of|a type)|not supported: type")),
)


def cause_of(error):
    return next((name for name, pattern in CAUSES if pattern.search(error)), "other refusal")


def failures(results, device):
    """(case, error) of those that do not hold on the device."""
    return [(case, case["errors"][device]) for case in results["cases"] if case["errors"][device]]


def table(headings, rows):
    """Lines, the first column to the left, the others to the right."""
    cells = [headings, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    return ["  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]).rstrip() for row in cells]


def score_table(results):
    """Cases that hold, of how many: by category, then by the way they are judged."""
    devices, cases = results["devices"], results["cases"]

    def row(title, some):
        return [title, len(some), *[sum(not case["errors"][device] for case in some) for device in devices]]

    rows = [row(name, [c for c in cases if c["category"] == name]) for name in sorted({c["category"] for c in cases})]
    rows.append(row("all", cases))
    modes = sorted({c["mode"] for c in cases}, reverse=True)
    rows += [row(f"by {mode}", [c for c in cases if c["mode"] == mode]) for mode in modes]
    return table(["category", "cases", *devices], rows)


def cause_table(results):
    """Cases that do not hold, by cause."""
    devices = results["devices"]
    counts = {d: Counter(cause_of(error) for _, error in failures(results, d)) for d in devices}
    causes = [cause for cause, _ in sum(counts.values(), Counter()).most_common()]
    return table(["cause", *devices], [[cause, *[counts[d][cause] for d in devices]] for cause in causes])


def gap_table(results):
    """What does not hold on any of the devices, by operators and cause, the most frequent first."""
    devices = results["devices"]
    counts = {d: Counter((", ".join(case["operators"]), cause_of(error)) for case, error in failures(results, d)) for d in devices}
    rows = [[operators if len(operators) < 60 else operators[:57] + "...", cause, *[counts[d][operators, cause] for d in devices]]
            for (operators, cause), _ in sum(counts.values(), Counter()).most_common()]
    return table(["operators of the case", "cause", *devices], rows)
