"""`elmo-zh embed` of tables, JSON, archives and paragraphs, and outputs that would replace what is read."""

import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from contract.command_line import SampleRun
from contract.dumps import assert_close, embed, read_dump, write_lines

from elmo_zh import ElmoEmbedder
from elmo_zh.text.sentences import split_sentences

PARAGRAPHS = (
    " 我喜欢吃苹果。春天来了！他说：“走吧。”",
    "",
    "　 ",
    "今天天气很好，ＡＢＣ１２ \u200b我们去公园。 ",
    "山上的花开了……" * 20,
)


@pytest.fixture
def hotel(tmp_path: Path) -> Path:
    path = tmp_path / "hotel.csv"
    path.write_bytes('id,review\r\n1,"房间很干净，\n服务也好。"\r\n2,\r\n3\r\n4,太吵了\r\n'.encode("gb18030"))
    return path


def test_a_table_is_embedded_record_by_record(sample_run: SampleRun, embedder: ElmoEmbedder, hotel: Path) -> None:
    answer = embed(sample_run, hotel)
    texts = ["房间很干净， 服务也好。", "", "", "太吵了"]
    vectors, tokens, _ = read_dump(hotel.with_name("hotel.csv.hdf5"))
    assert tokens == [embedder.tokens(text) for text in texts]
    for found, expected in zip(vectors, embedder.embed(texts), strict=True):
        assert_close(found, expected)
    assert f"Reading {hotel}: csv, GB18030, --field 2 (review)\n" in answer.stderr
    # As plain text the header is a line too.
    embed(sample_run, hotel, "--input-format", "text", "--force")
    assert len(read_dump(hotel.with_name("hotel.csv.hdf5"))[1]) == 6


def test_an_archive_and_standard_input(sample_run: SampleRun, embedder: ElmoEmbedder, hotel: Path) -> None:
    with zipfile.ZipFile("x.zip", "w") as archive:
        archive.write(hotel, "hotel.csv")
        archive.writestr("a.txt", "今天\n\n很好")
    embed(sample_run, "x.zip")
    texts = ["房间很干净， 服务也好。", "", "", "太吵了", "今天", "", "很好"]
    assert read_dump(Path("x.zip.hdf5"))[1] == [embedder.tokens(text) for text in texts]
    embed(sample_run, "-", "--input-format", "csv", "--field", "review", stdin=hotel.read_bytes())
    assert read_dump(Path("embeddings.hdf5"))[1] == [embedder.tokens(text) for text in texts[:4]]


@pytest.fixture
def paragraphs(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "file.txt", PARAGRAPHS)


def read_lines_of_sentences(form: str, path: Path) -> list[int]:
    """Return the line of each sentence, by what the documentation says."""
    if form == "npy":
        return list(np.load(path / "line.npy"))
    if form == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        return list(table["line"].to_pylist())
    with h5py.File(path) as file:
        return list(file["line"][()])


@pytest.mark.parametrize("form", ["hdf5", "npy", "parquet"])
def test_sentences_keep_the_number_of_their_line(sample_run: SampleRun, paragraphs: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow, the extra parquet, is not installed")
    answer = embed(sample_run, paragraphs, "--split-sentences", "--output", "out", "--format", form)
    assert read_lines_of_sentences(form, Path("out")) == [0, 0, 0, 1, 2, 3, *[4] * 20]
    assert "--split-sentences" not in answer.stderr
    assert "file.txt contains 26 sentences and " in answer.stderr


def test_sentences_are_those_of_training(sample_run: SampleRun, embedder: ElmoEmbedder, paragraphs: Path) -> None:
    embed(sample_run, paragraphs, "--split-sentences")
    vectors, tokens, attributes = read_dump(paragraphs.with_name("file.txt.hdf5"))
    preparation = embedder.bundle.build_preparation()
    expected = [sentence for line in PARAGRAPHS for sentence in preparation.sentences(line) or [[]]]
    assert tokens == expected
    assert attributes["split_sentences"]
    for found, activations in zip(vectors, embedder.embed_tokens(expected), strict=True):
        assert_close(found, activations)
    # Offsets are those in the whole line.
    whole = [embedder.prepare(text) for text in split_sentences(PARAGRAPHS[0])]
    starts = np.cumsum([0, *(len(text) for text in split_sentences(PARAGRAPHS[0]))])
    with h5py.File(paragraphs.with_name("file.txt.hdf5")) as file:
        for number in range(3):
            np.testing.assert_array_equal(file[f"offsets/{number}"][()], whole[number].offsets + starts[number])
