"""Every setting of the pipeline, with its default, its meaning and its allowed range.

The defaults equal `configs/small.toml`. A field marked `_free` cannot change any result (threads,
logging, how often to evaluate), so changing it never makes a finished stage stale.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SEGMENTERS = ("jieba", "rjieba", "whitespace", "character")
# Of the published ELMo models.
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
CORPUS_FORMATS = ("auto", "text", "csv", "tsv", "json", "jsonl", "wikidump", "wikiextractor", "html", "markdown")
BAD_BYTES = ("strict", "skip-line", "replace")
DOCUMENTS = ("file", "paragraph", "line")
# Of section text: how a corpus is read and cleaned, of no concern to a model that is made from it.
READING = ("format", "field", "encoding", "bad_bytes", "document", "shard_bytes")
CLEANING = (
    "remove_markup", "repair_mojibake", "min_han_share", "max_line_characters",
    "drop_duplicates", "duplicate_min_characters", "boilerplate_copies",
)  # fmt: skip
CORPUS = (*READING, *CLEANING)
# Of section text: what came after the first bundles and records, which are as if it stood there with its default.
LATER = ("script",)
POOLS = ("none", "mean", "max", "first-last")
FORMATS = ("hdf5", "npy", "parquet", "jsonl", "word2vec")
LAYOUTS = ("lines", "packed")
EMBED_PRECISIONS = ("float32", "bfloat16", "int8")
UNKNOWN_WAYS = ("unk", "backoff")
COMPRESSIONS = ("none", "gzip", "lzf")
UNICODE_FORMS = ("none", "NFC", "NFD", "NFKC", "NFKD")
SCRIPTS = ("none", "simplified", "traditional")


def _free(default: Any) -> Any:
    """Return a dataclass field that does not affect results."""
    return field(default=default, metadata={"affects_result": False})


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if value not in allowed:
        yield f"{name} = {value!r} is not one of {', '.join(allowed)}"


def _is_encoding(name: str) -> bool:
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # half of a character, or no letter of it
    return True


def _at_least(name: str, value: float, least: float) -> Iterator[str]:
    if not value >= least:
        yield f"{name} = {value} is below {least}"


def _within(name: str, value: float, least: float, most: float) -> Iterator[str]:
    if not least <= value <= most:
        yield f"{name} = {value} is not within {least} and {most}"


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """From raw text to sentences and tokens; recorded in the bundle, so that embedding does the same."""

    segmenter: str = "jieba"
    """How sentences become tokens: jieba, rjieba (the same, faster; an extra), whitespace (as given) or character."""
    jieba_hmm: bool = True
    """Let the hidden Markov model of jieba and rjieba find words that are not in their dictionary."""
    user_dictionary: str = ""
    """A jieba user dictionary (word, optional count, optional tag a line); it is copied into the run. Empty: none."""
    split_sentences: bool = True
    """Split lines into sentences after the characters 。！？!?… ; false takes each line as one sentence."""
    unicode_form: str = "NFC"
    """Unicode normalisation form, or none. NFKC and NFKD turn ， into an ASCII comma and … into three dots."""
    fold_fullwidth: bool = True
    """Turn full-width Latin letters and digits (Ａ, １) into ASCII; punctuation stays Chinese."""
    remove_control: bool = True
    """Remove control, zero-width and direction characters (Unicode categories Cc and Cf, white space excepted)."""
    script: str = "none"
    """Convert all text to simplified or traditional characters (OpenCC's t2s and s2t; an extra), or none."""
    collapse_whitespace: bool = True
    """Turn every run of Unicode white space (U+3000, U+00A0, tabs, ...) into one space; trim the ends."""
    heldout_share: float = 0.01
    """Share of the paragraphs, chosen by a hash of their text, that is held out and never trained on."""
    heldout_min_sentences: int = 200
    """Hold out at least this many sentences (at most a tenth of them all)."""
    heldout_max_tokens: int = 200_000
    """Hold out at most this many tokens."""
    num_workers: int = _free(0)
    """Processes that segment, count and encode at the same time; 0 means one for each processor core."""
    format: str = "auto"
    """Format of files: auto (name, content), text, csv, tsv, json, jsonl, wikidump, wikiextractor, html or markdown."""
    field: str = ""
    """Where CSV and JSON have the text: columns (by name or number), keys or paths such as data.text. Empty: found."""
    encoding: str = "auto"
    """Encoding of files: auto (found for each: UTF-8, 16 and 32, GB18030, Big5), or a name, such as gb18030."""
    bad_bytes: str = "skip-line"
    """Lines with bytes that do not decode: skip-line (left out, counted), replace (by U+FFFD) or strict (an error)."""
    document: str = "file"
    """What is one document of plain text, as counted: file, paragraph (between empty lines) or line."""
    remove_markup: bool = True
    """Take remnants of HTML, wikitext and BBCode out of a corpus: known tags and pairs only, so a<b and 《》 stay."""
    repair_mojibake: bool = False
    """Repair text of a corpus that was decoded wrongly, by ftfy (an extra); false only counts lines that look so."""
    min_han_share: float = 0.0
    """Drop lines with a smaller share of Han characters among their letters and digits, such as 0.3; 0 keeps all."""
    max_line_characters: int = 0
    """Drop lines longer than this, such as 20000; 0 keeps all: a book may be one line, split into sentences."""
    drop_duplicates: bool = True
    """Leave out lines that stood before, in whatever file: copies teach nothing new and are learned by heart."""
    duplicate_min_characters: int = 20
    """Lines shorter than this are never duplicates: people do say the same short thing again."""
    boilerplate_copies: int = 0
    """Leave out every line, short or long, that stands more often than this in the whole corpus; 0: none."""
    shard_bytes: int = 0
    """Bytes of text in one shard of the work; 0 chooses by the size of the corpus (1 to 16 MiB)."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        yield from _one_of("text.segmenter", self.segmenter, SEGMENTERS)
        if self.user_dictionary and self.segmenter in ("whitespace", "character"):
            yield (
                f"text.user_dictionary = {self.user_dictionary} is for jieba and rjieba; text.segmenter ="
                f" {self.segmenter} has no dictionary. Leave one of them out"
            )
        yield from _one_of("text.unicode_form", self.unicode_form, UNICODE_FORMS)
        yield from _one_of("text.script", self.script, SCRIPTS)
        yield from _within("text.heldout_share", self.heldout_share, 0.0, 0.5)
        yield from _at_least("text.heldout_min_sentences", self.heldout_min_sentences, 0)
        yield from _at_least("text.heldout_max_tokens", self.heldout_max_tokens, 0)
        yield from _at_least("text.num_workers", self.num_workers, 0)
        yield from _one_of("text.format", self.format, CORPUS_FORMATS)
        yield from _one_of("text.bad_bytes", self.bad_bytes, BAD_BYTES)
        yield from _one_of("text.document", self.document, DOCUMENTS)
        yield from _within("text.min_han_share", self.min_han_share, 0.0, 1.0)
        yield from _at_least("text.max_line_characters", self.max_line_characters, 0)
        yield from _at_least("text.duplicate_min_characters", self.duplicate_min_characters, 1)
        yield from _at_least("text.boilerplate_copies", self.boilerplate_copies, 0)
        if self.shard_bytes != 0:
            yield from _within("text.shard_bytes", self.shard_bytes, 2**16, 2**30)
        if self.encoding != "auto" and not _is_encoding(self.encoding):
            yield f"text.encoding = {self.encoding!r} is no encoding that Python knows, such as utf-8, gb18030 or big5"


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
            yield from _at_least("vocab.size", self.size, 4)
        yield from _at_least("vocab.min_count", self.min_count, 1)
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
        yield from _one_of("word2vec.algorithm", self.algorithm, ("cbow", "skipgram"))
        for name in ("window", "negative", "epochs", "num_workers"):
            yield from _at_least(f"word2vec.{name}", getattr(self, name), 1)
        yield from _within("word2vec.seed", self.seed, 0, 2**31 - 1)


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
        yield from _one_of("model.mode", self.mode, ("token", "character"))
        yield from _one_of("model.character_activation", self.character_activation, ("relu", "tanh"))
        yield from _within("model.character_slots", self.character_slots, 3, 1000)
        yield from _at_least("model.character_dim", self.character_dim, 1)
        yield from _at_least("model.highway_layers", self.highway_layers, 0)
        if not self.character_filters:
            yield "model.character_filters is empty; give [[width, number], ...], such as [[1, 32], [2, 64]]"
        for width, count in self.character_filters:
            yield from _within("a width of model.character_filters", width, 1, max(1, self.character_slots))
            yield from _at_least("a number of model.character_filters", count, 1)
        for name in ("cell_dim", "projection_dim", "num_layers"):
            yield from _at_least(f"model.{name}", getattr(self, name), 1)
        if self.projection_dim > self.cell_dim:
            yield (
                f"model.projection_dim = {self.projection_dim} is above model.cell_dim = {self.cell_dim}:"
                " a projection makes the cell's output narrower"
            )
        for name in ("cell_clip", "projection_clip"):
            yield from _at_least(f"model.{name}", getattr(self, name), 0)


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
    device: str = _free("auto")
    """auto (a GPU if there is one), cpu or cuda."""
    num_threads: int = _free(0)
    """Processor threads; 0 leaves the choice to PyTorch."""
    tensorboard: bool = _free(False)
    """Write TensorBoard event files (RUN/tensorboard) too; needs the extra: pip install "elmo-zh[tensorboard]"."""
    log_every_steps: int = _free(20)
    """Steps between lines in metrics.jsonl."""
    evaluate_every_tokens: int = _free(300_000)
    """Trained tokens between measurements of held-out perplexity."""
    evaluate_sample_tokens: int = _free(20_000)
    """Held-out tokens in each measurement on the way; the last one uses all of them."""
    checkpoint_every_tokens: int = _free(150_000)
    """Trained tokens between checkpoints."""
    keep_checkpoints: int = _free(2)
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
            yield from _one_of(f"train.{name}", getattr(self, name), allowed)
        positive = ["batch_size", "unroll_steps", "num_negatives", "log_every_steps"]
        positive += ["evaluate_every_tokens", "evaluate_sample_tokens", "checkpoint_every_tokens", "keep_checkpoints"]
        for name in positive:
            yield from _at_least(f"train.{name}", getattr(self, name), 1)
        zero_or_more = ["max_tokens", "epochs", "warmup_tokens", "weight_decay", "num_threads"]
        zero_or_more += ["learning_rate", "table_learning_rate", "adagrad_accumulator"]
        for name in zero_or_more:
            yield from _at_least(f"train.{name}", getattr(self, name), 0)
        yield from _within("train.dropout", self.dropout, 0.0, 0.95)
        yield from _within("train.final_learning_rate_share", self.final_learning_rate_share, 0.0, 1.0)
        yield from _within("train.seed", self.seed, 0, 2**31 - 1)
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
    batch_tokens: int = _free(4096)
    """Tokens computed together."""

    def problems(self) -> Iterator[str]:
        """Yield one line for each value out of range."""
        if not self.layers.isdecimal():
            choices = ("all", "average", "top", "mix", "or a layer's number")
            yield from _one_of("embed.layers", self.layers, choices)
        yield from _one_of("embed.dtype", self.dtype, ("float32", "float16"))
        yield from _one_of("embed.pool", self.pool, POOLS)
        yield from _one_of("embed.format", self.format, FORMATS)
        yield from _one_of("embed.layout", self.layout, LAYOUTS)
        yield from _one_of("embed.precision", self.precision, EMBED_PRECISIONS)
        yield from _one_of("embed.unknown", self.unknown, UNKNOWN_WAYS)
        yield from _one_of("embed.compression", self.compression, COMPRESSIONS)
        yield from _at_least("embed.batch_tokens", self.batch_tokens, 1)


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    text: TextConfig = TextConfig()
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
