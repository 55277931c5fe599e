#pragma once

// Every loader of the run half, by family. The table of names stands in cpu_run_device.cpp.

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// conv_kernel.cpp: "onednn.conv", a Conv or ConvTranspose and its epilogue.
Result<std::unique_ptr<LoadedKernel>> load_conv(const artefact::KernelSpec& spec,
                                                Constants constants);
// plane_conv_kernel.cpp: "simd.conv", the same by own code.
Result<std::unique_ptr<LoadedKernel>> load_plane_conv(const artefact::KernelSpec& spec,
                                                      Constants constants);
// gemm_conv_kernel.cpp: "simd.gemm_conv", a Conv by own code, channels last.
Result<std::unique_ptr<LoadedKernel>> load_gemm_conv(const artefact::KernelSpec& spec,
                                                     Constants constants);
// winograd_conv_kernel.cpp: "simd.winograd_conv", a Conv of a 3 x 3 window, channels last.
Result<std::unique_ptr<LoadedKernel>> load_winograd_conv(const artefact::KernelSpec& spec,
                                                         Constants constants);
// depthwise_conv_kernel.cpp: "simd.depthwise_conv", one channel in each group, channels-last.
Result<std::unique_ptr<LoadedKernel>> load_depthwise_conv(const artefact::KernelSpec& spec,
                                                          Constants constants);
// product_kernel.cpp: "onednn.matmul", a Gemm or MatMul and its epilogue.
Result<std::unique_ptr<LoadedKernel>> load_product(const artefact::KernelSpec& spec,
                                                   Constants constants);
// panel_product_kernel.cpp: "simd.product", the same by own code.
Result<std::unique_ptr<LoadedKernel>> load_panel_product(const artefact::KernelSpec& spec,
                                                         Constants constants);
// quant_conv_kernel.cpp: "simd.quant_conv", a convolution of 8-bit tensors and its epilogue.
Result<std::unique_ptr<LoadedKernel>> load_quant_conv(const artefact::KernelSpec& spec,
                                                      Constants constants);
// quant_product_kernel.cpp: "simd.quant_product", a product of 8-bit tensors and its epilogue.
Result<std::unique_ptr<LoadedKernel>> load_quant_product(const artefact::KernelSpec& spec,
                                                         Constants constants);
// quant_pool_kernel.cpp: "simd.quant_pool", pooling of 8-bit tensors.
Result<std::unique_ptr<LoadedKernel>> load_quant_pool(const artefact::KernelSpec& spec,
                                                      Constants constants);
// quant_elementwise_kernel.cpp: "simd.quant_elementwise", elementwise steps between 8-bit tensors.
Result<std::unique_ptr<LoadedKernel>> load_quant_elementwise(const artefact::KernelSpec& spec,
                                                             Constants constants);
// quantize_kernel.cpp: "simd.quantize": QuantizeLinear, DequantizeLinear; "simd.dynamic_quantize".
Result<std::unique_ptr<LoadedKernel>> load_quantize(const artefact::KernelSpec& spec,
                                                    Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_dynamic_quantize(const artefact::KernelSpec& spec,
                                                            Constants constants);
// pool_kernel.cpp: "onednn.pool": AveragePool; "simd.pool": MaxPool too; "simd.global_pool".
Result<std::unique_ptr<LoadedKernel>> load_onednn_pool(const artefact::KernelSpec& spec,
                                                       Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_pool(const artefact::KernelSpec& spec,
                                                Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_global_pool(const artefact::KernelSpec& spec,
                                                       Constants constants);
// elementwise_kernel.cpp: "simd.elementwise".
Result<std::unique_ptr<LoadedKernel>> load_elementwise(const artefact::KernelSpec& spec,
                                                       Constants constants);
// scalar_kernel.cpp: "cpu.elementwise", other dtypes.
Result<std::unique_ptr<LoadedKernel>> load_scalar_elementwise(const artefact::KernelSpec& spec,
                                                              Constants constants);
// copy_kernels.cpp: "cpu.view", "cpu.concat", "cpu.split"; "cpu.convert", one form to another.
Result<std::unique_ptr<LoadedKernel>> load_view(const artefact::KernelSpec& spec,
                                                Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_concat(const artefact::KernelSpec& spec,
                                                  Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_split(const artefact::KernelSpec& spec,
                                                 Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_convert(const artefact::KernelSpec& spec,
                                                   Constants constants);
// strided_kernel.cpp: "cpu.strided": Transpose, Slice, Expand, Tile, Pad, DepthToSpace,
// SpaceToDepth; "cpu.gather".
Result<std::unique_ptr<LoadedKernel>> load_strided(const artefact::KernelSpec& spec,
                                                   Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_gather(const artefact::KernelSpec& spec,
                                                  Constants constants);
// resize_kernel.cpp: "cpu.resize".
Result<std::unique_ptr<LoadedKernel>> load_resize(const artefact::KernelSpec& spec,
                                                  Constants constants);
// softmax_kernel.cpp: "simd.softmax": Softmax, LogSoftmax.
Result<std::unique_ptr<LoadedKernel>> load_softmax(const artefact::KernelSpec& spec,
                                                   Constants constants);
// reduce_kernel.cpp: "simd.reduce".
Result<std::unique_ptr<LoadedKernel>> load_reduce(const artefact::KernelSpec& spec,
                                                  Constants constants);
// attention_kernel.cpp: "simd.attention". rotary_kernel.cpp: "cpu.rotary_embedding", a
// RotaryEmbedding and views of its tables.
Result<std::unique_ptr<LoadedKernel>> load_attention(const artefact::KernelSpec& spec,
                                                     Constants constants);
Result<std::unique_ptr<LoadedKernel>> load_rotary(const artefact::KernelSpec& spec,
                                                  Constants constants);
// lrn_kernel.cpp: "simd.lrn".
Result<std::unique_ptr<LoadedKernel>> load_lrn(const artefact::KernelSpec& spec,
                                               Constants constants);
// recurrent_kernel.cpp: "simd.recurrent": LSTM, GRU, RNN.
Result<std::unique_ptr<LoadedKernel>> load_recurrent(const artefact::KernelSpec& spec,
                                                     Constants constants);
// softmax_kernel.cpp: "simd.layer_normalization": LayerNormalization, RMSNormalization.
Result<std::unique_ptr<LoadedKernel>> load_layer_normalization(const artefact::KernelSpec& spec,
                                                               Constants constants);

}  // namespace tessera::backends::cpu
