"""Normalisations, activations, products and convolutions."""

from math import erf

import numpy as np
from case import HALF, Case, Input
from engines import expected_outputs


def reals(rng, *shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normalizations(rng):
    b, s, h = 2, 5, 24
    names = ["batch", "length", h]
    for domain in ("", "com.microsoft"):
        for axis in (-1, 1):
            x, scale = reals(rng, b, s, h), reals(rng, *((s, h) if axis == 1 else (h,)))
            outputs = ["y", "inv"] if axis == 1 else ["y"]
            case = Case(
                "SimplifiedLayerNormalization",
                f"{domain or 'onnx'}_axis{axis}",
                [Input(x, dims=names if axis == -1 else None), scale],
                {"axis": axis, "epsilon": 1e-3},
                outputs,
                domain=domain,
            )
            if domain:  # ONNX Runtime has it in ai.onnx alone
                squares = np.mean(x.astype(np.float64) ** 2, axis=(1, 2) if axis == 1 else -1, keepdims=True) + 1e-3
                case.expected = lambda x=x, scale=scale, squares=squares: [
                    (x / np.sqrt(squares) * scale).astype(np.float32),
                    (1 / np.sqrt(squares)).astype(np.float32),
                ]
            yield case
    for dtype in (np.float64, np.float16):
        inputs = [reals(rng, b, s, h, dtype=dtype), reals(rng, h, dtype=dtype)]
        yield Case("SimplifiedLayerNormalization", np.dtype(dtype).name, inputs, {"epsilon": 1e-3}, domain="", tolerance=HALF)
    for label, skip, beta, bias in (
        ("plain", (b, s, h), True, False),
        ("bias", (b, s, h), True, True),
        ("broadcast", (1, s, h), False, True),
        ("rank2", (s, h), True, False),
    ):
        inputs = [
            Input(reals(rng, b, s, h), dims=names if label in ("plain", "bias") else None),
            reals(rng, *skip),
            reals(rng, h),
            reals(rng, h) if beta else None,
            reals(rng, h) if bias else None,
        ]
        yield Case("SkipLayerNormalization", label, inputs, {"epsilon": 1e-5}, ["y", "", "", "sum"])
    yield Case(
        "SkipLayerNormalization",
        "fp16",
        [reals(rng, b, s, h, dtype=np.float16) for _ in range(2)] + [reals(rng, h, dtype=np.float16) for _ in range(3)],
        tolerance=HALF,
    )
    for bias in (False, True):
        inputs = [
            Input(reals(rng, b, s, h), dims=names),
            Input(reals(rng, b, s, h), dims=names),
            reals(rng, h),
            reals(rng, h) if bias else None,
        ]
        yield Case("SkipSimplifiedLayerNormalization", f"bias{int(bias)}", inputs, {"epsilon": 1e-6}, ["y", "", "", "sum"])
    for label, segments, mask, positions in (("all", True, True, True), ("bare", False, False, False), ("mask", True, True, False)):
        ids = rng.integers(0, 11, (b, s)).astype(np.int32)
        inputs = [
            Input(ids, dims=["batch", "length"]),
            rng.integers(0, 2, (b, s)).astype(np.int32) if segments else None,
            reals(rng, 11, h),
            reals(rng, 9, h),
            reals(rng, 2, h) if segments else None,
            reals(rng, h),
            reals(rng, h),
            (rng.random((b, s)) < 0.7).astype(np.int32) if mask else None,
            rng.integers(0, 9, (b, s)).astype(np.int32) if positions else None,
        ]
        yield Case("EmbedLayerNormalization", label, inputs, {"epsilon": 1e-5}, ["y", "index", "sum"] if positions else ["y", "index"])


def group_norm(x, gamma, beta, groups, epsilon, silu, channels_last):
    x = x.astype(np.float64)
    if channels_last:
        x = np.moveaxis(x, -1, 1)
    parts = x.reshape(x.shape[0], groups, -1)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + epsilon)
    y = parts.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    y = y * sigmoid(y) if silu else y
    return (np.moveaxis(y, 1, -1) if channels_last else y).astype(np.float32)


def groups(rng):
    for silu in (0, 1):
        for last in (0, 1):
            shape = (2, 3, 4, 8) if last else (2, 8, 3, 4)
            x, gamma, beta, bias = reals(rng, *shape), reals(rng, 8), reals(rng, 8), reals(rng, 8)
            attributes = {"activation": silu, "groups": 4, "channels_last": last, "epsilon": 1e-3}
            yield Case(
                "GroupNorm",
                f"silu{silu}_last{last}",
                [x, gamma, beta],
                attributes,
                expected=lambda x=x, g=gamma, b=beta, silu=silu, last=last: [group_norm(x, g, b, 4, 1e-3, silu, last)],
            )
            skip = reals(rng, 2, 8) if silu else reals(rng, *shape)
            wide = skip.reshape((2, 1, 1, 8) if last else (2, 8, 1, 1)) if silu else skip
            total = x + wide + (bias if last else bias[:, None, None])
            yield Case(
                "SkipGroupNorm",
                f"silu{silu}_last{last}",
                [x, gamma, beta, skip, bias],
                attributes,
                ["y", "s"],
                expected=lambda t=total, g=gamma, b=beta, silu=silu, last=last: [group_norm(t, g, b, 4, 1e-3, silu, last), t],
            )


def activations(rng):
    x = Input(reals(rng, 3, 4, 10) * 2, dims=["n", "m", 10])
    for op, inputs in (("FastGelu", 2), ("BiasGelu", 2), ("Gelu", 1)):
        halves = [reals(rng, 3, 10, dtype=np.float16), reals(rng, 10, dtype=np.float16)][:inputs]
        wide = [one.astype(np.float32) for one in halves]
        case = Case(op, "fp16", halves, tolerance=HALF)
        case.expected = lambda op=op, wide=wide: [expected_outputs(Case(op, "wide", wide))[0].astype(np.float16)]
        yield case
    yield Case("Gelu", "plain", [x])
    yield Case("BiasGelu", "plain", [x, reals(rng, 10)])
    yield Case("FastGelu", "plain", [x])
    yield Case("FastGelu", "bias", [x, reals(rng, 10)])
    yield Case("QuickGelu", "alpha", [x], {"alpha": 1.3})
    total = (x.value + (bias := reals(rng, 10))).astype(np.float64)
    right = total[..., 5:]
    gelu = 0.5 * right * (1 + np.vectorize(erf)(right / np.sqrt(2)))
    yield Case("BiasSplitGelu", "plain", [x, bias], expected=lambda: [(total[..., :5] * gelu).astype(np.float32)])
    skip = reals(rng, 3, 4, 10)
    yield Case("BiasAdd", "plain", [x, bias, skip], expected=lambda: [x.value + bias + skip])


def products(rng):
    for label, a, b, attributes in (
        ("plain", (2, 3, 4), (2, 4, 5), {}),
        ("trans", (2, 4, 3), (2, 5, 4), {"transA": 1, "transB": 1, "alpha": 0.25}),
        ("broadcast", (2, 1, 3, 4), (6, 5, 4), {"transB": 1}),
        ("batch_a", (3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ("batch_b", (2, 3, 4), (4, 2, 5), {"transBatchB": 1, "alpha": 2.0}),
        ("batch_both", (4, 2, 6, 3), (2, 6, 5, 4), {"transBatchA": 1, "transA": 1, "transB": 1}),
        ("matrix", (4, 3), (4, 5), {"transA": 1}),
    ):
        yield Case("FusedMatMul", label, [reals(rng, *a), reals(rng, *b)], attributes)
    yield Case(
        "FusedMatMul",
        "symbolic",
        [Input(reals(rng, 2, 4, 3), dims=["b", 4, "m"]), Input(reals(rng, 2, 4, 5), dims=["b", 4, "n"])],
        {"transA": 1},
    )
    yield Case("TransposeMatMul", "plain", [reals(rng, 2, 4, 3), reals(rng, 2, 5, 4)], {"transA": 1, "transB": 1, "alpha": 0.5})
    for activation, extra in (
        ("Relu", {}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("Sigmoid", {}),
        ("Tanh", {}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
        ("Elu", {"activation_alpha": 0.7}),
    ):
        attributes = {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": activation, **extra}
        yield Case("FusedGemm", activation, [Input(reals(rng, 3, 4), dims=["m", 4]), reals(rng, 5, 4), reals(rng, 5)], attributes)


def convolutions(rng):
    x, w, b = reals(rng, 2, 4, 7, 6), reals(rng, 6, 2, 3, 3), reals(rng, 6)
    shape = {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1]}
    z = reals(rng, 2, 6, 4, 6)
    for activation, parameters in (
        ("", []),
        ("Relu", []),
        ("LeakyRelu", [0.1]),
        ("Clip", [-0.5, 0.75]),
        ("HardSigmoid", [0.3, 0.4]),
        ("Sigmoid", []),
        ("Tanh", []),
    ):
        attributes = {
            **shape,
            **({"activation": activation} if activation else {}),
            **({"activation_params": parameters} if parameters else {}),
        }
        yield Case("FusedConv", activation or "none", [Input(x, dims=["n", 4, "h", "w"]), w, b], attributes)
        yield Case("FusedConv", f"{activation or 'none'}_sum", [x, w, b, z], attributes)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))

    def conv_last(total=None):
        y = reference_conv(x, w, b, 2, (1, 1), (2, 1)) + (0 if total is None else total)
        return [np.ascontiguousarray(np.moveaxis(np.maximum(y, 0) if total is not None else y, 1, -1)).astype(np.float32)]

    yield Case("NhwcConv", "plain", [last, w, b], shape, expected=conv_last)
    z_last = np.ascontiguousarray(np.moveaxis(z, 1, -1))
    yield Case("NhwcFusedConv", "relu_sum", [last, w, b, z_last], {**shape, "activation": "Relu"}, expected=lambda: conv_last(z))


def reference_conv(x, w, b, group, pads, strides):
    """A convolution by its definition, in double."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[0]), (pads[1], pads[1])))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, :: strides[0], :: strides[1]]
    parts = np.split(windows, group, axis=1)
    kernels = np.split(w.astype(np.float64), group, axis=0)
    return np.concatenate([np.einsum("nchwij,mcij->nmhw", p, k) for p, k in zip(parts, kernels)], axis=1) + b[:, None, None]


def cases(rng):
    for family in (normalizations, groups, activations, products, convolutions):
        yield from family(rng)
