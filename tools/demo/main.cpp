// tessera-demo: a text detector through the whole chain. Draws a picture, compiles the detector for
// the CPU and a simulated NPU, runs both plans of the artefact, and shows what was found, what ran
// where, and what it cost. Exit codes: 0 done, 1 failed, 2 usage.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "artefact/write/writer.h"
#include "base/file.h"
#include "compare.h"
#include "compile_flags.h"
#include "compiler/compile.h"
#include "console.h"
#include "demo/picture.h"
#include "demo/plan_run.h"
#include "demo/png.h"
#include "demo/text_boxes.h"

namespace tessera::demo {
namespace {

constexpr int kTolerancePx = 4;  // between the boxes of the two plans: one may compute in fp16
constexpr int kCpuRuns = 5;
constexpr int kModelledRuns =
    1;  // a simulated device's time is modelled: running again would change nothing

struct Arguments {
  std::string model;
  std::string npu;
  std::string folder;
  tools::CompileFlags flags;
};

std::filesystem::path in_folder(const Arguments& arguments, const std::string& name) {
  return std::filesystem::path(arguments.folder) / name;
}

// The report of each plan; the artefact holds both plans.
struct Reports {
  report::Report mixed;
  report::Report cpu;
};

Result<Reports> compile_plans(const Arguments& arguments, const Picture& picture) {
  tools::CompileFlags flags = arguments.flags;
  flags.devices = "cpu," + arguments.npu;
  flags.shapes = {fmt::format("x=1x3x{}x{}", picture.height_px(), picture.width_px())};
  flags.cost_table = in_folder(arguments, "prices.json").string();
  flags.measure = "missing";
  tools::say("compiling, with measuring of what the cost table lacks ...");
  TESSERA_ASSIGN(const auto options, tools::to_options(flags));
  TESSERA_ASSIGN(const auto mixed, compiler::compile(arguments.model, options));
  TESSERA_TRY(artefact::write_program(mixed.image, in_folder(arguments, "ppocrv4_det.tsr")));
  tools::say(fmt::format("compiled in {:.1f} s: {} prices from the cost table, {} estimated",
                         mixed.total_ms / 1000, mixed.report.price_hits,
                         mixed.report.price_misses.size()));
  // The report of the plan for the CPU alone, which an artefact does not carry: the same plan from
  // the same prices.
  flags.devices = "cpu";
  flags.measure = "off";
  flags.stop_after = "allocate";
  TESSERA_ASSIGN(const auto cpu_options, tools::to_options(flags));
  TESSERA_ASSIGN(auto cpu, compiler::compile(arguments.model, cpu_options));
  return Reports{mixed.report, std::move(cpu.report)};
}

// The drawn line that lies most inside of the box.
std::string text_drawn_in(const Scene& scene, const TextBox& box) {
  const TextLine* best = nullptr;
  double most = 0;
  for (const TextLine& line : scene.lines) {
    const double share = covered_share(bounds_of(line), box.area);
    if (share > most) best = &line;
    most = std::max(most, share);
  }
  return best == nullptr ? "nothing" : best->text;
}

std::string boxes_text(const Scene& scene, const std::vector<TextBox>& boxes) {
  std::string text = fmt::format("text boxes\n  {:>5} {:>5} {:>5} {:>6} {:>6}  drawn there\n",
                                 "left", "top", "right", "bottom", "score");
  for (const TextBox& box : boxes)
    text += fmt::format("  {:>5} {:>5} {:>5} {:>6} {:>6.3f}  {}\n", box.area.left, box.area.top,
                        box.area.right, box.area.bottom, box.score, text_drawn_in(scene, box));
  return text;
}

std::string accounting_row(const std::string& plan, const report::Accounting& sum) {
  return fmt::format(
      "  {:<6} {:<9} {:>9.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>10.1f} {:>11.1f} {:>9.1f} {:>9.1f}\n",
      plan, sum.timeline, sum.compute_us, sum.sync_us, sum.layout_us, sum.copy_us,
      sum.overlapped_us, sum.unaccounted_us, sum.total_us, sum.predicted_us);
}

std::string accounting_table(const report::Accounting& mixed, const report::Accounting& cpu) {
  std::string text = fmt::format(
      "accounting of both plans, us\n  {:<6} {:<9} {:>9} {:>8} {:>8} {:>8} {:>10} {:>11} {:>9} "
      "{:>9}\n",
      "plan", "timeline", "compute", "sync", "layout", "copy", "overlapped", "unaccounted", "total",
      "predicted");
  return text + accounting_row("mixed", mixed) + accounting_row("cpu", cpu);
}

// How far the maps are apart, once the boxes are known to be the same.
Result<std::string> agreement_text(const PlanRun& mixed, const PlanRun& cpu) {
  const auto difference = tools::compare(cpu.output, mixed.output, 0, 0);
  if (!difference.problem.empty())
    return fail(ErrorCode::kInternal, "the outputs of the two plans: " + difference.problem);
  return fmt::format(
      "both plans find the same boxes; their probability maps differ by at most {:.4f}\n",
      difference.max_abs);
}

Status run_demo(const Arguments& arguments) {
  std::error_code error;
  std::filesystem::create_directories(arguments.folder, error);
  if (error)
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("{}: {}", arguments.folder, error.message()));
  Scene scene = demo_scene();
  TESSERA_TRY(write_file_atomically(in_folder(arguments, "picture.png"), to_png(scene.picture)));
  TESSERA_ASSIGN(const Tensor input, detector_input(scene.picture));
  TESSERA_ASSIGN(Reports reports, compile_plans(arguments, scene.picture));

  TESSERA_ASSIGN(const auto options, tools::to_options(arguments.flags));
  const auto artefact = in_folder(arguments, "ppocrv4_det.tsr");
  tools::say("running the plan for the CPU alone ...");
  TESSERA_ASSIGN(const PlanRun cpu, run_plan(artefact, "cpu", input, std::move(reports.cpu),
                                             options.threads, kCpuRuns));
  tools::say("running the mixed plan; the NPU is simulated by plain code ...");
  TESSERA_ASSIGN(const PlanRun mixed, run_plan(artefact, "main", input, std::move(reports.mixed),
                                               options.threads, kModelledRuns));
  TESSERA_TRY(write_evidence(mixed, arguments.folder, ""));
  TESSERA_TRY(write_evidence(cpu, arguments.folder, "cpu_"));

  TESSERA_ASSIGN(const auto boxes, find_text_boxes(mixed.output));
  TESSERA_ASSIGN(const auto cpu_boxes, find_text_boxes(cpu.output));
  for (const TextBox& box : boxes) scene.picture.outline(box.area, 2, {0, 150, 60});
  TESSERA_TRY(write_file_atomically(in_folder(arguments, "found.png"), to_png(scene.picture)));
  tools::answer(report::to_text(mixed.report, /*verbose=*/false, tools::terminal_width()));
  tools::answer(boxes_text(scene, boxes));
  TESSERA_TRY(check_agreement(boxes, cpu_boxes, kTolerancePx));
  TESSERA_ASSIGN(const auto agreement, agreement_text(mixed, cpu));
  tools::answer(agreement);
  TESSERA_TRY(check_lines_found(scene.lines, boxes));
  tools::answer(accounting_table(mixed.report.accounting, cpu.report.accounting));
  tools::answer(
      fmt::format("in {0}: report.txt, report.json and trace.json of the mixed plan, cpu_* of the "
                  "CPU's, picture.png, found.png\n",
                  arguments.folder));
  tools::answer(fmt::format("tessera demo: found {} text boxes; report in {}\n", boxes.size(),
                            in_folder(arguments, "report.txt").string()));
  return {};
}

}  // namespace
}  // namespace tessera::demo

int main(int argc, char** argv) {
  using namespace tessera;
  CLI::App app(
      "Compiles the text detector PP-OCRv4 for the CPU and a simulated NPU, runs it on a drawn "
      "picture, shows the evidence.",
      "tessera-demo");
  demo::Arguments arguments;
  arguments.flags.measure_seconds = 40;
  arguments.flags.precision = "fp16";
  app.add_option("--model", arguments.model, "The detector, an ONNX file")->required();
  app.add_option("--npu", arguments.npu, "Profile of the NPU")->required();
  app.add_option("--out", arguments.folder, "Folder for the artefact, the prices and the reports")
      ->required();
  app.add_option("--threads", arguments.flags.threads,
                 "CPU threads (default: as many as this process may use)");
  app.add_option("--precision", arguments.flags.precision,
                 "fp32, bf16 or fp16: in which fp32 operations may be computed");
  app.add_option("--measure-seconds", arguments.flags.measure_seconds,
                 "Time to spend on measuring");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  tools::install_cancellation();
  const Status status = demo::run_demo(arguments);
  if (status) return 0;
  tools::say("tessera-demo: " + status.error().to_string());
  return 1;
}
