"""The weights that training from scratch starts from."""

import torch

from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.token_encoder import fill_rows
from elmo_zh.word2vec import WordVectors


def initialise_model(model: LanguageModel, seed: int, vectors: WordVectors | None) -> None:
    """Initialise all weights at random from the seed, then copy word vectors into the rows of their words.

    The vectors go into the token table or, in character mode, which has none, into the softmax. Rows without a word
    vector, including those of the special tokens, are drawn from a normal distribution with the mean and standard
    deviation of the copied rows in each dimension.
    """
    generator = model.initialise(seed)
    if vectors is not None and len(vectors.rows):
        table = model.bilm.token_table.weight if model.bilm.shape.characters is None else model.softmax.weight
        fill_rows(table, torch.from_numpy(vectors.rows), torch.from_numpy(vectors.vectors), generator)
