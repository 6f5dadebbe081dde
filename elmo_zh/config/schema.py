"""Every setting of the pipeline, with its default, its meaning and its allowed range.

The defaults equal `configs/small.toml`. A field marked `free` cannot change any result (threads,
logging, how often to evaluate), so changing it never makes a finished stage stale.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from elmo_zh.config.checks import at_least, free, one_of, within
from elmo_zh.config.text_section import TextConfig

# Of the published ELMo models.
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
POOLS = ("none", "mean", "max", "first-last")
FORMATS = ("hdf5", "npy", "parquet", "jsonl", "word2vec")
LAYOUTS = ("lines", "packed")
EMBED_PRECISIONS = ("float32", "bfloat16", "int8")
UNKNOWN_WAYS = ("unk", "backoff")
COMPRESSIONS = ("none", "gzip", "lzf")


@dataclass(frozen=True, kw_only=True)
class VocabConfig:
    """Which words get a row of their own."""

    size: int = 30_000
    """Rows of the vocabulary at most, the three special tokens included; 0 means no limit."""
    min_count: int = 2
    """Words seen less often in the training text are unknown; above 1, so that <UNK> is trained as well."""
    init: str = ""
    """A model bundle whose words are all kept; those of the text are added as far as `size` has room. Empty: none."""
    words: str = ""
    """A file with one word a line that is the whole vocabulary: none is added, none left out. Empty: none."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        if self.size != 0:
            yield from at_least("vocab.size", self.size, 4)
        yield from at_least("vocab.min_count", self.min_count, 1)
        if self.init and self.words:
            yield "vocab.init and vocab.words are both given, and each says which words there are; empty one of them"


@dataclass(frozen=True, kw_only=True)
class Word2vecConfig:
    """Initial token embeddings, by gensim's Word2Vec over the training text."""

    enabled: bool = True
    """Start the token embeddings from word2vec; false starts them at random."""
    vectors: str = ""
    """A file of ready vectors in word2vec's text format to take instead of training them. Empty: none."""
    algorithm: str = "cbow"
    """cbow (fast) or skipgram (about three times slower, often better on little text)."""
    window: int = 5
    """Tokens on either side that count as context."""
    negative: int = 5
    """Negative samples for each token."""
    epochs: int = 5
    """Passes over the training text."""
    seed: int = 1
    """Seed of the initial vectors and of the sampling."""
    num_workers: int = 1
    """Threads. More than one is faster, but the vectors then depend on thread timing and are not reproducible."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from one_of("word2vec.algorithm", self.algorithm, ("cbow", "skipgram"))
        for name in ("window", "negative", "epochs", "num_workers"):
            yield from at_least(f"word2vec.{name}", getattr(self, name), 1)
        yield from within("word2vec.seed", self.seed, 0, 2**31 - 1)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The bidirectional language model (biLM)."""

    mode: str = "token"
    """token (one vector a vocabulary row) or character (a CNN over the word's UTF-8 bytes: no word is unknown)."""
    cell_dim: int = 1024
    """Width of the LSTM cell (D)."""
    projection_dim: int = 256
    """Width of the token embeddings and of the projected LSTM output (P); vectors have 2P numbers."""
    num_layers: int = 2
    """LSTM layers in each direction (L)."""
    cell_clip: float = 3.0
    """Keep the cell state within plus and minus this; 0 means no clipping."""
    projection_clip: float = 3.0
    """Keep the projected output within plus and minus this; 0 means no clipping."""
    skip_connections: bool = True
    """Add each LSTM layer's input to its output, from the second layer on."""
    tie_softmax: bool = True
    """Use the token embeddings as the softmax weights too: it learns more per token. Character mode has none to use."""
    character_slots: int = 50
    """Character mode: bytes of a word that are read, its two marks included; other programs read 50."""
    character_dim: int = 16
    """Character mode: width of a byte's embedding."""
    character_filters: tuple[tuple[int, int], ...] = PUBLISHED_FILTERS
    """Character mode: [width in bytes, number of filters] of each convolution."""
    highway_layers: int = 2
    """Character mode: highway layers over the filters."""
    character_activation: str = "relu"
    """Character mode: relu or tanh over the filters."""

    @property
    def is_tied(self) -> bool:
        """Whether the softmax uses the token embeddings."""
        return self.tie_softmax and self.mode == "token"

    @property
    def num_slots(self) -> int | None:
        """Character slots of each word; None in token mode."""
        return self.character_slots if self.mode == "character" else None

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from one_of("model.mode", self.mode, ("token", "character"))
        yield from one_of("model.character_activation", self.character_activation, ("relu", "tanh"))
        yield from within("model.character_slots", self.character_slots, 3, 1000)
        yield from at_least("model.character_dim", self.character_dim, 1)
        yield from at_least("model.highway_layers", self.highway_layers, 0)
        if not self.character_filters:
            yield "model.character_filters is empty; give [[width, number], ...], such as [[1, 32], [2, 64]]"
        for width, count in self.character_filters:
            yield from within("a width of model.character_filters", width, 1, max(1, self.character_slots))
            yield from at_least("a number of model.character_filters", count, 1)
        for name in ("cell_dim", "projection_dim", "num_layers"):
            yield from at_least(f"model.{name}", getattr(self, name), 1)
        if self.projection_dim > self.cell_dim:
            yield (
                f"model.projection_dim = {self.projection_dim} is above model.cell_dim = {self.cell_dim}:"
                " a projection makes the cell's output narrower"
            )
        for name in ("cell_clip", "projection_clip"):
            yield from at_least(f"model.{name}", getattr(self, name), 0)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the biLM is trained."""

    init: str = ""
    """A model bundle whose weights training starts from, rows moved by word, instead of chance. Empty: none."""
    max_tokens: int = 3_000_000
    """Stop after this many predicted tokens (one direction); 0 means no such limit."""
    epochs: float = 10.0
    """Stop after this many passes over the training text; 0 means no such limit."""
    batch_size: int = 64
    """Streams of packed sentences trained side by side (B)."""
    unroll_steps: int = 20
    """Tokens of each stream in one step of truncated backpropagation (T)."""
    carry_state: bool = False
    """Carry the LSTM state over sentence ends (the published recipe) instead of starting each from zero."""
    dropout: float = 0.1
    """Share of each layer's inputs and of the top output that is dropped in training."""
    softmax: str = "sampled"
    """sampled (log-uniform negatives, fast) or full (every word at every step, exact)."""
    num_negatives: int = 4096
    """Negative samples a step (S), shared by all its predictions; from half of the vocabulary on, softmax is full."""
    train_embeddings: bool = True
    """Train the token layer; false freezes it as word2vec (or chance) made it. Character mode needs true."""
    optimizer: str = "adamw"
    """adamw (AdamW on the LSTMs, Adagrad on the token and softmax tables) or adagrad (on all: the published recipe)."""
    learning_rate: float = 0.004
    """Highest learning rate of the LSTMs."""
    table_learning_rate: float = 0.5
    """Highest learning rate of the token and softmax tables."""
    adagrad_accumulator: float = 0.1
    """Adagrad's initial sum of squares."""
    weight_decay: float = 0.01
    """AdamW's weight decay of the LSTM matrices."""
    schedule: str = "linear"
    """Course of the learning rate after warm-up: constant, linear or cosine decay over the whole budget."""
    warmup_tokens: int = 100_000
    """Tokens over which the learning rate rises from zero (at most a tenth of the budget)."""
    final_learning_rate_share: float = 0.1
    """Share of the highest learning rate that is left at the end of linear and cosine."""
    max_grad_norm: float = 10.0
    """Clip the global norm of the gradient of (loss x unroll_steps) at this."""
    shuffle: str = "sentences"
    """What is shuffled anew in each epoch: sentences, or documents, whose sentences one stream then reads in order."""
    seed: int = 1
    """Seed of initial weights, sentence order, dropout and negative samples."""
    precision: str = "auto"
    """Of matrix products: float32, bfloat16 (states, weights, sums stay float32) or auto: bfloat16 where it is fast."""
    deterministic: bool = False
    """Have a GPU give the same numbers each time, more slowly; a processor does so anyway."""
    device: str = free("auto")
    """auto (a GPU if there is one), cpu or cuda."""
    num_threads: int = free(0)
    """Processor threads; 0 leaves the choice to PyTorch."""
    tensorboard: bool = free(False)
    """Write TensorBoard event files (RUN/tensorboard) too; needs `make train EXTRAS=tensorboard`."""
    log_every_steps: int = free(20)
    """Steps between lines in metrics.jsonl."""
    evaluate_every_tokens: int = free(300_000)
    """Trained tokens between measurements of held-out perplexity."""
    evaluate_sample_tokens: int = free(20_000)
    """Held-out tokens in each measurement on the way; the last one uses all of them."""
    checkpoint_every_tokens: int = free(150_000)
    """Trained tokens between checkpoints."""
    keep_checkpoints: int = free(2)
    """How many of the latest checkpoints to keep, beside the best by held-out perplexity."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        choices = {
            "softmax": ("sampled", "full"),
            "shuffle": ("sentences", "documents"),
            "optimizer": ("adamw", "adagrad"),
            "schedule": ("constant", "linear", "cosine"),
            "precision": ("auto", "float32", "bfloat16"),
            "device": ("auto", "cpu", "cuda"),
        }
        for name, allowed in choices.items():
            yield from one_of(f"train.{name}", getattr(self, name), allowed)
        positive = ["batch_size", "unroll_steps", "num_negatives", "log_every_steps"]
        positive += ["evaluate_every_tokens", "evaluate_sample_tokens", "checkpoint_every_tokens", "keep_checkpoints"]
        for name in positive:
            yield from at_least(f"train.{name}", getattr(self, name), 1)
        zero_or_more = ["max_tokens", "epochs", "warmup_tokens", "weight_decay", "num_threads"]
        zero_or_more += ["learning_rate", "table_learning_rate", "adagrad_accumulator"]
        for name in zero_or_more:
            yield from at_least(f"train.{name}", getattr(self, name), 0)
        yield from within("train.dropout", self.dropout, 0.0, 0.95)
        yield from within("train.final_learning_rate_share", self.final_learning_rate_share, 0.0, 1.0)
        yield from within("train.seed", self.seed, 0, 2**31 - 1)
        if not self.max_grad_norm > 0:
            yield f"train.max_grad_norm = {self.max_grad_norm} is not above 0"
        if self.max_tokens == 0 and self.epochs == 0:
            yield "train.max_tokens = 0 and train.epochs = 0: training would never end; give one of them"


@dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    """How text becomes vectors."""

    layers: str = "all"
    """all (every layer), average (their mean), top (the last), mix (learned weights) or a layer's number from 0."""
    dtype: str = "float32"
    """float32 or float16 (half the size)."""
    pool: str = "none"
    """none (a vector for each token), or one for each line: mean, max or first-last (where each direction ends)."""
    format: str = "hdf5"
    """hdf5, npy (a folder of arrays), parquet, jsonl (text) or word2vec (text, the mean vector of each word)."""
    layout: str = "lines"
    """Of hdf5: lines (one dataset for each line) or packed (one for all, with a table of offsets)."""
    compression: str = "none"
    """Of packed hdf5: none, gzip or lzf."""
    precision: str = "float32"
    """Of matrix products: float32; bfloat16 or int8 (on a processor) are faster on newer ones and less exact."""
    unknown: str = "unk"
    """Token mode, words outside the vocabulary: unk (the vector of <UNK>) or backoff (the mean of their pieces')."""
    batch_tokens: int = free(4096)
    """Tokens computed together."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        if not self.layers.isdecimal():
            choices = ("all", "average", "top", "mix", "or a layer's number")
            yield from one_of("embed.layers", self.layers, choices)
        yield from one_of("embed.dtype", self.dtype, ("float32", "float16"))
        yield from one_of("embed.pool", self.pool, POOLS)
        yield from one_of("embed.format", self.format, FORMATS)
        yield from one_of("embed.layout", self.layout, LAYOUTS)
        yield from one_of("embed.precision", self.precision, EMBED_PRECISIONS)
        yield from one_of("embed.unknown", self.unknown, UNKNOWN_WAYS)
        yield from one_of("embed.compression", self.compression, COMPRESSIONS)
        yield from at_least("embed.batch_tokens", self.batch_tokens, 1)


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
        """Yield one line for each value out of range, over all sections."""
        for section in (self.text, self.vocab, self.word2vec, self.model, self.train, self.embed):
            yield from section.problems()
        if self.model.mode == "character" and not self.train.train_embeddings:
            yield "train.train_embeddings = false needs model.mode = token: a character CNN left to chance says nothing"
        if self.model.is_tied and not self.train.train_embeddings:
            yield (
                "train.train_embeddings = false needs model.tie_softmax = false: the softmax has to be trained, and a"
                " tied one is the token embeddings"
            )
