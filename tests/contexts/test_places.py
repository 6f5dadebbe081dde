"""Every place that a command writes, compared with the text by a reader that shares no code with the package.

tests/embed/test_embed_formats.py has those of `embed`.
"""

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contexts.texts import model_of_words
from contract.command_line import elmo_zh

# Full-width and compatibility characters, decomposed accents and Hangul, characters beyond U+FFFF, white space at the
# ends, both kinds of line end, and a CR within a line. Sentences begin in the middle of lines.
HARD = (
    "\ufeff今天 ＡＢＣ 很 贵。 　苹果 和 ㍿ 都 贵！ 苹果 呢？\r\n"
    "\r\n"
    "　 Cafe\u0301 和 １２３ 苹果 。“\u1112\u1161\u11ab 苹果 。”😀 𠮷野 苹果 ﷺ ﬁ 苹果 ！\r"
    "苹果 。 \t我们 吃 苹果 。 ㌔ 苹果\n"
    "　。 苹果 ①② 苹果 …… 苹果 \n"
)


class Places:
    """Counts rows and those that do not fit the text."""

    def __init__(self, lines: list[str]) -> None:
        self._lines, self.rows, self.wrong = lines, Counter[str](), list[tuple[str, Any]]()

    def check(self, name: str, rows: Iterable[Mapping[str, Any]], word: str | None = None) -> set[tuple[int, int]]:
        """Check rows, each with its own `token` if no word is given; return their lines and starts."""
        found = set()
        for row in rows:
            line, start, end = int(row["line"]), int(row["start"]), int(row["end"])
            raw = self._lines[line][start:end]
            fits = normalised(raw) == normalised(row["token"] if word is None else word)
            if "text_start" in row:
                fits = fits and self._lines[line].startswith(unescaped(row["text"]), int(row["text_start"]))
            self.rows[name] += 1
            if not fits:
                self.wrong.append((name, dict(row)))
            found.add((line, start))
        return found


def normalised(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"t": "\t", "r": "\r", "n": "\n"}.get(found[1], found[1]), text)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(("form", "split"), [("txt", False), ("txt", True), ("jsonl", True)])
def test_every_place_is_in_the_text(tmp_path: Path, form: str, split: bool) -> None:
    for library in ("sklearn", "bokeh"):
        pytest.importorskip(library)
    text, index, word = tmp_path / f"hard.{form}", tmp_path / "index", "苹果"
    lines = [line.removesuffix("\r") for line in HARD.removeprefix("\ufeff").split("\n")[:-1]]
    records = "".join(f"{json.dumps({'text': line})}\r\n" for line in lines)
    text.write_bytes((HARD if form == "txt" else records).encode())
    model = model_of_words(tmp_path / "model", with_softmax=True, words=("今天", "苹果", "和", "贵"))
    # Line ends within a record are spaces.
    places = Places(lines if form == "txt" else [line.replace("\r", " ") for line in lines])
    options = ("--split-sentences",) if split else ()
    scored = check_tokens(places, text, model, options)
    assert elmo_zh("index", text, "--model", model, "--min-count", "1", "--output", index, *options).status == 0
    check_index_files(places, index)
    check_drift(places, index)
    expected = {(row["line"], row["start"]) for row in scored if normalised(row["token"]) == word}
    assert len(expected) == HARD.count(word)
    check_word(places, word, text, index, model, expected)
    assert not places.wrong, places.wrong[:5]


def check_tokens(places: Places, text: Path, model: Path, options: Sequence[str]) -> list[dict[str, Any]]:
    """Check the outputs that have all tokens, and return those of `score`."""
    score = ("score", text, "--model", model, "--by", "token", *options)
    scored = [json.loads(line) for line in elmo_zh(*score, "--format", "jsonl").stdout.splitlines()]
    places.check("score, TSV", table(elmo_zh(*score).stdout))
    places.check("score, JSON lines", scored)
    assert list(scored[0]) == ["line", "place", "start", "end", "token", "forward_nats", "backward_nats", "unknown"]
    num_of_line = Counter[int]()
    known = (model / "vocab.data").read_text(encoding="utf-8").splitlines()
    for row in scored:
        assert (row["place"], row["unknown"]) == (num_of_line[row["line"]], row["token"] not in known)
        num_of_line[row["line"]] += 1
    return scored


def check_index_files(places: Places, index: Path) -> None:
    texts, words = (index / "lines.utf8").read_bytes(), (index / "words.utf8").read_bytes()
    lines, ends = np.load(index / "lines.npy"), np.load(index / "words.npy")["end"]
    begins, word_begins = [0, *lines["end"]], [0, *ends]

    def rows(table: Any) -> Iterator[dict[str, Any]]:
        for line, word, start, end in table:
            first, text = int(lines[line]["start"]), texts[begins[line] : begins[line + 1]].decode()
            token = words[word_begins[word] : word_begins[word + 1]].decode()
            yield {
                "line": lines[line]["number"], "start": first + start, "end": first + end,
                "token": token, "text_start": first, "text": text.replace("\\", "\\\\"),
            }  # fmt: skip

    found = np.load(index / "occurrences.npy")
    places.check("index, occurrences", rows(found[["line", "word", "start", "end"]].tolist()))
    tokens = np.load(index / "tokens.npy")
    owners = np.repeat(np.arange(len(lines)), np.diff([0, *lines["tokens_end"]]))
    places.check(
        "index, tokens",
        rows([(int(n), *token) for n, token in zip(owners, tokens[["word", "start", "end"]].tolist(), strict=True)]),
    )


def check_drift(places: Places, index: Path) -> None:
    options = ("--min-count", "2", "--permutations", "1", "--lines", "9", "--top", "99", "--json")
    for word in elmo_zh("drift", index, index, *options).result()["words"]:
        places.check("drift", [*word["old_lines"], *word["new_lines"]], word["word"])
    assert places.rows["drift"]


def check_word(places: Places, word: str, text: Path, index: Path, model: Path, expected: set[tuple[int, int]]) -> None:
    for source, options in (("text", (text,)), ("index", ("--index", index))):
        for suffix in ("tsv", "csv", "jsonl"):
            output = index.parent / f"{word}-{source}.{suffix}"
            assert elmo_zh("concordance", word, *options, "--output", output).status == 0
            rows = rows_of_table(output)
            assert places.check(f"concordance of {source}, {suffix}", rows, word) >= expected
            assert all(normalised(row["node"]) == word for row in rows)
    command = ("senses", word, "--index", index, "--usages", "1")
    output = index.with_name(f"{word}.tsv")
    for usage in elmo_zh(*command, "--output", output, "--json").result()["usages"]:
        places.check("senses, JSON", usage["lines"], word)
    assert places.check("senses, TSV", rows_of_table(output), word) == expected
    near = elmo_zh("neighbours", word, "--in", f"我看{word}。", "--index", index, "--top", "99", "--json").result()
    places.check("neighbours", ({**row, "token": row["word"]} for row in near["neighbours"]))
    check_page(places, word, index, model)


def rows_of_table(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = path.read_text(encoding="utf-8-sig")
    return table(text) if path.suffix == ".tsv" else list(csv.DictReader(io.StringIO(text, newline="")))


def check_page(places: Places, word: str, index: Path, model: Path) -> None:
    """Check the points of the page, in the data of the written file."""
    output = index.with_name(f"{word}.html")
    options = ("--word", word, "--model", model, "--max-per-word", "20", "--output", output)
    assert elmo_zh("explore", index, *options).status == 0
    page = output.read_text(encoding="utf-8")
    data = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    rows = []
    for line, start, end in data["points"]:
        text, _, number, first = data["lines"][line]
        row = {"line": number, "start": first + start, "end": first + end, "text_start": first}
        rows.append({**row, "text": text.replace("\\", "\\\\")})
    assert rows
    places.check("page", rows, word)
