// model.safetensors, read here byte by byte as its format says.
#include "engine/train/model_file.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/engine/train/in_memory.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace tearless::engine::model_file_test {
namespace {

using nlohmann::json;
using tearless::test::read_text;
using tearless::test::write_text;
using testing::HasSubstr;

/// Three parameters; "scalar", whose size is no multiple of 8, is last in the buffer.
Parameters made(uint32_t seed = 1) {
  Parameters parameters(seed, at::kCPU);
  parameters.declare({"scalar", {1}, {Initial::Kind::kConstant, 22.5}});
  parameters.declare({"encoder.1.w", {4, 6}, {Initial::Kind::kNormal, 1.0}});
  parameters.declare({"encoder.1.b", {8}, {Initial::Kind::kUniform, 1.0}});
  parameters.allocate();
  return parameters;
}

class ModelFile : private test::InMemory, public testing::Test {
 protected:
  std::string refusal() const {
    Parameters parameters = made(2);
    const at::Tensor before = parameters.values().clone();
    const std::string sentence = tearless::test::error_of([&] { read_model(run_, parameters); });
    EXPECT_EQ(at::equal(parameters.values(), before), !sentence.empty());
    return sentence;
  }

  tearless::test::TempFolder folder_;
  RunDirectory run_{folder_.path()};
};

TEST_F(ModelFile, HasEachTensorUnderItsNameWithShapeTypeAndPlace) {
  const Parameters parameters = made();
  write_model(run_, parameters, {120, 240});
  const std::string file = read_text(run_.model());
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= static_cast<uint64_t>(static_cast<unsigned char>(file.at(i))) << (8 * i);
  EXPECT_EQ(length % 8, 0u) << "so that the tensors are aligned";
  const json header = json::parse(file.substr(8, length));
  const std::string data = file.substr(8 + length);
  EXPECT_EQ(header.size(), 4u);
  EXPECT_EQ(header.at("__metadata__").at("run"), run_.id());
  EXPECT_EQ(header.at("__metadata__").at("steps"), "120 240");
  for (const auto& [key, value] : header.at("__metadata__").items()) EXPECT_TRUE(value.is_string()) << key;

  std::vector<bool> covered(data.size());
  for (const auto& [name, shape] :
       std::map<std::string, std::vector<int64_t>>{{"scalar", {1}}, {"encoder.1.w", {4, 6}}, {"encoder.1.b", {8}}}) {
    const json& tensor = header.at(name);
    EXPECT_EQ(tensor.at("dtype"), "F32");
    EXPECT_EQ(tensor.at("shape"), shape);
    const uint64_t begin = tensor.at("data_offsets").at(0), end = tensor.at("data_offsets").at(1);
    const at::Tensor expected = parameters.get(name).data().contiguous();
    ASSERT_EQ(end - begin, expected.nbytes()) << name;
    EXPECT_EQ(std::memcmp(data.data() + begin, expected.const_data_ptr(), expected.nbytes()), 0) << name;
    for (uint64_t i = begin; i < end; ++i) {
      EXPECT_FALSE(covered.at(i)) << name << " overlaps another one";
      covered[i] = true;
    }
  }
  EXPECT_EQ(std::count(covered.begin(), covered.end(), false), 0) << "the format allows no gap";
}

TEST_F(ModelFile, IsReadBackAsItWas) {
  const Parameters parameters = made();
  write_model(run_, parameters, {7});
  Parameters other = made(2);
  ASSERT_FALSE(at::equal(other.values(), parameters.values()));
  read_model(run_, other);
  EXPECT_TRUE(at::equal(other.values(), parameters.values()));
}

TEST_F(ModelFile, EveryTruncationAndEveryFlippedBitIsFound) {
  write_model(run_, made(), {7});
  const std::string good = read_text(run_.model());
  EXPECT_EQ(refusal(), "");
  for (size_t size = 0; size < good.size(); ++size) {
    write_text(run_.model(), good.substr(0, size));
    ASSERT_THAT(refusal(), HasSubstr("model.safetensors is damaged, or of another run or model")) << size;
  }
  write_text(run_.model(), good + " ");
  EXPECT_NE(refusal(), "");
  const size_t steps = good.find("\"steps\":\"7\"") + std::strlen("\"steps\":\"");
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    if (bit / 8 == steps) continue;  // what else they may say is no damage
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_text(run_.model(), flipped);
    ASSERT_NE(refusal(), "") << "bit " << bit;
  }
}

TEST_F(ModelFile, OfAnotherRunOrModelIsRefused) {
  const RunDirectory other(folder_ / "other");
  std::filesystem::create_directories(other.root());
  write_model(other, made(), {7});
  std::filesystem::rename(other.model(), run_.model());
  EXPECT_THAT(refusal(), HasSubstr("of another run"));
  Parameters wider(1, at::kCPU);
  wider.declare({"scalar", {33}, {}});  // as many numbers
  wider.allocate();
  write_model(run_, wider, {7});
  EXPECT_NE(refusal(), "");
}

}  // namespace
}  // namespace tearless::engine::model_file_test
