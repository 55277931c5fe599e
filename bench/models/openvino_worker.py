#!/usr/bin/env python3
"""OpenVINO's worker of the model benchmark: worker.py says what it does.

From the ONNX file, for latency. Inputs and outputs are shared rather than copied, which is what costs it least.
"""

import sys

import openvino

import worker

PRECISIONS = {"fp32": "f32", "bf16": "bf16"}


class OpenVino:
    version = openvino.__version__

    def load(self, path, threads, precision):
        core = openvino.Core()
        config = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": PRECISIONS[precision],
        }
        self._model = core.compile_model(core.read_model(path), "CPU", config)
        self._request = self._model.create_infer_request()

    def bind(self, inputs):
        self._inputs = inputs  # the request reads them where they lie
        for name, value in inputs.items():
            self._request.set_tensor(name, openvino.Tensor(value, shared_memory=True))

    def run(self):
        self._fetched = self._request.infer(share_inputs=True, share_outputs=True)

    def outputs(self):
        return {name: value for port, value in self._fetched.items() for name in port.names}


if __name__ == "__main__":
    sys.exit(worker.main(OpenVino()))
