#pragma once

// Reference kernels of the pooling operators.

#include "ops/op.h"

namespace tessera::ops::nn {

Status max_pool_kernel(KernelContext& context);
Status average_pool_kernel(KernelContext& context);
Status lp_pool_kernel(KernelContext& context);
Status global_average_pool_kernel(KernelContext& context);
Status global_max_pool_kernel(KernelContext& context);
Status global_lp_pool_kernel(KernelContext& context);

}  // namespace tessera::ops::nn
