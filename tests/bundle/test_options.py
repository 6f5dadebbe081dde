"""options.json: the published keys, there and back, and hostile files refused with one message each."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from messages import message_of

from elmo_zh.bundle.options_json import load_options, options_of, parse_shape, training_options
from elmo_zh.config import TrainConfig
from elmo_zh.errors import BundleError
from elmo_zh.reader.shape import BiLMShape, CharacterShape

PATH = Path("folder/options.json")
V = 41
TOKENS = BiLMShape(
    num_tokens=V,
    cell_dim=13,
    projection_dim=7,
    num_layers=3,
    cell_clip=2.5,
    projection_clip=0.0,
    skip_connections=False,
)
CHARACTERS = replace(
    TOKENS,
    cell_clip=0.0,
    projection_clip=3.0,
    skip_connections=True,
    characters=CharacterShape(
        num_characters=261,
        num_slots=17,
        embedding_dim=5,
        filters=((1, 2), (2, 3), (17, 19)),
        num_highways=2,
        activation="tanh",
    ),
)
TRAINING = training_options(replace(TrainConfig(), dropout=0.25, batch_size=23, unroll_steps=29), 1009, 2.5)


def written(shape: BiLMShape) -> Any:
    """The options as they are read again: through JSON."""
    return json.loads(json.dumps(options_of(shape, TRAINING, V)))


def test_the_published_keys_in_token_mode() -> None:
    assert written(TOKENS) == {
        "bidirectional": True,
        "carry_state": False,
        "dropout": 0.25,
        "all_clip_norm_val": 10.0,
        "n_epochs": 2.5,
        "n_train_tokens": 1009,
        "batch_size": 23,
        "n_tokens_vocab": V,
        "unroll_steps": 29,
        "n_negative_samples_batch": 4096,
        "lstm": {
            "cell_clip": 2.5,
            "proj_clip": None,
            "dim": 13,
            "n_layers": 3,
            "projection_dim": 7,
            "use_skip_connections": False,
        },
    }


@pytest.mark.parametrize("shape", [TOKENS, CHARACTERS])
def test_there_and_back(shape: BiLMShape) -> None:
    assert parse_shape(written(shape), PATH, V) == shape


def test_without_a_vocabulary_the_options_say_how_many_rows_a_softmax_has() -> None:
    options = written(CHARACTERS)
    assert parse_shape(options, PATH, None) == CHARACTERS
    del options["n_tokens_vocab"]
    assert parse_shape(options, PATH, None) == replace(CHARACTERS, num_tokens=1)
    assert parse_shape(options, PATH, V) == CHARACTERS
    assert "n_tokens_vocab" not in options_of(CHARACTERS, TRAINING, None)


@pytest.mark.parametrize(("key", "value"), [("n_characters", 262), ("n_highway", 0)])
def test_what_old_files_leave_out(key: str, value: int) -> None:
    options = written(CHARACTERS)
    options["char_cnn"][key] = value
    expected = parse_shape(options, PATH, V)
    del options["char_cnn"][key]
    assert parse_shape(options, PATH, V) == expected


def refusal(shape: BiLMShape, change: Callable[[Any], object], num_tokens: int | None = V) -> str:
    """What is wrong with options that were changed, without the remedy, which is the same for all."""
    options = written(shape)
    change(options)
    remedy = ". Copy the files of this model again."
    message = message_of(BundleError, lambda: parse_shape(options, PATH, num_tokens))
    assert message.startswith(f"{PATH}: ")
    assert message.endswith(remedy)
    return message.removeprefix(f"{PATH}: ").removesuffix(remedy)


def assign(options: Any, path: str, value: Any) -> None:
    *sections, name = path.split(".")
    for section in sections:
        options = options[section]
    if value is GONE:
        del options[name]
    else:
        options[name] = value


SLOTS = "char_cnn.max_characters_per_token"
GONE = object()
# A place in the options, a value that it cannot have, and what the refusal names.
MALFORMED: list[tuple[str, Any, str]] = [
    *(
        (f"lstm.{name}", GONE, f"`{name}`")
        for name in ("cell_clip", "proj_clip", "dim", "n_layers", "projection_dim", "use_skip_connections")
    ),
    *(
        (f"lstm.{name}", value, f"`$.lstm.{name}`")
        for name in ("dim", "projection_dim", "n_layers")
        for value in (0, -3, 7.5, "7", True, None, [7], 10**9 + 1, 10**4000)
    ),
    *(
        (f"lstm.{name}", value, f"`$.lstm.{name}`")
        for name in ("cell_clip", "proj_clip")
        for value in (-1, -0.5, 10**9 + 1, float("inf"), float("-inf"), float("nan"), "3", True, [3])
    ),
    *(("n_tokens_vocab", value, "`$.n_tokens_vocab`") for value in ("41", 41.5, 0, -1, 10**9 + 1)),
    *(("lstm.use_skip_connections", value, "`$.lstm.use_skip_connections`") for value in (0, 1, None, "true")),
    *(("char_cnn.n_highway", value, "`$.char_cnn.n_highway`") for value in (-1, 1001, True)),
    *(("char_cnn.filters", value, "`$.char_cnn.filters") for value in ([], {"1": 2}, [[1, 2]] * 1001, [[1, 2], 3])),
    *(("char_cnn.filters", [[1, 2], value], "`$.char_cnn.filters[1]") for value in ([1, 2, 3], [1], [0, 2], "12")),
    ("lstm", [], "`$.lstm`"),
    ("lstm.n_layers", 1001, "`$.lstm.n_layers`"),
    ("lstm.projection_dim", 14, "projection_dim 14 is above dim 13"),
    ("n_tokens_vocab", 43, "n_tokens_vocab is 43, but the vocabulary has 41 lines"),
    ("char_cnn", None, "`$.char_cnn`"),
    ("char_cnn.embedding", 5, "`$.char_cnn.embedding`"),
    ("char_cnn.filters", [[18, 2]], "a filter has the width 18, but max_characters_per_token is 17"),
    *(("char_cnn.n_characters", value, f"n_characters is {value}; expected 262") for value in (260, 263)),
    ("char_cnn.n_characters", "262", "`$.char_cnn.n_characters`"),
    ("char_cnn.activation", ["relu"], "`$.char_cnn.activation`"),
    (SLOTS, GONE, "`max_characters_per_token`"),
    (SLOTS, 2, f"`$.{SLOTS}`"),
    (SLOTS, 10_001, f"`$.{SLOTS}`"),
]


@pytest.mark.parametrize(("path", "value", "problem"), MALFORMED)
def test_malformed_options(path: str, value: Any, problem: str) -> None:
    shapes = [CHARACTERS] if path.startswith("char_cnn") else [TOKENS, CHARACTERS]
    for shape in shapes:
        told = refusal(shape, lambda options: assign(options, path, value))
        assert problem in told
        assert len(told) < 300


NO_JSON = {
    "empty": b"",
    "too much": b'{"lstm": {}}}',
    "GB18030": "模型".encode("gb18030"),
    "long number": b'{"n": 1' + b"0" * 5000 + b"}",
    "deep": b'{"a": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("kind", NO_JSON)
def test_what_is_no_json(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "options.json"
    path.write_bytes(NO_JSON[kind])
    message = message_of(BundleError, lambda: load_options(path))
    assert message.startswith(f"{path} cannot be read as the options of a biLM (")
    assert len(message) < 500


@pytest.mark.parametrize("content", ['["lstm"]', '"lstm"', "null"])
def test_json_that_is_no_object(tmp_path: Path, content: str) -> None:
    path = tmp_path / "options.json"
    path.write_text(content, encoding="utf-8")
    expected = f"{path} does not contain a JSON object with the options of a biLM. Copy the file again."
    assert message_of(BundleError, lambda: load_options(path)) == expected


@pytest.mark.parametrize("is_folder", [False, True])
def test_options_that_are_missing(tmp_path: Path, is_folder: bool) -> None:
    path = tmp_path / "options.json"
    if is_folder:
        path.mkdir()
    told = message_of(BundleError, lambda: load_options(path))
    assert told == f"{path} is missing. Copy the model again, or give the path of the right file."
