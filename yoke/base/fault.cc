#include "yoke/base/fault.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "yoke/base/did_you_mean.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"

namespace yoke {
namespace {

const std::vector<std::string> kKinds = {"kill", "stop", "hang", "throw", "flip"};
const std::vector<std::string> kPoints = {
    "in_recovery",  "in_compute",   "before_reduce", "in_reduce",    "after_reduce",
    "in_update",    "after_update", "checkpoint.1",  "checkpoint.2", "checkpoint.3",
    "checkpoint.4", "checkpoint.5", "checkpoint.6",  "checkpoint.7"};

/// The one point that holds data whose flipped bit goes into the sum.
constexpr std::string_view kFlipPoint = "before_reduce";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse(std::string_view fault, const std::string& why) {
  throw ConfigError(cat("the fault \"", fault, "\" cannot be set: ", why,
                        ". Write for example kill@rank=2,step=7,point=in_reduce."));
}

std::string choice(std::string_view fault, std::string_view what, std::string_view value,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return std::string(value);
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  const auto nearest = did_you_mean(value, known);
  refuse(fault, cat("there is no ", what, " \"", value, "\"",
                    nearest ? cat("; did you mean \"", *nearest, "\"?") : std::string(),
                    " There are: ", names));
}

template <typename Number>
Number number(std::string_view fault, std::string_view name, std::string_view value) {
  Number result{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size() || result < 0) {
    refuse(fault, cat(name, " must be a number from 0 up, and is \"", value, "\""));
  }
  return result;
}

Fault parsed(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) refuse(text, "it has no @");
  const std::string kind = choice(text, "kind of fault", trimmed(text.substr(0, at)), kKinds);
  Fault fault{.kind = kind == "kill"    ? Fault::Kind::kKill
                      : kind == "stop"  ? Fault::Kind::kStop
                      : kind == "hang"  ? Fault::Kind::kHang
                      : kind == "throw" ? Fault::Kind::kThrow
                                        : Fault::Kind::kFlip,
              .rank = -1,
              .step = -1,
              .point = {},
              .text = std::string(text)};
  for (const std::string_view part : split(text.substr(at + 1), ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) refuse(text, cat("\"", part, "\" has no ="));
    const std::string_view name = trimmed(part.substr(0, equals));
    const std::string_view value = trimmed(part.substr(equals + 1));
    if (name == "rank" && fault.rank < 0) {
      fault.rank = number<int>(text, name, value);
    } else if (name == "step" && fault.step < 0) {
      fault.step = number<std::int64_t>(text, name, value);
    } else if (name == "point" && fault.point.empty()) {
      fault.point = choice(text, "point", value, kPoints);
    } else {
      refuse(text,
             cat("\"", name, "\" is unknown or given twice; rank, step and point are wanted"));
    }
  }
  if (fault.rank < 0) refuse(text, "it names no rank");
  if (fault.step < 0) refuse(text, "it names no step");
  if (fault.point.empty()) refuse(text, "it names no point");
  if (fault.kind == Fault::Kind::kFlip && fault.point != kFlipPoint) {
    refuse(text, cat("a bit can be flipped at ", kFlipPoint,
                     " only, in the gradient that this rank gives to the sum"));
  }
  return fault;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  if (!std::filesystem::exists(path)) return lines;
  const std::string content = read_file(path);
  for (const std::string_view line : split(content, '\n')) lines.emplace_back(line);
  return lines;
}

/// Durable before the fault acts: the fault may be the last thing that this process does.
void note_fired(const std::filesystem::path& path, const std::string& text) {
  const std::string line = text + "\n";
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const bool written =
      file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      ::fsync(file) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written) {
    throw IoError(cat("cannot note in ", path.string(), " that the fault ", text,
                      " fires: ", std::strerror(error),
                      ". It was not fired, since it would fire again after each restart."));
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

}  // namespace

FaultPlan::FaultPlan(std::string_view text, int rank, std::filesystem::path fired)
    : fired_(std::move(fired)) {
  if (trimmed(text).empty()) return;
  const std::vector<std::string> done = lines_of(fired_);
  for (const std::string_view part : split(text, ';')) {
    if (part.empty()) continue;
    Fault fault = parsed(part);
    if (fault.rank != rank) continue;
    if (std::find(done.begin(), done.end(), fault.text) != done.end()) {
      log_warning("fault ", fault.text, " fired in an earlier sitting of this run; not again");
      continue;
    }
    log_warning("fault ", fault.text, " will fire on purpose, because YOKE_FAULT asks for it");
    faults_.push_back(std::move(fault));
  }
}

FaultPlan FaultPlan::from_environment(int rank, std::filesystem::path fired) {
  const char* text = std::getenv("YOKE_FAULT");
  return text == nullptr ? FaultPlan() : FaultPlan(text, rank, std::move(fired));
}

bool FaultPlan::reach(std::string_view point, std::int64_t step) {
  if (faults_.empty()) return false;
  YOKE_ENSURE(std::find(kPoints.begin(), kPoints.end(), point) != kPoints.end(),
              "There is no fault point ", point, ".");
  bool flip = false;
  for (auto fault = faults_.begin(); fault != faults_.end();) {
    if (fault->point != point || fault->step != step) {
      ++fault;
      continue;
    }
    const Fault due = *fault;
    fault = faults_.erase(fault);
    note_fired(fired_, due.text);
    log_error("FAULT ", due.text, " fires now, on purpose");
    if (due.kind == Fault::Kind::kKill) ::raise(SIGKILL);
    if (due.kind == Fault::Kind::kStop) ::raise(SIGSTOP);
    while (due.kind == Fault::Kind::kHang) ::pause();
    if (due.kind == Fault::Kind::kThrow) throw std::runtime_error("the fault " + due.text);
    if (due.kind == Fault::Kind::kFlip) flip = true;
  }
  return flip;
}

}  // namespace yoke
