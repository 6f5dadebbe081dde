"""Where a sample is taken, and that it stands for the whole corpus."""

import bz2
import gzip
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from planning.corpora import CHARACTERS, lines, pieces_of, sample_of

from elmo_zh.errors import CorpusError
from elmo_zh.planning.plan import _totals

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
    assert 0.05 < sample.sampled_share < 0.4
    totals = _totals(sample)
    characters = sum(map(len, TEXT))
    for name, truth in (("characters", characters), ("tokens", characters), ("sentences", len(TEXT))):
        found = totals[name]
        assert abs(found.value / truth - 1) < 0.04, name
        assert found.low < found.high
        # Intervals miss now and then, and a tar archive is padded.
        assert abs(found.value - truth) < 1.6 * (found.high - found.value) + 0.005 * truth, (name, found, truth)
    assert sample.num_unreached == 0


def test_documents_are_files_where_files_are_documents(tmp_path: Path) -> None:
    sample = sample_of(write_small_files(tmp_path, TEXT))
    assert _totals(sample)["documents"].value == sample.num_portions == 400
    by_line = sample_of(tmp_path / "many", config=replace(CHARACTERS, document="line"))
    assert _totals(by_line)["documents"].value == pytest.approx(20_000, rel=0.04)


def test_a_small_corpus_is_read_as_a_whole(tmp_path: Path) -> None:
    path = write_csv_in_zip(tmp_path, TEXT[:500])
    sample = sample_of(path)
    assert sample.is_all
    totals = _totals(sample)
    assert totals["tokens"].is_exact
    assert totals["characters"].value == sum(map(len, TEXT[:500]))
    assert totals["tokens"].value == sum(len(line.replace(" ", "")) for line in TEXT[:500])
    assert totals["documents"].value == 500


def test_places_are_spread_in_proportion_to_size(tmp_path: Path) -> None:
    for name, number in (("a", 2000), ("b", 6000), ("c", 12_000)):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT[:number]), encoding="utf-8")
    pieces = pieces_of(tmp_path).pieces
    counts = [sum(piece.num_places for piece in pieces if piece.portion.file_name == f"{name}.txt") for name in "abc"]
    assert sum(counts) == 16
    assert abs(counts[1] - 16 * 0.3) < 1.5
    assert abs(counts[2] - 16 * 0.6) < 1.5


def test_the_seed_decides(tmp_path: Path) -> None:
    path = write_text(tmp_path, TEXT)
    first, again, other = (pieces_of(path, seed=seed).pieces for seed in (1, 1, 2))
    assert [piece.data for piece in first] == [piece.data for piece in again]
    assert first[0].data != other[0].data


def test_time_may_not_suffice_for_what_is_packed(tmp_path: Path) -> None:
    pieces = pieces_of(write_gb(tmp_path, TEXT), seconds=0)
    assert pieces.pieces == []
    assert pieces.num_unreached == 16


def test_multistream_bz2_is_sought_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_zh.planning.pieces._SOUGHT_FROM_BYTES", 0)
    path = tmp_path / "a.txt.bz2"
    streams = ["\n".join(TEXT[start : start + 100]) + "\n" for start in range(0, len(TEXT), 100)]
    path.write_bytes(b"".join(bz2.compress(stream.encode()) for stream in streams))
    sample = sample_of(path)
    assert len(sample.blocks) == 16
    assert _totals(sample)["tokens"].value == pytest.approx(sum(map(len, TEXT)), rel=0.06)
    starts = [stream.splitlines()[1] for stream in streams]
    # The first line of a stream may be the rest of a line, so it is left out.
    assert all(piece.data.decode().splitlines()[0] in starts for piece in pieces_of(path).pieces)


def test_nothing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n \n", encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        sample_of(path)
    assert str(caught.value) == f"{path} holds no text (1 pieces of it, all empty). Give a file with text."


def test_damaged_and_encrypted_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(CorpusError, match=r"a\.zip is a damaged zip archive \(.*\)\. Fetch or pack it again\."):
        pieces_of(path)
