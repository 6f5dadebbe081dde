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
    """Return the token layer's inputs for ids of any shape; in character mode, each distinct word occurs once."""
    if lexicon.num_slots is None:
        return TokenInputs(ids)
    distinct, places = torch.unique(ids, return_inverse=True)
    spellings = torch.from_numpy(lexicon.character_ids(distinct.tolist()))
    return TokenInputs(places, spellings, torch.from_numpy(lexicon.targets(distinct.numpy())))


def mark_sentence(ids: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the ids preceded by <S> and followed by </S>, shape (n + 2,)."""
    marked = np.empty(len(ids) + 2, np.int64)
    marked[0], marked[1:-1], marked[-1] = BEGIN_ID, ids, END_ID
    return marked


def iter_length_sorted(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of indexes, longest sentences first, each of at most `batch_tokens` with padding, or of one."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad_sentences(sentences: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Return ids (int64) and mask (bool), both of shape (B, T), for sentences marked with <S> and </S>."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = pad_sequence([torch.from_numpy(sentence) for sentence in sentences], batch_first=True)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


def build_lexicon(bilm: BiLM, vocabulary: Vocabulary | None, alphabet: Alphabet) -> Lexicon:
    """Return the lexicon that maps words to a model's input ids; without a vocabulary, a character-mode one."""
    characters = bilm.shape.characters
    num_slots = characters.num_slots if characters else None
    return Lexicon(vocabulary or Vocabulary(SPECIALS), num_slots, alphabet=alphabet)
