"""A damaged bundle.json: the message names the problem in a few words, however long the file is."""

import json
from pathlib import Path
from typing import Any

import pytest
from drawn_bundles import TOKENS, write_model
from messages import message_of

from elmo_zh.bundle.read import load_bundle
from elmo_zh.errors import BundleError

REMEDY = "Export or copy the bundle again."
LONG = "x" * 5000


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model", TOKENS)


def message_with(bundle: Path, content: bytes) -> str:
    (bundle / "bundle.json").write_bytes(content)
    return message_of(BundleError, lambda: load_bundle(bundle))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff" + b"x" * 5000, "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (f'["{LONG}"]'.encode(), "Expected `object`, got `array`"),
        (b"{}", "Object missing required field `format`"),
        (b'{"format": 1}', "Object missing required field `mode`"),
    ],
)
def test_content_that_is_no_description(bundle: Path, content: bytes, problem: str) -> None:
    assert message_with(bundle, content) == f"{bundle / 'bundle.json'} is damaged ({problem}). {REMEDY}"


@pytest.mark.parametrize("content", [b"", b"[" * 200_000, b"9" * 5003])
def test_content_that_is_hardly_json(bundle: Path, content: bytes) -> None:
    told = message_with(bundle, content)
    assert told.startswith(f"{bundle / 'bundle.json'} is damaged (")
    assert told.endswith(REMEDY)


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ({"format": LONG}, "is damaged (Expected `int`, got `str` - at `$.format`)"),
        ({"mode": [LONG]}, "is damaged (Expected `str`, got `array` - at `$.mode`)"),
        ({"carry_state": LONG}, "is damaged (Expected `bool`, got `str` - at `$.carry_state`)"),
        ({"digests": LONG}, "is damaged (Expected `object`, got `str` - at `$.digests`)"),
        ({"segmenter": {"name": "jieba", "dictionary": 2}}, "Expected `str`, got `int` - at `$.segmenter[...]`"),
        ({"text": LONG}, "is damaged (Expected `object | null`, got `str` - at `$.text`)"),
        ({"mode": LONG}, "mode xxxxxxxxxxxxxxxxxxxx; this version of elmo-zh reads format"),
        (
            {"format": 2},
            "bundle.json has format 2 and mode token; this version of elmo-zh reads format 1 and the modes token and"
            " character. Up",
        ),
    ],
)
def test_a_wrong_entry(bundle: Path, entries: dict[str, Any], problem: str) -> None:
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    told = message_with(bundle, json.dumps({**info, **entries}).encode())
    assert problem in told
    assert len(told) < 1000
