#include "yoke/net/shm/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <utility>

#include "yoke/base/error.h"

namespace yoke::net {
namespace {

std::string reason() {
  return std::strerror(errno);
}

/// A memfd and one mapping of it.
class MappedRegion final : public SharedRegion {
 public:
  /// Takes over the descriptor.
  MappedRegion(int descriptor, std::size_t bytes, const std::string& name)
      : descriptor_(descriptor), bytes_(bytes) {
    if (bytes_ == 0) return;
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (at == MAP_FAILED) {
      const std::string why = reason();
      close(descriptor_);
      throw ResourceError(cat("cannot map ", bytes_, " bytes of shared memory \"", name,
                              "\": ", why,
                              ". Free memory, or raise the limit of address space (ulimit -v)."));
    }
    at_ = static_cast<std::byte*>(at);
    // Fewer page faults and TLB misses for large regions; a kernel without shared huge pages
    // refuses, and nothing but speed depends on it.
    if (bytes_ >= kHugePage) madvise(at_, bytes_, MADV_HUGEPAGE);
  }
  ~MappedRegion() override {
    if (at_ != nullptr) munmap(at_, bytes_);
    close(descriptor_);
  }
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;

  std::span<std::byte> bytes() override { return {at_, bytes_}; }
  int descriptor() const { return descriptor_; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  int descriptor_;
  std::size_t bytes_;
  std::byte* at_ = nullptr;
};

int make_descriptor(const std::string& name) {
  // The name only shows in /proc/PID/maps; the kernel allows 249 bytes of it.
  const int descriptor = memfd_create(("yoke:" + name).substr(0, 200).c_str(), MFD_CLOEXEC);
  if (descriptor < 0) {
    throw ResourceError(
        cat("cannot create shared memory \"", name, "\": memfd_create: ", reason(),
            ". Raise the limit of open files (ulimit -n), or use transport = \"tcp\"."));
  }
  return descriptor;
}

std::shared_ptr<MappedRegion> make_region(const std::string& name, std::size_t bytes) {
  const int descriptor = make_descriptor(name);
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    const std::string why = reason();
    close(descriptor);
    throw ResourceError(cat("cannot make shared memory \"", name, "\" ", bytes,
                            " bytes large: ", why, ". Free memory, or use transport = \"tcp\"."));
  }
  return std::make_shared<MappedRegion>(descriptor, bytes, name);
}

class ProcessSharedMemory final : public SharedMemory {
 public:
  explicit ProcessSharedMemory(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  std::shared_ptr<SharedRegion> create(const std::string& name, std::size_t bytes) override {
    auto region = make_region(name, bytes);
    store_->set(key(name), cat(getpid(), ":", region->descriptor(), ":", bytes));
    return region;
  }

  std::shared_ptr<SharedRegion> open(const std::string& name, Deadline deadline) override {
    const std::string where = store_->get(key(name), deadline);
    long pid = 0;
    int number = 0;
    std::size_t bytes = 0;
    const char* at = where.data();
    const char* end = at + where.size();
    auto field = [&](auto& value) {
      const auto [next, error] = std::from_chars(at, end, value);
      YOKE_ENSURE(error == std::errc() && (next == end || *next == ':'), "shared memory \"", name,
                  "\" is published as \"", where, "\".");
      at = next == end ? end : next + 1;
    };
    field(pid);
    field(number);
    field(bytes);
    const std::string path = cat("/proc/", pid, "/fd/", number);
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
      throw IoError(cat(
          "cannot open shared memory \"", name, "\" of process ", pid, " at ", path, ": ", reason(),
          ". The ranks must run as the same user in the same PID namespace, and may not be hidden "
          "from each other (ptrace_scope, hidepid); or use transport = \"tcp\"."));
    }
    struct stat status {};
    if (fstat(descriptor, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes) {
      close(descriptor);
      throw IoError(cat("shared memory \"", name, "\" of process ", pid, " at ", path,
                        " is not the one of ", bytes,
                        " bytes that was published: that process has ended, or has let go of it. "
                        "Start the job anew."));
    }
    return std::make_shared<MappedRegion>(descriptor, bytes, name);
  }

  bool within_one_process() const override { return false; }

 private:
  static std::string key(const std::string& name) { return "shm/" + name; }
  const std::shared_ptr<Store> store_;
};

class ThreadSharedMemory final : public SharedMemory {
 public:
  std::shared_ptr<SharedRegion> create(const std::string& name, std::size_t bytes) override {
    auto region = make_region(name, bytes);
    {
      const std::lock_guard lock(mutex_);
      auto& entry = regions_[name];
      YOKE_ENSURE(entry.expired(), "two shared memories are called \"", name, "\".");
      entry = region;
    }
    created_.notify_all();
    return region;
  }

  std::shared_ptr<SharedRegion> open(const std::string& name, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    std::shared_ptr<SharedRegion> region;
    const bool found = created_.wait_until(lock, deadline.at(), [&] {
      const auto entry = regions_.find(name);
      if (entry != regions_.end()) region = entry->second.lock();
      return region != nullptr;
    });
    if (!found) {
      throw Timeout(
          "open shared memory", {},
          cat("no rank created shared memory \"", name, "\" within ",
              Seconds(deadline.span()).count(), " s. See the log of the rank that should have."));
    }
    return region;
  }

  bool within_one_process() const override { return true; }

 private:
  std::mutex mutex_;  ///< guards regions_
  std::condition_variable created_;
  std::map<std::string, std::weak_ptr<SharedRegion>> regions_;
};

}  // namespace

std::shared_ptr<SharedMemory> make_process_shared_memory(std::shared_ptr<Store> store) {
  return std::make_shared<ProcessSharedMemory>(std::move(store));
}

std::shared_ptr<SharedMemory> make_thread_shared_memory() {
  return std::make_shared<ThreadSharedMemory>();
}

int make_host_memory() {
  return make_descriptor("host");
}

std::shared_ptr<SharedRegion> map_host_memory(int descriptor, std::size_t bytes) {
  struct stat status {};
  const bool known = fstat(descriptor, &status) == 0;
  if (!known || (static_cast<std::size_t>(status.st_size) < bytes &&
                 ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)) {
    throw ResourceError(cat("cannot make the memory of this host ", bytes, " bytes large: ",
                            reason(), ". Free memory, or use transport = \"tcp\"."));
  }
  return std::make_shared<MappedRegion>(fcntl(descriptor, F_DUPFD_CLOEXEC, 0), bytes, "host");
}

std::string host_identity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  for (const char* space : {"pid", "uts", "net"}) {
    char target[64] = {};
    const auto length = readlink(cat("/proc/self/ns/", space).c_str(), target, sizeof target - 1);
    identity += cat(" ", length > 0 ? target : space);
  }
  return identity;
}

}  // namespace yoke::net
