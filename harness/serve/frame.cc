#include "harness/serve/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/build_stamp.h"
#include "harness/report/page_parts.h"
#include "harness/serve/target.h"
#include "harness/table/html.h"

namespace tearless::harness {

std::string framed(const std::string& place, const std::string& title, const std::string& html) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/page.css\">\n<script src=\"/live.js\" "
      "defer></script>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#main\">Skip to the results</a>\n<header>\n<nav aria-label=\"Pages\"><ul>"
      "<li><a href=\"/\">{1}</a></li></ul></nav>\n<h1>{0}</h1>\n</header>\n<main id=\"main\">\n{2}</main>\n"
      "<footer><p id=\"live\" role=\"status\"></p><p>Made by tearless {3}.</p></footer>\n</body>\n</html>\n",
      escape_html(title), escape_html(place), html, escape_html(std::string(build_stamp())));
}

std::string link_to(const std::string& address, const std::string& text) {
  return fmt::format("<a href=\"{}\">{}</a>", escape_html(address), escape_html(text));
}

std::string address_of_run(const std::string& run) { return "/run/" + encoded(run); }
std::string address_of_sweep(const std::string& sweep) { return "/sweep/" + encoded(sweep); }

std::string place_of_curves(const std::vector<CurveOfRun>& runs, const std::vector<std::string>& metrics) {
  if (runs.empty() || metrics.empty()) return "";
  nlohmann::json list = nlohmann::json::array();
  for (const CurveOfRun& one : runs) list.push_back({{"run", one.run}, {"label", one.label}});
  const nlohmann::json what = {{"runs", list}, {"metrics", metrics}};
  return fmt::format(
      "<div class=\"curves live-curves\" data-curves=\"{}\"><noscript><p>Curves are drawn by a script.</p></noscript>"
      "</div>\n",
      escape_html(what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

std::vector<std::string> in_order_of_interest(std::vector<std::string> metrics) {
  const auto others = std::ranges::stable_partition(metrics, [](const auto& name) { return name.starts_with("dev."); });
  std::ranges::stable_partition(others, [](const auto& name) { return name == "train.loss"; });
  return metrics;
}

std::string table_of_progress(const std::vector<Progress>& running) {
  HtmlTable table{.header = {"Run", "Updates", "Loss", "Development score", "Left", "What it waits for"}};
  for (const Progress& run : running) {
    const std::string bar = run.updates <= 0 ? ""
                                             : fmt::format("<progress value=\"{}\" max=\"{}\"></progress> ",
                                                           std::min(run.step, run.updates), run.updates);
    table.rows.push_back(
        {link_to(address_of_run(run.id), run.label.empty() ? run.id : run.label),
         bar + (run.updates > 0 ? fmt::format("{} of {}", run.step, run.updates) : std::to_string(run.step)),
         run.loss ? fmt::format("{:.4g}", *run.loss) : "",
         run.dev_score ? escape_html(fmt::format("{} {:.4g}", run.dev_name, *run.dev_score)) : "",
         run.seconds_left() ? duration_text(run.seconds_left()) : "", escape_html(run.waits_for)});
  }
  return table.rows.empty() ? "" : table.html();
}

}  // namespace tearless::harness
