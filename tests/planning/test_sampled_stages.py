"""A sample represents the whole corpus."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from planning.corpora import figures_of, lines, sample_of

from elmo_zh.planning import plan

TEXT = lines(20_000)


def write_small_files(folder: Path, text: Sequence[str]) -> None:
    folder.mkdir()
    for number in range(0, len(text), 50):
        (folder / f"{number:05}.txt").write_text("\n".join(text[number : number + 50]), encoding="utf-8")


def records(text: Sequence[str]) -> bytes:
    return "".join(json.dumps({"id": 1, "text": line}) + "\n" for line in text).encode()


FORMS: dict[str, Callable[[Path, Sequence[str]], object]] = {
    "a.jsonl.gz": lambda path, text: path.write_bytes(gzip.compress(records(text))),
    "many": write_small_files,
}


@pytest.mark.parametrize("name", FORMS)
def test_an_eighth_of_a_corpus_tells_how_much_text_it_has(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    FORMS[name](path, TEXT)
    part = sample_of(path)
    assert not part.is_all
    assert part.num_unreached == 0
    assert 0.05 < part.num_bytes / part.totals["line_bytes"] < 0.4
    figures = figures_of(path)
    characters = sum(map(len, TEXT))
    assert figures["characters"] == characters
    for figure, truth in (("kept_characters", characters), ("tokens", characters), ("sentences", len(TEXT))):
        assert figures[figure] == pytest.approx(truth, rel=0.02), figure


def test_every_line_has_the_same_chance_and_the_seed_decides(tmp_path: Path) -> None:
    files = {}
    for name, start, end in (("a", 0, 2000), ("b", 2000, 8000), ("c", 8000, 20_000)):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT[start:end]), encoding="utf-8")
        files |= dict.fromkeys(TEXT[start:end], name)
    kept = sample_of(tmp_path).lines
    shares = {name: count / len(kept) for name, count in Counter(files[line] for line in kept).items()}
    assert shares == pytest.approx({"a": 0.1, "b": 0.3, "c": 0.6}, abs=0.03)
    assert sample_of(tmp_path).lines == kept
    assert sample_of(tmp_path, seed=2).lines != kept


@pytest.mark.parametrize(("seconds", "seed"), [(30, 1), (50, 2)])
def test_what_time_does_not_suffice_for_is_like_what_was_read(
    seconds: float, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"1,{line}\n" for line in TEXT), encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("\n".join(TEXT).encode("gb18030"))
    for number in range(60):
        (tmp_path / f"{number}.txt").write_text("\n".join(TEXT[number * 40 : number * 40 + 40]), encoding="utf-8")
    truth = sample_of(tmp_path)
    times = iter(range(10**9))
    monkeypatch.setattr(plan.time, "monotonic", lambda: float(next(times)))
    part = sample_of(tmp_path, seconds=seconds, seed=seed)
    assert part.num_unreached > 0
    assert part.totals["characters"] == pytest.approx(truth.totals["characters"], rel=0.25)
