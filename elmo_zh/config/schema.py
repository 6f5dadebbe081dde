"""Every setting of the pipeline, with its default, its meaning and its allowed values; section text is imported.

The defaults equal `configs/small.toml`. Changing a field marked `free` (such as the device, the number of threads or
how often to evaluate) does not make a finished stage out of date.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from elmo_zh.choices import DEVICES, EMBED_PRECISIONS, OUTPUT_FORMATS, POOL_METHODS
from elmo_zh.config.declare import Layers, Section, declare, is_pattern
from elmo_zh.config.text_section import TextConfig
from elmo_zh.errors import ConfigError
from elmo_zh.language import N_

# Stands for a number that training chooses by the number of epochs.
AUTOMATIC = -1.0
# The convolutions of the published ELMo models: width, number of filters.
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@dataclass(frozen=True, kw_only=True)
class VocabConfig(Section):
    """The words that get a row in the vocabulary."""

    size: int = declare(
        30_000,
        "Maximum number of vocabulary rows, including the three special tokens; 0 means no limit.",
        least=4,
        also=0,
    )
    min_count: int = declare(
        2,
        "Minimum count of a word in the training text; rarer words become <UNK>. At 1, <UNK> may stay untrained.",
        least=1,
    )
    refuse: str = declare(
        r"\d{7}|\S@\S+\.\S",
        "Words that match this regular expression become <UNK> (default: long numbers, email addresses). Empty: none.",
        check=is_pattern,
        expects=N_("a regular expression"),
        later=True,
    )
    init: str = declare(
        "",
        "Model whose words and [model] settings are kept; words of the text are added (docs/training.md). Default:"
        " none.",
        is_file=True,
    )
    words: str = declare(
        "",
        "File with the whole vocabulary, one word per line. Default: the most frequent words of the text.",
        is_file=True,
    )

    def contradictions(self) -> Iterator[str]:
        """Yield a sentence for values that contradict each other."""
        if self.init and self.words:
            yield str(ConfigError.needs(f"vocab.words = {self.words}", 'vocab.init = ""'))


@dataclass(frozen=True, kw_only=True)
class Word2vecConfig(Section):
    """The initial token embeddings: word2vec vectors, trained on the text or read from a file, or random numbers."""

    enabled: bool = declare(
        True, "Start the token embeddings (in character mode, the softmax) from word2vec; false starts them at random."
    )
    vectors: str = declare(
        "", "File of pretrained vectors in word2vec's text format. Default: vectors trained on the text.", is_file=True
    )
    implementation: str = declare(
        "auto",
        "Library: gensim (Python 3.11 to 3.13), torch (one thread) or auto (gensim if it is installed).",
        choices=("auto", "gensim", "torch"),
        later=True,
    )
    algorithm: str = declare(
        "cbow",
        "Algorithm: cbow (fast) or skipgram (about three times slower with gensim; often better on small corpora).",
        choices=("cbow", "skipgram"),
    )
    window: int = declare(5, "Maximum number of context tokens on each side of a token.", least=1)
    negative: int = declare(5, "Number of negative samples per predicted token.", least=1)
    epochs: int = declare(
        0,
        "Passes over the training text; 0 sets the number by text length, from 15 (short texts) to 5 (long texts).",
        least=0,
    )
    seed: int = declare(1, "Random seed.", least=0, most=2**31 - 1)
    num_workers: int = declare(
        1, "Number of gensim threads. With more than one, training is faster but not reproducible.", least=1
    )


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section):
    """The bidirectional language model (biLM)."""

    mode: str = declare(
        "token",
        "Token layer: token (one vector per vocabulary row) or character (a CNN over UTF-8 bytes: no word is unknown).",
        choices=("token", "character"),
        later=True,
    )
    cell_dim: int = declare(1024, "Width of the LSTM cell (D).", least=1)
    projection_dim: int = declare(
        256, "Width of the token embeddings and of the projected LSTM output (P); vectors have 2P numbers.", least=1
    )
    num_layers: int = declare(2, "Number of LSTM layers in each direction (L).", least=1)
    cell_clip: float = declare(3.0, "Clip the LSTM cell to plus or minus this value; 0 means no clipping.", least=0)
    projection_clip: float = declare(
        3.0, "Clip the projected LSTM output to plus or minus this value; 0 means no clipping.", least=0
    )
    skip_connections: bool = declare(True, "Add each LSTM layer's input to its output, from the second layer on.")
    tie_softmax: bool = declare(
        True, "Use the token embeddings as the weights of the softmax too. No effect in character mode."
    )
    character_slots: int = declare(
        50,
        "Character mode: maximum number of bytes per word, including two boundary marks; AllenNLP reads 50.",
        least=3,
        most=1000,
    )
    character_dim: int = declare(16, "Character mode: width of a byte embedding.", least=1)
    character_filters: tuple[tuple[int, int], ...] = declare(
        PUBLISHED_FILTERS, "Character mode: [width in bytes, number of filters] of each convolution."
    )
    highway_layers: int = declare(2, "Character mode: number of highway layers after the convolutions.", least=0)
    character_activation: str = declare(
        "relu", "Character mode: activation function of the filters, relu or tanh.", choices=("relu", "tanh")
    )

    @property
    def is_tied(self) -> bool:
        """Whether the softmax uses the token embeddings."""
        return self.tie_softmax and self.mode == "token"

    @property
    def num_slots(self) -> int | None:
        """Number of character slots per word; None in token mode."""
        return self.character_slots if self.mode == "character" else None

    @property
    def unused(self) -> tuple[str, ...]:
        """The names of the settings for character mode, which have no effect in token mode; empty in character mode."""
        of_characters = [f.name for f in fields(self) if f.name.startswith(("character_", "highway_"))]
        return () if self.mode == "character" else tuple(of_characters)

    def contradictions(self) -> Iterator[str]:
        """Yield a sentence for filters that are not allowed, and for a projection that is wider than the cell."""
        filters = self.character_filters
        if not filters or not all(1 <= width <= self.character_slots and number >= 1 for width, number in filters):
            pairs = f"[[1<=WIDTH<={self.character_slots}, NUMBER>=1], ...]"
            written = f"model.character_filters = {[list(pair) for pair in filters]}"
            yield str(ConfigError.unexpected(written, pairs))
        if self.projection_dim > self.cell_dim:
            width = self.projection_dim
            yield str(ConfigError.needs(f"model.projection_dim = {width}", f"model.cell_dim >= {width}"))


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section):
    """Training of the biLM."""

    init: str = declare(
        "",
        "Model to start training from; vocabulary rows are matched by word. Default: none.",
        is_file=True,
    )
    max_tokens: int = declare(
        3_000_000, "Stop after this many predicted tokens (counted in one direction); 0 means no such limit.", least=0
    )
    epochs: float = declare(10.0, "Stop after this many passes over the training text; 0 means no such limit.", least=0)
    batch_size: int = declare(64, "Number of streams of packed sentences trained in parallel (B).", least=1)
    unroll_steps: int = declare(
        20, "Number of tokens per stream in one step of truncated backpropagation (T).", least=1
    )
    carry_state: bool = declare(
        False,
        "Carry the LSTM state across sentence ends (the published recipe) instead of starting each sentence from zero.",
    )
    dropout: float = declare(
        AUTOMATIC,
        "Dropout probability for each layer's input and the top layer's output; -1 sets it by the number of epochs.",
        least=0.0,
        most=0.95,
        also=AUTOMATIC,
    )
    softmax: str = declare(
        "sampled",
        "Softmax in training: sampled (log-uniform negative samples, fast) or full (every word at every step, exact).",
        choices=("sampled", "full"),
    )
    num_negatives: int = declare(
        4096,
        "Number of negative samples per step (S); if S is at least half the vocabulary, the full softmax is used.",
        least=1,
    )
    softmax_bias: str = declare(
        "unigram",
        "Initial bias of the softmax: unigram (log of each word's share of the text) or zero (the published recipe).",
        choices=("unigram", "zero"),
    )
    vector_scale: float = declare(
        0.45,
        "Centre the word2vec vectors and scale each one to this root mean square; 0 leaves the vectors unchanged.",
        least=0,
    )
    train_embeddings: bool = declare(
        True,
        "Train the token layer; false keeps the initial embeddings, and requires token mode and"
        " model.tie_softmax = false.",
    )
    optimizer: str = declare(
        "adamw",
        "Optimizer: adamw (token and softmax tables still use Adagrad) or adagrad (for all weights, as published).",
        choices=("adamw", "adagrad"),
    )
    learning_rate: float = declare(0.004, "Peak learning rate of the LSTMs and the character CNN.", least=0)
    table_learning_rate: float = declare(0.5, "Peak learning rate of the token and softmax tables.", least=0)
    adagrad_accumulator: float = declare(0.001, "Initial value of Adagrad's sums of squared gradients.", least=0)
    weight_decay: float = declare(
        0.01, "AdamW's weight decay for the LSTMs and the character CNN; biases are exempt.", least=0
    )
    schedule: str = declare(
        "linear",
        "Learning rate after warm-up: constant, or linear or cosine decay until the end of training.",
        choices=("constant", "linear", "cosine"),
    )
    warmup_tokens: int = declare(
        100_000,
        "Number of tokens over which the learning rate rises from 0 to its peak; at most a tenth of the token budget.",
        least=0,
    )
    final_learning_rate_share: float = declare(
        0.1, "Final learning rate of the linear and cosine schedules, as a fraction of the peak.", least=0.0, most=1.0
    )
    max_grad_norm: float = declare(
        10.0, "Clip the global norm of the gradient of (loss x unroll_steps) to this value.", above=0
    )
    seed: int = declare(1, "Random seed.", least=0, most=2**31 - 1)
    precision: str = declare(
        "auto",
        "Precision of matrix products: float32, bfloat16 (everything else stays float32) or auto (the faster one).",
        choices=("auto", "float32", "bfloat16"),
    )
    deterministic: bool = declare(
        False, "Make GPU training reproducible, at some cost in speed; CPU training does not need this."
    )
    max_minutes: float = declare(
        0.0,
        "Stop after this many minutes, with a checkpoint and final figures; repeat the command to continue."
        " 0: no limit.",
        least=0,
        free=True,
    )
    device: str = declare(
        "auto",
        "Device: auto (a GPU if there is one), cpu or cuda; using a GPU is experimental. Default: auto.",
        choices=DEVICES,
        free=True,
    )
    num_threads: int = declare(0, "Number of CPU threads; 0 leaves the choice to PyTorch.", least=0, free=True)
    log_every_steps: int = declare(20, "Number of steps between two lines of metrics.jsonl.", least=1, free=True)
    evaluate_every_tokens: int = declare(
        300_000, "Number of training tokens between measurements of held-out perplexity.", least=1, free=True
    )
    evaluate_sample_tokens: int = declare(
        20_000,
        "Number of held-out tokens in each measurement during training; the final measurement uses all of them.",
        least=1,
        free=True,
    )
    checkpoint_every_tokens: int = declare(
        150_000,
        "Number of training tokens between checkpoints; each measurement of held-out perplexity also saves one.",
        least=1,
        free=True,
    )
    keep_checkpoints: int = declare(
        2,
        "Number of most recent checkpoints to keep, besides the one with the lowest held-out perplexity.",
        least=1,
        free=True,
    )

    def contradictions(self) -> Iterator[str]:
        """Yield a sentence if neither max_tokens nor epochs limits the training."""
        if self.max_tokens == 0 and self.epochs == 0:
            yield str(ConfigError.needs("train.max_tokens = 0", "train.epochs > 0"))


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Section):
    """Computing vectors from text."""

    layers: Layers = declare(
        Layers("all"),
        "Layers to write: all, average (their mean), top (last), mix (learned weights) or numbers, such as 0 or 1,2.",
        metavar="all|average|top|mix|N,...",
    )
    dtype: str = declare(
        "float32", "Numeric type of the vectors: float32 or float16 (half the size).", choices=("float32", "float16")
    )
    pool: str = declare(
        "none",
        "Pooling into one vector per line or sentence: none, mean, max or first-last (the last state of each"
        " direction).",
        choices=("none", *POOL_METHODS),
    )
    format: str = declare("hdf5", "File format: {choices}.", choices=OUTPUT_FORMATS)
    precision: str = declare(
        "float32",
        "Precision of matrix products: float32 (exact), bfloat16, or int8 (on a CPU only); the last two are less exact,"
        " but faster on newer processors.",
        choices=EMBED_PRECISIONS,
    )
    unknown: str = declare(
        "auto",
        "Read unknown words as <UNK> (unk) or as the known words in them (backoff); auto means backoff.",
        choices=("auto", "unk", "backoff"),
    )
    batch_tokens: int = declare(
        4096, "Maximum number of tokens per batch; a longer sentence is a batch of its own.", least=1, free=True
    )


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    text: TextConfig = field(default_factory=TextConfig)
    vocab: VocabConfig = VocabConfig()
    word2vec: Word2vecConfig = Word2vecConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    embed: EmbedConfig = EmbedConfig()

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each value that is not allowed or contradicts another one, over all sections."""
        for section in fields(self):
            yield from getattr(self, section.name).problems()
        if self.model.mode == "character" and not self.train.train_embeddings:
            # An untrained CNN is useless.
            yield str(ConfigError.needs("train.train_embeddings = false", "model.mode = token"))
        if self.model.is_tied and not self.train.train_embeddings:
            # The softmax has to be trained, and a tied one shares the token embeddings.
            yield str(ConfigError.needs("train.train_embeddings = false", "model.tie_softmax = false"))
