// Stacks made from the settings, and their state: rows that see a memory of earlier passes.
#include "engine/model/layer_stack.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/engine/model/tiny_model.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::layer_stack_test {
namespace {

using test::packed_rows;
using test::random_tensor;
using testing::HasSubstr;

/// One stack with its parameters.
struct TinyStack {
  LayerOptions options;
  Parameters parameters;
  LayerStack stack;

  TinyStack(const LayerOptions& o, int64_t layers, const std::string& sublayers)
      : options(o),
        parameters(/*seed=*/5, at::kCPU),
        stack(LayerScope(parameters, options, 2).in_stack(Stack::kEncoder), layers, sublayers) {
    parameters.allocate();
  }
};

TEST(LayerStack, HasTheSublayersOfTheSettingsInTheirOrder) {
  const auto sublayers = [](const std::string& setting) {
    const TinyStack tiny(test::tiny_options(), 2, setting);
    std::vector<std::string> names;
    for (const ParameterSpec& spec : tiny.parameters.specs()) {
      if (spec.name.ends_with(".o.weight") || spec.name.ends_with(".w2.weight")) names.push_back(spec.name);
    }
    return names;
  };
  EXPECT_EQ(sublayers("self_attention, ffn"),
            (std::vector<std::string>{"encoder.1.self_attention.o.weight", "encoder.1.ffn.w2.weight",
                                      "encoder.2.self_attention.o.weight", "encoder.2.ffn.w2.weight"}));
  EXPECT_EQ(sublayers("ffn, self_attention"),
            (std::vector<std::string>{"encoder.1.ffn.w2.weight", "encoder.1.self_attention.o.weight",
                                      "encoder.2.ffn.w2.weight", "encoder.2.self_attention.o.weight"}));
  EXPECT_EQ(sublayers("ffn"), (std::vector<std::string>{"encoder.1.ffn.w2.weight", "encoder.2.ffn.w2.weight"}));
}

TEST(LayerStack, HasAnEffectOfEachSublayerAndOfTheirOrder) {
  const PackedRows rows = packed_rows({4, 7});
  const AttentionSpans spans = AttentionSpans::self(rows, false);
  const Value x(random_tensor({rows.row_count(), 12}, 1).to(at::kFloat));
  std::vector<at::Tensor> outputs;
  for (const std::string& sublayers : test::all_sublayers(/*in_decoder=*/false)) {
    const TinyStack tiny(test::tiny_options(), 1, sublayers);
    Tape tape(Tape::Kind::kForward);
    const at::Tensor y = tiny.stack.forward({tape}, x, {rows, spans}).data();
    for (const at::Tensor& other : outputs) EXPECT_GT((y - other).abs().max().item<double>(), 1e-3) << sublayers;
    outputs.push_back(y);
  }
  EXPECT_GE(outputs.size(), 4u);
}

TEST(SublayerSettings, ThatMakeNoStackAreRefused) {
  const auto refused = [](const char* setting, bool in_decoder) -> std::string {
    try {
      check_sublayers("model.s", setting, in_decoder);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused("self_attention, ffn", false), "");
  EXPECT_EQ(refused("self_attention, cross_attention, ffn", true), "");
  for (const char* text : {"self_attention,ffn", "self_attention, ", "", "ffn,  self_attention", "self_atention"}) {
    EXPECT_THAT(refused(text, false), HasSubstr("is no sublayer")) << text;
  }
  EXPECT_THAT(refused("self_atention, ffn", false),
              testing::StartsWith(
                  "model.s = \"self_atention, ffn\": \"self_atention\" is no sublayer (did you mean "
                  "\"self_attention\"?); write them as \"self_attention, ffn\", each one of: self_attention, "));
  EXPECT_EQ(refused("ffn, self_attention, ffn", false),
            "model.s = \"ffn, self_attention, ffn\" names ffn twice; a layer has at most one of each");
  EXPECT_EQ(refused("cross_attention", false),
            "model.s = \"cross_attention\": cross_attention reads the encoder output; leave it to the decoder");
  EXPECT_EQ(refused("aan, ffn", false),
            "model.s = \"aan, ffn\": each row of aan sees only itself and those before; leave it to the decoder");
  for (const char* legal : {"matt, ffn", "matt, self_attention, ffn", "aan_ffn, cross_attention, ffn", "matt_self"}) {
    EXPECT_EQ(refused(legal, true), "");
  }
  EXPECT_EQ(refused("self_attention, ffn", true),
            "model.s = \"self_attention, ffn\": nothing reads the encoder output; add cross_attention or matt");
  EXPECT_THAT(refused("aan, ffn", true), HasSubstr("nothing reads the encoder output"));
}

/// Three streams of rows, passed in segments with a state: what each row gets, in the order of the whole.
class Segments {
 public:
  static constexpr int32_t kStreams = 3, kLength = 11, kSegment = 4;

  explicit Segments(const TinyStack& tiny) : tiny_(tiny) {}

  /// In one pass.
  at::Tensor whole(const at::Tensor& x) const {
    const PackedRows rows = packed_rows(std::vector<int32_t>(kStreams, kLength));
    const AttentionSpans spans = AttentionSpans::self(rows, /*causal=*/true);
    Tape tape(Tape::Kind::kForward);
    return tiny_.stack.forward({tape}, Value(x), {rows, spans}).data();
  }

  /// Segment by segment: each row sees at most `memory` rows before its segment. The rows of a stream are one after
  /// another in the state, from `stream · kLength` on, or with `listed` in rows that nothing but key_rows knows.
  at::Tensor by_segments(const at::Tensor& x, int32_t memory, bool listed) const {
    StackState state = tiny_.stack.make_state(kStreams * kLength, x.options());
    for (at::Tensor& slot : state.slots) {
      if (slot.defined()) slot.fill_(NAN);  // a row that is read before it is written shows
    }
    at::Tensor out = at::empty_like(x);
    for (int32_t begin = 0; begin < kLength; begin += kSegment) {
      const int32_t count = std::min(kSegment, kLength - begin);
      const PackedRows rows = packed_rows(std::vector<int32_t>(kStreams, count));
      const int32_t first = std::max(0, begin - memory);  // position
      std::vector<int64_t> of_whole, written;
      AttentionSpans spans;
      spans.causal = true;
      for (int32_t s = 0; s < kStreams; ++s) {
        const auto row_of = [&](int32_t position) {
          const int32_t row = s * kLength + position;
          return listed ? (row * 7 + 3) % (kStreams * kLength) : row;
        };
        const auto key_begin = listed ? static_cast<int32_t>(spans.key_rows.size()) : row_of(first);
        spans.add({s * count, count, key_begin, begin + count - first, 0});
        for (int32_t p = first; listed && p < begin + count; ++p) spans.key_rows.push_back(row_of(p));
        for (int32_t p = begin; p < begin + count; ++p) {
          of_whole.push_back(s * kLength + p);
          written.push_back(row_of(p));
        }
      }
      const at::Tensor places = at::tensor(of_whole);
      state.written = {.indices = at::tensor(written)};
      Tape tape(Tape::Kind::kForward);
      const Value y = tiny_.stack.forward({tape}, Value(x.index_select(0, places)), {rows, spans}, &state);
      out.index_copy_(0, places, y.data());
    }
    return out;
  }

 private:
  const TinyStack& tiny_;
};

TEST(StackState, InSegmentsWithTheirMemoryAStackGivesWhatItGivesAtOnce) {
  for (const std::string& sublayers : test::all_sublayers(/*in_decoder=*/false)) {
    SCOPED_TRACE(sublayers);
    const TinyStack tiny(test::tiny_options(), 2, sublayers);
    const Segments segments(tiny);
    const at::Tensor x = random_tensor({Segments::kStreams * Segments::kLength, 12}, 2).to(at::kFloat);
    const at::Tensor whole = segments.whole(x);
    for (const bool listed : {false, true}) {
      EXPECT_LT(test::distance(segments.by_segments(x, Segments::kLength, listed), whole), 1e-5);
      if (sublayers != "ffn") {
        EXPECT_GT(test::distance(segments.by_segments(x, 2, listed), whole), 1e-3) << "a shorter memory is the same";
      }
    }
  }
}

TEST(StackState, OfAverageAttentionInSegmentsGivesWhatItGivesAtOnce) {
  for (const char* sublayers : {"aan", "aan_ffn, ffn"}) {
    SCOPED_TRACE(sublayers);
    const TinyStack tiny(test::tiny_options(), 2, sublayers);
    const Segments segments(tiny);
    const at::Tensor x = random_tensor({Segments::kStreams * Segments::kLength, 12}, 2).to(at::kFloat);
    for (const bool listed : {false, true}) {
      EXPECT_LT(test::distance(segments.by_segments(x, Segments::kLength, listed), segments.whole(x)), 1e-5);
    }
  }
}

// One layer of self-attention without norms: x + o(att(q(x), [memory; k(x)], [memory; v(x)])), by LibTorch's autograd.
TEST(StackState, GradientsReachTheRowsOfThisPassAndNoEarlierOnes) {
  ModelOptions options = test::tiny_options();
  options.norm.kind = "none";
  options.dropout = {.residual = 0, .attention = 0, .relu = 0, .word = 0};
  const int64_t d = options.d_model, heads = options.heads;
  constexpr int32_t kMemory = 3, kNow = 5, kRows = 10;  // of the state: rows 1 … 8
  for (const bool indexed : {false, true}) {
    TinyStack tiny(options, 1, "self_attention");
    const at::Tensor x = random_tensor({kNow, d}, 3).to(at::kFloat),
                     weights = random_tensor({kNow, d}, 4).to(at::kFloat);
    StackState state = tiny.stack.make_state(kRows, x.options());
    state.slots[0].copy_(random_tensor({kRows, 2 * d}, 5));
    const at::Tensor remembered = state.slots[0].slice(0, 1, 1 + kMemory).clone();
    state.written.first = 1 + kMemory;
    if (indexed) state.written = {.indices = at::tensor(std::vector<int64_t>{4, 5, 6, 7, 8})};
    const PackedRows rows = packed_rows({kNow});
    AttentionSpans spans;
    spans.causal = true;
    spans.add({0, kNow, 1, kMemory + kNow, 0});
    tiny.parameters.gradients().zero_();
    Tape tape(Tape::Kind::kRecording);
    const Value input(x.clone());
    const Value y = tiny.stack.forward({tape, 1}, input, {rows, spans}, &state);
    y.add_grad(weights.clone());
    tape.backward();

    const auto parameter = [&](const std::string& name) {
      return tiny.parameters.get("encoder.1.self_attention." + name).data().detach().clone().requires_grad_();
    };
    const at::Tensor xx = x.clone().requires_grad_();
    std::map<std::string, at::Tensor> p;
    for (const char* part : {"q", "k", "v", "o"}) {
      for (const char* which : {".weight", ".bias"}) {
        const std::string name = std::string(part) + which;
        p[name] = parameter(name);
      }
    }
    const auto map = [&](const at::Tensor& from, const std::string& part) {
      return from.matmul(p[part + ".weight"].t()) + p[part + ".bias"];
    };
    const auto split = [&](const at::Tensor& from) { return from.view({-1, heads, d / heads}).transpose(0, 1); };
    const at::Tensor k = at::cat({remembered.slice(1, 0, d), map(xx, "k")});
    const at::Tensor v = at::cat({remembered.slice(1, d), map(xx, "v")});
    at::Tensor scores =
        split(map(xx, "q")).matmul(split(k).transpose(1, 2)) / std::sqrt(static_cast<double>(d / heads));
    for (int64_t i = 0; i < kNow; ++i) scores.select(1, i).slice(1, kMemory + i + 1).fill_(-INFINITY);
    const at::Tensor seen = at::softmax(scores, 2).matmul(split(v)).transpose(0, 1).reshape({kNow, d});
    const at::Tensor expected = xx + map(seen, "o");
    (expected * weights).sum().backward();

    EXPECT_LT(test::distance(y.data(), expected.detach()), 1e-5);
    EXPECT_LT(test::distance(input.grad(), xx.grad()), 1e-5);
    for (const auto& [name, value] : p) {
      EXPECT_LT(test::distance(tiny.parameters.get("encoder.1.self_attention." + name).grad(), value.grad()), 1e-5)
          << name;
    }
    EXPECT_TRUE(at::equal(state.slots[0].slice(0, 1, 1 + kMemory), remembered));
  }
}

TEST(StackState, GrowsWithoutLosingRows) {
  const TinyStack tiny(test::tiny_options(), 1, "ffn, self_attention");
  StackState state = tiny.stack.make_state(4, at::TensorOptions(at::kFloat));
  ASSERT_EQ(state.slots.size(), 2u);
  EXPECT_FALSE(state.slots[0].defined()) << "the feed-forward sublayer keeps nothing";
  state.slots[1].copy_(random_tensor({4, 24}, 6));
  const at::Tensor before = state.slots[1].clone();
  state.reserve(4, 3);
  EXPECT_EQ(state.capacity, 4);
  state.reserve(5, 3);
  EXPECT_EQ(state.capacity, 8) << "at least doubled";
  EXPECT_EQ(state.slots[1].size(0), 8);
  EXPECT_TRUE(at::equal(state.slots[1].slice(0, 0, 3), before.slice(0, 0, 3)));
  state.reserve(50, 5);
  EXPECT_EQ(state.slots[1].size(0), 50);
}

}  // namespace
}  // namespace tearless::engine::layer_stack_test
