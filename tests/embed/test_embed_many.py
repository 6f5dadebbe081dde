"""`elmo-zh embed` of several files."""

import gzip
from pathlib import Path

import h5py
import numpy as np
import pytest
from contract.command_line import SampleRun, elmo_zh
from contract.dumps import embed, read_dump, write_lines


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    write_lines(folder / "a.txt", ["我 吃 苹果", "", "好"])
    write_lines(folder / "sub" / "a.txt", ["春天 的 花"])
    (folder / "b.txt.gz").write_bytes(gzip.compress("我 吃 花\n".encode()))
    (folder / "picture.png").touch()
    return folder


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_to_a_folder_of_the_same_shape(sample_run: SampleRun, texts: Path) -> None:
    result = embed(sample_run, "texts", "--segmented", "--output", "out", "--json").result()
    assert files_below(Path("out")) == ["a.txt.hdf5", "b.txt.gz.hdf5", "sub/a.txt.hdf5"]
    assert read_dump(Path("out/a.txt.hdf5"))[1] == [["我", "吃", "苹果"], [], ["好"]]
    assert read_dump(Path("out/b.txt.gz.hdf5"))[1] == [["我", "吃", "花"]]
    assert (result["lines"], result["tokens"], result["empty_lines"], result["skipped"]) == (5, 10, 1, [])
    assert [each["lines"] for each in result["outputs"]] == [3, 1, 1]


def test_outputs_that_are_there_are_passed_over(sample_run: SampleRun, texts: Path) -> None:
    embed(sample_run, "texts", "--segmented")
    kept = {path: path.stat().st_mtime_ns for path in texts.rglob("*.hdf5")}
    (texts / "a.txt.hdf5").unlink()
    answer = embed(sample_run, "texts", "--segmented", "--json")
    assert answer.result()["skipped"] == ["texts/b.txt.gz.hdf5", "texts/sub/a.txt.hdf5"]
    assert "texts/b.txt.gz.hdf5 already exists, so texts/b.txt.gz is skipped." in answer.stderr
    assert {path for path in kept if path.stat().st_mtime_ns != kept[path]} == {texts / "a.txt.hdf5"}
    assert embed(sample_run, "texts", "--segmented", "--json", "--force").result()["skipped"] == []


def test_two_texts_that_would_have_one_output(sample_run: SampleRun, texts: Path) -> None:
    arguments = ("embed", texts / "a.txt", texts / "sub" / "a.txt", "--model", sample_run.model, "--output", "out")
    assert "would both be written to out/a.txt.hdf5." in elmo_zh(*arguments).only_error()
    assert not Path("out").exists()
    Path("file").touch()
    told = elmo_zh(*arguments[:-1], "file").only_error()
    assert told == "file is a file. For several texts or a folder, --output must be a folder."


def test_a_file_of_something_else_is_never_replaced(sample_run: SampleRun, texts: Path) -> None:
    with h5py.File("weights.hdf5", "w") as file:
        file["weights"] = np.ones(3)
    Path("corpus.jsonl").write_text('{"text": "今天"}\n', encoding="utf-8")
    Path("corpus").write_bytes(b"PAR1 is damaged")
    arguments = ("embed", texts / "a.txt", "--model", sample_run.model, "--force", "--output")
    for path in (Path("weights.hdf5"), Path("corpus.jsonl"), Path("corpus")):
        before = path.read_bytes()
        told = elmo_zh(*arguments, path).only_error()
        assert told.startswith(
            f"{path} was not created by this command, so it is not replaced. Choose another --output."
        )
        assert path.read_bytes() == before
    Path("corpus").write_bytes(b"")
    assert elmo_zh(*arguments, "corpus").status == 0
