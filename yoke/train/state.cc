#include "yoke/train/state.h"

namespace yoke::train {

namespace {

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
std::span<std::byte> writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

checkpoint::Snapshot snapshot_of(const sync::FlatState& state, const sync::BufferSync& buffers,
                                 const Progression& progression) {
  checkpoint::Snapshot snapshot;
  snapshot.step = progression.step;
  snapshot.parameters = state.parameters();
  snapshot.buffers = buffers.named();
  snapshot.optimizer = state.optimizer();
  snapshot.train["step"] = {DType::kInt64, {}, bytes_of(progression.step)};
  snapshot.train["best_loss"] = {DType::kFloat64, {}, bytes_of(progression.best_loss)};
  snapshot.train["best_step"] = {DType::kInt64, {}, bytes_of(progression.best_step)};
  return snapshot;
}

void restore(const checkpoint::Reader& reader, sync::FlatState& state, sync::BufferSync& buffers,
             Progression& progression) {
  auto load = [&](const std::string& name, std::span<std::byte> out) { reader.read(name, out); };
  state.restore(reader.step(), load);
  buffers.restore(
      [&](const std::string& name, std::span<std::byte> out) { load("buffers/" + name, out); });
  load("train/step", writable_bytes_of(progression.step));
  load("train/best_loss", writable_bytes_of(progression.best_loss));
  load("train/best_step", writable_bytes_of(progression.best_step));
}

}  // namespace yoke::train
