#include <cctype>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/net/place.h"

namespace yoke {
namespace {

constexpr std::size_t kMostHosts = 1 << 20;

class HostListReader {
 public:
  explicit HostListReader(const std::string& list) : list_(list) {}

  std::vector<std::string> read() {
    while (at_ < list_.size()) {
      read_item();
      if (at_ < list_.size()) {
        expect(',');
      }
    }
    return hosts_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(
        cat("the host list '", list_, "' cannot be read at character ", at_ + 1, ": ", what, "."));
  }

  void expect(char wanted) {
    if (at_ >= list_.size() || list_[at_] != wanted) {
      fail(cat("'", wanted, "' expected"));
    }
    ++at_;
  }

  /// One name, with any number of brackets: "rack[1-2]node[3,5]-eth".
  void read_item() {
    std::vector<std::string> names{""};
    auto start = at_;
    while (at_ < list_.size() && list_[at_] != ',') {
      if (list_[at_] == '[') {
        ++at_;
        std::vector<std::string> longer;
        auto numbers = read_numbers();
        check_count(names.size() * numbers.size());
        for (const auto& name : names) {
          for (const auto& number : numbers) {
            longer.push_back(name + number);
          }
        }
        names = std::move(longer);
      } else {
        for (auto& name : names) {
          name.push_back(list_[at_]);
        }
        ++at_;
      }
    }
    if (at_ == start) {
      fail("a host name expected");
    }
    check_count(hosts_.size() + names.size());
    hosts_.insert(hosts_.end(), names.begin(), names.end());
  }

  std::vector<std::string> read_numbers() {
    std::vector<std::string> numbers;
    for (;;) {
      auto first = read_digits();
      auto last = first;
      if (at_ < list_.size() && list_[at_] == '-') {
        ++at_;
        last = read_digits();
      }
      auto begin = value(first), end = value(last);
      if (begin > end) {
        fail(cat("the range ", first, "-", last, " runs backwards"));
      }
      check_count(numbers.size() + (end - begin));
      for (auto i = begin; i <= end; ++i) {
        auto text = std::to_string(i);
        text.insert(0, first.size() > text.size() ? first.size() - text.size() : 0, '0');
        numbers.push_back(text);
      }
      if (at_ < list_.size() && list_[at_] == ',') {
        ++at_;
        continue;
      }
      expect(']');
      return numbers;
    }
  }

  std::string read_digits() {
    auto start = at_;
    while (at_ < list_.size() && std::isdigit(static_cast<unsigned char>(list_[at_]))) {
      ++at_;
    }
    if (at_ == start || at_ - start > 18) {
      fail("a number expected");
    }
    return list_.substr(start, at_ - start);
  }

  static std::uint64_t value(const std::string& digits) {
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  void check_count(std::size_t count) const {
    if (count > kMostHosts) {
      fail(cat("more than ", kMostHosts, " hosts"));
    }
  }

  const std::string& list_;
  std::size_t at_ = 0;
  std::vector<std::string> hosts_;
};

}  // namespace

std::vector<std::string> expand_host_list(const std::string& list) {
  return HostListReader(list).read();
}

}  // namespace yoke
