#include "plan/target.h"

#include <algorithm>

#include "backends/registry_compile/registry_compile.h"

namespace tessera::plan {

std::uint32_t Target::find(std::string_view name) const {
  for (std::uint32_t i = 0; i < devices.size(); ++i)
    if (info(i).name == name) return i;
  return static_cast<std::uint32_t>(devices.size());
}

Result<Target> make_target(std::vector<std::unique_ptr<backends::CompileDevice>> devices) {
  Target target;
  target.devices = std::move(devices);
  if (target.find("reference") == target.device_count()) {
    TESSERA_ASSIGN(auto reference, backends::make_compile_device("reference"));
    target.devices.push_back(std::move(reference));
  }
  // The last resort stands last, wherever it was listed.
  std::stable_partition(target.devices.begin(), target.devices.end(),
                        [](const auto& device) { return device->info().name != "reference"; });
  target.memories = {"host"};
  for (std::uint32_t i = 0; i < target.device_count(); ++i) {
    const auto& info = target.info(i);
    if (target.find(info.name) != i)
      return fail(ErrorCode::kAlreadyExists, "two devices are called '" + info.name + "'");
    auto memory = std::ranges::find(target.memories, info.memory);
    if (memory == target.memories.end()) memory = target.memories.insert(memory, info.memory);
    target.memory_of.push_back(static_cast<std::uint32_t>(memory - target.memories.begin()));
  }
  return target;
}

std::uint32_t host_device(const Target& target) {
  return static_cast<std::uint32_t>(std::ranges::find(target.memory_of, kHostMemory) -
                                    target.memory_of.begin());
}

std::string device_names(const Target& target) {
  std::string names;
  for (std::uint32_t i = 0; i < target.device_count(); ++i)
    names += (i == 0 ? "" : ", ") + target.info(i).name;
  return names;
}

std::string to_string(const Form& form, const Target& target) {
  std::string text =
      form.tensor.layout.to_string() + "/" + std::string(to_string(form.tensor.dtype));
  if (form.memory != kHostMemory) text += "@" + target.memories[form.memory];
  return text;
}

}  // namespace tessera::plan
