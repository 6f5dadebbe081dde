"""Ids given to `Elmo` that are not those of its model."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from drawn_bundles import CHARACTERS, SHAPES, write_model
from messages import refusal_of
from torch import Tensor

from elmo_zh import Elmo, batch_to_ids

SENTENCES = [["今天", "吃"], ["苹果"]]
CALL = 'Call elmo(elmo.batch_to_ids([["今天", "天气"]])).'
LOAD = 'Load the bundle with elmo = Elmo.from_bundle(folder), then call elmo.batch_to_ids([["今天", "天气"]]).'


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bundles")
    return {mode: write_model(folder / mode, shape) for mode, shape in SHAPES.items()}


def test_character_ids_for_a_token_mode_model(bundles: dict[str, Path]) -> None:
    """They would be taken for a batch with one more axis, whose sentences have 50 words."""
    bundle = bundles["token"]
    published = Elmo(bundle / "options.json", bundle / "weights.hdf5", 1)
    for elmo, remedy in ((Elmo.from_bundle(bundle), CALL), (published, LOAD)):
        assert refusal_of(ValueError, lambda elmo=elmo: elmo(batch_to_ids(SENTENCES))) == (
            "inputs are character ids, shape (2, 2, 50), from the function batch_to_ids, but this token-mode model"
            f" takes word ids of its own vocabulary, shape (sentences, words). {remedy}"
        )
        with pytest.raises(ValueError, match=r"^inputs are character ids"):
            elmo(batch_to_ids([["<S>", "吃"], []], 13))


def test_word_ids_with_a_further_axis_are_no_character_ids(bundles: dict[str, Path]) -> None:
    elmo = Elmo.from_bundle(bundles["token"], dropout=0.0)
    ids = elmo.batch_to_ids(SENTENCES)
    flat, stacked = (elmo(each)["elmo_representations"][0] for each in (ids, torch.stack([ids, ids])))
    torch.testing.assert_close(stacked, torch.stack([flat, flat]))


def test_word_ids_for_a_character_mode_model(bundles: dict[str, Path]) -> None:
    bundle, ids = bundles["character"], Elmo.from_bundle(bundles["token"]).batch_to_ids(SENTENCES)
    for elmo in (Elmo.from_bundle(bundle), Elmo(bundle / "options.json", bundle / "weights.hdf5", 1)):
        assert refusal_of(ValueError, lambda elmo=elmo: elmo(ids)) == (
            "inputs have shape (2, 2), but this character-mode model takes character ids, shape (sentences, words, 50)."
            f" {CALL}"
        )


@pytest.mark.parametrize("mode", list(SHAPES))
def test_ids_of_another_model(bundles: dict[str, Path], mode: str) -> None:
    elmo = Elmo.from_bundle(bundles[mode])
    ids = elmo.batch_to_ids(SENTENCES)
    shape = elmo._elmo_lstm.bilm.shape
    kind, largest = ("word", shape.num_tokens) if mode == "token" else ("character", CHARACTERS.num_characters)
    known = f"this model has the {kind} ids 1 to {largest}, and 0 for padding"
    for wrong in (-1, largest + 1):
        changed = ids.clone()
        changed.view(-1)[-1] = wrong
        message = f"inputs hold {wrong}, but {known}. {CALL}"
        assert refusal_of(ValueError, lambda changed=changed: elmo(changed)) == message
    elmo(ids.clamp(max=largest))


def test_what_is_no_tensor_of_ids(bundles: dict[str, Path]) -> None:
    elmo = Elmo.from_bundle(bundles["token"])
    expected = f"inputs are list [['今天']], expected a tensor of ids. {CALL}"
    assert refusal_of(TypeError, lambda: elmo([["今天"]])) == expected
    expected = f"inputs are torch.float32, expected integers. {CALL}"
    assert refusal_of(TypeError, lambda: elmo(torch.ones(2, 3))) == expected
    expected = f"inputs have shape (3,), but this token-mode model takes word ids, shape (sentences, words). {CALL}"
    assert refusal_of(ValueError, lambda: elmo(torch.tensor([1, 2, 3]))) == expected


def test_ids_of_another_number_of_slots(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", replace(SHAPES["character"], characters=replace(CHARACTERS, num_slots=13)))
    assert refusal_of(ValueError, lambda: Elmo.from_bundle(model)(batch_to_ids(SENTENCES))) == (
        f"inputs have 50 character slots, but this model reads 13. {CALL}"
    )


def test_rows_that_the_cache_lacks(bundles: dict[str, Path]) -> None:
    elmo = Elmo.from_bundle(bundles["token"], vocab_to_cache=["", "我", "吃"])
    ids = elmo.batch_to_ids([["我", "吃"]])

    def read(rows: Tensor) -> object:
        return elmo(ids, rows)

    read(torch.tensor([[1, 2]]))
    assert refusal_of(ValueError, lambda: read(torch.tensor([[1, 3]]))) == (
        "word_inputs hold 3, but vocab_to_cache has the entries 1 to 2, and 0 for padding."
        " Give the index of each word in vocab_to_cache; its entry 0 stands for padding."
    )


def test_a_bundle_is_not_a_pair_of_files(bundles: dict[str, Path]) -> None:
    for build in (lambda: Elmo(str(bundles["token"])), lambda: Elmo(bundles["token"], None, 1)):
        assert refusal_of(ValueError, build) == (
            "Elmo takes options_file and weight_file, or module, found options_file."
            f" Call Elmo.from_bundle('{bundles['token']}') for a bundle, or Elmo('options.json', 'weights.hdf5', 1)."
        )
