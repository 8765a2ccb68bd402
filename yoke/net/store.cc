#include "yoke/net/store.h"

#include "yoke/net/store_table.h"

namespace yoke::net {

void StoreTable::set(const std::string& key, const std::string& value) {
  {
    std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

std::int64_t StoreTable::add(const std::string& key, std::int64_t amount) {
  std::int64_t sum = amount;
  {
    std::lock_guard lock(mutex_);
    auto& value = values_[key];
    if (!value.empty()) {
      sum += std::stoll(value);
    }
    value = std::to_string(sum);
  }
  changed_.notify_all();
  return sum;
}

std::optional<std::string> StoreTable::find(const std::string& key) const {
  std::lock_guard lock(mutex_);
  auto found = values_.find(key);
  if (found == values_.end()) {
    return std::nullopt;
  }
  return found->second;
}

std::string StoreTable::get(const std::string& key, Deadline deadline) const {
  std::unique_lock lock(mutex_);
  // Looked up before the clock is: a deadline that has passed still finds what is there.
  while (!values_.contains(key)) {
    if (deadline.passed()) {
      throw_key_timeout(key, deadline);
    }
    changed_.wait_until(lock, deadline.at());
  }
  return values_.at(key);
}

void throw_key_timeout(const std::string& key, Deadline deadline) {
  throw Timeout("store get", {},
                cat("nobody has set the store's key '", key, "' within ",
                    Seconds(deadline.span()).count(), " s."));
}

namespace {

class MemoryStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override { table_.set(key, value); }
  std::string get(const std::string& key, Deadline deadline) override {
    return table_.get(key, deadline);
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return table_.add(key, amount);
  }

 private:
  StoreTable table_;
};

}  // namespace

std::shared_ptr<Store> make_memory_store() {
  return std::make_shared<MemoryStore>();
}

}  // namespace yoke::net
