#pragma once

// Prices: from the cost table where it knows the key, else a roofline from the device's rates.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan/cost_table.h"
#include "plan/target.h"

namespace tessera::plan {

struct Price {
  double us = 0;
  bool measured = false;
  std::string key;  // empty for what is never measured (simulated devices, transfers)
};

// What can be measured for a price: a work item's candidate, or a conversion.
struct PriceRequest {
  const ir::WorkItem* item = nullptr;  // null for a conversion
  std::uint32_t device = 0;
  const backends::Candidate* candidate = nullptr;
  backends::TensorForm from, to;  // conversions only
  Shape shape;                    // conversions only
  bool estimate_only = false;     // by the roofline, even where the table knows better
};

// Measures one request in microseconds, or declines (an error) where the budget is used up.
using MeasureFn =
    std::function<Result<CostEntry>(const PriceRequest&, const SymbolBindings& point)>;

enum class MeasureMode : std::uint8_t { kOff, kMissing, kAll };

// Gives prices and keeps count of what the table knew.
class Pricer {
 public:
  Pricer(const Target& target, CostTable& table, int threads, SymbolBindings point)
      : target_(target), table_(table), threads_(threads), point_(std::move(point)) {}
  void set_measure(MeasureMode mode, MeasureFn measure) {
    mode_ = mode;
    measure_ = std::move(measure);
  }

  Price price(const PriceRequest& request);
  // Time of moving bytes between two memories, without synchronisation.
  [[nodiscard]] double transfer_us(std::uint32_t from_memory, std::uint32_t to_memory,
                                   double size_bytes) const;

  struct Miss {
    std::string key;
    std::string nearest;
  };
  [[nodiscard]] std::size_t hits() const { return hits_; }
  [[nodiscard]] std::vector<Miss> misses() const;
  [[nodiscard]] const SymbolBindings& point() const { return point_; }

 private:
  [[nodiscard]] std::string key_of(const PriceRequest& request) const;

  const Target& target_;
  CostTable& table_;
  int threads_;
  SymbolBindings point_;
  MeasureMode mode_ = MeasureMode::kOff;
  MeasureFn measure_;
  std::size_t hits_ = 0;
  std::set<std::string> missed_;
  std::set<std::string> measured_now_;
};

// Roofline: the larger of arithmetic at the candidate's share of the peak of its dtype, and traffic
// at the memory's rate.
double roofline_us(const backends::DeviceRates& rates, const backends::Candidate& candidate);

}  // namespace tessera::plan
