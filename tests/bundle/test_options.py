"""options.json: the published keys, there and back, and hostile files refused with one message each."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from messages import message_of

from elmo_zh.bundle.options_json import load_options, options_of, parse_shape, training_options
from elmo_zh.config import TrainConfig
from elmo_zh.errors import BundleError
from elmo_zh.reader.bilm import BiLMShape, CharacterShape

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


GONE = object()


def refusal(shape: BiLMShape, path: str, value: Any, num_tokens: int | None = V) -> str:
    """What is wrong with options in which one value was changed."""
    options = whole = written(shape)
    *sections, name = path.split(".")
    for section in sections:
        options = options[section]
    if value is GONE:
        del options[name]
    else:
        options[name] = value
    message = message_of(BundleError, lambda: parse_shape(whole, PATH, num_tokens))
    assert message.startswith(f"{PATH} ")
    return message


SLOTS, FILTERS = "char_cnn.max_characters_per_token", "char_cnn.filters"
MALFORMED: list[tuple[str, Any]] = [
    *((f"lstm.{name}", GONE) for name in ("cell_clip", "proj_clip", "dim", "projection_dim", "use_skip_connections")),
    ("lstm", []),
    ("lstm.projection_dim", 14),  # above dim
    ("n_tokens_vocab", 43),  # not the lines of the vocabulary
    *((f"lstm.{name}", value) for name in ("dim", "n_layers") for value in (0, 7.0, "7", True, 10**9 + 1, 10**400)),
    *((f"lstm.{name}", value) for name in ("cell_clip", "proj_clip") for value in (-1, float("inf"), float("nan"))),
    ("char_cnn", None),
    *((FILTERS, value) for value in (GONE, [], [[1, 2]] * 1001, [[0, 2]], [[1, 10**10]], [[1, 2], [1, 2, 3]])),
    (FILTERS, [[18, 2]]),  # a window wider than a word's slots would never stand anywhere
    *(("char_cnn.n_characters", value) for value in (260, 263)),
    ("char_cnn.activation", "sigmoid"),
    *((SLOTS, value) for value in (GONE, 2, 10_001)),
    ("char_cnn.n_highway", -1),
]


@pytest.mark.parametrize(("path", "value"), MALFORMED)
def test_malformed_options(path: str, value: Any) -> None:
    for shape in [CHARACTERS] if path.startswith("char_cnn") else [TOKENS, CHARACTERS]:
        assert path.rpartition(".")[2].partition("_")[0] in refusal(shape, path, value)


@pytest.mark.parametrize("content", [b"", "模型".encode("gb18030"), b'{"a": ' + b"[" * 100_000, b'["lstm"]', None])
def test_what_is_no_json_object(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "options.json"
    if content is not None:
        path.write_bytes(content)
    message = message_of(BundleError, lambda: load_options(path))
    assert message.startswith(f"{path} ")
    assert len(message) < 500
