#include "yoke/tensor/bridge.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "yoke/base/error.h"

namespace yoke::tensor {
namespace {

const std::vector<std::pair<DType, at::ScalarType>> kPairs{
    {DType::kFloat64, at::kDouble},    {DType::kFloat32, at::kFloat}, {DType::kFloat16, at::kHalf},
    {DType::kBFloat16, at::kBFloat16}, {DType::kInt8, at::kChar},     {DType::kInt32, at::kInt},
    {DType::kInt64, at::kLong},        {DType::kUInt8, at::kByte},    {DType::kBool, at::kBool}};

TEST(Bridge, DtypesGoBothWaysAndKeepTheirWidth) {
  for (const auto& [ours, theirs] : kPairs) {
    const at::Tensor tensor = torch::ones({3}, theirs);
    EXPECT_EQ(dtype_of(tensor, "x"), ours);
    EXPECT_EQ(scalar_type(ours), theirs);
    EXPECT_EQ(size_of(ours), static_cast<std::size_t>(tensor.element_size()));
    EXPECT_EQ(bytes_of(tensor).size(), 3 * size_of(ours));
  }
}

TEST(Bridge, ADtypeThatYokeDoesNotCarryIsNamed) {
  try {
    dtype_of(torch::zeros({2}, at::kComplexFloat), "layers.0.phase");
    FAIL() << "complex numbers were taken";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("layers.0.phase"));
    EXPECT_THAT(error.what(), testing::HasSubstr("ComplexFloat"));
  }
}

TEST(Bridge, AViewSharesTheMemory) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  at::Tensor view = view_of(reinterpret_cast<std::byte*>(memory.data()), DType::kFloat32, {2, 3});
  EXPECT_EQ(view.sizes().vec(), (std::vector<std::int64_t>{2, 3}));
  view.index_put_({1, 2}, 9.0F);
  EXPECT_EQ(memory[5], 9.0F);
  EXPECT_EQ(static_cast<void*>(mutable_bytes_of(view).data()), memory.data());
}

TEST(Bridge, BytesOfATensorWithGapsAreABug) {
  at::Tensor gaps = torch::zeros({4, 4}).t().slice(0, 0, 2);
  EXPECT_THROW(bytes_of(gaps), InternalError);
  EXPECT_THROW(mutable_bytes_of(gaps), InternalError);
}

TEST(Bridge, AnEntryIsTheTensorsNameShapeAndDtype) {
  const auto entry = entry_for("w", torch::zeros({2, 5}, at::kDouble));
  EXPECT_EQ(entry.name, "w");
  EXPECT_EQ(entry.shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(entry.dtype, DType::kFloat64);
  EXPECT_EQ(entry.elements, 10u);
  EXPECT_THROW(entry_for("sparse", torch::zeros({3, 3}).to_sparse()), ConfigError);
}

}  // namespace
}  // namespace yoke::tensor
