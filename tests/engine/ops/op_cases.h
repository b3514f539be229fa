// Every operation over odd sizes, as cases that every backend must pass: one row, one sentence, widths that are no
// multiple of 4 or 8, sentences of 1 to 300 rows, images of 2 to 9 pixels a side, dropout off and on.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/ops/add_norm.h"
#include "engine/ops/attention.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/cube.h"
#include "engine/ops/embedding.h"
#include "engine/ops/gates.h"
#include "engine/ops/images.h"
#include "engine/ops/linear.h"
#include "engine/ops/linear_of_embeddings.h"
#include "engine/ops/relative_attention.h"
#include "engine/ops/span_means.h"
#include "tests/engine/ops/op_check.h"

namespace tearless::engine::test {

using Values = std::vector<Value>;

struct Shape {
  std::string name;
  std::vector<int32_t> lengths;
  int64_t width;
};

inline const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"one_row", {1}, 4},

      {"one_sentence", {5}, 6},
      {"odd_width", {3, 1, 4}, 7},
      {"lengths_1_to_40", {40, 1, 13, 2}, 12},
      {"two_blocks", {70, 3}, 10},
      {"lengths_1_to_300", {300, 1, 33}, 32},
      {"wide_heads", {9, 17}, 74},
  };
  return all;
}

inline Dropout dropout(double p) { return p == 0 ? Dropout::off() : Dropout::with(p, RandomStream(9, "drop.test"), 6); }

inline void add_row_wise(std::vector<OpCase>& cases, const Shape& shape, double p, const std::string& suffix) {
  const auto rows = std::make_shared<PackedRows>(packed_rows(shape.lengths));
  const int64_t t = rows->row_count();
  const int64_t d = shape.width;
  cases.push_back({"add_dropped" + suffix,
                   {random_tensor({t, d}, 11), random_tensor({t, d}, 12)},
                   [=](Tape& tape, const Values& in) { return add_dropped(tape, in[0], in[1], dropout(p), *rows); },
                   {},
                   /*first_parameter=*/2});
  cases.push_back(
      {"bias_relu_dropout" + suffix,
       {random_tensor({t, d}, 13), random_tensor({d}, 14)},
       [=](Tape& tape, const Values& in) { return bias_relu_dropout(tape, in[0], in[1], dropout(p), *rows); }});
  cases.push_back({"relu_dropout" + suffix, {random_tensor({t, d}, 16)}, [=](Tape& tape, const Values& in) {
                     return bias_relu_dropout(tape, in[0], {}, dropout(p), *rows);
                   }});
  const at::Tensor positions = sinusoid_positions(300, d);
  cases.push_back({"embedding" + suffix,
                   {random_tensor({11, d}, 15)},
                   [=](Tape& tape, const Values& in) {
                     return embedding(tape, in[0], *rows, positions.to(in[0].data().device()), 1.7, dropout(p),
                                      in[0].data().scalar_type());
                   },
                   {},
                   /*first_parameter=*/0});
  const auto some = std::make_shared<PackedRows>(*rows);  // the first of each sentence and a few others are no token
  for (size_t t = 0; t < some->tokens.size(); ++t) {
    if (some->positions[t] == 0 || t % 5 == 3) some->tokens[t] = kNoToken;
  }
  cases.push_back({"embedding_of_some_tokens" + suffix,
                   {random_tensor({11, d}, 15)},
                   [=](Tape& tape, const Values& in) {
                     return embedding(tape, in[0], *some, positions.to(in[0].data().device()), 1.7, dropout(p),
                                      in[0].data().scalar_type());
                   },
                   {},
                   /*first_parameter=*/0});
  const auto starts = std::make_shared<PackedRows>(*rows);  // the first row of a sentence is no token
  for (size_t t = 0; t < starts->tokens.size(); ++t) {
    if (starts->positions[t] == 0) starts->tokens[t] = kNoToken;
  }
  cases.push_back({"embedding_with_vector_of_words" + suffix,
                   {random_tensor({11, d}, 18), random_tensor({d}, 19)},
                   [=](Tape& tape, const Values& in) {
                     return embedding(tape, in[0], *starts, positions.to(in[0].data().device()), 1.7, dropout(p),
                                      in[0].data().scalar_type(), in[1], AddedTo::kAllButFirst);
                   },
                   {},
                   /*first_parameter=*/0});
  cases.push_back({"embedding_with_language" + suffix,
                   {random_tensor({11, d}, 15), random_tensor({d}, 17)},
                   [=](Tape& tape, const Values& in) {
                     return embedding(tape, in[0], *rows, positions.to(in[0].data().device()), 1.7, dropout(p),
                                      in[0].data().scalar_type(), in[1]);
                   },
                   {},
                   /*first_parameter=*/0});
}

/// Lengths of sentences after a memory of 0, 5 or 10 rows, or of as many as the memory of a segment may have.
inline std::vector<int32_t> with_memory(std::vector<int32_t> lengths) {
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] += i == 2 ? 37 : static_cast<int32_t>(5 * ((i + 1) % 3));
  return lengths;
}

inline void add_attention(std::vector<OpCase>& cases, const Shape& shape, double p, const std::string& suffix) {
  const auto rows = std::make_shared<PackedRows>(packed_rows(shape.lengths));
  std::vector<int32_t> other(shape.lengths.rbegin(), shape.lengths.rend());
  const auto encoder_output = std::make_shared<PackedRows>(packed_rows(other));
  const int64_t t = rows->row_count();
  const int64_t heads = shape.width % 2 == 0 ? 2 : 1;
  const int64_t d = shape.width;
  for (const bool causal : {false, true}) {  // q, k and v side by side in one input, as self-attention has them
    cases.push_back({(causal ? "causal_attention" : "self_attention") + suffix,
                     {random_tensor({t, 3 * d}, 21)},
                     [=](Tape& tape, const Values& in) {
                       return attention(tape, {in[0], 0}, {in[0], d}, {in[0], 2 * d}, d, heads,
                                        tape.save(AttentionSpans::self(*rows, causal)), dropout(p));
                     }});
  }
  const auto remembered = std::make_shared<PackedRows>(packed_rows(with_memory(shape.lengths)));
  cases.push_back(
      {"attention_after_memory" + suffix,
       {random_tensor({t, d}, 24), random_tensor({remembered->row_count(), 2 * d}, 25)},
       [=](Tape& tape, const Values& in) {
         AttentionSpans spans = AttentionSpans::cross(*rows, *remembered);
         spans.causal = true;
         return attention(tape, {in[0], 0}, {in[1], 0}, {in[1], d}, d, heads, tape.save(std::move(spans)), dropout(p));
       },
       {},
       /*first_parameter=*/2});
  cases.push_back({"cross_attention" + suffix,
                   {random_tensor({t, d}, 22), random_tensor({encoder_output->row_count(), 2 * d}, 23)},
                   [=](Tape& tape, const Values& in) {
                     return attention(tape, {in[0], 0}, {in[1], 0}, {in[1], d}, d, heads,
                                      tape.save(AttentionSpans::cross(*rows, *encoder_output)), dropout(p));
                   },
                   {},
                   /*first_parameter=*/2});
}

inline void add_relative_attention(std::vector<OpCase>& cases, const Shape& shape, double p,
                                   const std::string& suffix) {
  const auto rows = std::make_shared<PackedRows>(packed_rows(shape.lengths));
  const auto remembered = std::make_shared<PackedRows>(packed_rows(with_memory(shape.lengths)));
  const int64_t t = rows->row_count();
  const int64_t heads = shape.width % 2 == 0 ? 2 : 1;
  const int64_t d = shape.width;
  const int64_t longest = std::ranges::max(with_memory(shape.lengths));
  cases.push_back({"relative_attention" + suffix,
                   {random_tensor({t, d}, 81), random_tensor({remembered->row_count(), 2 * d}, 82),
                    random_tensor({longest + 2, d}, 83), random_tensor({d}, 84), random_tensor({d}, 85)},
                   [=](Tape& tape, const Values& in) {
                     AttentionSpans spans = AttentionSpans::cross(*rows, *remembered);
                     spans.causal = true;
                     return relative_attention(tape, {in[0], 0}, {in[1], 0}, {in[1], d}, in[2], in[3], in[4], d, heads,
                                               tape.save(std::move(spans)), 0, dropout(p));
                   },
                   {},
                   /*first_parameter=*/3});
  // q, k and v side by side; distances beyond the last position, and beyond the window; as in a bucket rows after the
  // last sentence, and an empty span.
  for (const int64_t window : {2, 19, 40}) {
    cases.push_back({fmt::format("relative_attention_window_{}{}", window, suffix),
                     {random_tensor({t + 3, 3 * d}, 86), random_tensor({std::min<int64_t>(7, longest), d}, 87),
                      random_tensor({d}, 88), random_tensor({d}, 89)},
                     [=](Tape& tape, const Values& in) {
                       AttentionSpans spans = AttentionSpans::self(*rows, true);
                       spans.spans.push_back({static_cast<int32_t>(t), 0, static_cast<int32_t>(t), 0, 0});
                       spans.padded = true;
                       return relative_attention(tape, {in[0], 0}, {in[0], d}, {in[0], 2 * d}, in[1], in[2], in[3], d,
                                                 heads, tape.save(std::move(spans)), window, dropout(p));
                     },
                     {},
                     /*first_parameter=*/2});
  }
}

inline void add_row_norms(std::vector<OpCase>& cases, const Shape& shape, const std::string& suffix) {
  const int64_t t = packed_rows(shape.lengths).row_count();
  const int64_t d = shape.width;
  using Denominator = RowNorm::Denominator;
  for (const auto& [name, denominator, eps] : {std::tuple{"one", Denominator::kOne, 0.0},
                                               {"root", Denominator::kRootAddEps, 0.1},
                                               {"length", Denominator::kLengthClamped, 2.5}}) {
    for (const bool centred : {false, true}) {
      for (const auto& [gain_name, gain] : {std::pair{"no", int64_t{0}}, {"scalar", int64_t{1}}, {"channel", d}}) {
        for (const bool bias : {false, true}) {
          if (bias && gain == 0) continue;  // no kind has a bias alone
          if (gain == 0 && denominator == Denominator::kOne && centred) continue;
          NormOp norm;
          norm.row = RowNorm{centred, denominator, eps};
          norm.formula = [denominator = denominator, centred, eps = eps](const at::Tensor& x, const at::Tensor& g,
                                                                         const at::Tensor& b) {
            at::Tensor y = centred ? x - x.mean(-1, true) : x;
            if (denominator == Denominator::kRootAddEps) y = y / (y.square().mean(-1, true) + eps).sqrt();
            if (denominator == Denominator::kLengthClamped) y = y / y.norm(2, -1, true).clamp_min(eps);
            if (g.defined()) y = y * g;
            return b.defined() ? y + b : y;
          };
          cases.push_back(
              {fmt::format("norm_{}{}_{}_gain{}", name, centred ? "_centred" : "", gain_name, bias ? "_bias" : "") +
                   suffix,
               {random_tensor({t, d}, 31), gain > 0 ? random_tensor({gain}, 32) : at::Tensor(),
                bias ? random_tensor({d}, 33) : at::Tensor()},
               [norm](Tape& tape, const Values& in) {
                 NormOp op = norm;
                 op.gain = in[1];
                 op.bias = in[2];
                 return norm_rows(tape, in[0], op);
               }});
        }
      }
    }
  }
}

inline void add_matmuls(std::vector<OpCase>& cases, const Shape& shape, const std::string& suffix) {
  const int64_t t = packed_rows(shape.lengths).row_count();
  const int64_t d = shape.width;
  for (const auto& [in_width, out_width] : {std::pair{d, d + 3}, {d, int64_t{1}}, {int64_t{1}, d}}) {
    const bool bias = out_width > d;
    cases.push_back({fmt::format("linear_{}_{}{}", in_width, out_width, bias ? "_bias" : "") + suffix,
                     {random_tensor({t, in_width}, 41), random_tensor({out_width, in_width}, 42),
                      bias ? random_tensor({out_width}, 43) : at::Tensor()},
                     [](Tape& tape, const Values& in) { return linear(tape, in[0], in[1], in[2]); },
                     [](Tape& tape, const Values& in) {
                       return tape.by_formula(in, [](const std::vector<at::Tensor>& x) {
                         const at::Tensor y = x[0].matmul(x[1].t());
                         return x[2].defined() ? y + x[2] : y;
                       });
                     }});
  }
  // x in two matmuls: the backward of the second must add to the gradient that the first has written.
  const auto rows = std::make_shared<PackedRows>(packed_rows(shape.lengths));
  cases.push_back({"linear_twice" + suffix,
                   {random_tensor({t, d}, 44), random_tensor({d, d}, 45), random_tensor({d, d}, 46)},
                   [=](Tape& tape, const Values& in) {
                     return add_dropped(tape, linear(tape, in[0], in[1], {}), linear(tape, in[0], in[2], {}),
                                        Dropout::off(), *rows);
                   },
                   [](Tape& tape, const Values& in) {
                     return tape.by_formula(
                         in, [](const std::vector<at::Tensor>& x) { return x[0].matmul((x[1] + x[2]).t()); });
                   }});
  const at::Tensor indices = at::tensor({7, 0, 3}, at::kLong);
  cases.push_back(
      {"gather_rows" + suffix,
       {random_tensor({9, d}, 47)},
       [=](Tape& tape, const Values& in) { return gather_rows(tape, in[0], indices.to(in[0].data().device())); },
       [=](Tape& tape, const Values& in) {
         return tape.by_formula(in, [=](const std::vector<at::Tensor>& x) { return x[0].index_select(0, indices); });
       },
       /*first_parameter=*/0});
}

inline void add_span_means(std::vector<OpCase>& cases, const Shape& shape, const std::string& suffix) {
  const auto rows = std::make_shared<PackedRows>(packed_rows(shape.lengths));
  const int64_t t = rows->row_count();
  const int64_t d = shape.width;
  cases.push_back({"span_means" + suffix, {random_tensor({t, d}, 61)}, [=](Tape& tape, const Values& in) {
                     return span_means(tape, in[0], tape.save(AttentionSpans::self(*rows, false)));
                   }});
  // As in a bucket: rows after the last sentence, and empty spans between and after the others.
  cases.push_back({"span_means_padded" + suffix, {random_tensor({t + 3, d}, 62)}, [=](Tape& tape, const Values& in) {
                     AttentionSpans spans = AttentionSpans::self(*rows, false);
                     const auto last = static_cast<int32_t>(t);
                     spans.spans.insert(spans.spans.begin(), {0, 0, 0, 0, 0});
                     spans.spans.resize(spans.spans.size() + 2, {last, 0, last, 0, 0});
                     return span_means(tape, in[0], tape.save(std::move(spans)));
                   }});
  // x in two operations: the backward of the second must add to the gradient that the first has written.
  cases.push_back({"span_means_twice" + suffix, {random_tensor({t, d}, 63)}, [=](Tape& tape, const Values& in) {
                     const AttentionSpans& spans = tape.save(AttentionSpans::self(*rows, false));
                     const auto sentences =
                         std::make_shared<PackedRows>(packed_rows({static_cast<int32_t>(rows->sentence_count())}));
                     return add_dropped(tape, span_means(tape, in[0], spans), span_means(tape, in[0], spans),
                                        Dropout::off(), tape.save(*sentences));
                   }});
  cases.push_back({"reshape" + suffix,
                   {random_tensor({t, d}, 64)},
                   [=](Tape& tape, const Values& in) { return reshape(tape, in[0], 1); },
                   [=](Tape& tape, const Values& in) {
                     return tape.by_formula(in, [](const std::vector<at::Tensor>& x) { return x[0].reshape({-1, 1}); });
                   }});
}

inline void add_running_means(std::vector<OpCase>& cases, const Shape& shape, const std::string& suffix) {
  const auto rows = std::make_shared<PackedRows>(packed_rows(shape.lengths));
  const int64_t t = rows->row_count();
  const int64_t d = shape.width;
  cases.push_back({"running_means" + suffix, {random_tensor({t, d}, 65)}, [=](Tape& tape, const Values& in) {
                     return running_means(tape, in[0], tape.save(AttentionSpans::self(*rows, true)));
                   }});
  // As in a bucket: rows after the last sentence, and an empty span.
  cases.push_back({"running_means_padded" + suffix, {random_tensor({t + 3, d}, 66)}, [=](Tape& tape, const Values& in) {
                     AttentionSpans spans = AttentionSpans::self(*rows, true);
                     spans.spans.push_back({static_cast<int32_t>(t), 0, static_cast<int32_t>(t), 0, 0});
                     spans.padded = true;
                     return running_means(tape, in[0], tape.save(std::move(spans)));
                   }});
  // x in two operations: the backward of the second must add to the gradient that the first has written.
  cases.push_back({"gated_means" + suffix,
                   {random_tensor({t, d}, 67), random_tensor({t, 2 * d}, 68)},
                   [=](Tape& tape, const Values& in) {
                     const Value means = running_means(tape, in[0], tape.save(AttentionSpans::self(*rows, true)));
                     return gated_sum(tape, in[1], join_columns(tape, in[0], means));
                   },
                   {},
                   /*first_parameter=*/2});
}

inline void add_parser(std::vector<OpCase>& cases, const Shape& shape, const std::string& suffix) {
  const int64_t t = packed_rows(shape.lengths).row_count();
  const int64_t d = shape.width;
  cases.push_back(
      {"cube" + suffix, {random_tensor({t, d}, 81)}, [](Tape& tape, const Values& in) { return cube(tape, in[0]); }});
  for (const int64_t features : {1, 3, 6}) {
    const auto tokens = std::make_shared<PackedRows>(packed_rows({static_cast<int32_t>(t * features)}));
    std::ranges::fill(tokens->positions, 0);
    for (size_t i = 0; i < tokens->tokens.size(); ++i) tokens->tokens[i] = static_cast<int32_t>(i * i % 7 + i % 5);
    for (const bool bias : {false, true}) {
      cases.push_back({fmt::format("linear_of_{}_embeddings{}", features, bias ? "_bias" : "") + suffix,
                       {random_tensor({11, 5}, 82), random_tensor({d, features * 5}, 83),
                        bias ? random_tensor({d}, 84) : at::Tensor()},
                       [=](Tape& tape, const Values& in) {
                         return linear_of_embeddings(tape, in[0], *tokens, features, in[1], in[2],
                                                     in[0].data().scalar_type());
                       },
                       {},
                       /*first_parameter=*/0});
    }
  }
}

/// Images of odd and even sizes, with channels that fill vectors and groups and that do not.
inline void add_images(std::vector<OpCase>& cases) {
  struct Images {
    std::string name;
    int64_t count;
    ImageShape image;
    int64_t size;  // of the windows of patches()
  };
  const std::vector<Images> all = {
      {"one_window", 1, {2, 2, 1}, 2},       {"one_pixel_windows", 2, {3, 4, 5}, 1},
      {"one_channel", 3, {9, 8, 1}, 5},      {"odd", 2, {7, 5, 3}, 3},
      {"two_wide", 2, {6, 2, 4}, 2},         {"eight_channels", 1, {5, 6, 8}, 2},
      {"twenty_channels", 2, {6, 7, 20}, 5}, {"many_channels", 1, {3, 3, 67}, 2},
  };
  for (const Images& i : all) {
    const int64_t rows = i.count * i.image.pixels();
    cases.push_back({"patches_" + i.name,
                     {random_tensor({rows, i.image.channels}, 71)},
                     [=](Tape& tape, const Values& in) { return patches(tape, in[0], i.image, i.size); }});
    cases.push_back({"max_pool_" + i.name,
                     {random_tensor({rows, i.image.channels}, 72)},
                     [=](Tape& tape, const Values& in) { return max_pool(tape, in[0], i.image); }});
    // x in two operations, and an activation that overwrites what the maxima were written to.
    const auto pooled_rows =
        std::make_shared<PackedRows>(packed_rows({static_cast<int32_t>(i.count * i.image.pooled().pixels())}));
    cases.push_back(
        {"max_pool_relu_" + i.name, {random_tensor({rows, i.image.channels}, 73)}, [=](Tape& tape, const Values& in) {
           const Value twice = reshape(tape, max_pool(tape, in[0], i.image), i.image.channels);
           const Value relu = bias_relu_dropout(tape, twice, {}, Dropout::off(), *pooled_rows);
           return add_dropped(tape, relu, max_pool(tape, in[0], i.image), Dropout::off(), *pooled_rows);
         }});
  }
}

/// Those whose sentences have `longest` rows at most.
inline std::vector<OpCase> all_cases(int32_t longest = 300) {
  std::vector<OpCase> cases;
  for (const Shape& shape : shapes()) {
    if (std::ranges::max(shape.lengths) > longest) continue;
    for (const double p : {0.0, 0.4}) {
      const std::string suffix = "_" + shape.name + (p > 0 ? "_dropped" : "");
      add_row_wise(cases, shape, p, suffix);
      add_attention(cases, shape, p, suffix);
      add_relative_attention(cases, shape, p, suffix);
    }
    add_row_norms(cases, shape, "_" + shape.name);
    add_matmuls(cases, shape, "_" + shape.name);
    add_span_means(cases, shape, "_" + shape.name);
    add_running_means(cases, shape, "_" + shape.name);
    add_parser(cases, shape, "_" + shape.name);
  }
  add_images(cases);
  return cases;
}

}  // namespace tearless::engine::test
