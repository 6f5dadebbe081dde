"""Padded batches of whole sentences as PyTorch tensors."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.vocabulary.lexicon import Lexicon


def build_inputs(lexicon: Lexicon, ids: Tensor) -> TokenInputs:
    """Return the token layer's inputs for ids of any shape; in character mode, each distinct word is spelled once."""
    if lexicon.num_slots is None:
        return TokenInputs(ids)
    distinct, places = torch.unique(ids, return_inverse=True)
    spellings = torch.from_numpy(lexicon.character_ids(distinct.tolist()))
    return TokenInputs(places, spellings, torch.from_numpy(lexicon.targets(distinct.numpy())))


def pad_sentences(sentences: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Pad sentences that have <S> and </S>; return their ids (int64) and a mask (bool), both of shape (B, T)."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = pad_sequence([torch.from_numpy(sentence) for sentence in sentences], batch_first=True)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]
