#pragma once

// How far the roofline is from what was measured, kernel by kernel.

#include <map>
#include <string>
#include <vector>

#include "plan/cost_table.h"

namespace tessera::plan {

// What the roofline says of a price that the table has.
struct Estimate {
  std::string kernel;  // "cpu:onednn.conv"
  double estimate_us = 0;
  CostEntry entry;
};

// Ratios are estimate by measured time: below 1, the estimate is too cheap.
struct KernelError {
  std::string kernel;
  std::size_t entries = 0;
  double median_ratio = 1;
  double worst_ratio = 1;  // the furthest from 1, as a factor
  std::string worst_key;
};

// By kernel, those whose median is furthest from 1 first. Entries of no time are left out.
std::vector<KernelError> estimate_errors(const std::map<std::string, Estimate>& estimates);

// A table, one line a kernel, keys cut to `key_width` characters. Empty where there are none.
std::string to_text(const std::vector<KernelError>& errors, std::size_t key_width);

// One line on what the entries say of their own measuring: "2 while others used a core, 1 with
// outliers". Empty where there is nothing to say.
std::string measuring_notes(const std::map<std::string, Estimate>& estimates);

}  // namespace tessera::plan
