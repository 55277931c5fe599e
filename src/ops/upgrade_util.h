#pragma once

// What upgrades of older versions share. A version in `OpSchema::versions` that no upgrade covers
// has the newest meaning already (it differs in the dtypes that it allows).

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// Constants: int64 of rank 1, int64 of rank 0, or a scalar of a float dtype.
Operand constant_ints(UpgradeBuilder& builder, const std::vector<std::int64_t>& values);
Operand constant_int(UpgradeBuilder& builder, std::int64_t value);
// fp32, fp64, fp16 or bf16 of rank 0.
Operand constant_float(UpgradeBuilder& builder, DType dtype, double value);

// Sets input `index`, filling with omitted ones up to there.
void set_input(UpgradeNode& node, std::size_t index, Operand operand);
bool has_input(const UpgradeNode& node, std::size_t index);

// Attribute `name` (ints, or one int) becomes a constant int64 input of rank 1; nothing where it is
// absent.
Status ints_to_input(UpgradeNode& node, UpgradeBuilder& builder, std::string_view name,
                     std::size_t index);

// Drops attributes that old versions had and that mean nothing (consumed_inputs).
void erase_attributes(UpgradeNode& node, std::initializer_list<std::string_view> names);

// An attribute of an old version, which no schema has checked: `fallback` where it is absent, an
// error where its type is another.
Result<std::int64_t> old_int(const UpgradeNode& node, std::string_view name, std::int64_t fallback);
Result<float> old_float(const UpgradeNode& node, std::string_view name, float fallback);
Result<std::vector<std::int64_t>> old_ints(const UpgradeNode& node, std::string_view name,
                                           std::vector<std::int64_t> fallback);

// The rank of an operand where it is known.
std::optional<std::int64_t> known_rank(const UpgradeBuilder& builder, Operand operand);
// Its dtype, or an error that says which input lacks a type: an upgrade that needs it cannot go on.
Result<DType> known_dtype(const UpgradeBuilder& builder, Operand operand, std::string_view what);

// For versions whose only difference is the attribute `consumed_inputs`.
Status upgrade_consumed_inputs(UpgradeNode& node, int opset, UpgradeBuilder& builder);

}  // namespace tessera::ops
