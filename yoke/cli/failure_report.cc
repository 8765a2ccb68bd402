#include "yoke/cli/failure_report.h"

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/cli/command_line.h"
#include "yoke/observe/json_text.h"

namespace yoke::cli {
namespace {

std::string meaning_of(int code, bool own) {
  if (code == 126) return "the program cannot be executed";
  if (code == 127) return "there is no such program";
  if (code > 128 && code < 128 + 65) {
    return cat("a shell's word for ", net::signal_name(code - 128));
  }
  if (!own) return {};
  switch (code) {
    case kExitUsage:
      return "wrong usage";
    case kExitData:
      return "bad data, or a value that is not finite";
    case kExitInternal:
      return "a bug in yoke";
    case kExitEnvironment:
      return "this machine lacks something, memory most often";
    case kExitIo:
      return "a file could not be read or written";
    case kExitPeerLost:
      return "it lost a peer, or waited for one in vain";
    case kExitDoNotRestart:
      return "the same failure again, or no progress";
    case kExitConfig:
      return "bad configuration";
    default:
      return {};
  }
}

std::string cause_of(const net::ProcessFailure& failure, bool own) {
  if (failure.stopped)
    return "stopped (by SIGSTOP, or a debugger); the others waited for it in vain";
  if (failure.signal == SIGKILL) {
    return failure.memory_was_short ? "killed by SIGKILL, probably out of memory"
                                    : "killed by SIGKILL";
  }
  if (failure.signal != 0) {
    return cat("killed by ", net::signal_name(failure.signal), " (",
               net::signal_words(failure.signal), ')');
  }
  auto meaning = meaning_of(failure.exit_code, own);
  auto code = cat("ended with exit code ", failure.exit_code);
  return meaning.empty() ? code : cat(code, ": ", meaning);
}

std::string kind_of(const net::ProcessFailure& failure, bool own) {
  if (failure.stopped) return "hung";
  if (failure.memory_was_short) return "oom";
  // What a rank can run out of is memory; processes and ports are its launcher's.
  if (own && failure.signal == 0 && failure.exit_code == kExitEnvironment) return "oom";
  if (failure.signal != 0) return "killed";
  return failure.exit_code == kExitPeerLost ? "partitioned" : "user_error";
}

std::string hint_of(const net::ProcessFailure& failure, bool own) {
  if (failure.stopped)
    return cat("Find out who stopped process ", failure.pid, " (it is killed now).");
  if (failure.memory_was_short) {
    return own ? "Fewer workers (-n) or smaller micro-batches (train.micro_batch) need less memory."
               : "Fewer ranks (-n) need less memory.";
  }
  switch (failure.signal) {
    case 0:
      break;
    case SIGPIPE:
      return "Whoever read what it printed has ended, as head does after its lines.";
    case SIGKILL:
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
      return "The signal came from outside: a person, a scheduler, or a limit of the machine.";
    default:
      return "The program crashed; its last lines, or a debugger, tell where.";
  }
  if (own && failure.exit_code == kExitPeerLost) {
    return "Its last lines name the rank that it waited for; look at that one's log.";
  }
  if (failure.last_lines.empty()) {
    return own ? "It ended without a word; YOKE_LOG=debug and -n 1 show more."
               : "It ended without a word; start the program alone to see why.";
  }
  return "Its last lines say what is wrong.";
}

}  // namespace

FailureReport explain(const net::ProcessFailure& failure, bool own) {
  FailureReport report;
  report.rank = failure.rank;
  report.host = host_name();
  report.pid = failure.pid;
  report.exit_code = failure.exit_code;
  if (failure.signal != 0) report.signal = net::signal_name(failure.signal);
  if (failure.stopped) report.signal = net::signal_name(SIGSTOP);
  report.kind = kind_of(failure, own);
  report.cause = cause_of(failure, own);
  report.last_lines = failure.last_lines;
  report.hint = hint_of(failure, own);
  return report;
}

std::string to_text(const FailureReport& report) {
  std::string text = cat("\nyoke: rank ", report.rank, " failed first (host ", report.host,
                         ", pid ", report.pid, "): ", report.cause, ".\n");
  auto log = report.log.empty() ? std::string() : cat(" (", report.log.string(), ')');
  if (report.last_lines.empty()) {
    text += "  It has said nothing.\n";
  } else if (report.on_console) {
    text += cat("  Its last lines stand above", log, ".\n");
  } else {
    text += cat("  Its last lines", log, ":\n");
    for (const auto& line : report.last_lines) text += cat("    | ", line, '\n');
  }
  text += cat("  Hint:  ", report.hint, '\n');
  if (!report.saved.empty()) text += cat("  Saved: ", report.saved, '\n');
  if (!report.next.empty()) text += cat("  Next:  ", report.next, '\n');
  return text;
}

nlohmann::json to_json(const FailureReport& report) {
  auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  return {{"rank", report.rank < 0 ? nlohmann::json() : nlohmann::json(report.rank)},
          {"host", report.host},
          {"pid", report.pid},
          {"cause", report.cause},
          {"kind", report.kind},
          {"signal", text_or_null(report.signal)},
          {"exit_code", report.exit_code},
          {"last_lines", report.last_lines},
          {"hint", report.hint},
          {"saved", text_or_null(report.saved)},
          {"next", text_or_null(report.next)}};
}

void write_elastic_error(const std::string& message) {
  const char* file = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (file == nullptr || *file == '\0') return;
  nlohmann::json content = {
      {"message",
       {{"message", message},
        {"extraInfo", {{"py_callstack", ""}, {"timestamp", std::to_string(std::time(nullptr))}}}}}};
  write_file_atomically(file, json_text(content));
}

std::optional<std::string> read_elastic_error(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  // Foreign text: whatever does not have the form is no message.
  auto content = nlohmann::json::parse(read_file(file), nullptr, false);
  if (content.is_discarded() || !content.is_object() || !content.contains("message")) {
    return std::nullopt;
  }
  const auto& message = content["message"];
  if (message.is_string()) return message.get<std::string>();
  if (message.is_object() && message.contains("message") && message["message"].is_string()) {
    return message["message"].get<std::string>();
  }
  return std::nullopt;
}

}  // namespace yoke::cli
