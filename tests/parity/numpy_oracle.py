"""An independent NumPy reading of a bundle: what the product's vectors and perplexities are compared with.

Written from the text of the file formats and sharing no code with `elmo_zh`, so that a mistake has to be made twice to
pass. The LSTM layers are in `numpy_bilm`, the character CNN is in `numpy_character_cnn`.

Shape letters: n tokens, P projection, L layers, V vocabulary.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from parity.numpy_bilm import Array, Bilm, load_bilm, read_array, run_bilm
from parity.numpy_character_cnn import CharacterCnn, load_character_cnn, sentence_vectors

SPECIALS = ("<S>", "</S>", "<UNK>")
END_MARK = "</W>"
ESCAPES = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\\": "\\"}
NUM_UNICODE_SCALARS = 1_112_064


@dataclass(frozen=True)
class Bundle:
    options: dict[str, Any]
    vocab: list[str]
    character_counts: dict[str, int]  # raw counts, the end mark under END_MARK
    token_layer: Array | CharacterCnn  # token mode: the embeddings, (V, P)
    bilm: Bilm
    softmax_weight: Array  # (V, P)
    softmax_bias: Array  # (V,)


def load_bundle(path: str | Path) -> Bundle:
    """Read a bundle folder, whose parts have to fit together."""
    folder = Path(path)
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    vocab = read_lines(folder / "vocab.data")
    if tuple(vocab[:3]) != SPECIALS:
        raise ValueError(f"{folder}: vocab.data starts with {vocab[:3]}, expected {list(SPECIALS)}")
    with h5py.File(folder / "weights.hdf5", "r") as weights:
        bundle = Bundle(
            options=options,
            vocab=vocab,
            character_counts=load_character_counts(folder / "character_counts.tsv"),
            token_layer=load_character_cnn(weights, options)
            if "char_cnn" in options
            else read_array(weights, "embedding"),
            bilm=load_bilm(weights, options["lstm"]),
            softmax_weight=read_array(weights, "softmax/W"),
            softmax_bias=read_array(weights, "softmax/b"),
        )
    table_shape = (len(vocab), options["lstm"]["projection_dim"])
    tables = {"softmax/W": bundle.softmax_weight}
    if not isinstance(bundle.token_layer, CharacterCnn):
        tables["embedding"] = bundle.token_layer
    for name, table in tables.items():
        if table.shape != table_shape:
            raise ValueError(f"{folder}: {name} has shape {table.shape}, expected {table_shape}")
    return bundle


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, split at LF only: a token may contain any other line separator."""
    text = path.read_bytes().decode("utf-8")
    return text.removesuffix("\n").split("\n")


def load_character_counts(path: Path) -> dict[str, int]:
    """Read the spelling model's raw counts, undoing the escapes."""
    counts: dict[str, int] = {}
    for line in read_lines(path):
        spelled, count = line.split("\t")
        character = ESCAPES.get(spelled, spelled)
        if (len(character) != 1 and character != END_MARK) or character in counts:
            raise ValueError(f"{path}: {spelled!r} is not one new character")
        counts[character] = int(count)
    if END_MARK not in counts:
        raise ValueError(f"{path}: no line for the end mark {END_MARK}")
    return counts


def is_unknown(bundle: Bundle, token: str) -> bool:
    """Say whether a token of the text becomes `<UNK>`; one spelled like a special does."""
    return token in SPECIALS or token not in bundle.vocab


def token_ids(bundle: Bundle, tokens: Sequence[str]) -> list[int]:
    """Return the vocabulary rows of `<S>`, the tokens, `</S>`."""
    known_as = ["<UNK>" if is_unknown(bundle, token) else token for token in tokens]
    return [bundle.vocab.index(token) for token in ["<S>", *known_as, "</S>"]]


def token_vectors(bundle: Bundle, tokens: Sequence[str]) -> Array:
    """Return the token layer's vectors of `<S>`, the tokens, `</S>`, shape (n + 2, P)."""
    if isinstance(bundle.token_layer, CharacterCnn):
        return sentence_vectors(bundle.token_layer, tokens)
    return bundle.token_layer[token_ids(bundle, tokens)]


def layer_activations(bundle: Bundle, tokens: Sequence[str]) -> Array:
    """Return every layer's vectors of one segmented sentence from zero state, shape (L + 1, n, 2P)."""
    activations, _ = run_bilm(bundle.bilm, token_vectors(bundle, tokens))
    return activations[:, 1:-1]


def prediction_nats(bundle: Bundle, output: Array, target: int) -> float:
    """Return -log p(target) under the full softmax of one output, shape (P,)."""
    logits = bundle.softmax_weight @ output + bundle.softmax_bias  # (V,)
    largest = logits.max()
    return float(largest + np.log(np.exp(logits - largest).sum()) - logits[target])


def sentence_nats(bundle: Bundle, tokens: Sequence[str]) -> tuple[list[float], list[float]]:
    """Return the nats of the n + 1 predictions of each direction, in the order in which it makes them.

    Forward `w1 ... wn </S>`, backward `wn ... w1 <S>`.
    """
    ids = token_ids(bundle, tokens)
    activations, _ = run_bilm(bundle.bilm, token_vectors(bundle, tokens))
    forward_top, backward_top = np.split(activations[-1], 2, axis=1)  # (n + 2, P) each
    last = len(ids) - 1
    forward = [prediction_nats(bundle, forward_top[t], ids[t + 1]) for t in range(last)]
    backward = [prediction_nats(bundle, backward_top[t], ids[t - 1]) for t in range(last, 0, -1)]
    return forward, backward


def spelling_nats(bundle: Bundle, word: str) -> float:
    """Return the cost of spelling out one unknown word: its characters, then the end mark."""
    counts = bundle.character_counts
    denominator = sum(counts.values()) + len(counts) + 1  # the last one is the slot of all unseen characters
    nats = 0.0
    for character in [*word, END_MARK]:
        weight = counts[character] + 1 if character in counts else 1 / NUM_UNICODE_SCALARS
        nats -= math.log(weight / denominator)
    return nats


def evaluate(bundle: Bundle, sentences: Iterable[Sequence[str]]) -> dict[str, float]:
    """Return what `elmo-zh evaluate --json` promises for segmented sentences, each from zero state."""
    forward = backward = spelling = 0.0
    num_predictions = num_tokens = num_unknown = num_characters = 0
    for tokens in sentences:
        forward_nats, backward_nats = sentence_nats(bundle, tokens)
        forward += sum(forward_nats)
        backward += sum(backward_nats)
        unknown = [token for token in tokens if is_unknown(bundle, token)]
        spelling += sum(spelling_nats(bundle, token) for token in unknown)
        num_predictions += len(forward_nats)
        num_tokens += len(tokens)
        num_unknown += len(unknown)
        num_characters += sum(len(token) for token in tokens) + 1
    mean_nats = (forward + backward) / 2
    return {
        "perplexity": math.exp(mean_nats / num_predictions),
        "forward_perplexity": math.exp(forward / num_predictions),
        "backward_perplexity": math.exp(backward / num_predictions),
        "bits_per_character": (mean_nats + spelling) / math.log(2) / num_characters,
        "oov_rate": num_unknown / num_tokens if num_tokens else 0.0,
        "num_predictions": num_predictions,
    }
