#include "yoke/train/remains.h"

#include <cstring>

#include "yoke/base/error.h"

namespace yoke::train {

namespace {

/// The record without its list, whose length is known by the number of bytes.
struct RecordHead {
  std::int64_t step;
  std::uint64_t generation;
  std::int64_t world_size;
  double loss, lr, norm;
  StepTimes ms;
};

template <typename T>
void put(std::vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
void put(std::vector<std::byte>& out, const T& value) {
  put(out, std::span<const T>(&value, 1));
}

std::span<const std::byte> take(std::span<const std::byte>& rest, std::size_t bytes) {
  YOKE_ENSURE(bytes <= rest.size(), "the remains of a worker end after ", rest.size(), " of ",
              bytes, " bytes");
  const auto taken = rest.first(bytes);
  rest = rest.subspan(bytes);
  return taken;
}

void get(std::span<const std::byte>& rest, std::span<std::byte> out) {
  const auto bytes = take(rest, out.size());
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size());
}

template <typename T>
void get(std::span<const std::byte>& rest, T& value) {
  get(rest, std::as_writable_bytes(std::span(&value, 1)));
}

}  // namespace

std::size_t Remains::most_bytes(const sync::GradientSync& gradients,
                                std::int64_t most_micro_batches) {
  std::size_t bytes = sizeof(Progression) + sizeof(Marks) + sizeof(RecordHead) +
                      gradients.tensors().trainable.size() * sizeof(std::int64_t) +
                      static_cast<std::size_t>(most_micro_batches) * sizeof(sync::Summary::Result);
  for (const auto& [name, buffer] : gradients.buffers().named()) bytes += buffer.bytes.size();
  return bytes;
}

std::vector<std::byte> Remains::gather() const {
  std::vector<std::byte> out;
  put(out, progression_);
  put(out, marks_);
  put(out, state_.update_counts());
  for (const auto& [name, buffer] : buffers_.named()) put(out, buffer.bytes);
  put(out, RecordHead{record_.step, record_.generation, record_.world_size, record_.loss,
                      record_.lr, record_.norm, record_.ms});
  put(out, std::span<const sync::Summary::Result>(record_.results));
  return out;
}

void Remains::adopt(std::span<const std::byte> bytes) const {
  auto rest = bytes;
  get(rest, progression_);
  get(rest, marks_);
  state_.set_update_counts(take(rest, state_.update_counts().size_bytes()), progression_.step);
  // In the order of names, as gather() wrote them.
  std::map<std::string, std::span<const std::byte>> buffers;
  for (const auto& [name, buffer] : buffers_.named())
    buffers[name] = take(rest, buffer.bytes.size());
  buffers_.restore([&](const std::string& name, std::span<std::byte> out) {
    std::memcpy(out.data(), buffers.at(name).data(), out.size());
  });
  RecordHead head{};
  get(rest, head);
  record_ = {.step = head.step,
             .generation = head.generation,
             .world_size = static_cast<int>(head.world_size),
             .loss = head.loss,
             .lr = head.lr,
             .norm = head.norm,
             .ms = head.ms,
             .results = {}};
  YOKE_ENSURE(rest.size() % sizeof(sync::Summary::Result) == 0, "the remains of a worker have ",
              rest.size(), " bytes too many");
  record_.results.resize(rest.size() / sizeof(sync::Summary::Result));
  get(rest, std::as_writable_bytes(std::span(record_.results)));
}

}  // namespace yoke::train
