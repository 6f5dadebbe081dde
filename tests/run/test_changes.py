"""What has changed since a stage was recorded, in the names that users give settings and files."""

from collections.abc import Mapping
from typing import Any

import pytest

from elmo_zh.run.changes import describe_changes, spell_segmenter

JIEBA = {"name": "jieba", "version": "0.42.1", "dictionary": "sha256:7197c3211d"}


TIED = "model.tie_softmax true -> false"


def changes(
    stage: str,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    files: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> list[str]:
    old, new = ({name: {"digest": digest} for name, digest in each.items()} for each in files)
    return describe_changes(stage, {"settings": before, "inputs": old}, now, new)


@pytest.mark.parametrize(
    ("stage", "before", "now", "expected"),
    [
        ("vocab", {"form": {"name": "NFC"}}, {"form": 7}, ['vocab.form {"name": "NFC"} -> 7']),
        ("word2vec", {"dimension": 64}, {"dimension": 128}, ["model.projection_dim 64 -> 128"]),
        ("train", {"train.carry_state": False}, {"train.carry_state": True}, ["train.carry_state false -> true"]),
        # What a record leaves out has its default.
        ("segment", {}, {"script": "simplified"}, ["text.script none -> simplified"]),
        ("segment", {"field": "review"}, {}, ["text.field review -> empty"]),
        ("encode", {}, {"model.mode": "character"}, ["model.mode token -> character"]),
        ("vocab", {"init": "sha256:1"}, {"init": "sha256:2"}, ["the content of vocab.init has changed"]),
        ("vocab", {}, {"words": "sha256:2"}, ["vocab.words is now set"]),
        ("train", {"train.init": "sha256:1"}, {}, ["train.init is no longer set"]),
        ("export", {"text": {"script": "none"}}, {"text": {"script": "both"}}, ["text.script none -> both"]),
        ("train", {"model.tie_softmax": True, "model.highway_layers": 2}, {"model.tie_softmax": False}, [TIED]),
        ("export", {"checkpoint": "best"}, {"checkpoint": "last"}, ["--checkpoint best -> last"]),
    ],
)
def test_settings(stage: str, before: Mapping[str, Any], now: Mapping[str, Any], expected: list[str]) -> None:
    assert changes(stage, before, now) == expected


def test_segmenters() -> None:
    newer = {**JIEBA, "version": "0.43"}
    told = changes("segment", {"segmenter_version": JIEBA}, {"segmenter_version": newer})
    assert told == ["segmenter jieba 0.42.1 -> jieba 0.43"]
    other = {**JIEBA, "dictionary": "sha256:0123456789", "user_dictionary": "sha256:fedcba9876"}
    told = changes("segment", {"segmenter_version": JIEBA}, {"segmenter_version": other})
    assert told == [
        "segmenter jieba 0.42.1 with dictionary 7197c321, user dictionary none -> jieba 0.42.1 with dictionary"
        " 01234567, user dictionary fedcba98"
    ]
    character = {"segmenter": "character", "segmenter_version": {"name": "character", "version": "1"}}
    told = changes("segment", {"segmenter": "jieba", "segmenter_version": JIEBA}, character)
    assert told == ["text.segmenter jieba -> character"]
    assert spell_segmenter(JIEBA) == "jieba 0.42.1"
    assert spell_segmenter(None) == "unknown"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"a": "1"}, {"a": "2"}, ["changed 1 file (a)"]),
        ({"a": "1"}, {"b": "2"}, ["added 1 file (b)", "removed 1 file (a)"]),
        ({"a": "1"}, {"b": "1"}, []),  # the same content under another name
        ({"a": "1"}, {"a": "3", "c": "5", "d": "6"}, ["added 2 files (c, d)", "changed 1 file (a)"]),
    ],
)
def test_files(before: Mapping[str, str], now: Mapping[str, str], expected: list[str]) -> None:
    assert changes("train", {}, {}, (before, now)) == expected
