#pragma once

// Families of operators, each with the two halves of a candidate: offering it, and finishing its
// spec. cpu_device.cpp decides by operator which family a work item belongs to.

#include <functional>

#include "backends/cpu/compile/spec_draft.h"

namespace tessera::backends::cpu {

// What a family is asked.
struct OfferRequest {
  const SpecDraft& draft;    // row-major
  const InstanceDims& dims;  // at the price point; none where those of a late draft are not assumed
  const OfferOptions& options;
};

struct Family {
  Offers (*offer)(const OfferRequest& request) = nullptr;
  // Completes the spec of a candidate of its own, whose forms and options stand in the draft
  // already.
  Status (*finish)(SpecDraft& draft, const Candidate& candidate) = nullptr;
};

// conv_offers.cpp, product_offers.cpp, elementwise_offers.cpp, pool_offers.cpp
const Family& conv_family();
const Family& product_family();
const Family& elementwise_family();
const Family& batch_normalization_family();
const Family& scalar_elementwise_family();
const Family& pool_family();
const Family& global_pool_family();
// movement_offers.cpp
const Family& view_family();
const Family& concat_family();
const Family& split_family();
const Family& strided_family();
const Family& gather_family();
const Family& resize_family();
// reduce_offers.cpp
const Family& softmax_family();
const Family& reduce_family();
const Family& layer_normalization_family();
const Family& lrn_family();
// attention_offers.cpp
const Family& attention_family();
const Family& rotary_family();
// recurrent_offers.cpp
const Family& recurrent_family();
// quant_offers.cpp
const Family& quant_family();
const Family& quantize_family();
const Family& dynamic_quantize_family();

// An operator that moves elements, between DequantizeLinear and QuantizeLinear of one scale and
// zero point, moves the quantised elements: true, and the draft is that one step.
bool strip_quantised_movement(SpecDraft& draft);

// ---- What families share
// ------------------------------------------------------------------------------------------------

// A candidate with forms for every input and output: `input_layout(i)` and `output_layout(o)` by
// position in the spec.
Candidate make_candidate(const SpecDraft& draft, std::string kernel,
                         const std::function<Layout(std::size_t)>& input_layout,
                         const std::function<Layout(std::size_t)>& output_layout);
Candidate make_row_major(const SpecDraft& draft, std::string kernel);

// Bytes read and written once, and constants, at those dims; one flop for each output element.
void set_traffic(Candidate& candidate, const SpecDraft& draft, const InstanceDims& dims);

// Row-major; for ranks 3 to 5 also channel-blocked and channels-last, in order of preference.
std::vector<Layout> activation_layouts(std::size_t rank);

Offers refuse(std::string reason);
Offers refuse(const Error& error);

// A layout in a candidate's options, which hold integers.
void put_layout(std::map<std::string, std::int64_t>& options, const std::string& name,
                const Layout& layout);
Layout get_layout(const std::map<std::string, std::int64_t>& options, const std::string& name);

// "Conv" or "Conv with Relu, Add".
std::string describe_steps(const artefact::KernelSpec& spec);

}  // namespace tessera::backends::cpu
