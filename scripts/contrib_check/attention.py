"""Attention in all its forms, with masks, caches, positions."""

import numpy as np
from case import HALF, Case, Input
from engines import expected_outputs


def reals(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def int32(values):
    return np.asarray(values, np.int32)


def masks(rng, b, s, t):
    """Masks by their form; every query sees a key."""

    def ones(*shape):
        drawn = (rng.random(shape) < 0.7).astype(np.int32)
        drawn[..., 0] = 1
        return drawn

    return {
        "none": None,
        "lengths": int32(rng.integers(1, t + 1, b)),
        "keys": ones(b, t),
        "square": ones(b, s, t),
    }


def merged(rng):
    b, s, n, h, d = 2, 5, 3, 4, 10
    for label, mask in masks(rng, b, s, s).items():
        for causal in (0, 1):
            inputs = [
                Input(reals(rng, b, s, d), dims=["b", "s", d]),
                Input(reals(rng, d, 3 * n * h), True),
                reals(rng, 3 * n * h),
                None if mask is None else Input(mask, dims=["b", "s", "s"][: mask.ndim] if label != "keys" else ["b", "s"]),
            ]
            yield Case("Attention", f"{label}_causal{causal}", inputs, {"num_heads": n, "unidirectional": causal})
    halves = [one.astype(np.float16) for one in (reals(rng, b, s, d), reals(rng, d, 3 * n * h), reals(rng, 3 * n * h))]
    wide = [one.astype(np.float32) for one in halves]
    case = Case("Attention", "fp16", [*halves, masks(rng, b, s, s)["keys"]], {"num_heads": n}, tolerance=HALF)
    case.expected = lambda: [expected_outputs(Case("Attention", "wide", [*wide, case.inputs[3]], case.attributes))[0].astype(np.float16)]
    yield case
    ends = np.concatenate([int32([5, 4]), int32([1, 0])])
    yield Case("Attention", "starts", [reals(rng, b, s, d), reals(rng, d, 3 * n * h), reals(rng, 3 * n * h), ends], {"num_heads": n})
    square = np.tril(np.ones((b, 1, 8, 8), np.int32))
    inputs, attributes = [reals(rng, b, s, d), reals(rng, d, 3 * n * h), reals(rng, 3 * n * h)], {
        "num_heads": n,
        "mask_filter_value": -500.0,
    }
    rows = np.ascontiguousarray(square[:, 0, :s, :s])
    yield Case("Attention", "places", [*inputs, square], attributes, instead=Case("Attention", "rows", [*inputs, rows], attributes))
    yield Case(
        "Attention",
        "sizes",
        [reals(rng, b, s, d), reals(rng, d, 2 * n * h + n * 6), None],
        {"num_heads": n, "qkv_hidden_sizes": [n * h, n * h, n * 6]},
    )
    yield Case(
        "Attention",
        "bias_scale",
        [reals(rng, b, s, d), reals(rng, d, 3 * n * h), reals(rng, 3 * n * h), None, None, reals(rng, 1, n, s, s)],
        {"num_heads": n, "scale": 0.3},
    )
    p = 3
    for label, mask in masks(rng, b, s, s + p).items():
        inputs = [
            Input(reals(rng, b, s, d), dims=["b", "s", d]),
            Input(reals(rng, d, 3 * n * h), True),
            reals(rng, 3 * n * h),
            mask,
            Input(reals(rng, 2, b, n, p, h), dims=[2, "b", n, "past", h]),
        ]
        if label == "lengths":
            inputs[3] = Input(mask, dims=["b"])
        yield Case("Attention", f"past_{label}", inputs, {"num_heads": n, "unidirectional": 1}, ["y", "present"])
    for causal in (0, 1):
        for past in (False, True):
            inputs = [
                rng.integers(0, 256, (b, s, d)).astype(np.uint8),
                Input(rng.integers(-64, 64, (d, 3 * n * h)).astype(np.int8), True),
                reals(rng, 3 * n * h),
                np.asarray(np.float32(0.01)),
                Input(np.asarray(np.float32(0.02)), True),
                masks(rng, b, s, s + 2 * past)["keys"],
                np.asarray(np.uint8(120)),
                np.asarray(np.int8(3)),
                reals(rng, 2, b, n, 2, h) if past else None,
            ]
            yield Case(
                "QAttention",
                f"causal{causal}_past{int(past)}",
                inputs,
                {"num_heads": n, "unidirectional": causal},
                ["y", "present"] if past else ["y"],
                tolerance=(2e-4, 2e-4),
            )


def multi_head(rng):
    b, s, t, n, h = 2, 4, 6, 3, 5
    d = n * h
    for label, mask in masks(rng, b, s, t).items():
        for bias in (False, True):
            inputs = [
                Input(reals(rng, b, s, d), dims=["b", "s", d]),
                Input(reals(rng, b, t, d), dims=["b", "t", d]),
                Input(reals(rng, b, t, d), dims=["b", "t", d]),
                reals(rng, 3 * d) if bias else None,
                None if mask is None else Input(mask, dims={1: ["b"], 2: ["b", "t"], 3: ["b", "s", "t"]}[mask.ndim]),
            ]
            yield Case("MultiHeadAttention", f"{label}_bias{int(bias)}", inputs, {"num_heads": n})
    packed = reals(rng, b, s, n, 3, h)
    apart = [np.ascontiguousarray(packed[:, :, :, i].reshape(b, s, d)) for i in range(3)]
    yield Case(
        "MultiHeadAttention",
        "packed_qkv",
        [Input(packed, dims=["b", "s", n, 3, h])],
        {"num_heads": n, "scale": 0.4},
        instead=Case("MultiHeadAttention", "apart", apart, {"num_heads": n, "scale": 0.4}),
    )
    query, packed = reals(rng, b, s, d), reals(rng, b, t, n, 2, h)
    apart = [np.ascontiguousarray(packed[:, :, :, i].reshape(b, t, d)) for i in range(2)]
    yield Case(
        "MultiHeadAttention",
        "packed_kv",
        [query, packed],
        {"num_heads": n},
        instead=Case("MultiHeadAttention", "apart", [query, *apart], {"num_heads": n}),
    )
    yield Case("MultiHeadAttention", "cross", [reals(rng, b, s, d), reals(rng, b, n, t, h), reals(rng, b, n, t, h)], {"num_heads": n})
    yield Case(
        "MultiHeadAttention",
        "cross_bias",
        [reals(rng, b, s, d), reals(rng, b, n, t, h), reals(rng, b, n, t, h), reals(rng, 3 * d)],
        {"num_heads": n},
    )
    yield Case(
        "MultiHeadAttention",
        "score_bias",
        [reals(rng, b, s, d), reals(rng, b, t, d), reals(rng, b, t, d), None, None, reals(rng, b, 1, s, t)],
        {"num_heads": n},
    )
    yield Case(
        "MultiHeadAttention",
        "causal",
        [reals(rng, b, s, d), reals(rng, b, s, d), reals(rng, b, s, d)],
        {"num_heads": n, "unidirectional": 1},
    )
    yield Case("MultiHeadAttention", "wide_values", [reals(rng, b, s, d), reals(rng, b, t, d), reals(rng, b, t, n * 7)], {"num_heads": n})
    p = 3
    for label, mask in masks(rng, b, s, s + p).items():
        inputs = [
            Input(reals(rng, b, s, d), dims=["b", "s", d]),
            Input(reals(rng, b, s, d), dims=["b", "s", d]),
            Input(reals(rng, b, s, d), dims=["b", "s", d]),
            None,
            None if mask is None else Input(mask, dims={1: ["b"], 2: ["b", "total"], 3: ["b", "s", "total"]}[mask.ndim]),
            None,
            Input(reals(rng, b, n, p, h), dims=["b", n, "p", h]),
            Input(reals(rng, b, n, p, h), dims=["b", n, "p", h]),
        ]
        yield Case("MultiHeadAttention", f"past_{label}", inputs, {"num_heads": n}, ["y", "present_key", "present_value"])
    inputs = [
        reals(rng, b, s, d),
        reals(rng, b, s, d),
        reals(rng, b, s, d),
        None,
        None,
        None,
        reals(rng, b, n, p, h),
        reals(rng, b, n, p, h),
    ]
    yield Case("MultiHeadAttention", "past_causal", inputs, {"num_heads": n, "unidirectional": 1}, ["y", "present_key", "present_value"])


def caches(rng, length, half):
    angles = rng.random((length, half)) * 6
    return [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]


def normalized(x, weight, epsilon):
    """Each head over the root of its mean of squares, scaled."""
    heads = x.reshape(*x.shape[:2], -1, weight.size).astype(np.float64)
    heads = heads / np.sqrt((heads**2).mean(-1, keepdims=True) + epsilon) * weight
    return heads.reshape(x.shape).astype(np.float32)


def grouped(rng):
    n, kv, h = 4, 2, 32
    for label, s, past, room, attributes, extra in (
        ("prompt", 5, 0, 0, {}, {}),
        ("prompt_rotary", 5, 0, 0, {"do_rotary": 1}, {}),
        ("prompt_packed", 5, 0, 0, {"do_rotary": 1, "rotary_interleaved": 1}, {"packed": True}),
        ("prompt_window", 6, 0, 0, {"local_window_size": 3}, {}),
        ("prompt_softcap", 5, 0, 0, {"softcap": 2.0, "scale": 0.5}, {}),
        ("step", 1, 4, 0, {"do_rotary": 1}, {}),
        ("chunk", 3, 4, 0, {"do_rotary": 1}, {}),
        ("step_room", 1, 4, 3, {"do_rotary": 1}, {}),
        ("step_uneven", 1, 4, 3, {"do_rotary": 1}, {"uneven": True}),
        ("step_window", 1, 6, 0, {"local_window_size": 3}, {}),
        ("chunk_window", 3, 6, 0, {"local_window_size": 4, "do_rotary": 1}, {}),
        ("prompt_room", 4, 0, 8, {}, {}),
        ("prompt_empty", 4, 0, 0, {"do_rotary": 1}, {"empty": True}),
        ("prompt_padded", 4, 0, 8, {"do_rotary": 1}, {"padded": True}),
        ("step_bias", 2, 4, 0, {}, {"bias": True}),
        ("prompt_bias", 4, 0, 0, {}, {"bias": True}),
        ("smooth", 4, 0, 0, {"smooth_softmax": 1}, {}),
        ("sink", 4, 0, 0, {}, {"sink": True}),
        ("step_sink", 1, 5, 2, {"softcap": 1.5, "do_rotary": 1}, {"sink": True}),
        ("positions", 1, 4, 0, {"do_rotary": 1}, {"positions": True}),
        ("prompt_positions", 4, 0, 0, {"do_rotary": 1}, {"positions": True}),
        ("partial_rotary", 3, 0, 0, {"do_rotary": 1}, {"half": 8}),
        ("both_ways", 4, 0, 0, {"causal": 0}, {}),
        ("norm", 4, 0, 0, {"do_rotary": 1, "qk_norm_epsilon": 1e-3}, {"norm": True}),
    ):
        b = 1 if past and s > 1 else 2  # ONNX Runtime takes chunks behind a past from one sample alone
        total = past + s
        lengths = np.array([total, total - (1 if extra.get("uneven") or extra.get("padded") else 0)][:b])
        q, k, v = (Input(reals(rng, b, s, heads * h), dims=["b", "s", heads * h]) for heads in (n, kv, kv))
        if extra.get("packed"):
            q, k, v = Input(reals(rng, b, s, (n + 2 * kv) * h), dims=["b", "s", (n + 2 * kv) * h]), None, None
        stored = past + room
        cache = (
            [Input(reals(rng, b, kv, stored, h), dims=["b", kv, "stored", h]) for _ in range(2)]
            if stored or extra.get("empty")
            else [None, None]
        )
        inputs = [q, k, v, *cache, int32(lengths - 1), int32(total).reshape(1)]
        inputs += caches(rng, 16, extra.get("half", h // 2)) if attributes.get("do_rotary") else [None, None]
        positions = np.arange(past, total)[None].repeat(b, 0) + (np.array([[0], [2]])[:b] if past else 1)
        inputs.append(positions.astype(np.int64) if extra.get("positions") else None)
        inputs.append(reals(rng, b, 1, s, total) if extra.get("bias") else None)
        inputs.append(reals(rng, n) if extra.get("sink") else None)
        instead = None
        if extra.get("norm"):  # CUDA alone has it
            weights = [reals(rng, h), reals(rng, h)]
            plain = [normalized(one.value, weight, attributes["qk_norm_epsilon"]) for one, weight in zip((q, k), weights)] + inputs[2:]
            instead = Case(
                "GroupQueryAttention",
                "plain",
                plain,
                {"num_heads": n, "kv_num_heads": kv, "do_rotary": 1},
                ["y", "present_key", "present_value"],
            )
            inputs += [None, None, *weights]

        def filled(index, value, lengths=lengths, extra=extra, s=s):
            """Without the rows behind the end of a sample: what stands there is not defined."""
            value = value.copy()
            for sample, length in enumerate(lengths):
                if index == 0:
                    value[sample, length if extra.get("padded") else s :] = 0
                else:
                    value[sample, :, length:] = 0
            return value

        yield Case(
            "GroupQueryAttention",
            label,
            inputs,
            {"num_heads": n, "kv_num_heads": kv, **attributes},
            ["y", "present_key", "present_value"],
            compare=filled,
            instead=instead,
        )


def rotary(rng):
    b, s, n, h = 2, 5, 3, 8
    cos, sin = caches(rng, 12, h // 2)
    short = caches(rng, 12, 2)
    positions = rng.integers(0, 12, (b, s)).astype(np.int64)
    for interleaved in (0, 1):
        flat = Input(reals(rng, b, s, n * h), dims=["b", "s", n * h])
        yield Case(
            "RotaryEmbedding", f"flat_{interleaved}", [flat, Input(positions, dims=["b", "s"]), cos, sin], {"interleaved": interleaved}
        )
        yield Case("RotaryEmbedding", f"offset_{interleaved}", [flat, np.array([4], np.int64), cos, sin], {"interleaved": interleaved})
        yield Case(
            "RotaryEmbedding",
            f"heads_{interleaved}",
            [Input(reals(rng, b, n, s, h), dims=["b", n, "s", h]), positions, cos, sin],
            {"interleaved": interleaved},
        )
    yield Case("RotaryEmbedding", "part", [reals(rng, b, s, n * h), positions, *short], {"num_heads": n, "rotary_embedding_dim": 4})


def cases(rng):
    for family in (merged, multi_head, grouped, rotary):
        yield from family(rng)
