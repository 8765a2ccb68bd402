#include "yoke/observe/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "yoke/base/did_you_mean.h"
#include "yoke/base/error.h"
#include "yoke/base/terminal.h"
#include "yoke/observe/json_text.h"

namespace yoke {
namespace {

constexpr int kOutput = STDERR_FILENO;
constexpr std::size_t kBarCells = 20;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(kOutput, text.data(), text.size());
    // Nobody to show the progress to is no reason to end a run.
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::min(std::max(seconds, 0.0), 1e9));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

std::size_t columns() {
  winsize size{};
  const bool known = ::ioctl(kOutput, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

Clock::duration interval_of(Progress::Style style) {
  if (style == Progress::Style::kBar) return std::chrono::milliseconds(100);
  if (style == Progress::Style::kJson) return std::chrono::seconds(1);
  return std::chrono::seconds(5);
}

}  // namespace

Progress::Style Progress::style_from(const std::string& name) {
  if (name == "auto") return can_redraw(kOutput) ? Style::kBar : Style::kPlain;
  if (name == "bar") return Style::kBar;
  if (name == "plain") return Style::kPlain;
  if (name == "json") return Style::kJson;
  if (name == "none") return Style::kNone;
  const auto nearest = did_you_mean(name, {"auto", "bar", "plain", "json", "none"});
  throw ConfigError(cat("there is no progress style \"", name,
                        "\"; use auto, bar, plain, json or none.",
                        nearest ? cat(" Did you mean ", *nearest, "?") : std::string()));
}

Progress::Progress(Style style, std::int64_t total_steps, std::int64_t first_step)
    : style_(style), total_(total_steps), first_(first_step), started_(Clock::now()) {}

Progress::~Progress() {
  try {
    if (waiting_) present(*waiting_);
  } catch (const std::exception&) {
    // No memory for a line of progress: it is not missed.
  }
  if (!line_.empty()) write_all("\n");
}

void Progress::show(const Point& point) {
  if (style_ == Style::kNone) return;
  const bool news = !point.evaluation.empty();
  if (news) evaluation_ = point.evaluation;
  const bool early = shown_ && Clock::now() - last_shown_ < interval_of(style_);
  if (early && !news && point.step < total_) {
    waiting_ = point;
    return;
  }
  present(point);
}

void Progress::present(const Point& point) {
  waiting_.reset();
  last_shown_ = Clock::now();
  if (style_ == Style::kJson) {
    write_all(json(point) + "\n");
  } else if (style_ == Style::kPlain) {
    write_all(text(point) + "\n");
  } else {
    redraw(point);
  }
  if (shown_) return;
  // The first step pays for what is done once: from here on the rate is reckoned without it.
  shown_ = true;
  started_ = last_shown_;
  first_ = point.step;
}

void Progress::say(const std::string& line) {
  if (style_ == Style::kNone) return;
  if (style_ == Style::kJson) {
    write_all(json_text({{"message", line}}) + "\n");
  } else if (line_.empty()) {
    write_all(line + "\n");
  } else {
    write_all("\r\033[K" + line + "\n" + line_);
  }
}

std::optional<double> Progress::seconds_left(std::int64_t step) const {
  if (step >= total_) return 0;
  if (step <= first_) return std::nullopt;
  const double spent = Seconds(last_shown_ - started_).count();
  return spent / static_cast<double>(step - first_) * static_cast<double>(total_ - step);
}

std::string Progress::text(const Point& point) const {
  std::string text = cat("step ", point.step, "/", total_, "  loss ", number(point.loss), "  lr ",
                         number(point.lr), "  ", number(point.samples_per_second), " samples/s");
  if (const auto left = seconds_left(point.step); left && point.step < total_) {
    text += "  " + duration(*left) + " left";
  }
  return evaluation_.empty() ? text : text + "  " + evaluation_;
}

std::string Progress::json(const Point& point) const {
  nlohmann::json object = {{"step", point.step},
                           {"steps", total_},
                           {"loss", point.loss},
                           {"lr", point.lr},
                           {"samples_per_second", point.samples_per_second}};
  if (const auto left = seconds_left(point.step)) object["seconds_left"] = *left;
  if (!evaluation_.empty()) object["evaluation"] = evaluation_;
  return json_text(object);
}

void Progress::redraw(const Point& point) {
  const double done =
      total_ > 0 ? std::clamp(static_cast<double>(point.step) / static_cast<double>(total_), 0., 1.)
                 : 1.;
  const auto filled = static_cast<std::size_t>(std::floor(done * kBarCells));
  const std::string full(filled, '#');
  const std::string empty(kBarCells - filled, '.');
  std::string words = text(point);
  // A line that reaches the last column wraps, and a wrapped line cannot be redrawn.
  const std::size_t room = columns() - 1;
  const bool with_bar = words.size() + kBarCells + 3 <= room;
  if (words.size() > room) words.resize(room);
  const bool color = wants_color(kOutput);
  const std::string bar =
      cat("[", color ? "\033[32m" : "", full, color ? "\033[0m" : "", empty, "] ");
  line_ = with_bar ? bar + words : words;
  write_all("\r" + line_ + "\033[K");
}

}  // namespace yoke
