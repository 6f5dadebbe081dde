"""Compressed files are told by their first bytes."""

import bz2
import gzip
import lzma

import pytest

from elmo_zh.text.packing import ALWAYS_ALLOWED_BYTES, compression_of, most_unpacked_bytes


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (gzip.compress(b"x"), ".gz"),
        (bz2.compress(b"x"), ".bz2"),
        (lzma.compress(b"x"), ".xz"),
        (b"\x28\xb5\x2f\xfd", ".zst"),
        ("今天".encode(), None),
        (b"", None),
    ],
)
def test_first_bytes(data: bytes, suffix: str | None) -> None:
    assert compression_of(data[:6]) == suffix


def test_the_limit_grows_with_the_file() -> None:
    assert most_unpacked_bytes(1) == ALWAYS_ALLOWED_BYTES
    assert most_unpacked_bytes(10**9) == 250 * 10**9
