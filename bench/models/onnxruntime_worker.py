#!/usr/bin/env python3
"""ONNX Runtime's worker of the model benchmark: worker.py says what it does.

From the ONNX file, all optimisations on. Inputs and outputs are bound, which is what costs it least.
"""

import sys

import onnxruntime

import worker

SILENT = 4


class OnnxRuntime:
    version = onnxruntime.__version__

    def load(self, path, threads, precision):
        if precision != "fp32":
            raise ValueError(
                f"expected fp32, found {precision}: the CPU provider has no such option"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = SILENT
        self._session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )

    def bind(self, inputs):
        self._binding = self._session.io_binding()
        for name, value in inputs.items():
            self._binding.bind_cpu_input(name, value)
        for output in self._session.get_outputs():
            self._binding.bind_output(output.name)

    def run(self):
        self._session.run_with_iobinding(self._binding)
        self._fetched = self._binding.get_outputs()

    def outputs(self):
        names = [output.name for output in self._session.get_outputs()]
        return {name: value.numpy() for name, value in zip(names, self._fetched)}


if __name__ == "__main__":
    sys.exit(worker.main(OnnxRuntime()))
