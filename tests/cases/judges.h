#pragma once

// The judges: each looks at some keys of a case and says whether they hold.

#include <vector>

#include "cases/attempt.h"
#include "cases/verdict.h"

namespace tessera::testing {

struct TriedWay {
  Way way;
  Attempt attempt;
};

// run, values, error_mentions, error_mentions_any, error_at: in each way.
void judge_run(const Case& tested, const TriedWay& tried, Verdicts& verdicts);

// What the graph holds once it is optimised: fused_ops_expected, fused_ops_forbidden,
// absent_ops_expected, absent_nodes_expected, qdq_groups_intact, min_rank_known,
// partition.captures_of_NODE.
void judge_graph(const Case& tested, Verdicts& verdicts);

// What the plan for the CPU holds: max_transposes, max_copies, max_artifact_bytes,
// report_is_valid_json, unread_outputs_do_not_overlap_live.
void judge_plan(const Case& tested, const TriedWay& tried, Verdicts& verdicts);

// What happens to memory: outputs_equal_inputs_alias_safe, inputs_unchanged,
// outputs_of_earlier_runs_unchanged, memory_after_all_runs_max_ratio_to_largest_run.
void judge_memory(const Case& tested, const TriedWay& tried, Verdicts& verdicts);

// The keys of `partition`.
void judge_partition(const Case& tested, const std::vector<TriedWay>& tried, Verdicts& verdicts);

// All keys of a case. Keys that no judge knows are failures; those that cannot be judged are left
// with the reason.
std::vector<Verdict> judge_case(const Case& tested);

}  // namespace tessera::testing
