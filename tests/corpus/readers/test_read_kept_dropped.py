"""What was read is what was kept and what was dropped, for every format: counted again without any of the readers.

Files are drawn, written by the library of their format, and read as the stage `segment` reads them. The characters that
should have been read are those of the drawn texts.
"""

import csv
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path

import pytest
from corpus.readers.reading import PACKERS, dropped_of, items_of, read
from hypothesis import given, settings
from hypothesis import strategies as st
from packed import DUMP_END, DUMP_START, tar_of, wiki_page, zip_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.segmenting.segment_corpus import CorpusPreparation

CONFIG = TextConfig(segmenter="whitespace")
PREPARATION = CorpusPreparation.build(CONFIG, None)

# Chinese with letters, digits, marks, spaces, characters beyond the BMP; none is part of the syntax of a format.
CHARACTERS = "的一是了我不人在他有这上们来到时大地为子中说生国年着就那和要她出也得里后自以会家可下而过天去能对小多然于心学么之都好看起发当没成只如事把还用第样道想作种开，。！？、：；“”…—ａＡ０ab 019.é𠀀😀"  # noqa: E501
TEXT = st.text(CHARACTERS, min_size=1, max_size=40)
# Paragraphs as markup has them: no white space at their ends, which is layout there, and none at all but single spaces.
PARAGRAPH = TEXT.map(lambda text: "段" + " ".join(text.split()) + "。")


def _csv(texts: Sequence[str]) -> tuple[str, bytes]:
    stream = io.StringIO(newline="")
    rows = csv.writer(stream, quoting=csv.QUOTE_ALL)
    rows.writerow(["id", "text"])
    rows.writerows([number, text] for number, text in enumerate(texts))
    return ".csv", stream.getvalue().encode()


def _tsv(texts: Sequence[str]) -> tuple[str, bytes]:
    return ".tsv", "\n".join(["id\ttext", *(f"{number}\t{text}" for number, text in enumerate(texts))]).encode()


def _json(texts: Sequence[str]) -> tuple[str, bytes]:
    return ".json", json.dumps([{"id": number, "text": text} for number, text in enumerate(texts)]).encode()


def _json_lines(texts: Sequence[str]) -> tuple[str, bytes]:
    return ".jsonl", "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode()


def _html(texts: Sequence[str]) -> tuple[str, bytes]:
    body = "".join(f"<p>{escape(text)}</p>\n" for text in texts)
    return ".html", f"<!doctype html><html><head><meta charset=utf-8></head><body>{body}</body></html>".encode()


def _markdown(texts: Sequence[str]) -> tuple[str, bytes]:
    return ".md", "\n\n".join(texts).encode()


def _wiki(texts: Sequence[str]) -> tuple[str, bytes]:
    pages = "".join(wiki_page("题", escape(text)) for text in texts)
    return ".xml", f"{DUMP_START}{pages}{DUMP_END}".encode()


def _wikiextractor(texts: Sequence[str]) -> tuple[str, bytes]:
    """Articles of a title and a paragraph, with the empty lines that the program puts between them."""
    articles = [texts[start : start + 2] for start in range(0, len(texts), 2)]
    written = (
        f'<doc id="{number}" url="https://zh.wikipedia.org/wiki?curid={number}" title="题">\n'
        + "".join(f"{escape(text)}\n\n" for text in article)
        + "</doc>\n"
        for number, article in enumerate(articles)
    )
    return "", "".join(written).encode()


def _text(encoding: str, end: str) -> Callable[[Sequence[str]], tuple[str, bytes]]:
    return lambda texts: (".txt", (end.join(texts) + end).encode(encoding))


RECORDS = {"csv": _csv, "tsv": _tsv, "json": _json, "jsonl": _json_lines}
PROSE = {"html": _html, "markdown": _markdown, "wikidump": _wiki}
LINES = {
    "utf-8": _text("utf-8", "\n"),
    "utf-8 with mark": _text("utf-8-sig", "\r\n"),
    "gb18030": _text("gb18030", "\n"),
    "utf-16": _text("utf-16", "\r\n"),
}


def packed(suffix: str, folder: Path, name: str, data: bytes) -> Path:
    path = folder / f"{name}{suffix}"
    path.write_bytes({"": bytes, **PACKERS}[suffix](data))
    return path


PACKINGS: dict[str, Callable[[Path, str, bytes], Path]] = {
    "plain": partial(packed, ""),
    **{suffix: partial(packed, suffix) for suffix in PACKERS},
    "zip": lambda folder, name, data: zip_of(folder / "a.zip", {name: data, "picture.png": b"\x89PNG"}),
    "tar.gz": lambda folder, name, data: tar_of(folder / "a.tar.gz", {name: data}, "w:gz"),
}


def check(texts: Sequence[str], file: tuple[str, bytes], packing: str, num_texts: int | None) -> None:
    """Read a file both ways; compare the counts with those of the texts that it was written from."""
    suffix, data = file
    expected = sum(len(text) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        path = PACKINGS[packing](Path(folder), f"a{suffix}", data)
        tally = Tally()
        num_kept = 0
        lines = read(path, tally, segmenter="whitespace")
        for line in lines:
            before = tally.kept_characters
            sentences = PREPARATION.sentences(line, tally)
            assert bool(sentences) == (tally.kept_characters > before)
            num_kept += bool(sentences)
        assert tally.characters == expected
        assert tally.kept_characters + sum(dropped_of(tally).values()) == expected
        assert num_kept + sum(items_of(tally).values()) == len(texts)
        if num_texts is not None:
            [source] = find_sources([str(path)]).sources
            assert len(list(input_text(source, CONFIG).records())) == num_texts


RELAXED = settings(max_examples=12)


@pytest.mark.parametrize("kind", RECORDS)
@RELAXED
@given(texts=st.lists(TEXT, min_size=1, max_size=7), packing=st.sampled_from(sorted(PACKINGS)))
def test_records(kind: str, texts: list[str], packing: str) -> None:
    check(texts, RECORDS[kind](texts), packing, len(texts))


@pytest.mark.parametrize("kind", PROSE)
@RELAXED
@given(texts=st.lists(PARAGRAPH, min_size=1, max_size=7), packing=st.sampled_from(sorted(PACKINGS)))
def test_prose(kind: str, texts: list[str], packing: str) -> None:
    check(texts, PROSE[kind](texts), packing, None)


@pytest.mark.parametrize("kind", LINES)
@RELAXED
@given(texts=st.lists(TEXT, min_size=1, max_size=7), packing=st.sampled_from(sorted(PACKINGS)))
def test_lines(kind: str, texts: list[str], packing: str) -> None:
    # So short a text must say what it is written in.
    texts = ["这是一行普通的中文文字，用来认出编码，没有别的意思。", *texts]
    check(texts, LINES[kind](texts), packing, len(texts))


@pytest.mark.parametrize("packing", PACKINGS)
@RELAXED
@given(texts=st.lists(PARAGRAPH, min_size=1, max_size=7))
def test_wikiextractor_in_each_packing(packing: str, texts: list[str]) -> None:
    empty_lines = [""] * len(texts)  # one after each, read and dropped
    check([*texts, *empty_lines], _wikiextractor(texts), packing, None)
