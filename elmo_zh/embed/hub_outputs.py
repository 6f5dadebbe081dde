"""Build the outputs of TensorFlow Hub's ELMo modules from the layers of a model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_list
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _
from elmo_zh.text.segmenters import split_tokens

_EXPECTED = "a list of strings or of lists of words"


def hub_outputs(
    embed_tokens: Callable[[list[list[str]], str], list[NDArray[np.float32]]],
    num_layers: int,
    dimension: int,
    sentences: Sequence[str] | Sequence[Sequence[str]],
    sequence_len: Sequence[int] | None,
    layer_weights: Sequence[float] | None,
) -> dict[str, NDArray[Any]]:
    """Return the outputs of TensorFlow Hub's ELMo modules, with the same names, for a batch of B sentences.

    Args:
        embed_tokens: Returns the layers (L + 1, n, 2P) of each sentence; its second argument is the name of the
            function that the user called, for messages.
        num_layers: L + 1.
        dimension: 2P.
        sentences: Strings of words separated by single spaces (signature "default"), or lists of words, which may be
            padded with anything (signature "tokens").
        sequence_len: Number of words to use from the start of each list; default: all.
        layer_weights: Weights of the L + 1 layers in `elmo`; default: equal weights that sum to 1.

    Returns:
        `word_emb` (B, T, P); `lstm_outputs1`, `lstm_outputs2`, ... (B, T, 2P); `elmo`, the weighted sum of all layers
        (B, T, 2P); `default`, the mean of `elmo` over the words of each sentence (B, 2P); all float32, and zero where
        padded; `sequence_len`, int32 (B,).

    Raises:
        TypeError: If a single string is given, or anything but strings and lists of words.
        ElmoZhError: If `sequence_len` does not fit the sentences, or `layer_weights` the layers.
    """
    tokens: list[list[Any]] = [
        split_tokens(words) if isinstance(words, str) else list(check_list(words, "outputs", "sentences", _EXPECTED))
        for words in check_list(sentences, "outputs", "sentences", _EXPECTED)
    ]
    if sequence_len is not None:
        tokens = _cut(tokens, [int(length) for length in sequence_len])
    weights = np.full(num_layers, 1 / num_layers) if layer_weights is None else np.array(layer_weights)
    if weights.shape != (num_layers,):
        raise ElmoZhError(
            _("layer_weights has shape {shape}; expected ({num_layers},).").format(
                shape=weights.shape, num_layers=num_layers
            )
        )
    lengths = [len(words) for words in tokens]
    layers = np.zeros((num_layers, len(tokens), max(lengths, default=0), dimension), np.float32)
    for row, vectors in enumerate(embed_tokens(tokens, "outputs")):
        layers[:, row, : lengths[row]] = vectors
    elmo = np.tensordot(weights.astype(np.float32), layers, axes=1)
    mean = elmo.sum(axis=1) / np.maximum(lengths, 1).astype(np.float32)[:, None]
    lstm_outputs = {f"lstm_outputs{number}": layers[number] for number in range(1, num_layers)}
    return {
        "word_emb": layers[0, :, :, : dimension // 2],
        **lstm_outputs,
        "elmo": elmo,
        "default": mean,
        "sequence_len": np.array(lengths, np.int32),
    }


def _cut(tokens: Sequence[list[str]], lengths: Sequence[int]) -> list[list[str]]:
    if len(lengths) != len(tokens) or any(
        not 0 <= length <= len(words) for length, words in zip(lengths, tokens, strict=True)
    ):
        raise ElmoZhError(
            _("sequence_len is {lengths}; expected one length per sentence, from 0 to its word count.").format(
                lengths=lengths
            )
        )
    return [words[:length] for words, length in zip(tokens, lengths, strict=True)]
