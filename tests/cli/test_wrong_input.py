"""Wrong input of every kind ends with one line that says what, where and what to do, or with a warning and a result."""

import shutil
from pathlib import Path

import pytest
from contract.command_line import SampleRun, changed_json, contents, elmo_zh, succeed

pytestmark = pytest.mark.usefixtures("no_training_picture")

CHINESE = "今天没有下雨。\n"


def segment_error(*corpus: str | Path) -> str:
    """Return the message of `segment` and `pipeline`, which is the same; neither leaves segmented text behind."""
    options = ("--run", "run", "--set", "text.segmenter=character")  # without jieba, whose dictionary takes time
    told = elmo_zh("segment", *corpus, *options).only_error()
    assert elmo_zh("pipeline", *corpus, *options).only_error() == told
    assert not Path("run", "segmented").exists()
    return told


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("segment", "t.txt"), "--run"),
        (("export",), "--run"),
        (("convert", "model"), "--output"),
        (("index", "t.txt"), "--output"),
        (("senses", "花"), "--index"),
        (("task", "fit", "tag", "t.txt"), "--output"),
        (("task", "predict", "t.txt"), "--task"),
    ],
)
def test_a_missing_option(words: tuple[str, ...], missing: str) -> None:
    Path("t.txt").write_text(CHINESE, encoding="utf-8")
    answer = elmo_zh(*words)
    assert (answer.status, answer.errors) == (2, [f"Error: Missing option '{missing}'."])


# The corpus


def test_a_path_that_does_not_exist(sample_run: SampleRun, tmp_path: Path) -> None:
    expected = f"does not exist (looked in {tmp_path}). Check the path."
    assert elmo_zh("plan", "/no/such.txt").only_error().startswith("/no/such.txt does not exist (looked in /no).")
    assert segment_error("no/*.txt").startswith(f"no/*.txt {expected}")
    for command in ("embed", "evaluate"):
        assert elmo_zh(command, "nowhere", "--model", sample_run.model).only_error().startswith(f"nowhere {expected}")


def test_bytes_that_are_not_utf_8(sample_run: SampleRun) -> None:
    """The byte is counted from the start of the file, from 0, as od and Python do."""
    content = CHINESE.encode() + "花".encode() + "好".encode("gb18030") + b"\n"
    Path("gbk.txt").write_bytes(content)
    assert content[25] == 0xBA
    expected = "gbk.txt: line 2 is not valid UTF-8: byte 0xba at offset 25 of the file."
    assert segment_error("gbk.txt", "--bad-bytes", "strict").startswith(expected)
    for command in ("embed", "evaluate"):
        told = elmo_zh(command, "gbk.txt", "--segmented", "--model", sample_run.model).only_error()
        assert told.startswith(expected)
        assert "--encoding GB18030" in told
    assert not [*Path().glob("gbk.txt.*")]
    # Once it is put right nothing of the first attempt is in the way.
    Path("gbk.txt").write_text(CHINESE, encoding="utf-8")
    assert elmo_zh("embed", "gbk.txt", "--segmented", "--model", sample_run.model).status == 0


# The run


def test_a_run_that_does_not_exist() -> None:
    assert elmo_zh("train", "--run", "lwa").only_error().startswith("lwa is not a run.")
    assert not Path("lwa").exists()


def test_a_bundle_is_no_run(run: Path) -> None:
    model = run / "model"
    before = contents(model)
    for command in (("segment", "x.txt"), ("vocab",), ("export",), ("pipeline", "x.txt")):
        told = elmo_zh(*command, "--run", model).only_error()
        assert told.startswith(f"{model} was not created by this command")
    assert contents(model) == before


def test_a_folder_of_other_files_is_no_run() -> None:
    Path("texts").mkdir()
    Path("texts/a.txt").write_text(CHINESE, encoding="utf-8")
    told = "texts/a.txt was not created by this command, so it is not replaced. Choose another --run."
    for command in (("segment", "texts"), ("vocab",), ("plan", "texts"), ("pipeline", "texts")):
        assert elmo_zh(*command, "--run", "texts").only_error() == told
    assert [path.name for path in Path("texts").iterdir()] == ["a.txt"]


@pytest.mark.parametrize(("name", "maker"), [("vocab.counts", "vocab"), ("word2vec.txt", "word2vec")])
def test_export_refuses_files_of_another_run(run: Path, tmp_path: Path, name: str, maker: str) -> None:
    (run / name).write_text((run / name).read_text(encoding="utf-8").replace("1", "7"), encoding="utf-8")
    export = ("export", "--run", run, "--output", tmp_path / "bundle")
    told = elmo_zh(*export).only_error()
    assert told.startswith(f"{run / name} is damaged (its digest differs from the one in {run}/stages/{maker}.json)")
    assert told.endswith(f"elmo-zh {maker} --run {run} --force")
    assert elmo_zh(maker, "--run", run, "--force", "--quiet").status == 0
    assert elmo_zh(*export).status == 0


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_named_and_can_be_deleted(run: Path, name: str) -> None:
    path = run / "checkpoints" / "step-00000100" / name
    path.write_bytes(path.read_bytes()[:50])
    told = elmo_zh("train", "--run", run, "--set", "train.max_tokens=2310").only_error()
    assert told.startswith(f"{path.parent} is damaged ({name}: ")
    assert told.endswith("Delete it, and run the command again.")
    shutil.rmtree(path.parent)
    answer = succeed("train", "--run", run, "--set", "train.max_tokens=2310")
    assert "Resuming from step 90 of 110." in answer.stderr


# The bundle


@pytest.fixture
def model(sample_run: SampleRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_run.model, tmp_path / "model"))


def bundle_error(model: Path, sample: SampleRun) -> str:
    told = elmo_zh("embed", sample.heldout, "--segmented", "--model", model, "--output", "out.hdf5").only_error()
    assert not Path("out.hdf5").exists()
    return told


def test_raw_text_for_a_model_of_another_segmenter(model: Path, sample_run: SampleRun) -> None:
    """Segmented text still works: only the segmenter is not the same."""
    with changed_json(model / "bundle.json") as info:
        here = info["segmenter"]
        info["segmenter"] = {**here, "version": "0.39"}
    text = shutil.copyfile(sample_run.heldout, "text.txt")
    for command in ("embed", "evaluate"):
        told = elmo_zh(command, text, "--model", model).only_error()
        assert told.startswith(f"{model} was trained with segmenter jieba 0.39")
        assert f"jieba {here['version']}" in told
        assert elmo_zh(command, text, "--segmented", "--model", model).status == 0
