"""Operators that move, make or reduce elements under signatures of their own."""

import numpy as np
from case import Case, Input


def reals(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def cases(rng):
    x = Input(reals(rng, 3, 4), dims=["n", 4])
    for mode in ("constant", "reflect", "edge"):
        yield Case(
            "Pad", mode, [x, np.array([1, 0, 2, 1], np.int64), np.array([2.5], np.float32) if mode == "constant" else None], {"mode": mode}
        )
    yield Case("Pad", "rank2", [x, np.array([[0, 1, 0, 2]], np.int64)])
    yield Case("Unique", "plain", [np.array([2, 1, 1, 3, 4, 3, 2], np.float32)], outputs=["y", "idx", "counts"])
    for upper in (0, 1):
        yield Case("Trilu", f"upper{upper}", [reals(rng, 2, 4, 5), np.array(1, np.int64)], {"upper": upper})
    for axis in (0, 1, -1, 2):
        yield Case("ExpandDims", f"axis{axis}", [x, Input(np.array(axis, np.int32), True)])
    for dtype in (np.float32, np.int32, np.int64, np.int16):
        yield Case("Range", np.dtype(dtype).name, [np.array(2, dtype), np.array([11], dtype), np.array(3, dtype)])
    yield Case("Range", "steps", [np.array(0, np.int64), np.array(4, np.int64)])
    for dtype in (np.int32, np.int64):
        yield Case("GatherND", np.dtype(dtype).name, [reals(rng, 3, 4, 2), np.array([[0, 1], [2, 3]], dtype)])
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        a, b = (reals(rng, rows, 7).astype(dtype) for rows in (5, 4))
        for metric in ("euclidean", "sqeuclidean"):
            inputs = [Input(a, dims=["m", 7]), Input(b, dims=["k", 7])]
            yield Case("CDist", f"{metric}_{name}", inputs, {"metric": metric}, tolerance=(1e-4, 1e-4))
        matrices = (reals(rng, 2, 4, 4) + 3 * np.eye(4)).astype(dtype)
        yield Case("Inverse", name, [matrices], tolerance=(1e-4, 1e-4))
