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

/// The most ranks that may ever share one state: the memory of those that do not is never touched.
constexpr int kMostWriters = 512;

tensor::StateArena arena_in(std::span<std::byte> memory, const GradientSync& gradients,
                            const optim::Optimizer& optimizer, int writers, bool initialise) {
  return {memory, gradients.tensors().state_layout(), optimizer.slots(), writers, initialise};
}

}  // namespace

std::size_t FlatState::memory_needed(const GradientSync& gradients,
                                     const optim::Optimizer& optimizer) {
  return tensor::StateArena::bytes_needed(gradients.tensors().state_layout(),
                                          optimizer.slots().size(), kMostWriters);
}

std::optional<std::int64_t> FlatState::state_in(std::span<std::byte> memory,
                                                const GradientSync& gradients,
                                                const optim::Optimizer& optimizer) {
  const auto arena = arena_in(memory, gradients, optimizer, kMostWriters, false);
  if (!arena.is_of_this_layout() || arena.updating()) return std::nullopt;
  return arena.step();
}

FlatState::FlatState(GradientSync& gradients, comm::Communicator& communicator,
                     std::unique_ptr<optim::Optimizer> optimizer, std::span<std::byte> host_memory,
                     Origin origin)
    : gradients_(&gradients),
      communicator_(&communicator),
      optimizer_(std::move(optimizer)),
      is_shared_(gradients.exchange().shared()) {
  const ModelTensors& tensors = gradients_->tensors();
  parameters_ = tensors.trainable;
  parameters_.insert(parameters_.end(), tensors.frozen.begin(), tensors.frozen.end());
  updates_.assign(tensors.trainable.size(), 0);
  const tensor::ArenaLayout layout = tensors.state_layout();
  for (std::size_t i = 0; i < updates_.size(); ++i) {
    YOKE_ENSURE_EQ(layout[i].offset, gradients_->layout()[i].offset, layout[i].name);
  }

  const bool on_host = is_shared_ && !host_memory.empty();
  const int writers = on_host ? kMostWriters : is_shared_ ? communicator.size() : 1;
  const std::size_t bytes =
      tensor::StateArena::bytes_needed(layout, optimizer_->slots().size(), writers);
  if (is_shared_ && !on_host) sections_ = communicator.share(bytes);
  if (!is_shared_) private_ = map_private(bytes);
  const bool makes_it = !is_shared_ || (communicator.rank() == 0 && origin == Origin::kInitial);
  const auto memory = on_host      ? host_memory.first(bytes)
                      : is_shared_ ? sections_->of(0).first(bytes)
                                   : private_;
  arena_ = std::make_unique<tensor::StateArena>(
      arena_in(memory, gradients, *optimizer_, writers, makes_it));
  fill(makes_it, origin);
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_data(
        tensor::view_of(arena_->parameters() + layout[i].offset, layout[i].dtype, layout[i].shape));
  }
}

FlatState::~FlatState() {
  if (!private_.empty()) munmap(private_.data(), private_.size());
}

void FlatState::fill(bool makes_it, Origin origin) {
  const auto& layout = arena_->layout();
  if (makes_it && origin == Origin::kInitial) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor values = parameters_[i].tensor.detach().contiguous();
      const auto bytes = tensor::bytes_of(values);
      std::byte* place = arena_->parameters() + layout[i].offset;
      // After attach() the module's parameters are views of this very place.
      if (bytes.data() != place) std::memcpy(place, bytes.data(), layout[i].bytes());
    }
  }
  if (origin == Origin::kInitial) {
    std::fill(updates_.begin(), updates_.end(), 0);
    counted_ = -1;
  }
  if (is_shared_) {
    communicator_->barrier();
    arena_->check_header();
  } else if (origin == Origin::kInitial) {
    communicator_->broadcast({arena_->parameters(), layout.bytes()}, 0);
  }
}

void FlatState::attach(GradientSync& gradients, comm::Communicator& communicator, Origin origin) {
  YOKE_ENSURE_EQ(gradients.exchange().shared(), is_shared_,
                 "a state moves between transports only through a checkpoint");
  gradients_ = &gradients;
  communicator_ = &communicator;
  const bool makes_it = !is_shared_ || communicator.rank() == 0;
  if (origin == Origin::kInitial && makes_it) arena_->clear();
  fill(makes_it, origin);
}

std::span<std::byte> FlatState::memory() const {
  return {arena_->parameters(), (arena_->slots().size() + 1) * arena_->layout().bytes()};
}

void FlatState::set_update_counts(std::span<const std::byte> counts, std::int64_t step) {
  YOKE_ENSURE_EQ(counts.size(), updates_.size() * sizeof(std::int64_t), "counts of another model");
  if (!counts.empty()) std::memcpy(updates_.data(), counts.data(), counts.size());
  counted_ = step - 1;
}

void FlatState::count_updates(std::int64_t step) {
  if (counted_ == step) return;
  for (std::size_t i = 0; i < updates_.size(); ++i) updates_[i] += gradients_->present(i) ? 1 : 0;
  counted_ = step;
}

void FlatState::update(std::int64_t step, double lr, double scale, FaultPlan& faults,
                       const std::function<void()>& written) {
  count_updates(step);
  arena_->begin_update(communicator_->generation(), step);
  const std::size_t end = arena_->layout().bytes();
  const tensor::ByteRange owned = gradients_->exchange().owned();
  const tensor::ByteRange mine{std::min(owned.first, end), std::min(owned.last, end)};
  arena_->write_chunks(
      is_shared_ ? communicator_->rank() : 0, mine,
      [&](tensor::ByteRange chunk, std::byte* const* fresh) {
        make_chunk(chunk, fresh, lr, scale);
      },
      [&] { faults.reach("in_update", step); });
  if (written) written();
  if (is_shared_) communicator_->barrier();
  arena_->end_update(step + 1);
  faults.reach("after_update", step);
}

void FlatState::complete_update(std::int64_t step, double lr, double scale) {
  YOKE_ENSURE(is_shared_ && arena_->updating() && arena_->step() == step,
              "there is no update of step ", step, " to complete");
  YOKE_ENSURE_EQ(counted_, step, "updates are counted before they are completed");
  const std::size_t end = arena_->layout().bytes();
  for (int writer = 0; writer < communicator_->size(); ++writer) {
    const tensor::ByteRange owned = gradients_->exchange().owned_by(writer);
    const tensor::ByteRange all{std::min(owned.first, end), std::min(owned.last, end)};
    const std::size_t from = arena_->roll_forward(writer, all);
    if (from == all.last) continue;
    arena_->write_chunks(writer, {from, all.last},
                         [&](tensor::ByteRange chunk, std::byte* const* fresh) {
                           make_chunk(chunk, fresh, lr, scale);
                         });
  }
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
    if (piece.entry >= updates_.size() || !gradients_->present(piece.entry)) return;
    const auto& entry = layout[piece.entry];
    // A gap behind a tensor stays as it is.
    if (piece.count * size_of(entry.dtype) < bytes) keep_old();
    const auto apply = [&]<typename T>(T) {
      optim::Elements<T> elements;
      elements.count = piece.count;
      elements.gradients =
          reinterpret_cast<const T*>(gradients_->exchange().reduced() + chunk.first);
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
  const bool writes = !is_shared_ || communicator_->rank() == 0;
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
  counted_ = step - 1;
  arena_->end_update(step);
  if (is_shared_) communicator_->barrier();
}

}  // namespace yoke::sync
