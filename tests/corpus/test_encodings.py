"""Each file's encoding, judged on all of its bytes; bytes that do not decode; lines of any length."""

import io
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from corpus.readers.reading import content_of, dropped_of, items_of, read, text_of
from hypothesis import given
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.corpus import text_files as module
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import (
    CHUNK_BYTES,
    UNDECODABLE,
    DecodedText,
    Encoding,
    bad_byte,
    find_encoding,
)
from elmo_zh.corpus.text_files import lines_of, lines_of_chunks, whole_lines, with_line_feeds
from elmo_zh.errors import CorpusError
from elmo_zh.text.sentences import split_sentences

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


def test_a_lead_byte_does_not_swallow_the_line_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("好".encode("gb18030") + b"\xba\n" + "山".encode("gb18030"))
    assert read(tmp_path / "a.txt", encoding="gb18030") == ["山"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be", "gb18030"])
def test_characters_over_the_edge_of_a_chunk(encoding: str) -> None:
    text = "\ufeff" + "a" + "天𠀀" * (CHUNK_BYTES // 5)
    decoded = DecodedText(content_of(text.encode(encoding)), Encoding(encoding, 0))
    assert "".join(decoded.chunks()) == text[1:]


@given(st.text(st.characters(codec="utf-8"), max_size=31))
def test_any_text_comes_back(text: str) -> None:
    assert "".join(text_of(text).chunks()) == text.removeprefix("\ufeff")
    assert text_of(text).head(7) == text.removeprefix("\ufeff")[:7]


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_last_character_cut_in_half(tmp_path: Path, encoding: str) -> None:
    lines = "今天没有下雨。我们去公园。\n".encode(encoding) * 31
    path = tmp_path / "a.txt"
    path.write_bytes(lines + "苹果山水".encode(encoding)[:-1])
    tally = Tally()
    assert read(path, tally) == ["今天没有下雨。我们去公园。"] * 31
    assert (dropped_of(tally), items_of(tally)) == ({UNDECODABLE: 4}, {UNDECODABLE: 1})
    assert read(path, bad_bytes="replace")[-1] == "苹果山\ufffd"
    told = message_of(CorpusError, lambda: read(path, bad_bytes="strict"))
    assert told.startswith(f"{path}: line 32 is not valid {encoding.upper()}: byte 0x")
    assert f" at offset {len(lines) + len('苹果山'.encode(encoding))} of the file. " in told


def test_half_a_surrogate_pair_from_json(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(r'{"text": "今天\ud83d好"}' + '\n{"text": "我们去公园。"}\n', encoding="utf-8")
    tally = Tally()
    assert read(path, tally) == ["我们去公园。"]
    assert items_of(tally) == {UNDECODABLE: 1}
    assert read(path, bad_bytes="replace") == ["今天\ufffd好", "我们去公园。"]
    told = message_of(CorpusError, lambda: read(path, bad_bytes="strict"))
    assert told == f"{path}: record 1, character 3 is half of a surrogate pair. Correct the record."


# Lines of any length in bounded pieces


TEXTS = st.text(st.sampled_from('天。！”"!a\r\n\u2028 \x85'), max_size=60)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=5))
def test_lines_end_at_line_feeds_and_carriage_returns_wherever_the_chunks_end(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(places)]
    expected = re.split("\r\n|\r|\n", text)
    if not expected[-1]:
        del expected[-1]
    assert list(lines_of_chunks(chunks)) == expected
    assert list(whole_lines(with_line_feeds(chunks), 100)) == expected
    assert list(lines_of(text)) == expected


@pytest.mark.parametrize("chunks", [["雨\n天天", "天\n雨"], ["雨\n天天", "天"], ["雨\n天", "天天\n\n"]])
def test_a_whole_line_that_is_too_long_is_named_wherever_it_ends(chunks: list[str]) -> None:
    assert "".join(whole_lines(chunks, 3)) == "".join(chunks).replace("\n", "")
    with pytest.raises(ValueError, match=r"^2$"):
        list(whole_lines(chunks, 2))


def test_long_lines_are_cut_between_sentences_so_that_these_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "今天下雨。“明天呢？”他问。" * 5 + "这一句没有完"
    monkeypatch.setattr(module, "LONGEST_LINE", 17)
    pieces = list(lines_of_chunks([line[:30], line[30:]]))
    assert "".join(pieces) == line
    assert max(map(len, pieces)) <= 17
    assert [s for piece in pieces for s in split_sentences(piece)] == list(split_sentences(line))
