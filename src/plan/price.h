#pragma once

// Prices: from the cost table where it knows the key, else a roofline from the device's rates.

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plan/cost_table.h"
#include "plan/estimate_errors.h"
#include "plan/target.h"

namespace tessera::plan {

struct Price {
  double us = 0;
  bool measured = false;
  std::string key;           // empty for what is never measured (simulated devices, transfers)
  double load_share_us = 0;  // each run's share of what preparing the kernel costs at load
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

// Measures the requests, one entry for each, in turn with one another; declines one (an error)
// where the budget is used up.
using MeasureFn = std::function<std::vector<Result<CostEntry>>(std::span<const PriceRequest>,
                                                               const SymbolBindings& point)>;

enum class MeasureMode : std::uint8_t { kOff, kMissing, kAll };

// Gives prices and keeps count of what the table knew.
class Pricer {
 public:
  Pricer(const Target& target, CostTable& table, int threads, SymbolBindings point,
         CacheState caches = CacheState::kResident)
      : target_(target),
        table_(table),
        threads_(threads),
        point_(std::move(point)),
        caches_(caches) {}
  void set_measure(MeasureMode mode, MeasureFn measure) {
    mode_ = mode;
    measure_ = std::move(measure);
  }

  // Sizes that are assumed of values whose types tell no rank; they outlive what is priced.
  void set_assumed(const std::map<ir::ValueId, Dims>& dims) { assumed_ = &dims; }
  [[nodiscard]] const std::map<ir::ValueId, Dims>* assumed() const { return assumed_; }

  // How many runs follow a load, as far as the plan is concerned; 0: loads cost nothing.
  void set_runs_per_load(double runs) { runs_per_load_ = runs; }

  // Measures now, together, those of the requests that price() would measure one by one: candidates
  // for the same work should meet the same moments of the machine.
  void measure(std::span<const PriceRequest> requests);
  Price price(const PriceRequest& request);
  // Time of moving bytes between two memories, without synchronisation.
  [[nodiscard]] double transfer_us(std::uint32_t from_memory, std::uint32_t to_memory,
                                   double size_bytes) const;

  struct Miss {
    std::string key;
    std::string nearest;
  };
  [[nodiscard]] std::size_t hits() const { return hits_; }  // that the table knew
  // The table's prices that were asked for beside what the roofline says, by key.
  [[nodiscard]] const std::map<std::string, Estimate>& estimates() const { return estimates_; }
  [[nodiscard]] std::vector<Miss> misses() const;
  [[nodiscard]] const SymbolBindings& point() const { return point_; }

 private:
  [[nodiscard]] std::string key_of(const PriceRequest& request) const;
  [[nodiscard]] bool is_measurable(const PriceRequest& request) const;

  const Target& target_;
  CostTable& table_;
  int threads_;
  SymbolBindings point_;
  CacheState caches_;
  MeasureMode mode_ = MeasureMode::kOff;
  MeasureFn measure_;
  const std::map<ir::ValueId, Dims>* assumed_ = nullptr;
  double runs_per_load_ = 0;
  std::size_t hits_ = 0;
  std::set<std::string> missed_;
  std::set<std::string> asked_now_;  // of the measurer, whatever it answered
  std::map<std::string, Estimate> estimates_;
};

// The rate of the smallest level of memory that `size_bytes` fit in.
double bandwidth_gb_per_s(const backends::DeviceRates& rates, double size_bytes);

// Roofline: the larger of arithmetic at the candidate's share of the peak of its dtype, and traffic
// at the rate of the memory that its operands fit in; then the hand-over.
double roofline_us(const backends::DeviceRates& rates, const backends::Candidate& candidate);

}  // namespace tessera::plan
