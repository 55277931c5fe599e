#include "backends/cpu/run/primitive_cache.h"

#include <map>
#include <mutex>

namespace tessera::backends::cpu {
namespace {

template <typename Problem>
class Cache {
 public:
  Result<std::shared_ptr<const OnednnPrimitive>> get(const Problem& problem) {
    const std::shared_ptr<Entry> entry = entry_of(problem);
    const std::scoped_lock lock(entry->mutex);
    if (auto known = entry->primitive.lock()) return known;
    TESSERA_ASSIGN(const auto made, OnednnPrimitive::describe(problem));
    TESSERA_TRY(made->create());
    entry->primitive = made;
    return made;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const OnednnPrimitive> primitive;
  };

  std::shared_ptr<Entry> entry_of(const Problem& problem) {
    const std::scoped_lock lock(mutex_);
    if (entries_.size() >= next_sweep_) {
      std::erase_if(entries_, [](const auto& item) {
        return item.second.use_count() == 1 && item.second->primitive.expired();
      });
      next_sweep_ = 2 * entries_.size() + kFewest;
    }
    auto& entry = entries_[problem];
    if (entry == nullptr) entry = std::make_shared<Entry>();
    return entry;
  }

  static constexpr std::size_t kFewest = 64;
  std::mutex mutex_;
  std::map<Problem, std::shared_ptr<Entry>> entries_;
  std::size_t next_sweep_ = kFewest;  // entries, at which those without a primitive go
};

// Never destroyed: kernels of static lifetime may outlive any order of destruction.
template <typename Problem>
Cache<Problem>& cache() {
  static auto& made = *new Cache<Problem>();
  return made;
}

}  // namespace

Result<std::shared_ptr<const OnednnPrimitive>> compiled_primitive(const ConvProblem& problem) {
  return cache<ConvProblem>().get(problem);
}

Result<std::shared_ptr<const OnednnPrimitive>> compiled_primitive(const ProductProblem& problem) {
  return cache<ProductProblem>().get(problem);
}

Result<std::shared_ptr<const OnednnPrimitive>> compiled_primitive(const PoolProblem& problem) {
  return cache<PoolProblem>().get(problem);
}

}  // namespace tessera::backends::cpu
