"""Before training goes on with another text: the softmax expects each word as often as the text has it."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.model.batches import iter_length_sorted
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.training.scoring import BATCH_TOKENS, top_outputs
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID

# Predictions of each direction that the expected shares are measured on, and the seed of their choice.
_SAMPLE_PREDICTIONS, _SAMPLE_SEED = 2000, 20_180_215


@torch.no_grad()
def calibrate_bias(model: LanguageModel, store: IdStore, counts: Tensor, is_new: Tensor) -> None:
    """Add to the softmax's bias the log of each row's share of the text over the share that the model expects.

    Follows the fast marginal adaptation of Kneser, Peters and Klakow (1997), with an exponent of 1. What the model
    expects is the mean of its predictions on a sample of the text. The share of a known word is that of Witten and Bell
    (1991): with T different rows among N counted tokens, the model's expectation counts as T more tokens, so that words
    which a small text happens to lack keep some probability. For a new word only its count is used: what the model
    expects of it means nothing.

    Args:
        model: Changed in place.
        store: The text.
        counts: Count of each row in the text, float64, shape (V,).
        is_new: True for rows of words that the model does not know, shape (V,).
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
