"""Places that commands print are those of the source: file, line, and characters of the raw line."""

import csv
import json
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import pyarrow.parquet as pq
import pytest
from contexts.texts import model_of_words
from contract.command_line import elmo_zh

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.contexts import PageChoice
from elmo_zh.explore.page_content import PageContent
from elmo_zh.run.reporter import SilentReporter

# Full-width and compatibility characters, decomposed accents and Hangul, characters beyond U+FFFF, white space at the
# ends, both kinds of line end, and a CR within a line. Sentences begin in the middle of lines.
TEXT = (
    "\ufeff今天 ＡＢＣ 很 贵。　苹果 和 ㍿ 都 贵！ 苹果 呢？\r\n"
    "\r\n"
    "　 Cafe\u0301 和 １２３ 苹果 。“\u1112\u1161\u11ab 苹果 。”😀 𠮷野 苹果 ﷺ ﬁ 苹果 ！\r"
    "苹果 。\t我们 吃 苹果 。 ㌔ 苹果\n"
    "　。 苹果 ①② 苹果 …… 苹果 \n"
)
LINES = [line.removesuffix("\r") for line in TEXT.removeprefix("\ufeff").split("\n")]
WORDS = ("今天", "苹果", "和", "贵")
WORD, NUM_OCCURRENCES = "苹果", sum(line.count("苹果") for line in LINES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the text twice, and its indexes of lines and of sentences."""
    folder = tmp_path_factory.mktemp("places")
    model = model_of_words(folder / "model", with_softmax=True, words=WORDS)
    for name in ("a.txt", "b.txt"):
        (folder / name).write_bytes(TEXT.encode())
    for name, split in (("lines", ()), ("sentences", ("--split-sentences",))):
        texts = (folder / "a.txt", folder / "b.txt")
        options = ("--min-count", "1", "--output", folder / f"{name}.index")
        assert elmo_zh("index", *texts, "--model", model, *options, *split).status == 0
    return folder


def check(places: Iterable[Mapping[str, Any]], count: int = 2 * NUM_OCCURRENCES) -> None:
    """Check that each place has the word in the source, and that there are as many different ones as expected."""
    found = set()
    for place in places:
        line, start, end = int(place["line"]), int(place["start"]), int(place["end"])
        assert LINES[line][start:end] == WORD
        found.add((Path(place.get("source", "a.txt")).name, line, start))
        if "text_start" in place:
            text = place["text"].replace("\\t", "\t").replace("\\r", "\r")
            assert LINES[line].startswith(text, int(place["text_start"]))
    assert len(found) == count


@pytest.fixture(params=["lines.index", "sentences.index"])
def index(folder: Path, request: pytest.FixtureRequest) -> Path:
    return folder / str(request.param)


def test_senses(index: Path, tmp_path: Path) -> None:
    command = ("senses", WORD, "--index", index, "--usages", "1", "--no-substitutes", "--output", tmp_path / "a.tsv")
    [usage] = elmo_zh(*command, "--json").result()["usages"]
    check(usage["lines"], count=len(usage["lines"]))
    with (tmp_path / "a.tsv").open(encoding="utf-8", newline="") as file:
        check(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_neighbours(index: Path) -> None:
    command = ("neighbours", WORD, "--in", "我们 吃 苹果", "--index", index, "--same-word", "--top", "99", "--json")
    # Repeated lines are shown once, so the second file has none.
    check(elmo_zh(*command).result()["neighbours"], count=NUM_OCCURRENCES)


def test_drift(index: Path, tmp_path: Path) -> None:
    command = ("drift", index, index, "--min-count", "2", "--permutations", "1", "--lines", "99", "--json")
    words = {word["word"]: word for word in elmo_zh(*command).result()["words"]}
    check(words[WORD]["old_lines"], count=len(words[WORD]["old_lines"]))
    check(words[WORD]["new_lines"], count=len(words[WORD]["new_lines"]))
    assert words[WORD]["new_lines"]


def test_the_page(folder: Path, index: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("bokeh")
    embedder = ElmoEmbedder.load(folder / "model", "cpu")
    choice = PageChoice(words=(WORD,))
    data = PageContent(ContextIndex.load(index), embedder, choice, "cpu", SilentReporter()).whole()
    for (line, start, end), tokens in zip(data["points"], data["parts"][0]["tokens"], strict=True):
        text, name, number, _ = data["lines"][line]
        assert name in ("a.txt", "b.txt")
        assert text in LINES[number]
        assert text[start:end] == WORD
        assert (start, end) in {(first, last) for first, last, *_ in tokens}
    assert len(data["points"]) == NUM_OCCURRENCES


@pytest.mark.parametrize("split", [(), ("--split-sentences",)])
def test_score(folder: Path, split: tuple[str, ...]) -> None:
    command = ("score", folder / "a.txt", "--model", folder / "model", "--by", "token", *split)
    table = list(csv.DictReader(elmo_zh(*command).stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    records = [json.loads(line) for line in elmo_zh(*command, "--format", "jsonl").stdout.splitlines()]
    assert list(records[0]) == ["line", "place", "start", "end", "token", "forward_nats", "backward_nats", "unknown"]
    for rows in (table, records):
        check((row for row in rows if row["token"] == WORD), count=NUM_OCCURRENCES)
        assert len(rows) > 30
        for row in rows:
            raw = LINES[int(row["line"])][int(row["start"]) : int(row["end"])]
            assert normalised(raw) == normalised(row["token"])
        for line in {row["line"] for row in rows}:
            places = [int(row["place"]) for row in rows if row["line"] == line]
            assert places == list(range(len(places)))
    assert all(row["unknown"] == (row["token"] not in WORDS) for row in records)


def test_substitutes(folder: Path) -> None:
    command = ("substitutes", "--file", folder / "a.txt", "--word", WORD, "--model", folder / "model", "--json")
    check(elmo_zh(*command).result()["occurrences"], count=NUM_OCCURRENCES)


@pytest.mark.parametrize("split", [(), ("--split-sentences",)])
def test_embed(folder: Path, tmp_path: Path, split: tuple[str, ...]) -> None:
    for form in ("parquet", "hdf5"):
        command = ("embed", folder / "a.txt", "--model", folder / "model", "--format", form, *split)
        assert elmo_zh(*command, "--output", tmp_path / f"a.{form}").status == 0
    lines = []
    for row in pq.read_table(tmp_path / "a.parquet").to_pylist():
        lines.append((row["line"], row["tokens"], row["offsets"]))
    with h5py.File(tmp_path / "a.hdf5") as file:
        offsets = [file["offsets"][str(number)][()].tolist() for number in range(len(lines))]
    assert offsets == [[list(pair) for pair in own] for _, _, own in lines]
    places = []
    for line, tokens, own in lines:
        for token, (start, end) in zip(tokens, own, strict=True):
            assert normalised(LINES[line][start:end]) == normalised(token)
            places.append({"line": line, "start": start, "end": end, "token": token})
    check((place for place in places if place["token"] == WORD), count=NUM_OCCURRENCES)


def normalised(text: str) -> str:
    """The text as it is compared here: by NFKC, without white space."""
    return "".join(unicodedata.normalize("NFKC", text).split())
