"""Padded batches of whole sentences, and the lexicon that maps their words to input ids."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmo_zh.model.bilm import BiLM
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.vocabulary.lexicon import Alphabet, Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, SPECIALS, Vocabulary


def build_inputs(lexicon: Lexicon, ids: Tensor) -> TokenInputs:
    """Return the token layer's inputs for ids of any shape; in character mode, each distinct word is spelled once."""
    if lexicon.num_slots is None:
        return TokenInputs(ids)
    distinct, places = torch.unique(ids, return_inverse=True)
    spellings = torch.from_numpy(lexicon.character_ids(distinct.tolist()))
    return TokenInputs(places, spellings, torch.from_numpy(lexicon.targets(distinct.numpy())))


def mark_sentence(ids: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return a sentence's ids with <S> before and </S> after them, int64, shape (n + 2,)."""
    marked = np.empty(len(ids) + 2, np.int64)
    marked[0], marked[1:-1], marked[-1] = BEGIN_ID, ids, END_ID
    return marked


def iter_length_sorted(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the indexes of the sentences in each batch, longest first.

    A batch has at most `batch_tokens` tokens, counting padding; a longer sentence has a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad_sentences(sentences: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Pad sentences that have <S> and </S>; return their ids (int64) and a mask (bool), both of shape (B, T)."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = pad_sequence([torch.from_numpy(sentence) for sentence in sentences], batch_first=True)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


def build_lexicon(bilm: BiLM, vocabulary: Vocabulary | None, alphabet: Alphabet) -> Lexicon:
    """Return the lexicon that maps words to a model's input ids; only character mode works without a vocabulary."""
    characters = bilm.shape.characters
    num_slots = characters.num_slots if characters else None
    return Lexicon(vocabulary or Vocabulary(SPECIALS), num_slots, alphabet=alphabet)
