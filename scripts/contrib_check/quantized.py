"""8-bit and 4-bit operators. Whole numbers that come out may be off by one step: reals are rounded."""

import numpy as np
from case import Case, Input


def reals(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def weights(rng, *shape, dtype=np.int8):
    """Bytes; signed ones of 7 bits: before VNNI, ONNX Runtime adds products of uint8 and int8 in 16 bits, which larger ones overflow."""
    return rng.integers(-64, 64, shape).astype(dtype) if dtype == np.int8 else whole(rng, *shape, dtype=dtype)


def whole(rng, *shape, dtype=np.uint8):
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def scale(rng, *shape):
    return (rng.random(shape) * 0.05 + 0.005).astype(np.float32)


def products(rng):
    for a, b in ((np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)):
        for per_column in (False, True):
            n = 6
            columns = (n,) if per_column else ()
            label = f"{np.dtype(a).name}_{np.dtype(b).name}_{'columns' if per_column else 'one'}"
            zeros = [whole(rng, dtype=a), whole(rng, *columns, dtype=b)]
            yield Case(
                "MatMulIntegerToFloat",
                label,
                [
                    Input(whole(rng, 2, 3, 8, dtype=a), dims=["n", "m", 8]),
                    Input(weights(rng, 8, n, dtype=b), True),
                    scale(rng),
                    scale(rng, *columns),
                    *(Input(np.asarray(z), True) for z in zeros),
                    reals(rng, n),
                ],
            )
            if a is np.uint8:
                yield Case(
                    "DynamicQuantizeMatMul",
                    label,
                    [
                        Input(reals(rng, 2, 3, 8), dims=["n", "m", 8]),
                        Input(weights(rng, 8, n, dtype=b), True),
                        scale(rng, *columns),
                        Input(np.asarray(zeros[1]), True),
                        reals(rng, n),
                    ],
                )
    yield Case("MatMulIntegerToFloat", "bare", [whole(rng, 3, 8), weights(rng, 8, 5), scale(rng), scale(rng)])
    yield Case("DynamicQuantizeMatMul", "bare", [reals(rng, 3, 8), Input(weights(rng, 8, 5), True), scale(rng)])
    for label, reals_out, per_column, c in (("bytes", False, False, True), ("reals", True, True, True), ("columns", False, True, False)):
        columns = (5,) if per_column else ()
        inputs = [
            whole(rng, 7, 3),
            scale(rng),
            whole(rng),
            Input(weights(rng, 5, 7), True),
            Input(scale(rng, *columns), True),
            Input(whole(rng, *columns, dtype=np.int8), True),
            rng.integers(-500, 500, 5).astype(np.int32) if c else None,
            *((None, None) if reals_out else (np.float32(0.4).reshape(()), whole(rng))),
        ]
        inputs = [np.asarray(i) if isinstance(i, (np.generic,)) else i for i in inputs]
        yield Case("QGemm", label, inputs, {"transA": 1, "transB": 1, "alpha": 0.5}, steps=1)


def recurrent(rng):
    for label, direction, steps, batch, hidden, extra in (
        ("forward", "forward", 4, 1, 8, {}),
        ("reverse", "reverse", 5, 1, 6, {}),
        ("both", "bidirectional", 3, 1, 5, {}),
        ("batch", "forward", 3, 3, 8, {}),
        ("columns", "forward", 4, 2, 8, {}),
        ("clip", "forward", 3, 1, 8, {"clip": 0.4}),
        ("lengths", "forward", 4, 2, 6, {}),
    ):
        d = 2 if direction == "bidirectional" else 1
        size = 7
        per = (d, 4 * hidden) if label == "columns" else (d,)
        signed = np.int8 if label in ("forward", "both", "columns") else np.uint8
        x = Input(reals(rng, steps, batch, size), dims=["steps", "batch", size])
        lengths = np.array([4, 2], np.int32) if label == "lengths" else None
        inputs = [
            x,
            Input(weights(rng, d, size, 4 * hidden, dtype=signed), True),
            Input(weights(rng, d, hidden, 4 * hidden, dtype=signed), True),
            reals(rng, d, 8 * hidden),
            lengths,
            reals(rng, d, batch, hidden),
            reals(rng, d, batch, hidden),
            reals(rng, d, 3 * hidden) if label == "clip" else None,
        ]
        for _ in range(2):
            zero = np.zeros(per, signed) if signed is np.int8 else whole(rng, *per, dtype=signed)
            inputs += [Input((scale(rng, *per) / 4).astype(np.float32), True), Input(zero, True)]
        yield Case(
            "DynamicQuantizeLSTM",
            label,
            inputs,
            {"hidden_size": hidden, "direction": direction, **extra},
            ["y", "y_h", "y_c"],
            tolerance=(2e-4, 2e-4),
        )


def elementwise(rng):
    for dtype in (np.uint8, np.int8):
        name = np.dtype(dtype).name

        def byte(*shape, dtype=dtype):
            return whole(rng, *shape, dtype=dtype)

        def zero(dtype=dtype):
            return Input(np.asarray(whole(rng, dtype=dtype)), True)

        def one():
            return Input(np.asarray(scale(rng)), True)

        x = Input(byte(2, 3, 6, 6), dims=["n", 3, "h", "w"])
        for op in ("QLinearAdd", "QLinearMul"):
            yield Case(op, name, [x, one(), zero(), byte(3, 1, 6), one(), zero(), one(), zero()], steps=1)
            inputs = [x, one(), None, byte(2, 3, 6, 6), one(), None, Input(np.array(0.05, np.float32), True), None]
            zeros = [Input(np.zeros((), dtype), True) if one_input is None else one_input for one_input in inputs]
            yield Case(op, f"{name}_no_zeros", inputs[:-1], steps=1, instead=Case(op, "zeros", zeros))
        yield Case("QLinearSigmoid", name, [x, one(), zero(), Input(np.array(1 / 256, np.float32), True), zero()], steps=1)
        yield Case("QLinearLeakyRelu", name, [x, one(), zero(), one(), zero()], {"alpha": 0.2}, steps=1)
        least = Input(np.array(np.iinfo(dtype).min, dtype), True)
        for opset, axis in ((13, 1), (13, -1), (11, 2)):
            yield Case(
                "QLinearSoftmax",
                f"{name}_{opset}_axis{axis}",
                [x, one(), zero(), Input(np.array(1 / 256, np.float32), True), least],
                {"opset": opset, "axis": axis},
                steps=1,
            )
        for last in (0, 1):
            image = byte(2, 6, 7, 3) if last else byte(2, 3, 6, 7)
            attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "channels_last": last}
            for include in (0, 1):
                yield Case(
                    "QLinearAveragePool",
                    f"{name}_last{last}_include{include}",
                    [image, one(), zero(), one(), zero()],
                    {**attributes, "count_include_pad": include},
                    steps=1,
                )
            yield Case(
                "QLinearGlobalAveragePool", f"{name}_last{last}", [image, one(), zero(), one(), zero()], {"channels_last": last}, steps=1
            )
            conv = [
                image,
                one(),
                zero(),
                Input(weights(rng, 4, 3, 2, 2), True),
                Input(scale(rng, 4), True),
                Input(np.zeros(4, np.int8), True),
                Input(np.array(0.2, np.float32), True),
                zero(),
                rng.integers(-900, 900, 4).astype(np.int32),
            ]
            yield Case("QLinearConv", f"{name}_last{last}", conv, {"channels_last": last, "pads": [1, 0, 1, 0]}, steps=1)
        data, s, z = byte(2, 3, 4), scale(rng), whole(rng, dtype=dtype)
        s2, z2 = scale(rng), whole(rng, dtype=dtype)
        mean = ((data.astype(np.float64) - float(z)) * float(s)).mean((0, 2))
        bounds = np.iinfo(dtype)
        yield Case(
            "QLinearReduceMean",
            name,
            [data, np.asarray(s), np.asarray(z), np.asarray(s2), np.asarray(z2)],
            {"axes": [0, 2], "keepdims": 0},
            steps=1,
            expected=lambda m=mean, s2=s2, z2=z2, b=bounds, d=dtype: [np.clip(np.rint(m / float(s2)) + float(z2), b.min, b.max).astype(d)],
        )
        yield Case(
            "QLinearWhere",
            name,
            [rng.random((2, 1, 4)) < 0.5, byte(2, 3, 4), one(), zero(), byte(3, 1), one(), zero(), one(), zero()],
            steps=1,
        )
        yield Case("QLinearConcat", name, [one(), zero(), byte(2, 3), one(), zero(), byte(2, 1), one(), zero()], {"axis": 1}, steps=1)
        yield Case("NhwcMaxPool", name, [byte(1, 6, 7, 3)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})
        yield Case(
            "MulInteger",
            name,
            [a := byte(2, 3), a_zero := byte(1).reshape(()), b := byte(3), b_zero := byte(1).reshape(())],
            expected=lambda a=a, az=a_zero, b=b, bz=b_zero: [(a.astype(np.int32) - np.int32(az)) * (b.astype(np.int32) - np.int32(bz))],
        )
        yield Case("QuantizeLinear", name, [reals(rng, 3, 4), one(), zero()], steps=0)
        yield Case("QuantizeLinear", f"{name}_axis", [reals(rng, 3, 4), scale(rng, 4), byte(4)], {"axis": 1})
        yield Case("DequantizeLinear", name, [byte(3, 4), one(), zero()])
        yield Case("DequantizeLinear", f"{name}_axis", [byte(3, 4), scale(rng, 3), byte(3)], {"axis": 0})


def packed(values, bits):
    """Whole numbers of few bits along the last axis, in bytes, the first one lowest."""
    per = 8 // bits
    rows = values.reshape(-1, values.shape[-1])
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % per))).reshape(rows.shape[0], -1, per)
    return (rows.astype(np.uint32) << (np.arange(per) * bits).astype(np.uint32)).sum(-1).astype(np.uint8)


def blocks(rng):
    n = 5
    for bits in (4, 8, 2):
        for k, block in ((32, 16), (40, 16), (96, 32)):
            count = -(-k // block)
            for zeros in ("none", "packed", "real"):
                if zeros == "real" and bits != 4:
                    continue
                bytes_ = packed(rng.integers(0, 2**bits, (n, count * block)), bits).reshape(n, count, block * bits // 8)
                zero = {
                    "none": None,
                    "packed": Input(packed(rng.integers(0, 2**bits, (n, count)), bits).reshape(-1), True),
                    "real": Input(reals(rng, n, count) + 8, True),
                }[zeros]
                inputs = [
                    Input(reals(rng, 2, 3, k), dims=["b", "s", k]),
                    Input(bytes_, True),
                    Input(scale(rng, n, count), True),
                    zero,
                    None,
                    reals(rng, n) if k == 40 else None,
                ]
                yield Case("MatMulNBits", f"bits{bits}_k{k}_{zeros}", inputs, {"K": k, "N": n, "bits": bits, "block_size": block})
    for zeros in (False, True):  # weights that only the run knows
        bytes_, real_scale = packed(rng.integers(0, 16, (n, 48)), 4).reshape(n, 3, 8), scale(rng, n, 3)
        zero = packed(rng.integers(0, 16, (n, 3)), 4).reshape(-1) if zeros else None
        attributes = {"K": 40, "N": n, "bits": 4, "block_size": 16}
        yield Case("MatMulNBits", f"fed_zeros{int(zeros)}", [reals(rng, 2, 40), bytes_, real_scale, zero], attributes)
    table = packed(rng.integers(0, 16, (7, 32)), 4)
    for zeros in (False, True):
        inputs = [
            Input(table, True),
            Input(rng.integers(0, 7, (2, 3)), dims=["b", "s"]),
            Input(scale(rng, 7, 2), True),
            Input(packed(rng.integers(0, 16, (7, 2)), 4), True) if zeros else None,
        ]
        yield Case("GatherBlockQuantized", f"zeros{int(zeros)}", inputs, {"block_size": 16, "bits": 4})


def cases(rng):
    for family in (products, recurrent, elementwise, blocks):
        yield from family(rng)
