#pragma once

// Which kernels really let threads share their work: the devices of the registry, watched.

#include <memory>
#include <set>
#include <string>

#include "backends/run_interface.h"

namespace tessera::testing {

// As backends::make_run_device. A kernel of the device that runs several chunks of work at once
// enters kernels_split(). For runs on one thread of the user at a time.
Result<std::unique_ptr<backends::RunDevice>> make_watched_run_device(
    const artefact::DeviceDecl& device);

const std::set<std::string>& kernels_split();

}  // namespace tessera::testing
