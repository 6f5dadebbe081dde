"""Each file's encoding, judged on all of its bytes."""

import io
import random

import pytest
from corpus.readers.reading import content_of
from messages import message_of

from elmo_zh.corpus.encodings import CHUNK_BYTES, Encoding, bad_byte, find_encoding
from elmo_zh.errors import CorpusError

SIMPLIFIED = "今天早上下了一场大雨，路上的行人都打着伞。他说：“我们还是坐地铁去公司吧，别迟到了。”\n" * 7
TRADITIONAL = "今天早上下了一場大雨，路上的行人都打著傘。他說：「我們還是坐捷運去公司吧，別遲到了。」\n" * 7


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (SIMPLIFIED.encode(), "utf-8"),
        (SIMPLIFIED.encode("utf-8-sig"), "utf-8"),
        (SIMPLIFIED.encode("utf-16"), "utf-16-le"),
        (b"\xfe\xff" + SIMPLIFIED.encode("utf-16-be"), "utf-16-be"),
        (SIMPLIFIED.encode("utf-32"), "utf-32-le"),
        (b"\x00\x00\xfe\xff" + SIMPLIFIED.encode("utf-32-be"), "utf-32-be"),
        (SIMPLIFIED.encode("gbk"), "gb18030"),
        ((SIMPLIFIED + "𠀀㐀").encode("gb18030"), "gb18030"),
        (TRADITIONAL.encode("gb18030"), "gb18030"),
        (TRADITIONAL.encode("big5"), "cp950"),
        ("四。\n".encode("gb18030") * 50, "gb18030"),
        ("今天。".encode("gb18030"), "gb18030"),
        (b"plain ASCII\n", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_each_encoding_is_found(data: bytes, name: str) -> None:
    assert find_encoding(content_of(data), "auto") == Encoding(name, 0)


@pytest.mark.parametrize(
    ("text", "encoding", "names"),
    [
        (SIMPLIFIED, "utf-8", ("utf-8",)),
        (SIMPLIFIED, "gb18030", ("gb18030",)),
        (TRADITIONAL, "big5", ("cp950", "big5hkscs")),
    ],
)
def test_broken_bytes_do_not_hide_the_encoding(text: str, encoding: str, names: tuple[str, ...]) -> None:
    data = bytearray((text * 31).encode(encoding))
    generator = random.Random(5)
    for _ in range(17):
        data[generator.randrange(len(data))] = 0xFF
    found = find_encoding(content_of(bytes(data)), "auto")
    assert found.name in names
    assert 0 < found.num_bad <= 3 * 17


def test_the_encoding_that_is_wanted_is_taken() -> None:
    assert find_encoding(content_of("é".encode("latin-1")), "latin-1") == Encoding("latin-1", 0)
    assert find_encoding(content_of(SIMPLIFIED.encode() + "好".encode("gbk")), "utf-8").num_bad == 2


@pytest.mark.parametrize("data", [random.Random(3).randbytes(3000), b"\xff\0\0\0"])
def test_what_is_no_text(data: bytes) -> None:
    told = message_of(CorpusError, lambda: find_encoding(content_of(data), "auto"))
    assert told.startswith("a.txt: not text in UTF-8, GB18030 or Big5, and no byte order mark was found. ")


def test_other_encodings_are_named() -> None:
    german = "Grüße aus München, schöne Straße. Überall größere Bäume.\n".encode("latin-1") * 31
    told = message_of(CorpusError, lambda: find_encoding(content_of(german), "auto"))
    assert told.endswith("--encoding Windows-1252")
    data = "日本語の文章です。これはテストです。漢字とかなが混ざっています。\n".encode("euc-jp") * 5
    told = message_of(CorpusError, lambda: find_encoding(content_of(data), "auto"))
    assert told.endswith("--encoding EUC-JP")


@pytest.mark.parametrize(
    ("data", "encoding", "expected"),
    [
        (b"ab\nc\xff", "utf-8", (2, 4, 0xFF)),
        ("好\n好".encode("gb18030") + b"\xff\n", "gb18030", (2, 5, 0xFF)),
        ("好\n".encode("utf-16-le") + b"\x00\xdc\n\0", "utf-16-le", (2, 4, 0x00)),
        (b"a" * (CHUNK_BYTES - 1) + "\n好".encode()[:3], "utf-8", (2, CHUNK_BYTES, 0xE5)),
        (b"a" * (CHUNK_BYTES - 1) + "好".encode()[:2] + b"\n", "utf-8", (1, CHUNK_BYTES - 1, 0xE5)),
        ("好".encode(), "utf-8", None),
    ],
)
def test_the_first_bad_byte(data: bytes, encoding: str, expected: tuple[int, int, int] | None) -> None:
    assert bad_byte(io.BytesIO(data), encoding) == expected
