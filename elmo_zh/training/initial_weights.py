"""The weights that training from scratch starts from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.model.batches import iter_length_sorted
from elmo_zh.model.composition import Composition, mean_rows, parts_of
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.token_encoder import fill_rows
from elmo_zh.scoring.exact import BATCH_TOKENS, top_outputs
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, SPECIALS, Vocabulary
from elmo_zh.word2vec import WordVectors


def initialise_model(model: LanguageModel, seed: int, vectors: WordVectors | None, bias: Tensor | None = None) -> None:
    """Initialise all weights at random from the seed, then copy word vectors into the rows of their words.

    The vectors go into the token table or, in character mode, which has none, into the softmax. Rows without a word
    vector, including those of the special tokens, are drawn from a normal distribution with the mean and standard
    deviation of the copied rows in each dimension.
    """
    generator = model.initialise(seed)
    if vectors is not None and len(vectors.rows):
        table = model.bilm.token_table.weight if model.bilm.shape.characters is None else model.softmax.weight
        fill_rows(table, torch.from_numpy(vectors.rows), torch.from_numpy(vectors.vectors), generator)
    if bias is not None:
        with torch.no_grad():
            model.softmax.bias.copy_(bias)


def unigram_bias(counts: Sequence[int]) -> Tensor:
    """Return the log of each row's share of all tokens, float32, shape (V,), less the mean of these logs.

    With this bias the softmax starts near the unigram model instead of near equal probabilities. A row with count 0
    has the share of half a token. The mean makes no difference to the probabilities.
    """
    logs = np.log(np.maximum(np.asarray(counts, dtype=np.float64), 0.5))
    return torch.from_numpy((logs - logs.mean()).astype(np.float32))


def scale_vectors(vectors: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Return vectors less their mean, each with the root mean square `scale`; shape (n, P).

    word2vec gives frequent words vectors up to ten times as long as those of rare words. As rows of the softmax these
    predict worse than chance, and Adagrad hardly changes the length of a rare word's row. So only directions are kept.
    A vector that equals the mean has none, and becomes zero.
    """
    centred = vectors - vectors.mean(axis=0, keepdims=True)
    sizes = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
    scaled: NDArray[np.float32] = np.divide(scale * centred, sizes, out=np.zeros_like(centred), where=sizes > 0)
    return scaled


@dataclass(frozen=True)
class RowMoves:
    """The origin of each row of a new vocabulary."""

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
        """Fill all rows of a table: copied, composed by a `Composition`, or drawn as `fill_rows` does."""
        rows, old_rows = (torch.tensor(list(numbers)) for numbers in (self.kept.keys(), self.kept.values()))
        fill_rows(table.view(len(table), -1), rows, old[old_rows].view(len(rows), -1), generator)
        if not self.composed:
            return
        if old.ndim == 2:
            composition = Composition.learn(old, self.old)
            composed = torch.stack([composition.row(parts) for parts in self.composed.values()])
        else:
            composed = mean_rows(old[:, None], self.composed.values())[:, 0]
        table[torch.tensor(list(self.composed))] = composed

    def counts(self) -> dict[str, int]:
        """Return the number of words by origin, without the special tokens."""
        kept = len(self.kept) - len(SPECIALS)
        return {"words_kept": kept, "words_composed": len(self.composed), "words_drawn": self.num_drawn}


# Predictions of each direction that the expected shares are measured on, and the seed of their choice.
_SAMPLE_PREDICTIONS, _SAMPLE_SEED = 2000, 20_180_215


@torch.no_grad()
def calibrate_bias(model: LanguageModel, store: IdStore, counts: Tensor, is_new: Tensor) -> None:
    """Add to the softmax's bias the log of each row's share of the text over the share that the model expects.

    Follows the fast marginal adaptation of Kneser, Peters and Klakow (1997), with an exponent of 1. What the model
    expects is the mean of its predictions on a sample of the text. The share of a known word is that of Witten and Bell
    (1991): with T different rows among N counted tokens, the model's expectation counts as T more tokens, so that words
    which a small text happens to lack keep some probability. For a new word only its count is used: what the model
    expects of it means nothing. `counts`, float64, and `is_new` have one entry for each row.
    """
    # Not zero, so that its log is finite.
    expected = expected_shares(model, store).clamp(min=torch.finfo(torch.float64).tiny)
    counts = counts.clone()
    # Each direction predicts only one of the two marks of a sentence.
    counts[[BEGIN_ID, END_ID]] /= 2
    seen = (counts > 0).sum()
    known = torch.where(is_new, 0.0, expected)
    # A new word without a count, such as one of a given list, counts as half an occurrence.
    shares = (torch.where(is_new, counts.clamp(min=0.5), counts) + seen * known) / (counts.sum() + seen)
    model.softmax.bias.add_((shares.log() - expected.log()).to(model.softmax.bias))


@torch.no_grad()
def expected_shares(model: LanguageModel, store: IdStore) -> Tensor:
    """Return the mean probability of each row over both directions' predictions on a sample, float64, shape (V,)."""
    total = torch.zeros(len(model.softmax.bias), dtype=torch.float64)
    sentences = _sample(store)
    for batch in iter_length_sorted([len(sentence) + 2 for sentence in sentences], BATCH_TOKENS):
        chosen = [sentences[index] for index in batch]
        tops = top_outputs(model.bilm, store.lexicon, chosen, model.bilm.start_state(len(chosen)))
        predicting = tops.hidden[:, tops.predicts].flatten(0, 1)
        for hidden in torch.split(predicting, model.softmax.rows_at_a_time):
            scores = hidden @ model.softmax.weight.T + model.softmax.bias
            total += scores.double().softmax(dim=1).sum(dim=0)
    return total / total.sum()


def _sample(store: IdStore) -> list[np.ndarray[Any, Any]]:
    """Return random training sentences with enough predictions, always the same of one text."""
    order = np.random.default_rng(_SAMPLE_SEED).permutation(len(store.train))
    found: list[np.ndarray[Any, Any]] = []
    missing = _SAMPLE_PREDICTIONS
    for index in order:
        if missing <= 0:
            break
        found.append(store.train[int(index)])
        missing -= len(found[-1]) + 1
    return found
