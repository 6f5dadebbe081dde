"""The weights that training starts from: random ones and any word vectors, or a bundle's (adaptation).

From a bundle, rows of the token table and of the softmax are copied by word, never by position; all other weights are
copied as they are, and then the softmax's bias is fitted to the new text. The initial weights are kept in the run
(RUN/start), so the bundle is no longer needed once training has started.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.read import Bundle, load_bundle, model_line
from elmo_zh.bundle.weights import load_tensors, save_tensors
from elmo_zh.bundle.word2vec_table import Word2Vec, write_table
from elmo_zh.config import Config
from elmo_zh.errors import RunError
from elmo_zh.id_store import IdStore
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.model.language_model import LanguageModel, weights_of
from elmo_zh.model.token_layer import fill_rows
from elmo_zh.reader.lstm import iter_length_sorted
from elmo_zh.reader.token_layer import Composition, mean_rows, parts_of
from elmo_zh.run.files import atomic_path, read_json, write_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import source_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.scoring import BATCH_TOKENS, read_outputs
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, SPECIALS, Vocabulary, load_counts
from elmo_zh.word2vec.vectors import WordVectors, has_spread, load_word_vectors


def new_weights(run: RunDir, config: Config, vocabulary: Vocabulary) -> Callable[[LanguageModel], None]:
    """Return a function that fills a model with random weights and, if set, the run's word vectors and unigram bias."""

    def fill(model: LanguageModel) -> None:
        vectors = bias = None
        if config.word2vec.enabled:
            vectors = load_word_vectors(run.word2vec, vocabulary, config.model.projection_dim)
            if config.train.vector_scale and len(vectors.rows):
                vectors = replace(vectors, vectors=scale_vectors(vectors.vectors, config.train.vector_scale))
        if config.train.softmax_bias == "unigram":
            bias = unigram_bias(load_counts(run.vocab_counts, vocabulary))
        initialise_model(model, config.train.seed, vectors, bias)

    return fill


def initialise_model(model: LanguageModel, seed: int, vectors: WordVectors | None, bias: Tensor | None = None) -> None:
    """Initialise all weights at random from the seed, then copy any word vectors to their words' rows, and any bias.

    The vectors go into the token table or, in character mode, into the softmax; `fill_rows` draws the other rows.
    Vectors that are all identical are not used, because training cannot recover from a table of equal rows.
    """
    generator = model.initialise(seed)
    if vectors is not None and has_spread(vectors.vectors):
        table = model.bilm.token_table.weight if model.bilm.shape.characters is None else model.softmax.weight
        fill_rows(table, torch.from_numpy(vectors.rows), torch.from_numpy(vectors.vectors), generator)
    if bias is not None:
        with torch.no_grad():
            model.softmax.bias.copy_(bias)


def unigram_bias(counts: Sequence[int]) -> Tensor:
    """Return the log of each row's share of all tokens, float32, shape (V,), minus the mean log.

    With this bias the softmax starts near the unigram model. A row with count 0 counts as half a token.
    """
    logs = np.log(np.maximum(np.asarray(counts, dtype=np.float64), 0.5))
    return torch.from_numpy((logs - logs.mean()).astype(np.float32))


def scale_vectors(vectors: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Return vectors minus their mean, each scaled to a root mean square of `scale`; shape (n, P).

    word2vec gives frequent words vectors up to ten times as long as the vectors of rare words. As rows of the softmax,
    such vectors predict far worse than word frequencies alone, and Adagrad hardly changes the length of a rare row.
    """
    centred = vectors - vectors.mean(axis=0, keepdims=True)
    sizes = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
    scaled: NDArray[np.float32] = np.divide(scale * centred, sizes, out=np.zeros_like(centred), where=sizes > 0)
    return scaled


@dataclass(frozen=True)
class RowMoves:
    """Where each row of a new vocabulary comes from."""

    old: Vocabulary  # The vocabulary that the rows come from
    kept: Mapping[int, int]  # New row to the old row of the same word, including the special tokens
    composed: Mapping[int, Sequence[int]]  # New row to the old rows of the known words in it, one for each occurrence
    num_drawn: int  # Number of words with neither, whose rows are drawn at random

    @classmethod
    def build(cls, old: Vocabulary, new: Vocabulary) -> "RowMoves":
        """Match two vocabularies by word."""
        words = {word: row for row, word in enumerate(new.tokens) if row >= len(SPECIALS)}
        kept = {row: row for row in range(len(SPECIALS))}
        kept |= {row: old.encode([word])[0] for word, row in words.items() if word in old}
        parts = parts_of(old, (word for word in words if word not in old))
        composed = {words[word]: rows for word, rows in parts.items()}
        return cls(old, kept, composed, len(new) - len(kept) - len(composed))

    @torch.no_grad()
    def fill(self, table: Tensor, old: Tensor, generator: torch.Generator) -> None:
        """Fill a table, (V, P), or bias, (V,): copy rows, compose them, or draw them as in `fill_rows`."""
        rows, old_rows = (torch.tensor(list(numbers)) for numbers in (self.kept.keys(), self.kept.values()))
        fill_rows(table.view(len(table), -1), rows, old[old_rows].view(len(rows), -1), generator)
        if not self.composed:
            return
        if old.ndim == 2:
            composition = Composition.learn(old.numpy(), self.old)
            composed = np.stack([composition.row(parts) for parts in self.composed.values()]).astype(np.float64)
        else:
            composed = mean_rows(old[:, None].numpy(), self.composed.values())[:, 0]
        table[torch.tensor(list(self.composed))] = torch.from_numpy(composed).to(table)

    def counts(self) -> dict[str, int]:
        """Return the number of words by origin, without the special tokens."""
        kept = len(self.kept) - len(SPECIALS)
        return {"words_kept": kept, "words_composed": len(self.composed), "words_drawn": self.num_drawn}


# Most numbers of the array of outputs whose scores are computed at a time.
_MOST_NUMBERS = 2**16
# Predictions in each direction on which expected shares are measured, and the seed that selects the sentences.
_SAMPLE_PREDICTIONS, _SAMPLE_SEED = 2000, 20_180_215


@torch.no_grad()
def calibrate_bias(model: LanguageModel, store: IdStore, counts: Tensor, is_new: Tensor) -> None:
    """Add to the softmax bias the log ratio of each row's share of the text to the share that the model expects.

    Follows the fast marginal adaptation of Kneser, Peters and Klakow (1997), with an exponent of 1. The model's
    expectation is its mean prediction on a sample of the text. Shares of known words follow Witten and Bell (1991):
    with T different rows among N counted tokens, the model's expectation counts as T more tokens, so that words absent
    from a small text by chance keep some probability. For a new word only its count is used, because the model's
    expectation for it is meaningless. `counts`, float64, and `is_new` have one entry for each row.
    """
    # Never zero, so that the log is finite.
    expected = expected_shares(model, store).clamp(min=torch.finfo(torch.float64).tiny)
    counts = counts.clone()
    # Each direction predicts only one of the two marks of a sentence.
    counts[[BEGIN_ID, END_ID]] /= 2
    seen = (counts > 0).sum()
    known = torch.where(is_new, 0.0, expected)
    # A new word without a count, such as one from a given list, counts as half an occurrence.
    shares = (torch.where(is_new, counts.clamp(min=0.5), counts) + seen * known) / (counts.sum() + seen)
    model.softmax.bias.add_((shares.log() - expected.log()).to(model.softmax.bias))


@torch.no_grad()
def expected_shares(model: LanguageModel, store: IdStore) -> Tensor:
    """Return each row's mean probability over predictions in both directions on a sample, float64, shape (V,)."""
    weights, sentences = weights_of(model.bilm, model.softmax), _sample(store)
    total = np.zeros(len(model.softmax.bias))
    for batch in iter_length_sorted([len(sentence) + 2 for sentence in sentences], BATCH_TOKENS):
        state = weights.reader.start_state(len(batch))
        outputs = read_outputs(weights, store.lexicon, [sentences[index] for index in batch], state)
        for hidden in np.array_split(np.concatenate(outputs.hidden), 1 + outputs.hidden.size // _MOST_NUMBERS):
            scores = hidden @ weights.arrays["softmax.weight"].T + weights.arrays["softmax.bias"]
            shares = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
            total += (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
    return torch.from_numpy(total / total.sum())


def _sample(store: IdStore) -> list[np.ndarray[Any, Any]]:
    """Draw training sentences with about _SAMPLE_PREDICTIONS predictions, always the same ones from the same text."""
    order = np.random.default_rng(_SAMPLE_SEED).permutation(len(store.train))
    predictions = np.cumsum(store.train.lengths(order) + 1)
    return [store.train[int(index)] for index in order[: np.searchsorted(predictions, _SAMPLE_PREDICTIONS) + 1]]


# The parameters with one row for each word of the vocabulary.
_BY_WORD = ("bilm.token_table.weight", "softmax.weight", "softmax.bias")


@torch.no_grad()
def move_weights(model: LanguageModel, bundle: Bundle, vocabulary: Vocabulary, seed: int) -> RowMoves:
    """Fill a model with a bundle's weights, and return where its rows came from."""
    generator = model.initialise(seed)
    source = {name: torch.from_numpy(array) for name, array in bundle.weights.arrays.items()}
    moves = RowMoves.build(bundle.vocabulary or Vocabulary(SPECIALS), vocabulary)
    for name, tensor in model.named_tensors().items():
        if name not in _BY_WORD:
            tensor.copy_(source[name])
        elif name in source:
            moves.fill(tensor, source[name], generator)
    return moves


@dataclass(frozen=True)
class Start:
    """The bundle weights that a run's training starts from, as stored in RUN/start."""

    path: Path  # Folder with start.json, model.safetensors and, if the bundle has them, word2vec vectors
    # Path, digest, origin and training tokens of the bundle; description of the model; counts of rows by origin.
    info: dict[str, Any]

    @property
    def word2vec(self) -> Path:
        """The path of the word2vec vectors; the file exists only if the bundle has them."""
        return self.path / "word2vec.hdf5"

    def fill(self, model: LanguageModel) -> None:
        """Load the initial weights into a model."""
        model.load_named_tensors(load_tensors(self.path / "model.safetensors"))

    def report(self, reporter: Reporter) -> None:
        """Report which bundle the weights come from, and how many words keep their rows."""
        message = _(
            "Started from {model}: {words_kept} words keep their rows, {words_composed} get rows computed from the"
            " known words they contain, and {words_drawn} get random rows."
        )
        rows = {name: f"{number:,}" for name, number in self.info["rows"].items()}
        reporter.note(message.format(model=self.info["bundle"], **rows))


def load_start(run: RunDir) -> Start | None:
    """Return the weights that a run's training started from, or None if it did not start from a bundle."""
    path = run.start / "start.json"
    if not path.exists():
        return None
    try:
        return Start(run.start, read_json(path, dict[str, Any]))
    except ValueError as error:
        again = command("train", "--run", run.path, "--force")
        raise RunError.damaged(path, error, again) from None


def prepare_start(run: RunDir, config: Config, vocabulary: Vocabulary, store: IdStore, reporter: Reporter) -> Start:
    """Return the weights selected by train.init, made from the bundle unless the run already has them."""
    path = Path(config.train.init)
    digest = source_digest(run, "train", "train.init", BundleLayout(path).info)
    model = LanguageModel.from_settings(config.model, len(vocabulary))
    known = load_start(run)
    if known and known.info["digest"] == digest and known.info["model"] == model.describe(vocabulary.digest()):
        return known
    bundle = load_bundle(path)
    reporter.note(model_line(bundle))
    moves = move_weights(model, bundle, vocabulary, config.train.seed)
    if bundle.vocabulary is not None and not moves.counts()["words_kept"]:
        message = _("{path} and {vocabulary} share no words. Use a model for the language and script of the text.")
        raise RunError(message.format(path=path, vocabulary=run.vocab))
    counts = torch.tensor(load_counts(run.vocab_counts, vocabulary), dtype=torch.float64)
    is_new = torch.ones(len(vocabulary), dtype=torch.bool)
    is_new[list(moves.kept)] = False
    calibrate_bias(model, store, counts, is_new)
    return _save_start(run, model, bundle, vocabulary, moves)


def _save_start(run: RunDir, model: LanguageModel, bundle: Bundle, vocabulary: Vocabulary, moves: RowMoves) -> Start:
    info = {
        "bundle": str(bundle.path),
        "digest": bundle.digest,
        "tokens": bundle.training.get("tokens"),
        "origin": bundle.origin,
        "model": model.describe(vocabulary.digest()),
        "rows": moves.counts(),
    }
    with atomic_path(run.start) as unfinished:
        unfinished.mkdir()
        save_tensors(model.named_tensors(), unfinished / "model.safetensors")
        if BundleLayout(bundle.path).word2vec.is_file():
            vectors = Word2Vec.load(bundle.path).of_words(vocabulary.tokens[len(SPECIALS) :])
            write_table(Start(unfinished, info).word2vec, vectors.table)
        write_json(unfinished / "start.json", info)
    return Start(run.start, info)
