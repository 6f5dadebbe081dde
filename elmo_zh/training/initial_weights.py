"""The weights that training from scratch starts from."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.token_encoder import fill_rows
from elmo_zh.word2vec import WordVectors


def initialise_model(model: LanguageModel, seed: int, vectors: WordVectors | None, bias: Tensor | None = None) -> None:
    """Initialise all weights at random from the seed, then copy word vectors into the rows of their words.

    The vectors go into the token table or, in character mode, which has none, into the softmax. Rows without a word
    vector, including those of the special tokens, are drawn from a normal distribution with the mean and standard
    deviation of the copied rows in each dimension.

    Args:
        model: Model to initialise in place.
        seed: Random seed.
        vectors: Word vectors, scaled as they should be, or None to leave all rows random.
        bias: Initial bias of the softmax, float32, shape (V,); None leaves it zero.
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
