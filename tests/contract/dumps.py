"""Texts that are embedded, and what embed made of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import PROJECTION, Answer, SampleRun, succeed

from elmo_zh import ElmoEmbedder

WIDTH = 2 * PROJECTION
# Tokens are split at U+0020 alone: other white space stays in its token.
SEGMENTED_LINES = (
    "我 喜欢 吃 苹果 。",
    "",
    "春天 的 花　开 了 ， 山上 很 美 。",
    "我 喜欢 吃 苹果 。",
    "一行\u2028两行 行\x0b列 也\u0085是 一 句",
    "  两边  有   空格 ",
    "齉龘",
)
SEGMENTED_TOKENS: tuple[list[str], ...] = (
    ["我", "喜欢", "吃", "苹果", "。"],
    [],
    ["春天", "的", "花　开", "了", "，", "山上", "很", "美", "。"],
    ["我", "喜欢", "吃", "苹果", "。"],
    ["一行\u2028两行", "行\x0b列", "也\u0085是", "一", "句"],
    ["两边", "有", "空格"],
    ["齉龘"],
)


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def read_dump(path: Path) -> tuple[list[Any], list[list[str]], dict[str, Any]]:
    """Return vectors and tokens of each line in order, and the root attributes."""
    with h5py.File(path) as file:
        names = sorted(set(file) - {"tokens", "offsets", "line", "sentence_to_index"}, key=int)
        assert names == [str(line) for line in range(len(names))]
        assert sorted(file["tokens"], key=int) == names
        vectors = [file[name][()] for name in names]
        tokens = [[token.decode() for token in file["tokens"][name][()]] for name in names]
        return vectors, tokens, dict(file.attrs)


def assert_close(found: Any, expected: Any) -> None:
    """The same sentence gives the same vectors whatever stands beside it, to 1e-6."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def assert_all_close(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-6) -> None:
    assert [np.shape(vectors) for vectors in found] == [np.shape(vectors) for vectors in expected]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


def embed(sample: SampleRun, source: Path | str, *options: str | Path, stdin: bytes = b"") -> Answer:
    return succeed("embed", source, "--model", sample.model, *options, stdin=stdin)


def unknown_words(embedder: ElmoEmbedder) -> dict[str, int]:
    words = [word for line in SEGMENTED_TOKENS for word in line]
    return dict(Counter(word for word, unknown in zip(words, embedder.find_unknown(words), strict=True) if unknown))


class Interrupted:
    """Makes the embedder stop in a part, as Ctrl-C does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after_parts: int) -> None:
        self.num_calls = 0
        real = ElmoEmbedder.compute_vectors

        def compute_vectors(embedder: ElmoEmbedder, sentences: Sequence[Sequence[str]]) -> Any:
            self.num_calls += 1
            if self.num_calls > after_parts:
                raise KeyboardInterrupt
            return real(embedder, sentences)

        monkeypatch.setattr(ElmoEmbedder, "compute_vectors", compute_vectors)
