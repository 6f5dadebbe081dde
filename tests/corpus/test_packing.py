"""Compressed files are told by their first bytes."""

import bz2
import gzip
import io
import lzma

import pytest
from corpus.readers.reading import PACKERS
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.corpus import packing as module
from elmo_zh.corpus.packing import compression_of, unpacked
from elmo_zh.errors import CorpusError

# 4 bytes that the decompressor is to skip, as pzstd writes before each frame.
SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"


def unpack(data: bytes, suffix: str) -> bytes:
    return unpacked(io.BytesIO(data), suffix, "a.txt", len(data)).read()


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (gzip.compress(b"x", mtime=0), ".gz"),
        (bz2.compress(b"x"), ".bz2"),
        (lzma.compress(b"x"), ".xz"),
        (b"\x28\xb5\x2f\xfd", ".zst"),
        (SKIPPED, ".zst"),
        ("今天".encode(), None),
        (b"", None),
    ],
)
def test_first_bytes(data: bytes, suffix: str | None) -> None:
    assert compression_of(data[:6]) == suffix


@pytest.mark.parametrize("suffix", PACKERS)
@settings(deadline=None)
@given(parts=st.lists(st.binary(max_size=300), max_size=4), zeros=st.integers(0, 9), size=st.integers(1, 70))
def test_streams_one_after_the_other_read_in_any_steps(suffix: str, parts: list[bytes], zeros: int, size: int) -> None:
    data = b"".join(map(PACKERS[suffix], parts)) + bytes(zeros if parts else 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_INPUT_BYTES", size)
        patch.setattr(module, "_BUFFER_BYTES", size)
        assert unpack(data, suffix) == b"".join(parts)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_second_stream_that_is_damaged_is_not_taken_for_the_end(suffix: str) -> None:
    first, second = PACKERS[suffix](b"x" * 101), PACKERS[suffix](b"y" * 103)
    for rest in (b"?" + second[1:], b"garbage", b"\0\0?"):
        place = len(first) + len(rest) - len(rest.lstrip(b"\0"))
        told = message_of(CorpusError, lambda rest=rest: unpack(first + rest, suffix))
        assert told.startswith("a.txt is damaged or truncated (byte ")
        assert f"(byte {place})" in told
    told = message_of(CorpusError, lambda: unpack(first + second[:-1], suffix))
    assert told.startswith("a.txt is damaged or truncated (it ends in the middle of the compressed data). Download ")


def test_an_xz_file_that_asks_for_much_memory() -> None:
    data = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}])
    assert "Memory usage limit exceeded" in message_of(CorpusError, lambda: unpack(data, ".xz"))
