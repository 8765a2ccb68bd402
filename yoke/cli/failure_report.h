#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "yoke/net/supervisor.h"

namespace yoke::cli {

/// The end of a job because of one rank, as a person and other programs are told.
struct FailureReport {
  int rank = 0;  ///< -1: it happened before there were ranks
  std::string host;
  int pid = 0;
  int exit_code = 0;
  std::string signal;  ///< "SIGKILL"; empty: it ended by itself
  std::string kind;  ///< "killed", "oom", "hung", "partitioned" or "user_error", as in events.jsonl
  std::string cause;  ///< in words: "killed by SIGSEGV (segmentation fault)"
  std::vector<std::string> last_lines;
  std::string hint;           ///< what to do
  std::string saved;          ///< the checkpoint to go on from; empty: none
  std::string next;           ///< the command to type; empty: none
  std::filesystem::path log;  ///< of the failed rank; empty: none
  bool on_console = false;    ///< the last lines were shown there already
};

/// Names the cause and gives a hint. `own`: the rank ran yoke itself, whose exit codes have a
/// meaning.
FailureReport explain(const net::ProcessFailure& failure, bool own);

/// For stderr: rank, host, cause, last lines, and what to type next.
std::string to_text(const FailureReport& report);

/// For failure.json: rank (null: none), host, pid, cause, kind, signal (null: none), exit_code,
/// last_lines, hint, saved, next.
nlohmann::json to_json(const FailureReport& report);

/// Tells torchrun: writes the file that TORCHELASTIC_ERROR_FILE names, if it is set, in the form it
/// reads.
void write_elastic_error(const std::string& message);

/// What a rank of a program written for torchrun said in such a file.
std::optional<std::string> read_elastic_error(const std::filesystem::path& file);

}  // namespace yoke::cli
