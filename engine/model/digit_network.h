// The network of the task digits (docs/spec/tasks.md §3): two convolutions, each with ReLU and max pooling, then linear
// layers.
//
//   pytorch_example   conv1 – conv2 – fc1 – fc2      the MNIST example of PyTorch in January 2019
//   conv_conv_fc      conv1 – conv2 – fc
//
// Images are rows of pixels, channels last (kernels.h: ImageShape). A norm of a convolution's rows is over all numbers
// of an image, height × width × channels in this order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/batch.h"
#include "engine/model/padded_batch.h"
#include "engine/model/scope.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/kernels.h"
#include "engine/ops/packed_rows.h"

namespace tearless::engine {

/// [model] of digits.
struct DigitNetworkOptions {
  enum class Arch { kPytorchExample, kConvConvFc };
  /// Where norms stand. The logits are never normalised.
  enum class NormSites {
    kActivations,  // before every ReLU
    kLinear,       // before the ReLU of fc1 alone
    kInputs        // on the input of every layer, the pixels included
  };
  enum class Init {
    kTorchDefault,  // weights and biases U(±√(1 / fan_in))
    kXavierUniform  // weights U(±√(6 / (fan_in + fan_out))), biases 0
  };

  Arch arch = Arch::kPytorchExample;
  int64_t conv1_channels = 20, conv2_channels = 50;
  int64_t kernel = 5;    // height and width of the windows of both convolutions
  int64_t hidden = 500;  // outputs of fc1
  NormSites norm_sites = NormSites::kActivations;
  Init init = Init::kTorchDefault;
  NormOptions norm;
  double conv_dropout = 0;    // [model.dropout] conv: after each pooling
  double hidden_dropout = 0;  // [model.dropout] hidden: after the ReLU of fc1
};
void describe(SettingsVisitor& visitor, DigitNetworkOptions& options);
/// Throws UserError if a setting asks for a layer or a norm that the network does not have.
void check_consistent(const DigitNetworkOptions& options);
/// Throws UserError if nothing is left of such images after the convolutions and poolings.
void check_image_size(const DigitNetworkOptions& options, int64_t height, int64_t width);

/// A batch as the forward pass takes it.
struct ReadyImages final : Batch {
  std::vector<float> pixels;    // [N, H, W]
  std::vector<int32_t> labels;  // [N] digits; negative: padding
  // The dropout counters of the rows after conv1, conv2 and fc1.
  PackedRows conv1, conv2, fc1;
  int64_t full = 0;  // images of every batch of a pass but the last, which is padded to as many

  int64_t rows() const override { return predictions(); }
  int64_t predictions() const override { return predictions_of(labels); }
  /// {images}.
  std::vector<int64_t> bucket() const override { return {full}; }
  void pad() override;
  std::vector<Part> parts() const override;
};

class DigitNetwork {
 public:
  /// Declares its parameters; call parameters.allocate() next. Borrows both. REQUIRES: check_image_size().
  DigitNetwork(Parameters& parameters, const DigitNetworkOptions& options, int64_t height, int64_t width,
               uint32_t dropout_seed);

  /// `images`: the numbers of the images, which select their dropout masks.
  ReadyImages ready(std::vector<float> pixels, std::vector<int32_t> labels, std::span<const int32_t> images) const;
  /// The logits of the digits [N, 10]. `batch` must outlive the tape.
  Value logits(const ForwardContext& context, const ReadyImages& batch) const;
  /// The loss summed over the batch. On a recording tape, call tape.backward() next.
  CrossEntropySums loss(const ForwardContext& context, const ReadyImages& batch, double label_smoothing) const {
    return smoothed_cross_entropy(context, logits(context, batch), batch.labels, label_smoothing);
  }

 private:
  struct Layer {
    std::optional<NormOp> norm_in;   // of the input
    Linear linear;                   // of a convolution: from a window to the channels of a pixel
    std::optional<NormOp> norm_out;  // before the ReLU
    DropoutSite dropout;
  };
  struct Convolution : Layer {
    ImageShape in, out;  // `out`: before pooling
  };
  enum class Role { kConvolution, kHidden, kOutput };
  struct Sizes;

  Layer make_layer(const Scope& scope, Role role, const Sizes& sizes) const;
  Convolution make_convolution(const Scope& scope, const ImageShape& in, int64_t channels) const;
  Layer make_fully_connected(const Scope& scope, Role role, int64_t in, int64_t out) const;
  /// x [N · H · W, C] → the rows of the smaller images.
  Value convolve(const ForwardContext& context, const Convolution& layer, Value x, const PackedRows& rows) const;

  const DigitNetworkOptions& options_;
  Parameters& parameters_;
  Convolution conv1_, conv2_;
  std::optional<Layer> hidden_;
  Layer output_;
};

/// The number of parameters of the model. Allocates none.
int64_t parameter_count(const DigitNetworkOptions& options, int64_t height, int64_t width);
/// The parameters with images of some size, on which neither their names nor which of them are a norm's length depend.
DeclaredParameters declared_parameters(const DigitNetworkOptions& options);
/// About how many numbers of a batch of `images` images training holds at a time.
int64_t saved_numbers(const DigitNetworkOptions& options, int64_t height, int64_t width, int64_t images);

}  // namespace tearless::engine
