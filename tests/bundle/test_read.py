"""A damaged bundle.json or history.json: the message names the file and the problem, however long the file is."""

import json
from pathlib import Path
from typing import Any

import pytest
from drawn_bundles import TOKENS, write_model
from messages import message_of

from elmo_zh.bundle.read import load_bundle, load_history
from elmo_zh.errors import BundleError

LONG = "x" * 5000


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("bundles") / "model", TOKENS)


@pytest.fixture(scope="module", autouse=True)
def info(bundle: Path) -> Any:
    return json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))


def message_with(bundle: Path, content: bytes) -> str:
    (bundle / "bundle.json").write_bytes(content)
    told = message_of(BundleError, lambda: load_bundle(bundle))
    assert len(told) < 600
    assert str(bundle / "bundle.json") in told
    return told


@pytest.mark.parametrize(
    "content",
    [b"\xff" + b"x" * 5000, f'["{LONG}"]'.encode(), b"{}", b'{"format": 1}', b"", b"[" * 200_000, b"9" * 5003],
)
def test_content_that_is_no_description(bundle: Path, content: bytes) -> None:
    assert " is damaged (" in message_with(bundle, content)


@pytest.mark.parametrize(
    ("entries", "place"),
    [
        ({"format": LONG}, "$.format"),
        ({"digests": {"vocab.data": 2}}, "$.digests"),
        ({"segmenter": {"name": "jieba", "dictionary": 2}}, "$.segmenter"),
        ({"origin": {"files": {"a": 2}}}, "$.origin.files"),
        ({"mode": LONG}, "1, xxxxxxxxxxxxxxxxxxxx,"),
        ({"format": 2}, "format 2"),
    ],
)
def test_a_wrong_entry(bundle: Path, info: Any, entries: dict[str, Any], place: str) -> None:
    assert place in message_with(bundle, json.dumps({**info, **entries}).encode())


@pytest.mark.parametrize("content", ["{", "[]", '{"corpus": [1]}', '{"num_sources": "3"}', '{"trained_at": "now"}'])
def test_a_damaged_history(tmp_path: Path, content: str) -> None:
    path = tmp_path / "history.json"
    path.write_text(content, encoding="utf-8")
    assert message_of(BundleError, lambda: load_history(path)).startswith(f"{path} is damaged (")
