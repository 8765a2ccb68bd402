#include "yoke/sync/flat_state.h"

#include <sys/mman.h>
#include <torch/torch.h>

#include <cstring>

#include "yoke/base/error.h"
#include "yoke/tensor/bridge.h"

namespace yoke::sync {

namespace {

std::span<std::byte> map_private(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw ResourceError(cat("there is no memory for a state of ", bytes,
                            " bytes. Free some, or raise the limit of "
                            "address space (ulimit -v)."));
  return {static_cast<std::byte*>(memory), bytes};
}

}  // namespace

FlatState::FlatState(GradientSync& gradients, comm::Communicator& communicator,
                     std::unique_ptr<optim::Optimizer> optimizer)
    : gradients_(gradients), communicator_(communicator), optimizer_(std::move(optimizer)) {
  const ModelTensors& tensors = gradients_.tensors();
  parameters_ = tensors.trainable;
  parameters_.insert(parameters_.end(), tensors.frozen.begin(), tensors.frozen.end());
  updates_.assign(tensors.trainable.size(), 0);
  const tensor::ArenaLayout layout = tensors.state_layout();
  for (std::size_t i = 0; i < updates_.size(); ++i) {
    YOKE_ENSURE_EQ(layout[i].offset, gradients_.layout()[i].offset, layout[i].name);
  }

  const std::vector<std::string> slots = optimizer_->slots();
  const bool on_one_host = gradients_.exchange().shared();
  const int writers = on_one_host ? communicator_.size() : 1;
  const std::size_t bytes = tensor::StateArena::bytes_needed(layout, slots.size(), writers);
  const bool makes_it = !on_one_host || communicator_.rank() == 0;
  if (on_one_host) shared_ = communicator_.share(bytes);
  if (!on_one_host) private_ = map_private(bytes);
  arena_ = std::make_unique<tensor::StateArena>(
      on_one_host ? shared_->of(0).first(bytes) : private_, layout, slots, writers, makes_it);
  if (makes_it) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor values = parameters_[i].tensor.detach().contiguous();
      std::memcpy(arena_->parameters() + layout[i].offset, tensor::bytes_of(values).data(),
                  layout[i].bytes());
    }
  }
  if (on_one_host) {
    communicator_.barrier();
    arena_->check_header();
  } else {
    communicator_.broadcast({arena_->parameters(), layout.bytes()}, 0);
  }
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_data(
        tensor::view_of(arena_->parameters() + layout[i].offset, layout[i].dtype, layout[i].shape));
  }
}

FlatState::~FlatState() {
  if (!private_.empty()) munmap(private_.data(), private_.size());
}

void FlatState::update(std::int64_t step, double lr, double scale, FaultPlan& faults) {
  for (std::size_t i = 0; i < updates_.size(); ++i) updates_[i] += gradients_.present(i) ? 1 : 0;
  arena_->begin_update(communicator_.generation(), step);
  const std::size_t end = arena_->layout().bytes();
  const tensor::ByteRange owned = gradients_.exchange().owned();
  const tensor::ByteRange mine{std::min(owned.first, end), std::min(owned.last, end)};
  arena_->write_chunks(
      shared_ ? communicator_.rank() : 0, mine,
      [&](tensor::ByteRange chunk, std::byte* const* fresh) {
        make_chunk(chunk, fresh, lr, scale);
      },
      [&] { faults.reach("in_update", step); });
  if (shared_) communicator_.barrier();
  arena_->end_update(step + 1);
  faults.reach("after_update", step);
}

void FlatState::make_chunk(tensor::ByteRange chunk, std::byte* const* fresh, double lr,
                           double scale) {
  const auto& layout = arena_->layout();
  const std::size_t arenas = arena_->slots().size() + 1;
  const std::size_t bytes = chunk.last - chunk.first;
  const auto keep_old = [&] {
    for (std::size_t a = 0; a < arenas; ++a)
      std::memcpy(fresh[a], arena_->parameters() + a * layout.bytes() + chunk.first, bytes);
  };
  bool written = false;
  layout.for_each_piece(chunk, bytes, [&](const tensor::ArenaLayout::Piece& piece) {
    if (piece.entry >= updates_.size() || !gradients_.present(piece.entry)) return;
    const auto& entry = layout[piece.entry];
    // A gap behind a tensor stays as it is.
    if (piece.count * size_of(entry.dtype) < bytes) keep_old();
    const auto apply = [&]<typename T>(T) {
      optim::Elements<T> elements;
      elements.count = piece.count;
      elements.gradients =
          reinterpret_cast<const T*>(gradients_.exchange().reduced() + chunk.first);
      const auto old = [&](std::size_t a) {
        return reinterpret_cast<const T*>(arena_->parameters() + a * layout.bytes() + chunk.first);
      };
      elements.parameters = old(0);
      elements.new_parameters = reinterpret_cast<T*>(fresh[0]);
      for (std::size_t s = 0; s + 1 < arenas; ++s) {
        elements.slots[s] = old(s + 1);
        elements.new_slots[s] = reinterpret_cast<T*>(fresh[s + 1]);
      }
      optimizer_->step(elements, lr, updates_[piece.entry], scale);
    };
    entry.dtype == DType::kFloat64 ? apply(double{}) : apply(float{});
    written = true;
  });
  if (!written) keep_old();
}

tensor::NamedTensors FlatState::parameters() const {
  tensor::NamedTensors all;
  for (const auto& entry : arena_->layout().entries()) {
    all[entry.name] = {
        entry.dtype, entry.shape, {arena_->parameters() + entry.offset, entry.bytes()}};
  }
  return all;
}

tensor::NamedTensors FlatState::optimizer() const {
  tensor::NamedTensors all;
  for (std::size_t i = 0; i < updates_.size(); ++i) {
    const auto& entry = arena_->layout()[i];
    for (std::size_t s = 0; s < arena_->slots().size(); ++s) {
      all[entry.name + "/" + arena_->slots()[s]] = {
          entry.dtype, entry.shape, {arena_->slot(s) + entry.offset, entry.bytes()}};
    }
    all[entry.name + "/step"] = {DType::kInt64, {}, std::as_bytes(std::span(&updates_[i], 1))};
  }
  return all;
}

void FlatState::restore(std::int64_t step,
                        const std::function<void(const std::string&, std::span<std::byte>)>& load) {
  const bool writes = !shared_ || communicator_.rank() == 0;
  auto writable = [](std::span<const std::byte> bytes) {
    return std::span<std::byte>(const_cast<std::byte*>(bytes.data()), bytes.size());
  };
  if (writes) {
    for (const auto& [name, tensor] : parameters())
      load("parameters/" + name, writable(tensor.bytes));
  }
  for (const auto& [name, tensor] : optimizer()) {
    const bool is_count = tensor.dtype == DType::kInt64;
    if (writes || is_count) load("optimizer/" + name, writable(tensor.bytes));
  }
  arena_->end_update(step);
  if (shared_) communicator_.barrier();
}

}  // namespace yoke::sync
