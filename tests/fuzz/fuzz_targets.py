"""The readers of foreign bytes that are fuzzed, each with seeds made from the sample and from small models.

A reader gets bytes, writes them where a file would be, and reads that file whole. It may refuse it with a known problem
of one line; any other exception is a finding.
"""

import atexit
import bz2
import functools
import gzip
import io
import json
import lzma
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzz_folders import Folder, bundle_folder, id_store_folder, index_folder, task_folder
from fuzz_models import archive_folder, manylangs_folder, published_folder

from elmo_zh.cli.console import explain_failure
from elmo_zh.config import TextConfig
from elmo_zh.config.load import load_config
from elmo_zh.config.schema import Config
from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.corpus.read_source import read_lines
from elmo_zh.corpus.sources import find_sources
from elmo_zh.explore.points import PointLabels
from elmo_zh.text.entries import Entries
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary
from elmo_zh.vocabulary.spelling import END_OF_WORD, load_spelling_model
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, load_vocabulary
from elmo_zh.word2vec.vectors import load_word_vectors, read_given_vectors

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
WORDS = Vocabulary((*SPECIALS, "我们", "今天", "好"))


@dataclass(frozen=True)
class Target:
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes, Path], object]


class FindingError(Exception):
    """What a reader must not do."""


def attempt(target: Target, data: bytes, folder: Path) -> bool:
    try:
        target.read(data, folder)
    except MemoryError as error:
        raise FindingError("it took too much memory") from error
    except Exception as error:
        messages = explain_failure(error)
        if messages is None:
            raise
        if not messages or any("\n" in message or not message.strip() for message in messages):
            raise FindingError(f"the message is not one line: {messages!r:.500}") from error
        return False
    return True


@functools.cache
def paragraphs() -> list[str]:
    files = [path.read_text("utf-8").split("\n")[:3] for path in sorted(SAMPLE.glob("*.txt"))]
    return [line for lines in files for line in lines if line][:9]


def _read_corpus(suffix: str, data: bytes, folder: Path) -> None:
    path = folder / f"input{suffix}"
    path.write_bytes(data)
    [source] = find_sources([str(path)]).sources
    problems = []
    for trusts_head in (False, True):
        try:
            for _ in read_lines(source, TextConfig(), Tally(), trusts_head=trusts_head):
                pass
        except Exception as error:
            if explain_failure(error) is None:
                raise
            problems.append(error)
    for _ in input_text(source, TextConfig()).records():
        pass
    if problems:
        raise problems[0]


def _texts() -> list[bytes]:
    text = "\n".join(paragraphs())
    encoded = [text.encode(encoding) for encoding in ("utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-be")]
    return [*encoded, text.encode("big5", "ignore"), b"", b"\xff\xfe"]


def _csv(separator: str) -> list[bytes]:
    rows = [["id", "内容", "标签"], *([str(n), f'"{line}"', "好"] for n, line in enumerate(paragraphs()))]
    text = "\r\n".join(separator.join(row) for row in rows)
    return [text.encode(), text.encode("gb18030"), text.replace("标签", "text").encode()]


def _records() -> list[dict[str, object]]:
    return [
        {"id": n, "title": line[:5], "text": line, "tags": ["甲", {"b": None}]} for n, line in enumerate(paragraphs())
    ]


def _json() -> list[bytes]:
    return [
        json.dumps(_records(), ensure_ascii=False).encode(),
        json.dumps({"data": _records()}).encode(),
        json.dumps(paragraphs(), ensure_ascii=False).encode("utf-16"),
        b"[" * 5000 + b"]" * 5000,
    ]


def _json_lines() -> list[bytes]:
    lines = [json.dumps(record, ensure_ascii=False) for record in _records()]
    wikiextractor = [
        json.dumps({"id": "1", "url": "x", "title": "题", "text": f"题\n\n{line}"}) for line in paragraphs()
    ]
    return ["\n".join(lines).encode(), "\n".join(wikiextractor).encode(), b'{"text": ' * 3000 + b"1" + b"}" * 3000]


def _wiki() -> list[bytes]:
    pages = "".join(
        f"<page><title>题{n}</title><ns>0</ns><id>{n}</id><revision><id>{n}</id>"
        "<text>'''题'''{{模板|a=[[链接|字]]}}\n== 节 ==\n"
        f"{line}&lt;ref&gt;注&lt;/ref&gt;\n{{| class=x\n|-\n| 表\n|}}</text></revision></page>"
        for n, line in enumerate(paragraphs()[:3])
    )
    dump = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">{pages}</mediawiki>'
    return [dump.encode(), dump.replace("<ns>0", "<ns>1").encode(), dump[:-80].encode()]


def _html() -> list[bytes]:
    body = "".join(f"<p>{line}<br>又<a href=x>一句</a></p>" for line in paragraphs())
    head = "<meta charset=gbk><title>题</title>"
    page = f"<!doctype html><html><head>{head}</head><body><nav>导航</nav>{body}</body></html>"
    return [page.encode(), page.encode("gb18030"), ("<div>" * 3000 + paragraphs()[0]).encode()]


def _markdown() -> list[bytes]:
    text = (
        "---\ntitle: 题\n---\n# 题\n\n"
        + "\n\n".join(paragraphs())
        + "\n\n```\ncode\n```\n| a | b |\n|---|---|\n| 一 | 二 |\n"
    )
    return [text.encode(), (">" * 2000 + " 字").encode(), ("*[" * 2000).encode()]


def _zip() -> list[bytes]:
    found = []
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", compression) as archive:
            archive.writestr("a.txt", "\n".join(paragraphs()))
            archive.writestr("b/c.csv", _csv(",")[0])
            archive.writestr("b/d.txt", "字")
        found.append(stream.getvalue())
    return found


def _tar() -> list[bytes]:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in (("a.txt", _texts()[0]), ("b/c.jsonl", _json_lines()[0])):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return [stream.getvalue(), gzip.compress(stream.getvalue(), mtime=0)]


def _zstd(data: bytes) -> bytes:
    """A frame of one raw block, which needs no library: magic number, header, block."""
    data = data[:200]
    block = (len(data) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + block + data


def _packed(pack: Callable[[bytes], bytes]) -> Callable[[], list[bytes]]:
    return lambda: [pack(_texts()[0]), pack(_texts()[2]), pack(b"")]


CORPUS: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "text": (".txt", _texts),
    "any": ("", lambda: [*_texts(), *_json(), *_html(), *_wiki(), *_zip()]),
    "csv": (".csv", lambda: _csv(",")),
    "tsv": (".tsv", lambda: _csv("\t")),
    "json": (".json", lambda: [*_json(), *_json_lines()]),
    "jsonl": (".jsonl", _json_lines),
    "wikidump": (".xml", _wiki),
    "html": (".html", _html),
    "markdown": (".md", _markdown),
    "zip": (".zip", _zip),
    "tar": (".tar", _tar),
    "gz": (".txt.gz", _packed(lambda data: gzip.compress(data, mtime=0))),
    "bz2": (".txt.bz2", _packed(bz2.compress)),
    "xz": (".txt.xz", _packed(lzma.compress)),
    "zst": (".txt.zst", _packed(_zstd)),
}


def _read_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def write_and_read(data: bytes, folder: Path) -> None:
        (folder / name).write_bytes(data)
        read(folder / name)

    return write_and_read


def _conll() -> list[bytes]:
    rows = [" ".join(line[:9]) + "\t" + " ".join("O" for _ in line[:9] if _ != " ") for line in paragraphs()]
    return [
        "\n".join(f"{c}\t{'B-LOC' if n % 3 else 'O'}" for n, c in enumerate(line)).encode() for line in paragraphs()[:3]
    ] + ["\n".join(rows).encode(), "# 好 O\n\u3000 O\n我_PN 在_P 家_NN\n".encode()]


def _spans() -> list[bytes]:
    record = {"text": "我在北京", "spans": [[2, 4, "LOC"]], "entities": [{"start": 2, "end": 4, "label": "LOC"}]}
    lists = {"tokens": ["北", "京"], "ner_tags": ["B-LOC", "I-LOC"]}
    return [
        json.dumps(record, ensure_ascii=False).encode(),
        json.dumps([record, record], indent=1).encode(),
        json.dumps(lists, ensure_ascii=False).encode(),
    ]


def _load_dictionary(path: Path) -> None:
    load_user_dictionary(path, TextConfig(), lambda word, count, tag: None)


def _of_folder(make: Callable[[Path], Folder]) -> Target:
    """A folder of several files: the first byte of the data chooses the one that the rest replaces."""
    made: list[Folder] = []

    def folder_of() -> Folder:
        if not made:
            folder = Path(tempfile.mkdtemp(prefix="elmo-zh-fuzz-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            made.append(make(folder))
        return made[0]

    def read(data: bytes, _: Path) -> None:
        folder = folder_of()
        path = folder.files[data[0] % len(folder.files)] if data else folder.files[0]
        sound = path.read_bytes()
        try:
            path.write_bytes(data[1:])
            folder.prepare(path)
            folder.read()
        finally:
            path.write_bytes(sound)
            folder.prepare(path)

    return Target(lambda: [bytes([n]) + path.read_bytes() for n, path in enumerate(folder_of().files)], read)


TARGETS: dict[str, Target] = {
    **{name: Target(seeds, functools.partial(_read_corpus, suffix)) for name, (suffix, seeds) in CORPUS.items()},
    "labelled-conll": Target(_conll, _read_file("x.txt", lambda path: read_labelled(path, Reading(kind="tag")))),
    "labelled-spans": Target(_spans, _read_file("x.jsonl", lambda path: read_labelled(path, Reading(kind="tag")))),
    "point-labels": Target(
        lambda: ["file\tline\tstart\tword\tsense\nc.txt\t0\t0\t苹果\t水果\na.txt\t1\t2\t好\t\n".encode()],
        _read_file("x.tsv", lambda path: PointLabels.load(path, ["a.txt", "b/a.txt", "c.txt"])),
    ),
    "settings": Target(
        lambda: [b'[text]\nsegmenter = "jieba"\n[train]\nbatch_size = 3\n[model]\ncharacter_filters = [[1, 2]]\n'],
        _read_file("x.toml", lambda path: load_config(Config(), path, [])),
    ),
    "vocabulary": Target(lambda: ["<S>\n</S>\n<UNK>\n我们\n好\n".encode()], _read_file("vocab.data", load_vocabulary)),
    "spelling": Target(
        lambda: [f"{END_OF_WORD}\t3\n好\t2\n\\t\t1\n".encode()], _read_file("character_counts.tsv", load_spelling_model)
    ),
    "word2vec": Target(
        lambda: ["2 3\n我们 1 2 3\n好 0.5 -1e-3 7\n".encode()],
        _read_file("word2vec.txt", lambda path: load_word_vectors(path, WORDS, 3)),
    ),
    "given-vectors": Target(
        lambda: ["2 3\n我们 1 2 3\n好 0.5 -1e-3 7\n".encode(), b"\x80\x04\x95", gzip.compress("好 1 2 3\n".encode())],
        _read_file("given.vec", lambda path: read_given_vectors(Entries(path, str.strip), WORDS, 3)),
    ),
    "user-dictionary": Target(
        lambda: ["云计算 5 n\n好 的\n".encode()], _read_file("user_dictionary.txt", _load_dictionary)
    ),
    "bundle": _of_folder(functools.partial(bundle_folder, mode="token")),
    "bundle-of-characters": _of_folder(functools.partial(bundle_folder, mode="character")),
    "id-store": _of_folder(id_store_folder),
    "index": _of_folder(index_folder),
    "task": _of_folder(task_folder),
    "published": _of_folder(functools.partial(published_folder, has_characters=False)),
    "published-of-characters": _of_folder(functools.partial(published_folder, has_characters=True)),
    "published-zip": _of_folder(archive_folder),
    "manylangs": _of_folder(manylangs_folder),
}


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """Return bytes with one to four changes, in the way of fuzzers: flipped, cut, doubled, edge values put in."""
    for _ in range(random.integers(1, 5)):
        size = len(data)
        start, end = sorted(random.integers(0, size + 1, 2).tolist())
        edge = [b"", b"\0", b"\xff" * 8, b"[" * 3000, b'"', b"\n", b"9" * 30, b"\xed\xa0\x80", b"1e999", b"-1"]
        match random.integers(0, 6):
            case 0 if size:
                place = int(random.integers(size))
                data = data[:place] + bytes([data[place] ^ 1 << int(random.integers(8))]) + data[place + 1 :]
            case 1:
                data = data[:start] + data[end:]
            case 2:
                data = data[:end] + data[start:]
            case 3:
                data = data[:start] + edge[random.integers(len(edge))] + data[start:]
            case 4:
                data = data[:start] + random.bytes(int(random.integers(1, 9))) + data[start:]
            case _:
                data = data[:end]
    return data
