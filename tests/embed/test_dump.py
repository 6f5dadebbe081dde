"""What a dump reports, seen from Python, with a drawn model."""

from pathlib import Path

import pytest
from contract.dumps import write_lines
from drawn_bundles import TOKENS, write_model

from elmo_zh import ElmoEmbedder
from elmo_zh.bundle.read import load_bundle
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.dump import DumpReport, DumpSettings, dump_vectors
from elmo_zh.embed.formats import OutputForm
from elmo_zh.embed.jobs import Job
from elmo_zh.run.reporter import SilentReporter


class Heard(SilentReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "model"
    return write_model(folder, TOKENS, words=("今天", "天气"), text=TextConfig(segmenter="character"))


def dump(model: Path, path: Path, form: OutputForm, reporter: SilentReporter) -> DumpReport:
    [source] = find_sources([str(path)]).sources
    job = Job(input_text(source, TextConfig(), segmented=True), path.with_name("out"))
    settings = DumpSettings(segmented=True, layers="top", dtype="float32")
    embedder = ElmoEmbedder(load_bundle(model), "cpu")
    return dump_vectors(embedder, job, settings, form, force=True, reporter=reporter)


@pytest.mark.parametrize("layout", ["lines", "packed"])
def test_the_ten_most_frequent_unknown_words_are_reported(model: Path, tmp_path: Path, layout: str) -> None:
    # Word n occurs n times, so that of thirteen the last ten are reported.
    path = write_lines(tmp_path / "a.txt", ["今天 " + " ".join([f"生{n}"] * n) for n in range(1, 14)])
    report = dump(model, path, OutputForm(layout=layout), SilentReporter())
    assert list(report.unknown_words.items()) == [(f"生{n}", n) for n in range(13, 3, -1)]


def test_an_empty_file_is_told(model: Path, tmp_path: Path) -> None:
    path, heard = tmp_path / "a.txt", Heard()
    path.touch()
    assert dump(model, path, OutputForm(), heard).counts.lines == 0
    assert heard.warnings == [f"{path} is empty, so its output holds no vectors."]
