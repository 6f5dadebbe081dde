"""Checks of the ids given to `Elmo`: those of another kind of model, or of another vocabulary, are an error."""

import torch
from torch import Tensor

from elmo_zh.model.bilm import BiLMShape
from elmo_zh.vocabulary.alphabet import BYTES

_SENTENCES = '[["今天", "天气"]]'


def check_ids(inputs: object, shape: BiLMShape, *, knows_words: bool) -> None:
    """Check that ids are those of the model.

    Args:
        inputs: What `forward` was given.
        shape: The shape of the model.
        knows_words: The model has its vocabulary or needs none, so that `elmo.batch_to_ids` can make its ids.

    Raises:
        TypeError: If they are no tensor of integers.
        ValueError: If their shape is that of the other mode, or an id is out of range.
    """
    remedy = f"Call elmo(elmo.batch_to_ids({_SENTENCES}))."
    if not knows_words:
        remedy = f"Load the bundle with elmo = Elmo.from_bundle(folder), then call elmo.batch_to_ids({_SENTENCES})."
    ids = _check_tensor(inputs, "inputs", remedy)
    if shape.characters is None:
        _check_word_ids(ids, shape.num_tokens, remedy)
        return
    slots, size = shape.characters.num_slots, shape.characters.num_characters
    if ids.dim() < 3:
        raise ValueError(
            f"inputs have shape {tuple(ids.shape)}, but this character-mode model takes character ids, shape"
            f" (sentences, words, {slots}). {remedy}"
        )
    if ids.shape[-1] != slots:
        raise ValueError(f"inputs have {ids.shape[-1]} character slots, but this model reads {slots}. {remedy}")
    _check_range(ids, "inputs", size, f"this model has the character ids 1 to {size}", remedy)


def check_rows(rows: object, num_words: int) -> None:
    """Check that `word_inputs` are rows of `vocab_to_cache`, which has so many words.

    Raises:
        TypeError: If they are no tensor of integers.
        ValueError: If one is out of range.
    """
    remedy = "Give the index of each word in vocab_to_cache; its entry 0 stands for padding."
    found = _check_tensor(rows, "word_inputs", remedy)
    known = f"vocab_to_cache has the entries 1 to {num_words - 1}"
    _check_range(found, "word_inputs", num_words - 1, known, remedy)


def _check_word_ids(ids: Tensor, num_tokens: int, remedy: str) -> None:
    kind = "this token-mode model takes word ids"
    if ids.dim() < 2:
        raise ValueError(f"inputs have shape {tuple(ids.shape)}, but {kind}, shape (sentences, words). {remedy}")
    if ids.dim() > 2 and _are_spelled(ids):
        raise ValueError(
            f"inputs are character ids, shape {tuple(ids.shape)}, from the function batch_to_ids, but {kind} of its"
            f" own vocabulary, shape (sentences, words). {remedy}"
        )
    _check_range(ids, "inputs", num_tokens, f"this model has the word ids 1 to {num_tokens}", remedy)


def _are_spelled(ids: Tensor) -> bool:
    """Return whether ids are words spelled by `batch_to_ids`: each begins with the id of a word's beginning."""
    if torch.compiler.is_compiling() or not ids.numel():
        return False
    first = ids[..., 0]
    return bool(((first == BYTES.begin_word + 1) | (ids == 0).all(dim=-1)).all() and first.any())


def _check_tensor(given: object, name: str, remedy: str) -> Tensor:
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} are {type(given).__name__} {given!r:.40}, expected a tensor of ids. {remedy}")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise TypeError(f"{name} are {given.dtype}, expected integers. {remedy}")
    return given


def _check_range(ids: Tensor, name: str, largest: int, known: str, remedy: str) -> None:
    # Which ids there are is known only when they are computed, not when the module is compiled.
    if torch.compiler.is_compiling() or not ids.numel():
        return
    low, high = (int(bound) for bound in ids.aminmax())
    if low < 0 or high > largest:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} hold {wrong}, but {known}, and 0 for padding. {remedy}")
