"""A sample represents the whole corpus."""

import bz2
import gzip
import json
import lzma
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from packed import DUMP_END, DUMP_START, tar_of, wiki_page, zip_of
from planning.corpora import CHARACTERS, figures_of, lines, sample_of

from elmo_zh.planning import sample

TEXT = lines(20_000)


def records(found: Sequence[str]) -> str:
    return "".join(json.dumps({"id": 1, "text": line}) + "\n" for line in found)


def halves_of_csv(found: Sequence[str]) -> dict[str, bytes | str]:
    members: dict[str, bytes | str] = {"picture.png": b"\x89PNG" * 10_000}
    for name, part in (("a.csv", found[: len(found) // 3]), ("b/b.csv", found[len(found) // 3 :])):
        members[name] = "id,review\n" + "".join(f"1,{line}\n" for line in part)
    return members


FORMS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "a.txt": lambda found: "\n".join(found).encode(),
    "a.jsonl.gz": lambda found: gzip.compress(records(found).encode()),
    "a.json": lambda found: json.dumps([{"id": 1, "text": line} for line in found], ensure_ascii=False).encode(),
    "a.txt.xz": lambda found: lzma.compress("\n".join(found).encode("gb18030")),
    "a.txt.bz2": lambda found: bz2.compress("\r\n".join(found).encode("utf-16")),
}


def write(folder: Path, found: Sequence[str], name: str = "a.txt") -> Path:
    path = folder / name
    if name == "a.zip":
        return zip_of(path, halves_of_csv(found))
    if name == "a.tar.gz":
        return tar_of(path, {"a.txt": "\n".join(found).encode()}, "w:gz")
    path.write_bytes(FORMS[name](found))
    return path


def write_small_files(folder: Path, found: Sequence[str]) -> Path:
    many = folder / "many"
    many.mkdir()
    for number in range(0, len(found), 50):
        (many / f"{number:05}.txt").write_text("\n".join(found[number : number + 50]), encoding="utf-8")
    return many


@pytest.mark.parametrize("name", [*FORMS, "a.zip", "a.tar.gz", "many"])
def test_an_eighth_of_a_corpus_tells_how_much_text_it_has(name: str, tmp_path: Path) -> None:
    path = write_small_files(tmp_path, TEXT) if name == "many" else write(tmp_path, TEXT, name)
    found = sample_of(path)
    assert not found.is_all
    assert found.num_unreached == 0
    assert 0.05 < sum(block.num_bytes for block in found.blocks) / found.totals["line_bytes"] < 0.4
    figures = figures_of(path)
    characters = sum(map(len, TEXT))
    assert figures["characters"] == characters
    for figure, truth in (("kept_characters", characters), ("tokens", characters), ("sentences", len(TEXT))):
        assert figures[figure] == pytest.approx(truth, rel=0.02), figure


def test_documents_are_files_where_files_are_documents(tmp_path: Path) -> None:
    found = sample_of(write_small_files(tmp_path, TEXT))
    assert found.totals["documents"] == found.num_files == 400
    by_line = sample_of(tmp_path / "many", config=replace(CHARACTERS, document="line"))
    assert by_line.totals["documents"] == 20_000


def test_blocks_are_spread_in_proportion_to_size(tmp_path: Path) -> None:
    files = {}
    for name, start, end in (("a", 0, 2000), ("b", 2000, 8000), ("c", 8000, 20_000)):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT[start:end]), encoding="utf-8")
        files |= dict.fromkeys(TEXT[start:end], name)
    blocks = sample_of(tmp_path).blocks
    counts = Counter(files[block.lines[len(block.lines) // 2]] for block in blocks)
    assert len(blocks) == 15
    assert abs(counts["b"] - 15 * 0.3) < 1.5
    assert abs(counts["c"] - 15 * 0.6) < 1.5


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    first, again, other = (sample_of(path, seed=seed).blocks for seed in (1, 1, 2))
    assert [block.lines for block in first] == [block.lines for block in again]
    assert [block.lines for block in first] != [block.lines for block in other]


def test_every_block_of_a_corpus_has_the_same_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where so many blocks were read that only every second one was kept."""
    path = write(tmp_path, TEXT)
    number = len(sample_of(path, megabytes=1000).blocks)
    for most, kept in ((10**6, number), (number // 2 + 1, -(-number // 2))):
        monkeypatch.setattr(sample, "_MOST_BLOCKS", most)
        chosen = Counter(
            block.lines[0] for seed in range(20) for block in sample_of(path, megabytes=0.066, seed=seed).blocks
        )
        assert sum(chosen.values()) == 20 * 4
        assert max(chosen.values()) <= 8 * number / kept  # 20 * 4 / number, some 1, on average
        assert 0.5 * kept < len(chosen) <= kept


@pytest.mark.parametrize(("seconds", "seed"), [(60, 1), (100, 2)])
def test_what_time_does_not_suffice_for_is_like_what_was_read(
    seconds: float, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"1,{line}\n" for line in TEXT), encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("\n".join(TEXT).encode("gb18030"))
    for number in range(60):
        (tmp_path / f"{number}.txt").write_text("\n".join(TEXT[number * 40 : number * 40 + 40]), encoding="utf-8")
    truth = sample_of(tmp_path)
    times = iter(range(10**9))
    monkeypatch.setattr(sample.time, "monotonic", lambda: float(next(times)))
    found = sample_of(tmp_path, seconds=seconds, seed=seed)
    assert found.num_unreached > 0
    assert found.totals["characters"] == pytest.approx(truth.totals["characters"], rel=0.25)
    assert found.totals["documents"] == pytest.approx(truth.totals["documents"], rel=0.5)


@pytest.mark.parametrize("shape", ["text", "jsonl", "dump", "packed dump"])
def test_large_files_are_read_in_ranges(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_RANGED_FROM_BYTES", 0), ("_RANGE_BYTES", 2**12)):
        monkeypatch.setattr(sample, name, value)
    path, text = tmp_path / "a.txt", "\n".join(TEXT)
    if shape == "jsonl":
        path, text = tmp_path / "a.jsonl", "".join(json.dumps({"text": line}) + "\n" for line in TEXT)
    if "dump" in shape:
        pytest.importorskip("lxml")
        pytest.importorskip("mwparserfromhell")
        path = tmp_path / "a.xml"
        pages = [wiki_page(n, "。".join(TEXT[n : n + 5])) for n in range(0, len(TEXT), 5)]
        streams = [DUMP_START, *("".join(pages[n : n + 20]) for n in range(0, len(pages), 20)), DUMP_END]
        text = "".join(streams)
    path.write_text(text, encoding="utf-8")
    if shape == "packed dump":
        path = tmp_path / "a.xml.bz2"
        path.write_bytes(b"".join(bz2.compress(stream.encode()) for stream in streams))
    assert not sample_of(path).is_all
    figures = figures_of(path)
    truth = {"documents": {"text": 1, "jsonl": 20_000}.get(shape, 4000), "sentences": 20_000}
    truth["characters"] = truth["tokens"] = sum(map(len, TEXT))
    for name, value in truth.items():
        assert figures[name] == pytest.approx(value, rel=0.05), name


def test_copies_are_no_text(tmp_path: Path) -> None:
    """Half of the lines stand twice; short lines may occur twice."""
    doubled = [line for number, line in enumerate(TEXT) for line in [line] * (1 + number % 2)]
    Random(1).shuffle(doubled)
    figures = figures_of(write(tmp_path, doubled))
    assert figures["characters"] == sum(map(len, doubled))
    assert figures["kept_characters"] == pytest.approx(sum(map(len, dict.fromkeys(TEXT))), rel=0.02)
    kept = figures_of(tmp_path / "a.txt", text=replace(CHARACTERS, drop_duplicates=False))
    assert kept["kept_characters"] == pytest.approx(sum(map(len, doubled)), rel=0.02)
