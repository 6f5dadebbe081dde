"""What is known before the work begins."""

import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest
from contract.command_line import SampleRun
from contract.dumps import write_lines
from messages import message_of

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.join import count_unknown_words
from elmo_zh.embed.survey import Survey, count_lines_and_tokens
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import SilentReporter, format_bytes


@pytest.fixture(scope="module")
def embedder(sample_run: SampleRun) -> ElmoEmbedder:
    return ElmoEmbedder.load(sample_run.model)


class Heard(SilentReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def as_text(path: Path) -> InputText:
    [source] = find_sources([str(path)]).sources
    return input_text(source, TextConfig())


def test_segmented_tokens_are_counted(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "file.txt", ["我 吃  苹果", "", " 好"] * 1000)
    assert count_lines_and_tokens(embedder, as_text(path), segmented=True) == Survey(lines=3000, tokens=4000)


def test_raw_tokens_are_estimated(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    lines = [f"今天天气很好，我们去公园散步{'。' * (number % 7)}" for number in range(3001)]
    found = count_lines_and_tokens(embedder, as_text(write_lines(tmp_path / "file.txt", lines)), segmented=False)
    exact = sum(len(embedder.tokens(line)) for line in lines)
    assert found.lines == 3001
    assert 256 <= found.sampled_lines < 512
    assert found.tokens == pytest.approx(exact, rel=0.02)
    assert (
        found.describe() == f"3,001 lines, about {found.tokens:,} tokens (estimated from {found.sampled_lines} lines)"
    )
    few = count_lines_and_tokens(embedder, as_text(write_lines(tmp_path / "file.txt", lines[:20])), segmented=False)
    assert few == Survey(lines=20, tokens=sum(len(embedder.tokens(line)) for line in lines[:20]))
    assert count_lines_and_tokens(embedder, as_text(write_lines(tmp_path / "file.txt", [])), segmented=False) == Survey(
        lines=0, tokens=0
    )


def test_the_digest_comes_from_the_same_reading(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "file.txt", ["我 吃 苹果"] * 30_000)
    packed = tmp_path / "file.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()) + bytes(512))
    for source in (path, packed):
        found = count_lines_and_tokens(embedder, as_text(source), segmented=True)
        assert (found.lines, found.source_digest) == (30_000, file_digest(source))


def test_a_bad_last_line_is_found_before_the_work(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "file.txt", ["好"] * 5000)
    with path.open("ab") as file:
        file.write(b"\xb0\xa1\n")
    told = message_of(CorpusError, lambda: count_lines_and_tokens(embedder, as_text(path), segmented=True))
    assert told.startswith(f"{path}: line 5001, byte 20000 (0xb0) is not UTF-8.")


def test_sizes_for_people() -> None:
    assert [format_bytes(n) for n in (0, 1, 2.4, 999)] == ["0 bytes", "1 byte", "2 bytes", "999 bytes"]
    assert [format_bytes(n) for n in (1.5e3, 2e6, 3.26e9, 4e12)] == ["1.5 kB", "2.0 MB", "3.3 GB", "4.0 TB"]


def test_unknown_words_of_a_dump_are_counted_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = []
    for start in range(0, 3000, 50):
        words = [b"often"] * 3 + [b"known"] + [b"%d" % n for n in range(start, start + 50)]
        blocks.append(SimpleNamespace(tokens=words, unknown=[word != b"known" for word in words]))
    monkeypatch.setattr("elmo_zh.vocabulary.vocabulary.MAX_WORDS", 100)
    monkeypatch.setattr("elmo_zh.embed.formats.hdf5_packed.iter_text_blocks", lambda _: iter(blocks))
    counts = count_unknown_words(Path("packed.hdf5"))
    assert counts.most_common(1) == [("often", 180)]
    assert len(counts) <= 100
    assert "known" not in counts
