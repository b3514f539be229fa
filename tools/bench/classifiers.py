"""The classifiers of the engine in plain PyTorch, for peer.py: task = "classify" and task = "digits"."""

from layers import FIRST_WORD, CommonSettings, EncoderLayer, F, Side, TrainSettings, nn, sinusoids, torch

CLASSES = 2


class Settings(CommonSettings):
    """The part of a settings file of task = "classify" that matters here, and defaults as in docs/engine_settings.md."""

    def __init__(self, file, settings, vocabulary):
        super().__init__(file, settings, vocabulary, {"model.dropout.word": (0.0, 0)}, (128, 512, 4))
        dropout = settings.get("model", {}).get("dropout", {})
        self.layers = settings.get("model", {}).get("layers", 4)
        self.residual_dropout, self.attention_dropout, self.relu_dropout, self.pooled_dropout = (
            dropout.get(site, 0.2) for site in ("residual", "attention", "relu", "pooled"))


class Batch:
    def __init__(self, lengths, vocabulary, packed, device, generator):
        sentences = [torch.randint(FIRST_WORD, vocabulary, (rows,), generator=generator).tolist() for rows in lengths]
        self.source = Side(sentences, packed, device)
        self.labels = torch.tensor([i % CLASSES for i in range(len(lengths))], device=device)
        rows = torch.tensor(lengths, device=device)
        # [N, T] or [N, 1, S]: the mean over a sentence's rows is a matmul with these weights.
        self.weights = (torch.arange(int(rows.max()), device=device) < rows[:, None]).float() / rows[:, None]


class SentenceClassifier(nn.Module):
    """Pre-norm encoder with a final norm; mean of the rows, dropout, linear."""

    def __init__(self, o, longest):
        super().__init__()
        self.options = o
        self.embedding = nn.Embedding(o.vocabulary, o.d)
        self.layers = nn.ModuleList(EncoderLayer(o) for _ in range(o.layers))
        self.norm, self.output = nn.LayerNorm(o.d), nn.Linear(o.d, CLASSES)
        self.dropout, self.pooled_dropout = nn.Dropout(o.residual_dropout), nn.Dropout(o.pooled_dropout)
        self.register_buffer("places", sinusoids(longest, o.d), persistent=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=o.d**-0.5)

    def forward(self, batch):
        """→ the mean cross-entropy."""
        source = batch.source
        x = self.embedding(source.tokens) * self.options.d**0.5 + F.embedding(source.positions, self.places)
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, source)
        rows = source.side_by_side(self.norm(x))  # [N, S, D]
        pooled = (batch.weights[:, None, :] @ rows)[:, 0]
        return F.cross_entropy(self.output(self.pooled_dropout(pooled)), batch.labels, label_smoothing=self.options.smoothing)


class DigitSettings(TrainSettings):
    """The part of a settings file of task = "digits" that matters here."""

    def __init__(self, file, settings):
        super().__init__(file, settings, {
            "model.arch": ("pytorch_example", "pytorch_example"), "model.norm_sites": ("activations", "activations"),
            "model.init": ("torch_default", "torch_default"), "train.schedule.kind": ("invsqrt", "nowarmup")})
        model = settings.get("model", {})
        self.channels, self.hidden = (model.get("conv1_channels", 20), model.get("conv2_channels", 50)), model.get("hidden", 500)
        self.learning_rate = settings["train"]["schedule"].get("lr", 3e-4)

    def rate(self, update):
        return self.learning_rate


class DigitBatch:
    def __init__(self, images, device, generator):
        self.pixels = torch.randn((images, 1, 28, 28), generator=generator).to(device)
        self.labels = (torch.arange(images) % 10).to(device)


class DigitNetwork(nn.Module):
    """The MNIST example of PyTorch in January 2019, with LayerNorm before each ReLU."""

    def __init__(self, o):
        super().__init__()
        self.options = o
        first, second = o.channels
        self.conv1, self.norm1 = nn.Conv2d(1, first, 5), nn.LayerNorm((first, 24, 24))
        self.conv2, self.norm2 = nn.Conv2d(first, second, 5), nn.LayerNorm((second, 8, 8))
        self.fc1, self.norm3, self.fc2 = nn.Linear(16 * second, o.hidden), nn.LayerNorm(o.hidden), nn.Linear(o.hidden, 10)

    def forward(self, batch):
        """→ the mean cross-entropy."""
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(batch.pixels))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = F.relu(self.norm3(self.fc1(x.flatten(1))))
        return F.cross_entropy(self.fc2(x), batch.labels, label_smoothing=self.options.smoothing)
