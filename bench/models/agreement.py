"""Whether an engine's outputs are the expected ones: a fast wrong answer must not count."""

import numpy

# Kind of computation: (relative tolerance, absolute one in units of the largest expected element of the output).
# int8: engines differ by rounding flips, so that only gross errors can be told.
TOLERANCES = {"fp32": (1e-3, 1e-4), "bf16": (5e-2, 5e-2), "int8": (0.0, 0.1)}


def largest_error(expected, found, kind):
    """(largest difference in units of the largest expected element, what is wrong or '')."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return None, (
            f"expected {expected.dtype}{list(expected.shape)}, found {found.dtype}{list(found.shape)}"
        )
    if expected.size == 0:
        return 0.0, ""
    if not numpy.issubdtype(expected.dtype, numpy.floating):
        return (0.0, "") if numpy.array_equal(expected, found) else (None, "integers differ")
    expected, found = expected.astype(numpy.float64), found.astype(numpy.float64)
    finite = numpy.isfinite(expected)
    if not numpy.array_equal(expected[~finite], found[~finite], equal_nan=True):
        return None, "elements that are not finite differ"
    expected, found = expected[finite], found[finite]
    if expected.size == 0:
        return 0.0, ""
    rtol, atol = TOLERANCES[kind]
    largest = numpy.abs(expected).max()
    difference = numpy.abs(expected - found)
    outside = int((~(difference <= atol * largest + rtol * numpy.abs(expected))).sum())
    error = float(difference.max() / largest) if largest > 0 else float(difference.max())
    problem = f"{outside} of {expected.size} elements outside the tolerance" if outside else ""
    return error, problem


def check_outputs(expected_npz, found_npz, kind):
    """(largest error over all expected outputs, what is wrong or ''), each output by its name."""
    largest = 0.0
    with numpy.load(expected_npz) as expected, numpy.load(found_npz) as found:
        for name in expected.files:
            if name not in found.files:
                return None, f"output '{name}' is missing"
            error, problem = largest_error(expected[name], found[name], kind)
            if problem:
                return error, f"output '{name}': {problem}"
            largest = max(largest, error)
    return largest, ""
