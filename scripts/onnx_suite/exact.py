"""Cases whose expected outputs are NumPy's own rounding, farther from the exact result than the suite's tolerance lets a better one be.

Each is judged against the exact result, which is worked out here in fp64 from the case's inputs: what was found must lie within the
suite's tolerances of it, and the expected output must not be nearer.

- The inverse transforms: numpy.fft.ifft on fp32 leaves imaginary parts of 1.9e-7 where the exact ones are 0, and the tolerance there is
  1e-7.
- The attention of fp16 written out in operators: numpy rounds the exponentials, their sum and their quotients to fp16 one after another
  within Softmax.
"""

import numpy as np


def inverse_transform(inputs, attributes):
    """DFT of complex numbers, back, along an axis that is an input or, in opset 19, an attribute."""
    signal = inputs["x"].astype(np.float64)
    axis = int(inputs["axis"]) if "axis" in inputs else attributes["axis"]
    line = np.fft.ifft(signal[..., 0] + 1j * signal[..., 1], axis=axis)
    return [np.stack([line.real, line.imag], axis=-1)]


def causal_attention(inputs, _attributes):
    """Softmax(Q K' / sqrt(size)) V, each query over the keys up to its own place."""
    q, k, v = (inputs[name].astype(np.float64) for name in "QKV")
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return [weights / weights.sum(axis=-1, keepdims=True) @ v]


EXACT = {
    "test_dft_inverse": inverse_transform,
    "test_dft_inverse_opset19": inverse_transform,
    "test_attention_4d_causal_fp16_expanded": causal_attention,
}


def is_as_good(exact, expected, found, rtol, atol):
    """What is wrong with `found` beside the exact result; empty where it is within the tolerances and `expected` is not nearer."""
    distance = np.abs(found.astype(np.float64) - exact)
    if not (distance <= atol + rtol * np.abs(exact)).all():
        return f"values differ from the exact ones by up to {distance.max():.3g}"
    expected_distance = np.abs(expected.astype(np.float64) - exact).max()
    if expected_distance < distance.max():
        return f"values differ: the expected ones are nearer to the exact ones, {expected_distance:.3g} to {distance.max():.3g}"
    return ""
