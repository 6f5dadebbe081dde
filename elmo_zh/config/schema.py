"""Every setting of the pipeline, with its default, its meaning and its allowed values.

The defaults equal `configs/small.toml`. A field marked `free` cannot change any result (threads, logging, how often to
evaluate), so changing it never makes a finished stage out of date. The docstring under a field is its help text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from elmo_zh.choices import (
    DEVICES,
    EMBED_PRECISIONS,
    HDF5_COMPRESSIONS,
    HDF5_LAYOUTS,
    OUTPUT_FORMATS,
    POOL_METHODS,
    TRAIN_PRECISIONS,
    UNKNOWN_WAYS,
    VECTOR_DTYPES,
)
from elmo_zh.config.fields import at_least, choice, free, later, named_file, number, problems_of_fields, within
from elmo_zh.config.layers import Layers
from elmo_zh.config.text_section import TextConfig

# Stands for a number that training chooses by the number of epochs.
AUTOMATIC = -1.0
# The convolutions of the published ELMo models: width, number of filters.
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """The words that get a row in the vocabulary."""

    size: int = 30_000
    """Maximum number of vocabulary rows, including the three special tokens; 0 means no limit."""
    min_count: int = number(2, 1)
    """Minimum count of a word in the training text; rarer words become <UNK>. At 1, <UNK> may stay untrained."""
    refuse: str = later(r"\d{7}|\S@\S+\.\S")
    """Words that match this regular expression become <UNK> (default: long numbers, email addresses). Empty: none."""
    init: str = named_file()
    """A model bundle whose words are all kept; words of the text are added (docs/training.md). Empty: none."""
    words: str = named_file()
    """A file with the whole vocabulary, one word per line; no word is added or left out. Empty: none."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        if self.size != 0:
            yield from at_least("vocab.size", self.size, 4)
        yield from problems_of_fields(self, "vocab")
        try:
            re.compile(self.refuse)
        except re.error as error:
            yield f"vocab.refuse = {self.refuse!r} is not a regular expression ({error})"
        if self.init and self.words:
            yield "vocab.init and vocab.words cannot both be set: each determines the vocabulary; clear one of them"


@dataclass(frozen=True, kw_only=True)
class Word2vecConfig:
    """Initial token embeddings, trained with word2vec on the training text."""

    enabled: bool = True
    """Start the token embeddings from word2vec; false starts them at random."""
    vectors: str = named_file()
    """A file of pretrained vectors in word2vec's text format, to use instead of training vectors. Empty: none."""
    implementation: str = later(choice("auto", ("auto", "gensim", "torch")))
    """Library: gensim (Python 3.11 to 3.13), torch (one thread) or auto (gensim if it is installed)."""
    algorithm: str = choice("cbow", ("cbow", "skipgram"))
    """Algorithm: cbow (fast) or skipgram (about three times slower with gensim; often better on small corpora)."""
    window: int = number(5, 1)
    """Number of tokens on each side of a token that count as its context."""
    negative: int = number(5, 1)
    """Number of negative samples per predicted token."""
    epochs: int = number(0, 0)
    """Passes over the training text; 0 sets the number by text length, from 15 (short texts) to 5 (long texts)."""
    seed: int = number(1, 0, 2**31 - 1)
    """Seed of the initial vectors and of the sampling."""
    num_workers: int = number(1, 1)
    """Number of gensim threads. With more than one, training is faster but not reproducible."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from problems_of_fields(self, "word2vec")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The bidirectional language model (biLM)."""

    mode: str = later(choice("token", ("token", "character")))
    """Token layer: token (one vector per vocabulary row) or character (a CNN over UTF-8 bytes: no word is unknown)."""
    cell_dim: int = number(1024, 1)
    """Width of the LSTM cell (D)."""
    projection_dim: int = number(256, 1)
    """Width of the token embeddings and of the projected LSTM output (P); vectors have 2P numbers."""
    num_layers: int = number(2, 1)
    """Number of LSTM layers in each direction (L)."""
    cell_clip: float = number(3.0, 0)
    """Clip the cell state to plus or minus this value; 0 means no clipping."""
    projection_clip: float = number(3.0, 0)
    """Clip the projected output to plus or minus this value; 0 means no clipping."""
    skip_connections: bool = True
    """Add each LSTM layer's input to its output, from the second layer on."""
    tie_softmax: bool = True
    """Use the token embeddings as the weights of the softmax too. No effect in character mode."""
    character_slots: int = number(50, 3, 1000)
    """Character mode: maximum number of bytes per word, including two boundary marks; other ELMo programs read 50."""
    character_dim: int = number(16, 1)
    """Character mode: width of a byte embedding."""
    character_filters: tuple[tuple[int, int], ...] = PUBLISHED_FILTERS
    """Character mode: [width in bytes, number of filters] of each convolution."""
    highway_layers: int = number(2, 0)
    """Character mode: number of highway layers over the filters."""
    character_activation: str = choice("relu", ("relu", "tanh"))
    """Character mode: activation function of the filters, relu or tanh."""

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
        """The names of the settings that have no effect in this mode."""
        of_characters = [f.name for f in fields(self) if f.name.startswith(("character_", "highway_"))]
        return () if self.mode == "character" else tuple(of_characters)

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from problems_of_fields(self, "model")
        if not self.character_filters:
            yield "model.character_filters is empty; give [[width, number], ...], such as [[1, 32], [2, 64]]"
        for width, count in self.character_filters:
            yield from within("model.character_filters: filter width", width, 1, max(1, self.character_slots))
            yield from at_least("model.character_filters: number of filters", count, 1)
        if self.projection_dim > self.cell_dim:
            yield (
                f"model.projection_dim = {self.projection_dim} is above model.cell_dim = {self.cell_dim}:"
                " the projection cannot be wider than the cell"
            )


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Training of the biLM."""

    init: str = named_file()
    """A model bundle to start training from; vocabulary rows are matched by word. Empty: random initial weights."""
    max_tokens: int = number(3_000_000, 0)
    """Stop after this many predicted tokens (counted in one direction); 0 means no such limit."""
    epochs: float = number(10.0, 0)
    """Stop after this many passes over the training text; 0 means no such limit."""
    batch_size: int = number(64, 1)
    """Number of streams of packed sentences trained in parallel (B)."""
    unroll_steps: int = number(20, 1)
    """Number of tokens per stream in one step of truncated backpropagation (T)."""
    carry_state: bool = False
    """Carry the LSTM state across sentence ends (the published recipe) instead of starting each sentence from zero."""
    dropout: float = AUTOMATIC
    """Dropout probability for each layer's input and the top layer's output; -1 sets it by the number of epochs."""
    softmax: str = choice("sampled", ("sampled", "full"))
    """Softmax in training: sampled (log-uniform negative samples, fast) or full (every word at every step, exact)."""
    num_negatives: int = number(4096, 1)
    """Number of negative samples per step (S); if S is at least half the vocabulary, the full softmax is used."""
    softmax_bias: str = choice("unigram", ("unigram", "zero"))
    """Initial bias of the softmax: unigram (log of each word's share of the text) or zero (the published recipe)."""
    vector_scale: float = number(0.45, 0)
    """Centre the word2vec vectors and scale each one to this root mean square; 0 leaves the vectors unchanged."""
    train_embeddings: bool = True
    """Train the token layer; false keeps the initial embeddings (word2vec or random). Character mode needs true."""
    optimizer: str = choice("adamw", ("adamw", "adagrad"))
    """Optimizer: adamw (token and softmax tables still use Adagrad) or adagrad (for all weights, as published)."""
    learning_rate: float = number(0.004, 0)
    """Peak learning rate of the LSTMs."""
    table_learning_rate: float = number(0.5, 0)
    """Peak learning rate of the token and softmax tables."""
    adagrad_accumulator: float = number(0.001, 0)
    """Initial value of Adagrad's sums of squared gradients."""
    weight_decay: float = number(0.01, 0)
    """AdamW's weight decay for the LSTM matrices."""
    schedule: str = choice("linear", ("constant", "linear", "cosine"))
    """Learning rate after warm-up: constant, or linear or cosine decay over the whole token budget."""
    warmup_tokens: int = number(100_000, 0)
    """Number of tokens over which the learning rate rises from 0 to its peak; at most a tenth of the token budget."""
    final_learning_rate_share: float = number(0.1, 0.0, 1.0)
    """Final learning rate of the linear and cosine schedules, as a fraction of the peak."""
    max_grad_norm: float = number(10.0, above=0)
    """Clip the global norm of the gradient of (loss x unroll_steps) to this value."""
    shuffle: str = choice("sentences", ("sentences", "documents"))
    """Unit that is reshuffled in each epoch: sentences, or whole documents, each read in order by one stream."""
    seed: int = number(1, 0, 2**31 - 1)
    """Random seed for initial weights, sentence order, dropout and negative samples."""
    precision: str = choice("auto", TRAIN_PRECISIONS)
    """Precision of matrix products: float32, bfloat16 (everything else stays float32) or auto (the faster one)."""
    deterministic: bool = False
    """Make GPU training reproducible, at some cost in speed; CPU training is always reproducible."""
    max_minutes: float = free(0.0, least=0)
    """Stop after this many minutes, with a checkpoint and final figures; the same command goes on. 0: no limit."""
    device: str = free("auto", DEVICES)
    """Device to train on: auto (a GPU if there is one), cpu or cuda; training on a GPU is experimental."""
    num_threads: int = free(0, least=0)
    """Number of CPU threads; 0 leaves the choice to PyTorch."""
    tensorboard: bool = free(False)
    """Also write TensorBoard event files to RUN/tensorboard; needs the extra tensorboard."""
    log_every_steps: int = free(20, least=1)
    """Number of steps between two lines of metrics.jsonl."""
    evaluate_every_tokens: int = free(300_000, least=1)
    """Number of training tokens between measurements of held-out perplexity."""
    evaluate_sample_tokens: int = free(20_000, least=1)
    """Number of held-out tokens in each measurement during training; the final measurement uses all of them."""
    checkpoint_every_tokens: int = free(150_000, least=1)
    """Number of training tokens between checkpoints."""
    keep_checkpoints: int = free(2, least=1)
    """Number of most recent checkpoints to keep, besides the one with the lowest held-out perplexity."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from problems_of_fields(self, "train")
        if self.dropout != AUTOMATIC:
            yield from within("train.dropout", self.dropout, 0.0, 0.95)
        if self.max_tokens == 0 and self.epochs == 0:
            yield "train.max_tokens = 0 and train.epochs = 0: training would never end; set one of them above 0"


@dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    """Computing vectors from text."""

    layers: Layers = Layers("all")
    """Layers to write: all, average (their mean), top (last), mix (learned weights) or numbers, such as 0 or 1,2."""
    dtype: str = choice("float32", VECTOR_DTYPES)
    """Numeric type of the vectors: float32 or float16 (half the size)."""
    pool: str = choice("none", ("none", *POOL_METHODS))
    """Pooling into one vector per line: none, mean, max or first-last (the last state of each direction)."""
    format: str = choice("hdf5", OUTPUT_FORMATS)
    """File format: hdf5, npy (a folder of arrays), parquet or word2vec (text, a mean vector per word)."""
    layout: str = choice("lines", HDF5_LAYOUTS)
    """Layout of hdf5: lines (one dataset per line) or packed (one dataset for all lines, with a table of offsets)."""
    compression: str = choice("none", HDF5_COMPRESSIONS)
    """Compression of packed hdf5: none, gzip or lzf."""
    precision: str = choice("float32", EMBED_PRECISIONS)
    """Precision of matrix products: float32 (exact), or bfloat16 or int8 (CPU only), both faster on newer CPUs."""
    unknown: str = choice("auto", UNKNOWN_WAYS)
    """Read unknown words as <UNK> (unk) or as the known words in them (backoff); auto: backoff unless fine-tuning."""
    batch_tokens: int = free(4096, least=1)
    """Maximum number of tokens computed in one batch."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from problems_of_fields(self, "embed")


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
        """Yield one line for each value out of range or combination that cannot be trained, over all sections."""
        for section in (self.text, self.vocab, self.word2vec, self.model, self.train, self.embed):
            yield from section.problems()
        if self.model.mode == "character" and not self.train.train_embeddings:
            yield "train.train_embeddings = false needs model.mode = token: an untrained character CNN is useless"
        if self.model.is_tied and not self.train.train_embeddings:
            yield (
                "train.train_embeddings = false needs model.tie_softmax = false: the softmax has to be trained, and a"
                " tied softmax shares the token embeddings"
            )
