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

import numpy as np
import pytest
from planning.corpora import CHARACTERS, lines, sample_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import CorpusError
from elmo_zh.planning import reading
from elmo_zh.planning.block_picker import BlockPicker
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.reading import SampleSize, _CorpusReader, find_copies
from elmo_zh.segmenting.duplicates import key_rule

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
def test_totals_are_those_of_the_corpus(write: Callable[[Path, Sequence[str]], Path], tmp_path: Path) -> None:
    """An eighth of the text, in every shape: within a few hundredths, and the interval says so."""
    sample = sample_of(write(tmp_path, TEXT))
    assert not sample.is_all
    assert 0.05 < sample.fraction < 0.4
    totals = sample.totals()
    characters = sum(map(len, TEXT))
    assert totals["characters"] == Estimate.exact(characters)
    for name, truth in (("kept_characters", characters), ("tokens", characters), ("sentences", len(TEXT))):
        found = totals[name]
        assert abs(found.value / truth - 1) < 0.01, name
        assert found.low < found.high
        # Intervals miss now and then.
        assert abs(found.value - truth) < 1.6 * (found.high - found.low) + 0.001 * truth, (name, found, truth)
    assert sample.reading.num_unreached == 0


def test_documents_are_files_where_files_are_documents(tmp_path: Path) -> None:
    sample = sample_of(write_small_files(tmp_path, TEXT))
    assert sample.totals()["documents"] == Estimate.exact(sample.reading.num_files) == Estimate.exact(400)
    by_line = sample_of(tmp_path / "many", config=replace(CHARACTERS, document="line"))
    assert by_line.totals()["documents"] == Estimate.exact(20_000)


def test_a_small_corpus_is_read_as_a_whole(tmp_path: Path) -> None:
    path = write_csv_in_zip(tmp_path, TEXT[:500])
    sample = sample_of(path)
    assert sample.is_all
    totals = sample.totals()
    assert totals["characters"].value == sum(map(len, TEXT[:500]))
    assert totals["tokens"] == Estimate.exact(sum(len(line.replace(" ", "")) for line in TEXT[:500]))
    assert totals["documents"].value == 500


def test_blocks_are_spread_in_proportion_to_size(tmp_path: Path) -> None:
    files = {}
    for name, start, end in (("a", 0, 2000), ("b", 2000, 8000), ("c", 8000, 20_000)):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT[start:end]), encoding="utf-8")
        files |= dict.fromkeys(TEXT[start:end], name)
    blocks = sample_of(tmp_path).blocks
    counts = Counter(files[block.lines[len(block.lines) // 2]] for block in blocks)
    assert len(blocks) == 16
    assert abs(counts["b"] - 16 * 0.3) < 1.5
    assert abs(counts["c"] - 16 * 0.6) < 1.5


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write_text(tmp_path, TEXT)
    first, again, other = (sample_of(path, seed=seed).blocks for seed in (1, 1, 2))
    assert [block.lines for block in first] == [block.lines for block in again]
    assert [block.lines for block in first] != [block.lines for block in other]


def test_blocks_are_whole_lines_and_each_stands_for_as_much_text(tmp_path: Path) -> None:
    """Over many seeds every block of a corpus is chosen equally often."""
    path = write_text(tmp_path, TEXT)
    number = len(sample_of(path, num_bytes=10**9).blocks)
    chosen = Counter(
        block.first_line for seed in range(60) for block in sample_of(path, num_bytes=2**16, seed=seed).blocks
    )
    assert sum(chosen.values()) == 60 * 4
    assert max(chosen.values()) <= 12  # 60 * 4 / number, some 3, on average
    assert len(chosen) > 0.7 * number


def test_time_may_not_suffice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read of a file is taken to be like its start, a file that was not read to be like the others."""
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT), encoding="utf-8")
    complete = sample_of(tmp_path).totals()
    times = iter(range(10**9))
    monkeypatch.setattr(reading.time, "monotonic", lambda: float(next(times)))
    sample = sample_of(tmp_path, seconds=100)
    assert not sample.is_all
    assert sample.reading.num_unreached > 0
    totals = sample.totals()
    assert totals["documents"] == Estimate.exact(3)
    assert totals["characters"].holds(complete["characters"].value)
    assert totals["characters"].value == pytest.approx(complete["characters"].value, rel=0.2)


def write_mixture(folder: Path) -> None:
    """Write three large files of long and short lines, and sixty small ones in two folders."""
    (folder / "a.txt").write_text("\n".join("".join(TEXT[n : n + 20]) for n in range(0, 6000, 20)), encoding="utf-8")
    (folder / "b.csv").write_text("id,text\n" + "".join(f"1,{line[:9]}\n" for line in TEXT), encoding="utf-8")
    (folder / "c.txt.xz").write_bytes(lzma.compress("\n".join(TEXT).encode("gb18030")))
    for name, length in (("one", 40), ("two", 5)):
        (folder / name).mkdir()
        for number in range(30):
            lines = [line[:length] for line in TEXT[number * 40 : number * 40 + 40]]
            (folder / name / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Estimate]]:
    """The mixture, and its totals when all of it is read."""
    folder = tmp_path_factory.mktemp("mixture")
    write_mixture(folder)
    return folder, sample_of(folder, num_bytes=10**9).totals()


@pytest.mark.parametrize("seconds", [60, 100])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mixture_that_time_does_not_suffice_for(
    seconds: float, seed: int, mixture: tuple[Path, dict[str, Estimate]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truths lie in the intervals, though genres differ and what is read is not what is left."""
    folder, complete = mixture
    times = iter(range(10**9))
    monkeypatch.setattr(reading.time, "monotonic", lambda: float(next(times)))
    sample = sample_of(folder, seconds=seconds, seed=seed)
    assert sample.reading.num_unreached > 0
    totals = sample.totals()
    for name, truth in complete.items():
        assert totals[name].holds(truth.value, rounding=0.5), (name, totals[name], truth.value)


def test_large_files_come_first_and_small_ones_from_everywhere(mixture: tuple[Path, dict[str, Estimate]]) -> None:
    sources = find_sources([str(mixture[0])]).sources
    sizes = {source: source.path.stat().st_size for source in sources}
    ordered = _CorpusReader(CHARACTERS, SampleSize(), trusts_head=True)._ordered(sizes)
    assert sorted(ordered, key=lambda source: source.name) == sorted(sources, key=lambda source: source.name)
    assert {source.file_name for source in ordered[:3]} == {"a.txt", "b.csv", "c.txt.xz"}
    first = Counter(source.path.parent.name for source in ordered[3:18])
    assert min(first["one"], first["two"]) >= 7


def test_blocks_of_a_file_that_was_cut_off_stand_for_its_rest() -> None:
    picker = BlockPicker(10**6, Random(1))
    for number in range(20):
        picker.add("山" * 2000, 6000, number, 1.0)
    picker.weigh_blocks(9, 5.0)
    blocks = picker.chosen()
    assert [block.first_line for block in blocks] == list(range(0, 20, 3))
    assert [block.weight for block in blocks] == [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0]


@pytest.mark.parametrize("shape", ["text", "jsonl", "dump", "packed dump"])
def test_large_files_are_read_in_ranges(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_RANGED_FROM_BYTES", 0), ("_RANGED_DUMP_FROM_BYTES", 0), ("_RANGE_BYTES", 2**12)):
        monkeypatch.setattr(reading, name, value)
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
    sample = sample_of(path)
    assert not sample.reading.is_complete
    totals = sample.totals()
    truth = {"documents": {"text": 1, "jsonl": 20_000}.get(shape, 4000), "sentences": 20_000}
    truth["characters"] = truth["tokens"] = sum(map(len, TEXT))
    for name, value in truth.items():
        assert totals[name].value == pytest.approx(value, rel=0.05), name


def test_nothing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n \n", encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        sample_of(path)
    assert str(caught.value) == f"{path} holds no text. Give a file with text."


def test_damaged_and_encrypted_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(CorpusError, match=r"a\.zip is a damaged zip archive \(.*\)\. Fetch or pack it again\."):
        sample_of(path)


def copies_in(texts: Sequence[Sequence[str]], config: TextConfig) -> list[int]:
    rule = key_rule(config)
    lines = [line for text in texts for line in text]
    keys = [(rule and rule.key(line, line.encode())) or 0 for line in lines]
    return np.flatnonzero(find_copies(np.array(keys, np.uint64), config)).tolist()


def test_copies_are_left_out_as_the_segment_stage_does(tmp_path: Path) -> None:
    """All but the first of equal long lines, and every line that comes too often."""
    long, short = "很长的一行，" * 5, "短。"
    texts = [[long, short, "别的"], [f" {long} ", short], [short, "", ""]]
    assert copies_in(texts, CHARACTERS) == [3]
    assert copies_in(texts, replace(CHARACTERS, boilerplate_copies=2)) == [1, 3, 4, 5]
    assert copies_in(texts, replace(CHARACTERS, drop_duplicates=False)) == []
    (tmp_path / "a.txt").write_text("\n".join(line for text in texts for line in text), encoding="utf-8")
    totals = sample_of(tmp_path / "a.txt").totals()
    assert totals["kept_characters"].value == len(long) + 3 * len(short) + 2
    assert totals["characters"].value == 2 * len(long) + 2 + 3 * len(short) + 2


def test_copies_in_a_sample_make_the_corpus_smaller_than_it_looks(tmp_path: Path) -> None:
    """Half of the lines stand twice."""
    doubled = [line for number, line in enumerate(TEXT) for line in [line] * (1 + number % 2)]
    Random(1).shuffle(doubled)
    path = write_text(tmp_path, doubled)
    sample, truth = sample_of(path), sample_of(path, num_bytes=10**9).totals()["kept_characters"].value
    found = sample.totals()["kept_characters"]
    assert found.low <= truth <= found.high
    # Short lines may occur twice.
    assert found.value == pytest.approx(sum(map(len, dict.fromkeys(TEXT))), rel=0.02)
    assert sample.totals()["characters"].value == sum(map(len, doubled))
