#include "bench/comm/gloo_peer.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <array>
#include <filesystem>

#include "yoke/base/files.h"

namespace yoke::bench {

std::function<void(std::span<std::byte>)> gloo_all_reduce(comm::Communicator& comm, std::string&) {
  // Its ranks meet in a folder that the first one makes.
  std::array<char, 256> path{};
  std::unique_ptr<TemporaryFolder> folder;
  if (comm.rank() == 0) {
    folder = std::make_unique<TemporaryFolder>();
    folder->path().string().copy(path.data(), path.size() - 1);
  }
  comm.broadcast(std::as_writable_bytes(std::span(path)), 0);
  gloo::transport::tcp::attr where;
  where.hostname = "localhost";
  auto device = gloo::transport::tcp::CreateDevice(where);
  auto context = std::make_shared<gloo::rendezvous::Context>(comm.rank(), comm.size());
  gloo::rendezvous::FileStore store(path.data());
  context->connectFullMesh(store, device);
  comm.barrier();
  return [context](std::span<std::byte> data) {
    gloo::AllreduceOptions options(context);
    options.setOutput(reinterpret_cast<float*>(data.data()), data.size() / sizeof(float));
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  };
}

}  // namespace yoke::bench
