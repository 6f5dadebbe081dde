"""Any number of periods: by a column or by index, their documents, fragments, change points, and the picture."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from contexts.texts import build, indexed, write_text
from contract.command_line import elmo_zh, succeed

from elmo_zh import ContextIndex, ElmoEmbedder, measure_drift
from elmo_zh.contexts.drift import periods_of

EVERYDAY, DEAR = ("吃", "我们", "今天", "和", "很"), ("贵", "。", "手机", "，")
YEARS = ("9", "10", "2020")


def lines_about(seed: int, num_lines: int, words: Sequence[str], *, whole: bool = True) -> list[str]:
    """Lines with 苹果 among some words, and 米饭 always before 都 if `whole`."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(num_lines):
        before, after = (list(generator.choice(words, generator.integers(2, 5))) for _ in range(2))
        found.append(" ".join([*before, "苹果", *after, *(("米饭", "都") if whole else ("米饭", *after, "都"))]))
    return found


@pytest.fixture(scope="module")
def years(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> ContextIndex:
    """Records of three years, of which 苹果 stands beside other words in the last; one line has no year."""
    folder = tmp_path_factory.mktemp("years")
    records = [
        {"text": line, "year": year, "kind": "a"}
        for year, words in zip(YEARS, (EVERYDAY, EVERYDAY, DEAR), strict=True)
        for line in lines_about(int(year), 23, words)
    ]
    written = [json.dumps(record, ensure_ascii=False) for record in (*records[::-1], {"text": "我们 吃 苹果"})]
    return indexed(embedder, [write_text(folder / "years.jsonl", written)], folder / "years.index", min_count=1)


def test_a_word_is_followed_over_the_values_of_a_column(years: ContextIndex) -> None:
    found = measure_drift(years, periods="year", permutations=999)
    assert [period.name for period in found.periods] == list(YEARS)  # as numbers, though the last came first
    apple = next(each for each in found.words if each.word == "苹果")
    assert [step.boundary for step in apple.steps] == ["9 → 10", "10 → 2020"]
    assert (apple.old, apple.new, apple.old_count, apple.old_documents) == ("9", "2020", 23, 23)
    assert apple.steps[0].q > 0.05 > apple.steps[1].q
    assert apple.change == "10 → 2020"
    for each in (apple, *apple.steps):
        assert each.low < each.excess < each.high
        assert abs(each.baseline) < 0.01
    assert found.fragments == {"米饭": "米饭 都", "都": "米饭 都"}
    every = measure_drift(years, periods="year", permutations=9, with_fragments=True)
    assert {each.word: each.fragment for each in every.words}["米饭"] == "米饭 都"
    assert next(each for each in every.words if each.word == "苹果").fragment is None


def test_documents(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """Records with columns and files of plain text; raw lines, not sentences, in a period of fewer than five."""
    lines = ["我们 吃 苹果 。 苹果 贵 。", "苹果 和 手机 。"]
    table = write_text(tmp_path / "t.csv", ["text,kind", *(f"{line},a" for line in lines * 3)])
    files = [write_text(tmp_path / f"19_{number}.txt", lines) for number in range(5)]
    few = [write_text(tmp_path / f"20_{number}.txt", lines) for number in range(4)]
    build(embedder, [table], tmp_path / "table.index", split=True, min_count=1)
    [period, _] = periods_of([ContextIndex.load(tmp_path / "table.index")] * 2, None)
    assert (period.by_lines, len(np.unique(period.documents))) == (False, 6)
    arguments = ("index", *files, *few, "--from-name", "{year}_{n}.txt", "--split-sentences", "--min-count", "1")
    assert elmo_zh(*arguments, "--model", embedder.bundle.path, "--output", "n.index").status == 0
    indexes = [ContextIndex.load(path) for path in (tmp_path / "table.index", "n.index")]
    assert [each.name for each in periods_of(indexes, None)] == ["table", "n"]
    old, new = periods_of([ContextIndex.load("n.index")], "year")
    assert (old.by_lines, len(np.unique(old.documents[old.lines]))) == (False, 5)
    assert (new.by_lines, len(np.unique(new.documents[new.lines]))) == (True, 8)
    assert (old.counts["苹果"], new.counts["苹果"], len(new.occurrences("苹果"))) == (15, 12, 12)


def test_jensen_shannon_divergence_tells_the_changed_word(years: ContextIndex) -> None:
    pytest.importorskip("sklearn")
    found = measure_drift(years, periods="year", by="jsd", permutations=99, words=["苹果"])
    assert found == measure_drift(years, periods="year", by="jsd", permutations=99, words=["苹果"])
    [apple] = found.words
    assert apple.jsd is not None
    assert apple.baseline < apple.jsd == apple.distance <= 1
    assert apple.steps[0].distance < apple.steps[1].distance
    assert apple.steps[1].p < 0.1 < apple.steps[0].p
    [by_excess] = measure_drift(years, periods="year", permutations=9, words=["苹果"]).words
    assert (by_excess.excess, by_excess.jsd) == (apple.excess, None)


def test_the_command_shows_steps_and_draws_them(years: ContextIndex) -> None:
    command = ("drift", years.path, "--periods", "year", "--permutations", "999", "--lines", "1", "--top", "1")
    shown = succeed(*command, "--output", "all.tsv", "--picture", "a.png", "--words", write_text(Path("w"), ["苹果"]))
    steps = [line.split()[:3] for line in shown.stdout.splitlines() if re.match("苹果 ", line)]
    assert steps == [["苹果", "9", "10"], ["苹果", "10", "2020"], ["苹果", "9", "2020"]]
    assert [line for line in shown.stdout.splitlines() if line.startswith("苹果,")] == ["苹果, 9", "苹果, 2020"]
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    with Path("all.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [(row["old"], row["new"]) for row in rows] == [("9", "10"), ("10", "2020"), ("9", "2020")]
    result = elmo_zh(*command, "--json").result()
    assert result["periods"] == [{"name": year, "by_lines": False} for year in YEARS]
    apple = next(each for each in result["words"] if each["word"] == "苹果")
    assert (len(apple["steps"]), apple["change"]) == (2, "10 → 2020")
    assert "Left out fragments of longer words" in shown.stderr + elmo_zh(*command).stderr
    assert "Lines left out because year has no value: 1" in shown.stderr


def test_one_line_for_wrong_periods(years: ContextIndex) -> None:
    words = write_text(Path("w"), ["米饭"])
    for arguments, expected in (
        (("--periods", "yaer"), "--periods: the texts have no column yaer. Their columns are: "),
        (("--periods", "kind:year"), "--periods kind:year; expected dates."),
        (("--periods", "kind"), "At least two periods are needed"),
        ((), f"Columns of {years.path}: source, kind, year"),
        ((years.path, "--periods", "year"), "--periods and years.index cannot be combined"),
        (("--periods", "year", "--words", words), "--with-fragments"),
    ):
        assert expected in elmo_zh("drift", years.path, *arguments).stderr.splitlines()[-1]
