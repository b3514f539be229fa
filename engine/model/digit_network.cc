#include "engine/model/digit_network.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "engine/model/declared_parameters.h"
#include "engine/model/initialisation.h"
#include "engine/ops/bias_relu_dropout.h"
#include "engine/ops/images.h"
#include "engine/ops/linear.h"

namespace tearless::engine {
namespace {

constexpr int64_t kDigits = 10;
constexpr auto kDigitArchs = std::to_array<std::string_view>({"pytorch_example", "conv_conv_fc"});
constexpr auto kDigitNormSites = std::to_array<std::string_view>({"activations", "linear", "inputs"});
constexpr auto kDigitInits = std::to_array<std::string_view>({"torch_default", "xavier_uniform"});

int64_t numbers_of(const ImageShape& image) { return image.pixels() * image.channels; }

/// The norm over all numbers of each image, of rows of any width.
Value norm_images(Tape& tape, const Value& x, const std::optional<NormOp>& norm, int64_t numbers_of_image) {
  if (!norm) return x;
  return reshape(tape, norm_rows(tape, reshape(tape, x, numbers_of_image), *norm), x.data().size(1));
}

/// Appends copies of the elements of the first of `from` images until there are those of `to` images.
template <class T>
void repeat_first_image(std::vector<T>& elements, int64_t from, int64_t to) {
  const auto each = elements.size() / static_cast<size_t>(from);
  elements.reserve(each * static_cast<size_t>(to));
  for (size_t i = 0; elements.size() < each * static_cast<size_t>(to); ++i) elements.push_back(elements[i % each]);
}

}  // namespace

void describe(SettingsVisitor& v, DigitNetworkOptions& o) {
  const char* const fc1_off_by = o.arch == DigitNetworkOptions::Arch::kPytorchExample ? "" : "model.arch";
  v.choice({.key = "arch",
            .meaning = "`pytorch_example` conv1, conv2, fc1, fc2, as the MNIST example of PyTorch; `conv_conv_fc` "
                       "conv1, conv2, fc. A convolution is followed by ReLU and max pooling, fc1 by ReLU"},
           o.arch, kDigitArchs);
  v.integer({.key = "conv1_channels", .meaning = "output channels of conv1", .min = 1, .max = 4096}, o.conv1_channels);
  v.integer({.key = "conv2_channels", .meaning = "output channels of conv2", .min = 1, .max = 4096}, o.conv2_channels);
  v.integer({.key = "kernel", .meaning = "height and width of the kernels of both", .min = 1, .max = 341}, o.kernel);
  v.integer({.key = "hidden", .meaning = "outputs of fc1", .min = 1, .max = 65536, .switched_off_by = fc1_off_by},
            o.hidden);
  v.choice({.key = "norm_sites",
            .meaning = "where the norms stand, each over all numbers of one image: `activations` before the ReLU of "
                       "every layer; `linear` before the ReLU of fc1 alone; `inputs` on the input of every layer, the "
                       "pixels included. The logits are never normalised",
            .switched_off_by = o.norm.normalises() ? "" : "model.norm.kind"},
           o.norm_sites, kDigitNormSites);
  v.choice({.key = "init",
            .meaning = "initial weights and biases: `torch_default` both U(±√(1 / fan_in)); `xavier_uniform` weights "
                       "U(±√(6 / (fan_in + fan_out))), biases 0"},
           o.init, kDigitInits);
  v.table_of("norm", [&] { describe(v, o.norm, /*has_stacks=*/false); });
  v.table_of("dropout", [&] {
    const auto probability = [&](const char* key, const char* meaning, double& value) {
      v.number({.key = key, .meaning = meaning, .min = 0, .max = 0.99, .neutral = 0.0}, value);
    };
    probability("conv", "after each max pooling", o.conv_dropout);
    probability("hidden", "after the ReLU of fc1", o.hidden_dropout);
  });
}

void check_consistent(const DigitNetworkOptions& o) {
  if (o.arch == DigitNetworkOptions::Arch::kPytorchExample) return;
  if (o.norm_sites == DigitNetworkOptions::NormSites::kLinear && o.norm.normalises()) {
    fail(
        "model.norm_sites = \"linear\" leaves no norm with model.arch = \"conv_conv_fc\", whose only linear layer "
        "gives "
        "the logits; use \"activations\" or \"inputs\"");
  }
  if (o.hidden_dropout != 0) {
    fail(
        "model.dropout.hidden = {} needs model.arch = \"pytorch_example\": \"conv_conv_fc\" has no hidden linear layer",
        o.hidden_dropout);
  }
}

namespace {

/// The height and width that images have at least: the second pooling needs windows of 2 × 2 pixels.
int64_t least_pixels(const DigitNetworkOptions& o) { return 2 * (2 + o.kernel - 1) + o.kernel - 1; }

}  // namespace

void check_image_size(const DigitNetworkOptions& o, int64_t height, int64_t width) {
  const int64_t least = least_pixels(o);
  if (height >= least && width >= least) return;
  fail("images of {} × {} pixels are too small for model.kernel = {}, which needs {} × {}", height, width, o.kernel,
       least, least);
}

void ReadyImages::pad() {
  const auto images = static_cast<int64_t>(labels.size());
  // Not zeros: a norm without ε maps an image of zeros to NaN, and NaN times a gradient of 0 is NaN.
  repeat_first_image(pixels, images, full);
  for (PackedRows* rows : {&conv1, &conv2, &fc1}) {
    repeat_first_image(rows->tokens, images, full);
    repeat_first_image(rows->positions, images, full);
    repeat_first_image(rows->sentence_ids, images, full);
  }
  engine::pad(labels, full);
}

std::vector<Batch::Part> ReadyImages::parts() const {
  return {pixels,           conv1.positions, conv1.sentence_ids, conv2.positions, conv2.sentence_ids, fc1.positions,
          fc1.sentence_ids, labels};
}

// --- construction ----------------------------------------------------------------------------------------------------

struct DigitNetwork::Sizes {
  int64_t inputs = 0, outputs = 0;        // numbers of one image
  int64_t linear_in = 0, linear_out = 0;  // of the linear map
  int64_t fan_out = 0;
};

DigitNetwork::Layer DigitNetwork::make_layer(const Scope& scope, Role role, const Sizes& sizes) const {
  using Sites = DigitNetworkOptions::NormSites;
  const ChosenNorm norm = options_.norm.at(NormSite{}, /*fix_norm=*/false);
  const Sites sites = options_.norm_sites;
  const bool before_relu =
      role != Role::kOutput && (sites == Sites::kActivations || (sites == Sites::kLinear && role == Role::kHidden));
  Layer layer;
  if (sites == Sites::kInputs) layer.norm_in = scope.norm(norm, sizes.inputs);
  const bool as_torch = options_.init == DigitNetworkOptions::Init::kTorchDefault;
  const Initial uniform = as_torch ? torch_default(sizes.linear_in) : xavier_uniform(sizes.linear_in, sizes.fan_out);
  layer.linear = scope.linear(sizes.linear_out, sizes.linear_in, uniform, as_torch ? uniform : Initial{});
  if (before_relu) layer.norm_out = scope.norm(norm, sizes.outputs);
  if (role == Role::kConvolution) layer.dropout = scope.dropout(options_.conv_dropout);
  if (role == Role::kHidden) layer.dropout = scope.dropout(options_.hidden_dropout);
  return layer;
}

DigitNetwork::Convolution DigitNetwork::make_convolution(const Scope& scope, const ImageShape& in,
                                                         int64_t channels) const {
  const ImageShape windows = in.windows(options_.kernel);
  const ImageShape out = {windows.height, windows.width, channels};
  return {make_layer(scope, Role::kConvolution,
                     {.inputs = numbers_of(in),
                      .outputs = numbers_of(out),
                      .linear_in = windows.channels,
                      .linear_out = channels,
                      .fan_out = options_.kernel * options_.kernel * channels}),
          in, out};
}

DigitNetwork::Layer DigitNetwork::make_fully_connected(const Scope& scope, Role role, int64_t in, int64_t out) const {
  return make_layer(scope, role, {.inputs = in, .outputs = out, .linear_in = in, .linear_out = out, .fan_out = out});
}

DigitNetwork::DigitNetwork(Parameters& parameters, const DigitNetworkOptions& options, int64_t height, int64_t width,
                           uint32_t dropout_seed)
    : options_(options), parameters_(parameters) {
  const Scope root(parameters, dropout_seed);
  conv1_ = make_convolution(root.inside("conv1"), {height, width, 1}, options.conv1_channels);
  conv2_ = make_convolution(root.inside("conv2"), conv1_.out.pooled(), options.conv2_channels);
  const int64_t flat = numbers_of(conv2_.out.pooled());
  if (options.arch == DigitNetworkOptions::Arch::kPytorchExample) {
    hidden_ = make_fully_connected(root.inside("fc1"), Role::kHidden, flat, options.hidden);
    output_ = make_fully_connected(root.inside("fc2"), Role::kOutput, options.hidden, kDigits);
  } else {
    output_ = make_fully_connected(root.inside("fc"), Role::kOutput, flat, kDigits);
  }
}

// --- the forward pass ------------------------------------------------------------------------------------------------

ReadyImages DigitNetwork::ready(std::vector<float> pixels, std::vector<int32_t> labels,
                                std::span<const int32_t> images) const {
  const auto pixels_after = [](const Convolution& layer) { return static_cast<int32_t>(layer.out.pooled().pixels()); };
  ReadyImages ready;
  ready.pixels = std::move(pixels);
  ready.labels = std::move(labels);
  ready.conv1 = rows_without_tokens(images, pixels_after(conv1_));
  ready.conv2 = rows_without_tokens(images, pixels_after(conv2_));
  ready.fc1 = rows_without_tokens(images, 1);
  return ready;
}

Value DigitNetwork::convolve(const ForwardContext& context, const Convolution& layer, Value x,
                             const PackedRows& rows) const {
  Tape& tape = context.tape;
  x = norm_images(tape, x, layer.norm_in, numbers_of(layer.in));
  x = linear(tape, patches(tape, x, layer.in, options_.kernel), layer.linear.weight, layer.linear.bias);
  x = norm_images(tape, x, layer.norm_out, numbers_of(layer.out));
  // max(ReLU(x)) = ReLU(max(x)), and after pooling there are a quarter of the rows.
  return bias_relu_dropout(tape, max_pool(tape, x, layer.out), Value(), layer.dropout.at(context), rows);
}

Value DigitNetwork::logits(const ForwardContext& context, const ReadyImages& batch) const {
  Tape& tape = context.tape;
  Value x = input_rows(tape, batch.pixels, /*width=*/1, parameters_.values(), parameters_.row_type());
  x = convolve(context, conv1_, x, batch.conv1);
  x = convolve(context, conv2_, x, batch.conv2);
  x = reshape(tape, x, numbers_of(conv2_.out.pooled()));
  const auto fully_connected = [&](const Layer& layer) {
    if (layer.norm_in) x = norm_rows(tape, x, *layer.norm_in);
    x = linear(tape, x, layer.linear.weight, layer.linear.bias);
    if (layer.norm_out) x = norm_rows(tape, x, *layer.norm_out);
  };
  if (hidden_) {
    fully_connected(*hidden_);
    x = bias_relu_dropout(tape, x, Value(), hidden_->dropout.at(context), batch.fc1);
  }
  fully_connected(output_);
  return x;
}

int64_t parameter_count(const DigitNetworkOptions& options, int64_t height, int64_t width) {
  return declared<DigitNetwork>(options, height, width)->count();
}

DeclaredParameters declared_parameters(const DigitNetworkOptions& options) {
  const int64_t pixels = 2 * least_pixels(options);
  return declared<DigitNetwork>(options, pixels, pixels);
}

int64_t saved_numbers(const DigitNetworkOptions& o, int64_t height, int64_t width, int64_t images) {
  const auto convolution = [&](const ImageShape& in, int64_t channels) {
    const ImageShape windows = in.windows(o.kernel);
    return numbers_of(windows) + 3 * windows.pixels() * channels;  // the windows; the output, its norm and pooling
  };
  const ImageShape image = {height, width, 1};
  const ImageShape pooled = image.windows(o.kernel).pooled();
  const int64_t rows = convolution(image, o.conv1_channels) +
                       convolution({pooled.height, pooled.width, o.conv1_channels}, o.conv2_channels) + 3 * o.hidden;
  return 2 * images * rows;  // the rows and their gradients
}

}  // namespace tearless::engine
