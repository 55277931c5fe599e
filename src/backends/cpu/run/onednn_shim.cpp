#include "backends/cpu/run/onednn_shim.h"

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/run/cpu_features.h"

namespace tessera::backends::cpu {
namespace {

// The one engine, made at first use, never destroyed: primitives of static lifetime may outlive any
// order of destruction.
dnnl_engine_t engine() {
  static const dnnl_engine_t made = [] {
    if (isa() == Isa::kAvx2) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    if (isa() == Isa::kSse41) dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    dnnl_set_primitive_cache_capacity(0);
    dnnl_engine_t fresh = nullptr;
    dnnl_engine_create(&fresh, dnnl_cpu, 0);
    return fresh;
  }();
  return made;
}

std::string_view status_name(dnnl_status_t status) {
  switch (status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "unimplemented";
    default: return "runtime error";
  }
}

Status check(dnnl_status_t status, std::string_view what) {
  if (status == dnnl_success) return {};
  const ErrorCode code = status == dnnl_unimplemented || status == dnnl_invalid_arguments
                             ? ErrorCode::kUnimplemented
                         : status == dnnl_out_of_memory ? ErrorCode::kResourceExhausted
                                                        : ErrorCode::kInternal;
  return fail(code, fmt::format("oneDNN: {}: {}", what, status_name(status)));
}

dnnl_memory_desc_t to_md(const MemoryFormat& format) {
  dnnl_memory_desc_t md;
  std::memset(&md, 0, sizeof md);
  const std::size_t rank = format.dims.size();
  md.ndims = static_cast<int>(rank);
  md.data_type = dnnl_f32;
  if (format.any) {
    dnnl_memory_desc_init_by_tag(&md, md.ndims, format.dims.data(), dnnl_f32, dnnl_format_tag_any);
    return md;
  }
  const Dims padded = padded_dims(format.layout, format.dims);
  md.format_kind = dnnl_blocked;
  auto& blocking = md.format_desc.blocking;
  Dims outer = padded;
  dnnl_dim_t stride = 1;
  for (const auto& [dim, size] : format.layout.blocks) {
    blocking.inner_blks[blocking.inner_nblks] = size;
    blocking.inner_idxs[blocking.inner_nblks++] = dim;
    outer[dim] /= size;
    stride *= size;
  }
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t dim = format.layout.order.empty() ? i : format.layout.order[i];
    blocking.strides[dim] = stride;
    stride *= std::max<std::int64_t>(outer[dim], 1);
  }
  std::copy(format.dims.begin(), format.dims.end(), md.dims);
  std::copy(padded.begin(), padded.end(), md.padded_dims);
  return md;
}

Result<Layout> to_layout(const dnnl_memory_desc_t& md) {
  if (md.format_kind != dnnl_blocked || md.extra.flags != 0)
    return fail(ErrorCode::kUnimplemented, "oneDNN: weights in an opaque format");
  const auto& blocking = md.format_desc.blocking;
  Layout layout;
  for (int i = 0; i < md.ndims; ++i) layout.order.push_back(static_cast<std::uint8_t>(i));
  std::stable_sort(layout.order.begin(), layout.order.end(), [&](std::uint8_t a, std::uint8_t b) {
    return blocking.strides[a] > blocking.strides[b];
  });
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    layout.blocks.emplace_back(static_cast<std::uint8_t>(blocking.inner_idxs[i]),
                               static_cast<std::uint16_t>(blocking.inner_blks[i]));
  }
  const Dims dims(md.dims, md.dims + md.ndims);
  if (!std::equal(md.padded_dims, md.padded_dims + md.ndims, padded_dims(layout, dims).begin())) {
    return fail(ErrorCode::kUnimplemented, "oneDNN: weights padded beyond their blocks");
  }
  if (layout.blocks.empty() && std::is_sorted(layout.order.begin(), layout.order.end()))
    layout.order.clear();
  return layout;
}

dnnl_alg_kind_t algorithm(Eltwise eltwise) {
  switch (eltwise) {
    case Eltwise::kRelu: return dnnl_eltwise_relu;
    case Eltwise::kClip: return dnnl_eltwise_clip;
    case Eltwise::kLinear: return dnnl_eltwise_linear;
    case Eltwise::kSigmoid: return dnnl_eltwise_logistic;
    case Eltwise::kTanh: return dnnl_eltwise_tanh;
    case Eltwise::kElu: return dnnl_eltwise_elu;
    case Eltwise::kHardSwish: return dnnl_eltwise_hardswish;
    case Eltwise::kSwish: return dnnl_eltwise_swish;
    case Eltwise::kGeluErf: return dnnl_eltwise_gelu_erf;
    case Eltwise::kGeluTanh: return dnnl_eltwise_gelu_tanh;
    case Eltwise::kAbs: return dnnl_eltwise_abs;
    case Eltwise::kSqrt: return dnnl_eltwise_sqrt;
    case Eltwise::kExp: return dnnl_eltwise_exp;
  }
  return dnnl_alg_kind_undef;
}

dnnl_alg_kind_t algorithm(Binary binary) {
  constexpr std::array kKinds = {dnnl_binary_add, dnnl_binary_sub, dnnl_binary_mul,
                                 dnnl_binary_div, dnnl_binary_max, dnnl_binary_min};
  return kKinds[static_cast<std::size_t>(binary)];
}

// Attributes with user scratch and post-ops; destroyed with the scope.
class Attr {
 public:
  Attr() {
    dnnl_primitive_attr_create(&attr_);
    dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user);
  }
  ~Attr() { dnnl_primitive_attr_destroy(attr_); }
  Attr(const Attr&) = delete;
  Attr& operator=(const Attr&) = delete;

  Status add(const std::vector<PostOp>& post_ops) {
    dnnl_post_ops_t list = nullptr;
    TESSERA_TRY(check(dnnl_post_ops_create(&list), "post-ops"));
    dnnl_status_t status = dnnl_success;
    for (const PostOp& op : post_ops) {
      if (status != dnnl_success) break;
      if (op.binary) {
        const dnnl_memory_desc_t md = to_md(op.operand);
        status = dnnl_post_ops_append_binary(list, algorithm(*op.binary), &md);
      } else {
        status = dnnl_post_ops_append_eltwise(list, 1.0F, algorithm(op.eltwise), op.alpha, op.beta);
      }
    }
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attr_, list);
    dnnl_post_ops_destroy(list);
    return check(status, "post-ops");
  }
  [[nodiscard]] dnnl_primitive_attr_t get() const { return attr_; }

 private:
  dnnl_primitive_attr_t attr_ = nullptr;
};

Dims dilates_of(const Dims& dilations) {
  Dims result = dilations;
  for (auto& d : result) --d;
  return result;
}

}  // namespace

struct OnednnPrimitive::State {
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_primitive_t primitive = nullptr;
  std::string implementation;
  std::int64_t scratch_bytes = 0;
  std::vector<std::pair<int, dnnl_memory_desc_t>> post_operands;  // by the number of the post-op

  ~State() {
    if (primitive != nullptr) dnnl_primitive_destroy(primitive);
    if (desc != nullptr) dnnl_primitive_desc_destroy(desc);
  }

  static Result<std::unique_ptr<State>> make(const void* op, const std::vector<PostOp>& post_ops,
                                             std::string_view what) {
    const SingleThreadOmp guard;
    Attr attr;
    TESSERA_TRY(attr.add(post_ops));
    auto state = std::make_unique<State>();
    TESSERA_TRY(
        check(dnnl_primitive_desc_create(&state->desc, op, attr.get(), engine(), nullptr), what));
    const char* name = "";
    dnnl_primitive_desc_query(state->desc, dnnl_query_impl_info_str, 0, &name);
    state->implementation = name;
    const dnnl_memory_desc_t* scratch =
        dnnl_primitive_desc_query_md(state->desc, dnnl_query_scratchpad_md, 0);
    if (scratch != nullptr && scratch->ndims > 0)
      state->scratch_bytes = static_cast<std::int64_t>(dnnl_memory_desc_get_size(scratch));
    for (std::size_t i = 0; i < post_ops.size(); ++i) {
      if (post_ops[i].binary)
        state->post_operands.emplace_back(static_cast<int>(i), to_md(post_ops[i].operand));
    }
    return state;
  }
};

OnednnPrimitive::OnednnPrimitive(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnednnPrimitive::~OnednnPrimitive() = default;

Result<std::shared_ptr<OnednnPrimitive>> OnednnPrimitive::describe(const ConvProblem& problem) {
  engine();
  const dnnl_memory_desc_t src = to_md(problem.src);
  const dnnl_memory_desc_t weights = to_md(problem.weights);
  const dnnl_memory_desc_t dst = to_md(problem.dst);
  const dnnl_memory_desc_t bias = to_md({{problem.dst.dims[1]}, {}, false});
  const Dims dilates = dilates_of(problem.dilations);
  const dnnl_memory_desc_t* bias_or_null = problem.bias ? &bias : nullptr;
  std::unique_ptr<State> state;
  if (problem.transposed) {
    dnnl_deconvolution_desc_t op;
    TESSERA_TRY(check(dnnl_dilated_deconvolution_forward_desc_init(
                          &op, dnnl_forward_inference, dnnl_deconvolution_direct, &src, &weights,
                          bias_or_null, &dst, problem.strides.data(), dilates.data(),
                          problem.pads_begin.data(), problem.pads_end.data()),
                      "transposed convolution"));
    TESSERA_ASSIGN(state, State::make(&op, problem.post_ops, "transposed convolution"));
  } else {
    dnnl_convolution_desc_t op;
    TESSERA_TRY(check(dnnl_dilated_convolution_forward_desc_init(
                          &op, dnnl_forward_inference, dnnl_convolution_direct, &src, &weights,
                          bias_or_null, &dst, problem.strides.data(), dilates.data(),
                          problem.pads_begin.data(), problem.pads_end.data()),
                      "convolution"));
    TESSERA_ASSIGN(state, State::make(&op, problem.post_ops, "convolution"));
  }
  return std::shared_ptr<OnednnPrimitive>(new OnednnPrimitive(std::move(state)));
}

Result<std::shared_ptr<OnednnPrimitive>> OnednnPrimitive::describe(const ProductProblem& problem) {
  engine();
  const dnnl_memory_desc_t src = to_md(problem.src);
  const dnnl_memory_desc_t weights = to_md(problem.weights);
  const dnnl_memory_desc_t dst = to_md(problem.dst);
  Dims bias_dims(problem.dst.dims.size(), 1);
  bias_dims.back() = problem.dst.dims.back();
  const dnnl_memory_desc_t bias = to_md({bias_dims, {}, false});
  dnnl_matmul_desc_t op;
  TESSERA_TRY(
      check(dnnl_matmul_desc_init(&op, &src, &weights, problem.bias ? &bias : nullptr, &dst),
            "matrix product"));
  TESSERA_ASSIGN(auto state, State::make(&op, problem.post_ops, "matrix product"));
  return std::shared_ptr<OnednnPrimitive>(new OnednnPrimitive(std::move(state)));
}

Result<std::shared_ptr<OnednnPrimitive>> OnednnPrimitive::describe(const PoolProblem& problem) {
  engine();
  const dnnl_memory_desc_t src = to_md(problem.src);
  const dnnl_memory_desc_t dst = to_md(problem.dst);
  const Dims dilates = dilates_of(problem.dilations);
  constexpr std::array kKinds = {dnnl_pooling_avg_include_padding,
                                 dnnl_pooling_avg_exclude_padding};
  dnnl_pooling_v2_desc_t op;
  TESSERA_TRY(check(dnnl_pooling_v2_forward_desc_init(
                        &op, dnnl_forward_inference, kKinds[static_cast<std::size_t>(problem.kind)],
                        &src, &dst, problem.strides.data(), problem.kernel.data(), dilates.data(),
                        problem.pads_begin.data(), problem.pads_end.data()),
                    "pooling"));
  TESSERA_ASSIGN(auto state, State::make(&op, {}, "pooling"));
  return std::shared_ptr<OnednnPrimitive>(new OnednnPrimitive(std::move(state)));
}

Status OnednnPrimitive::create() {
  if (state_->primitive != nullptr) return {};
  const SingleThreadOmp guard;
  return check(dnnl_primitive_create(&state_->primitive, state_->desc),
               "generating " + state_->implementation);
}

const std::string& OnednnPrimitive::implementation() const {
  return state_->implementation;
}

bool OnednnPrimitive::is_reference() const {
  return state_->implementation.find("ref") !=
         std::string::npos;  // "ref:any", "conv:any+ref:any", "gemm:ref"
}

std::int64_t OnednnPrimitive::scratch_bytes() const {
  return state_->scratch_bytes;
}

Result<Layout> OnednnPrimitive::weights_layout() const {
  return to_layout(*dnnl_primitive_desc_query_md(state_->desc, dnnl_query_weights_md, 0));
}

struct OnednnCall::State {
  struct Argument {
    int slot = 0;
    const void* wanted = nullptr;
    const void* held = nullptr;
  };
  std::shared_ptr<const OnednnPrimitive> primitive;
  dnnl_stream_t stream = nullptr;
  std::vector<dnnl_exec_arg_t> args;
  std::vector<Argument> slots;  // beside args

  ~State() {
    for (const auto& arg : args) dnnl_memory_destroy(arg.memory);
    if (stream != nullptr) dnnl_stream_destroy(stream);
  }

  Status add(int slot, int dnnl_arg, const dnnl_memory_desc_t* md) {
    if (md == nullptr || md->ndims == 0) return {};
    dnnl_memory_t memory = nullptr;
    TESSERA_TRY(check(dnnl_memory_create(&memory, md, engine(), DNNL_MEMORY_NONE), "argument"));
    args.push_back({dnnl_arg, memory});
    slots.push_back({slot, nullptr, nullptr});
    return {};
  }
};

OnednnCall::OnednnCall(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnednnCall::~OnednnCall() = default;

Result<std::unique_ptr<OnednnCall>> OnednnCall::make(
    std::shared_ptr<const OnednnPrimitive> primitive) {
  TESSERA_CHECK(primitive->state_->primitive != nullptr);
  const SingleThreadOmp guard;
  auto state = std::make_unique<State>();
  const auto* desc = primitive->state_->desc;
  TESSERA_TRY(
      check(dnnl_stream_create(&state->stream, engine(), dnnl_stream_default_flags), "stream"));
  TESSERA_TRY(
      state->add(kSrc, DNNL_ARG_SRC, dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0)));
  TESSERA_TRY(state->add(kWeights, DNNL_ARG_WEIGHTS,
                         dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0)));
  TESSERA_TRY(state->add(kBias, DNNL_ARG_BIAS,
                         dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1)));
  TESSERA_TRY(
      state->add(kDst, DNNL_ARG_DST, dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0)));
  TESSERA_TRY(state->add(kScratch, DNNL_ARG_SCRATCHPAD,
                         dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0)));
  for (const auto& [number, md] : primitive->state_->post_operands) {
    TESSERA_TRY(
        state->add(kPostOp + number, DNNL_ARG_ATTR_MULTIPLE_POST_OP(number) | DNNL_ARG_SRC_1, &md));
  }
  state->primitive = std::move(primitive);
  return std::unique_ptr<OnednnCall>(new OnednnCall(std::move(state)));
}

void OnednnCall::set(int slot, const void* data) {
  for (auto& argument : state_->slots) {
    if (argument.slot == slot) argument.wanted = data;
  }
}

Status OnednnCall::run() {
  const SingleThreadOmp guard;
  for (std::size_t i = 0; i < state_->args.size(); ++i) {
    auto& argument = state_->slots[i];
    if (argument.wanted == argument.held) continue;
    TESSERA_TRY(
        check(dnnl_memory_set_data_handle_v2(state_->args[i].memory,
                                             const_cast<void*>(argument.wanted), state_->stream),
              "argument"));
    argument.held = argument.wanted;
  }
  TESSERA_TRY(
      check(dnnl_primitive_execute(state_->primitive->state_->primitive, state_->stream,
                                   static_cast<int>(state_->args.size()), state_->args.data()),
            "execution"));
  return check(dnnl_stream_wait(state_->stream), "execution");
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

SingleThreadOmp::SingleThreadOmp() : saved_(omp_get_max_threads()) {
  if (saved_ != 1) omp_set_num_threads(1);
}

SingleThreadOmp::~SingleThreadOmp() {
  if (saved_ != 1) omp_set_num_threads(saved_);
}

}  // namespace tessera::backends::cpu
