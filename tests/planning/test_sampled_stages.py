"""A sample represents the whole corpus."""

import bz2
import gzip
import json
import lzma
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from planning.corpora import CHARACTERS, figures_of, lines, sample_of

from elmo_zh.planning import sample

TEXT = lines(20_000)


def write_text(folder: Path, found: Sequence[str]) -> Path:
    path = folder / "a.txt"
    path.write_text("\n".join(found) + "\n", encoding="utf-8")
    return path


def write_jsonl(folder: Path, found: Sequence[str]) -> Path:
    path = folder / "a.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps({"id": 1, "text": line}) + "\n" for line in found).encode()))
    return path


def write_json(folder: Path, found: Sequence[str]) -> Path:
    path = folder / "a.json"
    path.write_text(json.dumps([{"id": 1, "text": line} for line in found], ensure_ascii=False), encoding="utf-8")
    return path


def write_csv_in_zip(folder: Path, found: Sequence[str]) -> Path:
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("picture.png", b"\x89PNG" * 10_000)
        for name, part in (("a.csv", found[: len(found) // 3]), ("b/b.csv", found[len(found) // 3 :])):
            archive.writestr(name, "id,review\n" + "".join(f"1,{line}\n" for line in part))
    return path


def write_gb(folder: Path, found: Sequence[str]) -> Path:
    path = folder / "a.txt.xz"
    path.write_bytes(lzma.compress("\n".join(found).encode("gb18030")))
    return path


def write_utf16(folder: Path, found: Sequence[str]) -> Path:
    path = folder / "a.txt.bz2"
    path.write_bytes(bz2.compress("\r\n".join(found).encode("utf-16")))
    return path


def write_tar(folder: Path, found: Sequence[str]) -> Path:
    inside = write_text(folder, found)
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        archive.add(inside, "a.txt")
    return folder / "a.tar.gz"


def write_small_files(folder: Path, found: Sequence[str]) -> Path:
    many = folder / "many"
    many.mkdir()
    for number in range(0, len(found), 50):
        (many / f"{number:05}.txt").write_text("\n".join(found[number : number + 50]), encoding="utf-8")
    return many


@pytest.mark.parametrize(
    "write",
    [write_text, write_jsonl, write_json, write_csv_in_zip, write_gb, write_utf16, write_tar, write_small_files],
)
def test_an_eighth_of_a_corpus_tells_how_much_text_it_has(
    write: Callable[[Path, Sequence[str]], Path], tmp_path: Path
) -> None:
    path = write(tmp_path, TEXT)
    found = sample_of(path)
    assert not found.is_all
    assert found.num_unreached == 0
    assert 0.05 < sum(block.num_bytes for block in found.blocks) / found.totals["line_bytes"] < 0.4
    figures = figures_of(path)
    characters = sum(map(len, TEXT))
    assert figures["characters"] == characters
    for name, truth in (("kept_characters", characters), ("tokens", characters), ("sentences", len(TEXT))):
        assert figures[name] == pytest.approx(truth, rel=0.02), name


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
    path = write_text(tmp_path, TEXT)
    first, again, other = (sample_of(path, seed=seed).blocks for seed in (1, 1, 2))
    assert [block.lines for block in first] == [block.lines for block in again]
    assert [block.lines for block in first] != [block.lines for block in other]


def test_every_block_of_a_corpus_has_the_same_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where so many blocks were read that only every second one was kept."""
    path = write_text(tmp_path, TEXT)
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
        pages = [
            f"<page><title>{n}</title><ns>0</ns><revision><text>{'。'.join(TEXT[n : n + 5])}</text></revision></page>\n"
            for n in range(0, len(TEXT), 5)
        ]
        streams = ["<mediawiki>\n", *("".join(pages[n : n + 20]) for n in range(0, len(pages), 20)), "</mediawiki>\n"]
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
    figures = figures_of(write_text(tmp_path, doubled))
    assert figures["characters"] == sum(map(len, doubled))
    assert figures["kept_characters"] == pytest.approx(sum(map(len, dict.fromkeys(TEXT))), rel=0.02)
    kept = figures_of(tmp_path / "a.txt", text=replace(CHARACTERS, drop_duplicates=False))
    assert kept["kept_characters"] == pytest.approx(sum(map(len, doubled)), rel=0.02)
