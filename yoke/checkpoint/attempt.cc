#include "yoke/checkpoint/attempt.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/checkpoint/manifest.h"
#include "yoke/checkpoint/run_id.h"
#include "yoke/checkpoint/writer.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

namespace {

std::string shard_name(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "shard-%04d.bin", rank);
  return name;
}

void write_durably(const fs::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Renames `fresh` to `target`. A checkpoint of the same step that lies there (taken before a
/// resume, or damaged) gives way in one exchange, so that there is one at every moment, and becomes
/// a leftover.
void put_in_place(const fs::path& fresh, const fs::path& target) {
  if (!fs::exists(target)) return rename_durably(fresh, target);
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return sync_folder(target.parent_path());
  if (errno != EINVAL && errno != ENOSYS)
    throw IoError(cat("cannot replace ", target.string(), ": ", std::strerror(errno), "."));
  // NFS and a few others cannot exchange. Between these two a crash costs this step's checkpoint.
  const fs::path replaced = target.string() + ".replaced.tmp";
  fs::remove_all(replaced);
  rename_durably(target, replaced);
  rename_durably(fresh, target);
}

template <typename Work>
auto as_io_error(const fs::path& target, const Work& work) {
  try {
    return work();
  } catch (const fs::filesystem_error& error) {
    throw IoError(cat("cannot write the checkpoint ", target.string(), ": ", error.what(),
                      ". The run can be continued from the checkpoint before it."));
  }
}

nlohmann::json to_json(const Piece& piece) {
  return {{"file", piece.file},
          {"offset", piece.offset},
          {"first", piece.first},
          {"count", piece.count}};
}

/// All pieces of a tensor, whoever wrote them, in the order of its elements.
nlohmann::json pieces_of(const std::string& name, std::span<const Shard> shards) {
  std::vector<Piece> pieces;
  for (const auto& shard : shards) {
    const auto found = shard.pieces.find(name);
    if (found != shard.pieces.end())
      pieces.insert(pieces.end(), found->second.begin(), found->second.end());
  }
  std::ranges::stable_sort(pieces, std::less(), &Piece::first);
  nlohmann::json result = nlohmann::json::array();
  for (const auto& piece : pieces) result.push_back(to_json(piece));
  return result;
}

}  // namespace

std::string Shard::to_text() const {
  nlohmann::json json{{"file", file}, {"bytes", entry.bytes}, {"crc32c", entry.crc32c}};
  json["pieces"] = nlohmann::json::object();
  for (const auto& [name, list] : pieces) {
    for (const auto& piece : list) json["pieces"][name].push_back(to_json(piece));
  }
  return json.dump();
}

Shard Shard::from_text(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Shard shard{json.at("file"), {json.at("bytes"), json.at("crc32c")}, {}};
    for (const auto& [name, list] : json.at("pieces").items()) {
      for (const auto& piece : list) {
        shard.pieces[name].push_back(
            {piece.at("file"), piece.at("offset"), piece.at("first"), piece.at("count")});
      }
    }
    return shard;
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(cat("a rank did not say what it wrote: ", error.what()));
  }
}

Attempt::Attempt(RunFolder folder, std::int64_t step, std::uint64_t generation)
    : folder_(std::move(folder)),
      step_(step),
      generation_(generation),
      temporary_(cat(folder_.checkpoint(step).string(), ".g", generation, ".tmp")) {}

void Attempt::begin() const {
  as_io_error(temporary_, [&] {
    fs::create_directories(folder_.checkpoints());
    fs::remove_all(temporary_);
    fs::create_directory(temporary_);
  });
}

Shard Attempt::write_shard(int rank, std::span<const Slice> slices) const {
  Shard shard;
  shard.file = shard_name(rank);
  DurableFile file(temporary_ / shard.file);
  for (const auto& slice : slices) {
    const std::uint64_t count = slice.bytes.size() / size_of(slice.dtype);
    shard.pieces[slice.name].push_back({shard.file, file.size(), slice.first, count});
    file.write(slice.bytes);
    shard.entry.crc32c = crc32c(slice.bytes, shard.entry.crc32c);
  }
  shard.entry.bytes = file.size();
  file.commit();
  return shard;
}

void Attempt::write_manifest(const TensorIndex& tensors, std::span<const Shard> shards,
                             const nlohmann::json& extra, const WriteOptions& options) const {
  nlohmann::json manifest{{"schema", kManifestSchema},
                          {"step", step_},
                          {"generation", generation_},
                          {"world_size", options.world_size},
                          {"time", utc_now()},
                          {"run_id", establish_run_id(folder_)},
                          {"run", extra},
                          {"files", nlohmann::json::array()},
                          {"tensors", nlohmann::json::array()}};
  if (options.evaluation_loss) manifest["evaluation_loss"] = *options.evaluation_loss;
  for (const auto& shard : shards) {
    manifest["files"].push_back(
        {{"name", shard.file}, {"bytes", shard.entry.bytes}, {"crc32c", shard.entry.crc32c}});
    for (const auto& [name, pieces] : shard.pieces) {
      if (!tensors.contains(name))
        throw CheckpointError(cat(shard.file, " holds a part of ", name, ", which nobody knows."));
    }
  }
  for (const auto& [name, about] : tensors) {
    manifest["tensors"].push_back({{"name", name},
                                   {"dtype", name_of(about.first)},
                                   {"shape", about.second},
                                   {"pieces", pieces_of(name, shards)}});
  }
  // What no reader would take must not be committed.
  contents_from(manifest, temporary_.string());
  write_durably(temporary_ / kManifestName, seal(std::move(manifest)));
  sync_folder(temporary_);
}

void Attempt::require_current(const WriteOptions& options) const {
  if (!options.may_commit || options.may_commit(generation_)) return;
  throw Fenced(cat("the checkpoint of step ", step_, " was begun by generation ", generation_,
                   ", which has been replaced since: it is left to those who took over."));
}

void Attempt::commit(const TensorIndex& tensors, std::span<const Shard> shards,
                     const nlohmann::json& extra, const WriteOptions& options,
                     FaultPlan& faults) const {
  const fs::path target = folder_.checkpoint(step_);
  as_io_error(target, [&] {
    faults.reach("checkpoint.3", step_);
    write_manifest(tensors, shards, extra, options);
    faults.reach("checkpoint.4", step_);
    require_current(options);
    put_in_place(temporary_, target);
    faults.reach("checkpoint.5", step_);
    require_current(options);
    write_file_atomically(folder_.latest(), target.filename().string() + "\n");
    faults.reach("checkpoint.6", step_);
    remove_old(folder_, step_, options.retention());
    remove_leftovers(folder_);
    faults.reach("checkpoint.7", step_);
  });
}

void Attempt::abandon() const {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

}  // namespace yoke::checkpoint
