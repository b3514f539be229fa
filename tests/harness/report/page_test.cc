#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/base64.h"
#include "harness/report/report.h"

namespace tearless::harness {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Report report_of(int runs, int metrics, int points) {
  Report report{.title = "T", .command = "tearless report -o r.html"};
  report.grids.push_back({.title = "T", .asked = {}});
  for (int i = 0; i < runs; ++i) {
    ReportRun& run = report.runs.emplace_back();
    run.row.run.id = fmt::format("{:016x}", i);
    run.row.run.coordinates = {{"s", "a"}};
    run.row.run.seed = i;
    run.row.result.state = RunState::kDone;
    run.settings = {{"train.lr", "0.1"}, {"train.seed", std::to_string(i)}};
    for (int m = 0; m < metrics; ++m) {
      Curve& curve = run.curves[fmt::format("dev.m{}", m)];
      for (int p = 1; p <= points; ++p) curve.push_back({static_cast<double>(p), p == 77 ? 1e6 : 1.0 / p + i});
    }
  }
  return report;
}

/// The first curve of the page's data.
std::string first_curve(const std::string& page) {
  const size_t key = page.find("\"dev.m0\":\""), from = key + 10;
  return page.substr(from, page.find('"', from) - from);
}

TEST(Page, OfFewRunsHasWholeCurves) {
  const std::string page = page_of(report_of(3, 2, 400));
  EXPECT_EQ(first_curve(page).size(), base64(std::string(400 * 8, ' ')).size());
  EXPECT_THAT(page, Not(HasSubstr("the least and the greatest value of each stretch")));
  Report thin = report_of(3, 2, 400);
  thin.has_thin_curves = true;
  EXPECT_THAT(page_of(thin), HasSubstr("Of a curve with more than 500 points the least"));
}

TEST(Page, OfAThousandRunsIsNoLargerThan15MBAndSaysThatCurvesAreThinner) {
  const std::string page = page_of(report_of(1000, 8, 400));
  EXPECT_LE(page.size(), 15'000'000u);
  EXPECT_GT(page.size(), 6'000'000u) << "no thinner than it must be";
  EXPECT_THAT(page,
              HasSubstr("Of a curve with more than 125 points the least and the greatest value of each stretch."));
  EXPECT_LE(first_curve(page).size(), base64(std::string(125 * 8, ' ')).size());
  EXPECT_LE(page_of(report_of(105, 30, 400)).size(), 5'000'000u);
}

TEST(Page, OfSettingsSaysWhichVaryAndWhatAllRunsHave) {
  Report report = report_of(3, 0, 0);
  report.runs[0].settings["model.kind"] = "\"<pre>\"";
  const std::string page = page_of(report);
  EXPECT_THAT(page,
              HasSubstr("<tr><th scope=\"row\">model.kind</th><td>&quot;&lt;pre&gt;&quot; (1), none (2)</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th scope=\"row\">train.seed</th><td>0 (1), 1 (1), 2 (1)</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<summary>1 setting that all trained runs have</summary>\n<div "
                              "class=\"wide\"><table><tbody>\n<tr><th scope=\"row\">train.lr</th><td>0.1</td></tr>"));
  EXPECT_THAT(page, AllOf(HasSubstr("\"settings\":{\"train.lr\":\"0.1\"}"), HasSubstr("\\u003cpre>")));
  EXPECT_THAT(page, Not(HasSubstr("id=\"curves\""))) << "no run has one";
}

TEST(Page, OfCostAddsAttemptsTimesThreads) {
  Report report = report_of(2, 0, 0);
  EXPECT_THAT(page_of(report), HasSubstr("Not known: no attempts are recorded here."));
  const auto attempt = [](int64_t number, const char* device, const char* from, const char* to) {
    AttemptRecord record;
    record.number = number;
    record.outcome = number == 1 ? "crashed" : "done";
    record.reason = "exit code <1>";
    record.started_at = from;
    record.ended_at = to;
    record.device = device;
    return record;
  };
  report.runs[0].row.run.needs.threads = 4;
  report.runs[0].row.result.attempts = {attempt(1, "cpu", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"),
                                        attempt(2, "cpu", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z")};
  report.runs[1].row.result.attempts = {attempt(1, "NVIDIA H200", "2026-01-01T00:00:00Z", ""),
                                        attempt(2, "NVIDIA H200", "2026-01-02T00:00:00Z", "2026-01-02T02:15:00Z")};
  report.cost.add({report.runs[0].row, report.runs[1].row}, 2);
  EXPECT_THAT(page_of(report), Not(HasSubstr("with all seeds")));
  report.cost = {};
  report.cost.add({report.runs[0].row, report.runs[1].row}, 3);
  const std::string page = page_of(report);
  EXPECT_THAT(page, HasSubstr(">core-hours</th><td>6.00</td>"));  // 4 × 1.5
  EXPECT_THAT(page, HasSubstr(">with all seeds</th><td>3 runs, about 9.00 core-hours and 3.38 GPU-hours</td>"));
  EXPECT_THAT(page, HasSubstr(">GPU-hours</th><td>2.25</td>"));
  EXPECT_THAT(page, HasSubstr(">of unknown length</th><td>1 attempt, "));
  EXPECT_THAT(page, HasSubstr(">from, to</th><td>2026-01-01T00:00:00Z, 2026-01-02T02:15:00Z</td>"));
  EXPECT_THAT(page, HasSubstr("<td>1</td><td>crashed</td><td>exit code &lt;1&gt;</td>"));
}

TEST(Page, OfADerivedRunShowsItsScoreWithItsTrainedRun) {
  Report report = report_of(2, 0, 0);
  report.runs[1].row.derivation = "beam8";
  report.runs[1].trained = 0;
  report.runs[1].row.result.scores = {{"beam8.test.bleu", 27.5}};
  report.runs[1].settings = {{"derived.beam", "8"}};
  const std::string page = page_of(report);
  EXPECT_THAT(page, HasSubstr("<td>done</td><td>0</td><td>27.5</td><td><code>0000000000000000</code></td>"));
  EXPECT_THAT(page, HasSubstr("<summary>1 derived run</summary>"));
  EXPECT_THAT(page, HasSubstr("\"derived_from\":0"));
  EXPECT_THAT(page, HasSubstr("<p>All trained runs have the same settings.</p>"));
}

}  // namespace
}  // namespace tearless::harness
