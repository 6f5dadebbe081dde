"""Vectors of other programs: what is read, what is left out, and what is refused."""

import gzip
import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import Heard, message_of

from elmo_zh.config import TextConfig
from elmo_zh.errors import ElmoZhError, RunError
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import read_given_vectors

WORDS = ("好", "天气", "苹果", "APP", "头发", "12")
VOCABULARY = Vocabulary((*SPECIALS, *WORDS))
ROWS = "好 1 2 3\n天气 4 5 6\n苹果 7 8 9\n"


def read(
    folder: Path, content: str | bytes, dimension: int = 3, name: str = "given.vec", **settings: Any
) -> tuple[dict[str, list[float]], str]:
    """Return the vectors of words by word, and the warning."""
    path, heard = folder / name, Heard()
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    entries = Entries(path, build_normaliser(TextConfig(**settings)))
    vectors = read_given_vectors(entries, VOCABULARY, dimension)
    entries.report(heard)
    assert vectors.rows.dtype == np.int64
    assert vectors.vectors.dtype == np.float32
    assert vectors.vectors.shape == (len(vectors.rows), dimension)
    found = dict(zip([VOCABULARY.tokens[row] for row in vectors.rows], vectors.vectors.tolist(), strict=True))
    return found, "".join(heard.warnings)


ALL = {"好": [1, 2, 3], "天气": [4, 5, 6], "苹果": [7, 8, 9]}


@pytest.mark.parametrize(
    "content",
    [
        ROWS,
        f"3 3\n{ROWS}",
        f"\ufeff3 3\n{ROWS}",
        f"3 3\n{ROWS}\n\n",
        f"3 3 \n{ROWS}".replace("\n", " \r\n"),
        ROWS.replace(" ", "\t"),
        ROWS.replace(" ", "  "),
        f"6 3\n<unk> 0 0 0\n</s> 0 0 1\n没有 1 1 1\n{ROWS}",
        gzip.compress(f"3 3\n{ROWS}".encode()),
    ],
    ids=type,
)
def test_rows_are_read_by_word(tmp_path: Path, content: str | bytes) -> None:
    assert read(tmp_path, content) == (ALL, "")


def test_words_are_prepared_as_the_text_is(tmp_path: Path) -> None:
    content = "5 2\nＡＰＰ 1 2\n頭髮 3 4\n頭发 5 6\nAPP 7 8\n１２ 9 0\n"
    expected = {"APP": [7, 8], "头发": [3, 4], "12": [9, 0]}
    assert read(tmp_path, content, 2, script="simplified") == (expected, "")
    assert read(tmp_path, content, 2, fold_fullwidth=False)[0] == {"APP": [7, 8]}


def test_a_word_that_comes_twice_keeps_its_first_vector_and_the_second_is_counted(tmp_path: Path) -> None:
    vectors, warning = read(tmp_path, "3 2\nAPP 7 8\n12 9 0\nAPP 1 2\n", 2)
    assert vectors == {"APP": [7, 8], "12": [9, 0]}
    assert "entries without effect: 1. line 4: APP has" in warning


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("New York 1 2 3", "New York is not one word"),
        ("10 000 1 2 3", "10 000 is not one word"),
        ("  1 2 3", "is not one word"),
        ("\u3000 1 2 3", "is not one word"),
        ("\u00a0 1 2 3", "is not one word"),
        ("\u200b 1 2 3", "is not one word"),
        ("好", "好 does not have 3 finite numbers"),
        ("好 1 2", "好 does not have 3 finite numbers"),
        ("好 1 2 nan", "好 does not have 3 finite numbers"),
        ("好 1 2 1e39", "好 does not have 3 finite numbers"),
        ("好 1 2 3.1.4", "好 does not have 3 finite numbers"),
        (b"\xe5\xa5 1 2 3", "is not UTF-8"),
    ],
)
def test_single_damaged_rows_are_left_out_and_counted(tmp_path: Path, row: str | bytes, reason: str) -> None:
    encoded = row.encode() if isinstance(row, str) else row
    found, warning = read(tmp_path, b"4 3\n" + encoded + b"\n" + ROWS.encode())
    assert found == ALL
    assert "entries without effect: 1. line 2: " in warning
    assert reason in warning


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("header", ["3 3\n", ""])
def test_a_last_number_is_never_shortened(tmp_path: Path, header: str, cut: int) -> None:
    """The last row may lack a digit, so it is left out even where the header counts it."""
    content = header + ROWS.replace("7 8 9\n", "7.5 8.25 9.125\n")
    found, warning = read(tmp_path, content[:-cut])
    assert list(found) == ["好", "天气"]
    assert "has no line end, so its last number may be cut off" in warning


@pytest.mark.parametrize("content", [f"4 3\n{ROWS}", f"4 3\n{ROWS}APP 1 ", f"1000 3\n{ROWS}"])
def test_a_file_with_fewer_rows_than_announced_is_cut_off(tmp_path: Path, content: str) -> None:
    content = content if content.endswith("\n") else content.replace("4 3", "5 3")
    told = message_of(RunError, lambda: read(tmp_path, content))
    assert told.startswith(f"{tmp_path / 'given.vec'} is damaged (its header announces ")


def test_a_cut_off_gzip_file_is_damaged(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"词{number} {number} 1 2\n" for number in range(9999)).encode())
    assert "is damaged (" in message_of(ElmoZhError, lambda: read(tmp_path, packed[:-99]))


def archive(kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as packed:
            packed.writestr("v.txt", ROWS)
    else:
        with tarfile.open(fileobj=stream, mode=f"w:{kind.partition('.')[2]}") as packed:  # type: ignore[call-overload]
            entry = tarfile.TarInfo("v.txt")
            entry.size = len(ROWS.encode())
            packed.addfile(entry, io.BytesIO(ROWS.encode()))
    return stream.getvalue()


BINARY = b"2 3\n" + b"".join(word.encode() + b" " + struct.pack("<3f", 1, -2, 0.1) for word in WORDS[:2])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (archive("zip"), "is not text. Use an unpacked file"),
        (archive("tar."), "is not text. Use an unpacked file"),
        (archive("tar.gz"), "is not text. Use an unpacked file"),
        (archive("tar.xz"), "is not text. Use an unpacked file"),
        (BINARY, "is a binary file (word2vec). Save it as text: "),
        (gzip.compress(BINARY), "load_word2vec_format("),
        (struct.pack("<14i", 793712314, 12, *[0] * 12), "load_facebook_vectors("),
        (pickle.dumps({"vectors": np.zeros(3)}), "KeyedVectors.load("),
        (pickle.dumps("好", protocol=2), "save_word2vec_format('vectors.txt')"),
        (ROWS.encode("utf-16"), "is not text."),
        (b"\x93NUMPY\x01\x00", "is not text."),
        (f"3 3\n{ROWS}".encode("gb18030"), "is not UTF-8. Convert it first"),
        ("2 9\n好 1:0.5 7:0.25\n天气 0:1.0\n", "('好 1:0.5 7:0.25'): numbers after the word: 0; expected 3"),
        (
            "3 4\n好 1 2 3 4\n天气 1 2 3 4\n",
            "line 2 ('好 1 2 3 4'): numbers after the word: 4; expected 3 (model.projection_dim)",
        ),
        (ROWS.replace(" ", ","), "numbers after the word: 0; expected 3 (model.projection_dim), separated by spaces"),
        ("好 12\n天气 7\n", "line 1 ('好 12'): numbers after the word: 1"),
        ("今天天气很好。\n", "line 1 ('今天天气很好。'): numbers after the word: 0"),
        ('{"好": [1, 2, 3]}\n', "numbers after the word: 0"),
        ("", "numbers after the word: 0"),
    ],
    ids=type,
)
def test_what_is_no_file_of_such_vectors_is_said(tmp_path: Path, content: str | bytes, told: str) -> None:
    assert told in message_of(RunError, lambda: read(tmp_path, content))
