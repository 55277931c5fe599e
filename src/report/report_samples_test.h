#pragma once

// A report with one entry or two of everything, at the figures of the boundary example: two regions
// of 0.2 ms around a boundary of 0.6 ms.

#include "report/report.h"

namespace tessera::report {

inline Report small_report() {
  Report report;
  report.model = {{"name", "m.onnx"}};
  report.options = {{"precision", "fp32"}};
  report.devices = {{"cpu", false, true}, {"npu", true, false}};
  report.assignment = {"sum", 1000, 990, 0.01, 1200, std::nullopt, "topological", 17};
  NodeEntry pad;
  pad.name = "pad";
  pad.op = "Pad";
  pad.origins = {"Pad_1"};
  pad.permitted = {"cpu", "npu"};
  pad.supported = {{"cpu", ""}, {"npu", "Pad: mode=reflect is not supported (supports: constant)"}};
  pad.selected = {"cpu", "cpu.pad", "nchw", "fp32", 200, true};
  NodeEntry conv;
  conv.name = "conv";
  conv.op = "Conv";
  conv.origins = {"Conv_2", "Relu_3"};
  conv.permitted = {"npu"};
  conv.supported = {{"npu", ""}};
  conv.selected = {"npu", "conv", "nhwc", "fp16", 200, false};
  conv.runner_up = Selection{"cpu", "onednn.conv", "nChw8c", "fp32", 350, true};
  conv.executed = Execution{"npu", "conv", 205};
  conv.cover = 4;
  report.nodes = {pad, conv};
  report.regions = {{0, "cpu", {"pad"}, 200, 0}, {1, "npu", {"conv"}, 200, 20}};
  report.crossings = {{"p", "cpu", "npu", 4096, 30, 20, 500, "nhwc/fp16"}};
  report.accounting = {"modelled", 400, 80, 20, 500, 0, 0, 1000, 1000};
  report.memory = {{"host", 100, 90, 80, 70, 60}};
  report.passes = {{"fold", 0, {{"Conv", 1}}, {{"Transpose", 2}}}};
  report.near_misses = {{"conv-bn", {"conv"}, "two users"}};
  report.price_hits = 5;
  report.price_misses = {{"Conv|1", "Conv|2"}};
  return report;
}

}  // namespace tessera::report
