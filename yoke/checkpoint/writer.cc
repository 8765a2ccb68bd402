#include "yoke/checkpoint/writer.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/checkpoint/manifest.h"
#include "yoke/checkpoint/reader.h"
#include "yoke/checkpoint/run_id.h"

namespace yoke::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char* kShard = "shard-0000.bin";

/// Writes all tensors one after another; returns the manifest's "tensors" and "files".
nlohmann::json write_shard(const fs::path& path, const tensor::NamedTensors& tensors) {
  nlohmann::json result{{"tensors", nlohmann::json::array()}};
  DurableFile file(path);
  std::uint32_t checksum = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t count = tensor.bytes.size() / size_of(tensor.dtype);
    result["tensors"].push_back(
        {{"name", name},
         {"dtype", name_of(tensor.dtype)},
         {"shape", tensor.shape},
         {"pieces",
          {{{"file", kShard}, {"offset", file.size()}, {"first", 0}, {"count", count}}}}});
    file.write(tensor.bytes);
    checksum = crc32c(tensor.bytes, checksum);
  }
  result["files"] = {{{"name", kShard}, {"bytes", file.size()}, {"crc32c", checksum}}};
  file.commit();
  return result;
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

void remove_old(const RunFolder& folder, std::int64_t newest, std::int64_t keep) {
  std::vector<std::int64_t> steps = steps_present(folder);
  std::erase_if(steps, [&](std::int64_t step) { return step > newest; });
  for (std::size_t i = 0;
       i + static_cast<std::size_t>(std::max<std::int64_t>(keep, 1)) < steps.size(); ++i) {
    // A folder under removal must not look like a checkpoint.
    const fs::path dying = folder.checkpoint(steps[i]).string() + ".tmp";
    rename_durably(folder.checkpoint(steps[i]), dying);
    fs::remove_all(dying);
  }
}

}  // namespace

void write(const RunFolder& folder, const Snapshot& snapshot, const nlohmann::json& extra,
           const WriteOptions& options, FaultPlan& faults) {
  const std::int64_t step = snapshot.step;
  const fs::path target = folder.checkpoint(step);
  const fs::path temporary = cat(target.string(), ".g", options.generation, ".tmp");
  faults.reach("checkpoint.1", step);
  try {
    fs::create_directories(folder.checkpoints());
    fs::remove_all(temporary);
    fs::create_directory(temporary);
    faults.reach("checkpoint.2", step);
    nlohmann::json manifest = write_shard(temporary / kShard, snapshot.all());
    faults.reach("checkpoint.3", step);
    manifest["schema"] = kManifestSchema;
    manifest["step"] = step;
    manifest["generation"] = options.generation;
    manifest["world_size"] = options.world_size;
    manifest["time"] = utc_now();
    manifest["run_id"] = establish_run_id(folder);
    manifest["run"] = extra;
    write_durably(temporary / kManifestName, seal(std::move(manifest)));
    sync_folder(temporary);
    faults.reach("checkpoint.4", step);
    put_in_place(temporary, target);
    faults.reach("checkpoint.5", step);
    write_file_atomically(folder.latest(), target.filename().string() + "\n");
    faults.reach("checkpoint.6", step);
    remove_old(folder, step, options.keep_last);
    remove_leftovers(folder);
  } catch (const IoError&) {
    // On a full disk above all: what was written of it would only take more room.
    remove_leftovers(folder);
    throw;
  } catch (const fs::filesystem_error& error) {
    remove_leftovers(folder);
    throw IoError(cat("cannot write the checkpoint ", target.string(), ": ", error.what(),
                      ". The run can be continued from the checkpoint before it."));
  }
  faults.reach("checkpoint.7", step);
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(folder.checkpoints(), ignored)) {
    if (item.path().extension() == ".tmp") fs::remove_all(item.path(), ignored);
  }
  if (fs::exists(folder.checkpoints())) remove_abandoned_temporaries(folder.checkpoints());
}

}  // namespace yoke::checkpoint
