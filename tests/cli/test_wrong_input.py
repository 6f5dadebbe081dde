"""Wrong input of every kind ends with one line that says what, where and what to do, or with a warning and a result."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import h5py
import pytest
from contract.command_line import SampleRun, changed_json, contents, elmo_zh, remove_training, succeed
from contract.warm_python import WarmPython

from elmo_zh.run import files
from elmo_zh.run.locks import output_lock
from elmo_zh.vocabulary.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("empty_folder", "no_training_picture")

CHINESE = "今天没有下雨。\n"


def segment_error(*corpus: str | Path) -> str:
    """Return the message of `segment` and `pipeline`, which is the same; neither leaves segmented text behind."""
    options = ("--run", "run", "--set", "text.segmenter=character")  # without jieba, whose dictionary takes time
    told = elmo_zh("segment", *corpus, *options).only_error()
    assert elmo_zh("pipeline", *corpus, *options).only_error() == told
    assert not Path("run", "segmented").exists()
    return told


# The corpus


def test_a_path_that_does_not_exist(sample_run: SampleRun, empty_folder: Path) -> None:
    quotes = "If an argument contains spaces, put it in quotes."
    expected = f"does not exist. Check the path; it is relative to the current folder {empty_folder}. {quotes}"
    assert elmo_zh("plan", "/no/such.txt").only_error() == f"/no/such.txt does not exist. Check the path. {quotes}"
    assert segment_error("nowhere") == f"nowhere {expected}"
    assert segment_error("no/*.txt") == f"no/*.txt {expected}"
    for command in ("embed", "evaluate"):
        assert elmo_zh(command, "nowhere", "--model", sample_run.model).only_error() == f"nowhere {expected}"


def test_a_folder_without_text(empty_folder: Path) -> None:
    folder = empty_folder / "pictures"
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "cat.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text(CHINESE, encoding="utf-8")
    assert segment_error(folder) == (
        f"{folder} contains no text files (.txt, .csv, .tsv, .json, .jsonl, .xml, .html, .md, .xlsx, optionally packed"
        " as .gz, .bz2, .xz, .zst, .zip, .tar); it contains 1 other file. Give files by name, or a folder with text."
    )


def test_bytes_that_are_not_utf_8(sample_run: SampleRun) -> None:
    """The byte is counted from the start of the file, from 0, as od and Python do."""
    content = CHINESE.encode() + "花".encode() + "好".encode("gb18030") + b"\n"
    Path("gbk.txt").write_bytes(content)
    assert content[25] == 0xBA
    expected = "gbk.txt: line 2 is not valid UTF-8: byte 0xba at offset 25 of the file. Correct the file,"
    encoding = "specify its encoding (perhaps --encoding GB18030)"
    told = segment_error("gbk.txt", "--bad-bytes", "strict")
    assert told == f"{expected} {encoding}, or skip such lines: --bad-bytes skip-line"
    for command in ("embed", "evaluate"):
        told = elmo_zh(command, "gbk.txt", "--segmented", "--model", sample_run.model).only_error()
        assert told == f"{expected} or {encoding}"
    assert not [*Path().glob("gbk.txt.*")]
    # Once it is put right nothing of the first attempt is in the way.
    Path("gbk.txt").write_text(CHINESE, encoding="utf-8")
    assert elmo_zh("embed", "gbk.txt", "--segmented", "--model", sample_run.model).status == 0


def test_a_text_without_any_chinese_is_a_warning_and_a_result(sample_run: SampleRun) -> None:
    lines = [f"The {number}th line is about rain, wind and the number {number * number}.\n" for number in range(60)]
    Path("english.txt").write_text("".join(lines), encoding="utf-8")
    changes = ("--set", "vocab.min_count=1", "--set", "train.max_tokens=210")
    answer = succeed("pipeline", "english.txt", "--run", "run", "--config", sample_run.config, *changes)
    warnings = [line for line in answer.stderr.splitlines() if line.startswith("Warning: ")]
    foreign, copies = warnings  # the lines differ in two numbers
    assert copies.startswith("Warning: Near copies of ")
    assert foreign == "Warning: This corpus contains no Chinese characters. Check that it is the right corpus."
    assert Path("run/model/bundle.json").exists()
    record = json.loads(Path("run/stages/train.json").read_text(encoding="utf-8"))
    assert record["counts"]["heldout"]["oov_rate"] < 1


def test_a_text_in_which_no_word_is_frequent_enough() -> None:
    Path("short.txt").write_text("山水。", encoding="utf-8")
    assert elmo_zh("segment", "short.txt", "--run", "run", "--set", "text.segmenter=character").status == 0
    assert elmo_zh("vocab", "--run", "run").only_error() == (
        "No word in run/segmented reaches vocab.min_count = 2, so the vocabulary would be empty."
        " Give more text, or lower the limit: --set vocab.min_count=1"
    )


def test_a_text_of_a_few_words_is_warned_about_and_a_vocabulary_of_one_is_refused() -> None:
    Path("few.txt").write_text("山水。\n山人。\n", encoding="utf-8")
    answer = elmo_zh("segment", "few.txt", "--run", "run", "--set", "text.segmenter=character")
    warning = "Warning: There is hardly any text to train on: 6 tokens. A good model needs millions."
    assert warning in answer.stderr.splitlines()
    assert elmo_zh("vocab", "--run", "run").status == 0
    told = elmo_zh("vocab", "--run", "run", "--set", "vocab.size=4").only_error()
    assert told.startswith("The vocabulary of run/segmented would contain only one word (。), but training needs ")


def test_a_user_dictionary_that_is_missing_or_bad() -> None:
    Path("text.txt").write_text(CHINESE, encoding="utf-8")
    arguments = ("segment", "text.txt", "--run", "run", "--set", "text.user_dictionary=words.txt")
    assert elmo_zh(*arguments).only_error() == "words.txt is missing. Check the path."
    Path("words.txt").write_bytes("没有下雨 100 n\n".encode("gb18030"))
    told = elmo_zh(*arguments).only_error()
    # The file to correct, not the copy in the run.
    assert told.startswith("words.txt is not a jieba user dictionary (")
    assert told.endswith("with a word on each line, optionally followed by a count and a tag, separated by spaces.")
    Path("words.txt").write_text("没有下雨 100000 n\n", encoding="utf-8")
    assert elmo_zh(*arguments).status == 0
    assert Path("run/segmented/train-00000.txt").read_text(encoding="utf-8") == "今天 没有下雨 。\n"


# The run


@pytest.mark.parametrize("command", ["vocab", "word2vec", "encode", "train", "export"])
def test_a_run_that_does_not_exist(sample_run: SampleRun, command: str) -> None:
    begin = "Begin a run with: elmo-zh pipeline my-texts/ --run runs/my-texts, or elmo-zh segment CORPUS --run"
    run = ["--run", "lwa"]
    assert elmo_zh(command, *run).only_error() == f"lwa does not exist. {begin} lwa"
    Path("runs").mkdir()
    Path("runs/law").symlink_to(sample_run.path)
    assert elmo_zh(command, *run).only_error() == f"lwa does not exist. Did you mean runs/law? {begin} lwa"
    assert not Path("lwa").exists()


def test_a_bundle_is_no_run(run: Path) -> None:
    model = run / "model"
    before = contents(model)
    for command in (("segment", "x.txt"), ("vocab",), ("word2vec",), ("train",), ("export",), ("pipeline", "x.txt")):
        told = elmo_zh(*command, "--run", model).only_error()
        assert told == f"{model} is a model bundle, not a run. Its run is {run}"
    alone = model.rename("alone")
    told = elmo_zh("plan", "x.txt", "--run", alone).only_error()
    assert told == "alone is a model bundle, not a run. Choose another --run."
    assert contents(alone) == before


def test_a_folder_of_other_files_is_no_run() -> None:
    Path("texts").mkdir()
    Path("texts/a.txt").write_text(CHINESE, encoding="utf-8")
    told = "texts is not a run folder and contains other files, such as a.txt. Choose another --run, such as"
    for command in (("segment", "texts"), ("vocab",), ("plan", "texts"), ("pipeline", "texts")):
        assert elmo_zh(*command, "--run", "texts").only_error() == f"{told} runs/new"
    assert elmo_zh("info", "texts").only_error().endswith("elmo-zh segment CORPUS --run runs/new")
    assert [path.name for path in Path("texts").iterdir()] == ["a.txt"]


def test_a_pipe_in_a_run_is_refused_before_it_is_waited_for(run: Path) -> None:
    os.mkfifo(run / "about.md")
    for command in (("export", "--run", run), ("train", "--run", run), ("info", run)):
        assert elmo_zh(*command).only_error().startswith(f"{run / 'about.md'} is a device, a pipe or a socket")


def test_a_run_killed_at_its_first_file_is_a_run() -> None:
    Path("a.txt").write_text(CHINESE * 50, encoding="utf-8")
    Path("run").mkdir()
    Path(f"run/config.toml.{32 * '7'}.unfinished").write_text("[text]\n", encoding="utf-8")
    succeed("segment", "a.txt", "--run", "run")
    assert not list(Path("run").glob("*.unfinished"))


def test_a_folder_of_the_run_is_no_corpus(untrained_run: Path) -> None:
    """A run that was begun elsewhere, such as one of which only some files were copied, is a run nevertheless."""
    (untrained_run / "config.toml").unlink()
    told = "so it cannot be in the corpus. Give different text, or another --run."
    answer = elmo_zh("segment", untrained_run, "--run", untrained_run)
    assert answer.only_error() == f"{untrained_run} is the folder of the run, {told}"
    inside = untrained_run / "segmented"
    answer = elmo_zh("segment", inside, "--run", untrained_run)
    assert answer.only_error() == f"{inside} is inside the run {untrained_run}, {told}"


def other_vocabulary(run: Path) -> tuple[str, str]:
    """Swap two words of a run's vocabulary, as one made of another text would; return old and new digest."""
    vocab, counts = run / "vocab.data", run / "vocab.counts"
    tokens = vocab.read_text(encoding="utf-8").splitlines()
    before = Vocabulary(tokens).digest()
    lines = counts.read_text(encoding="utf-8").splitlines()
    numbers = [line.split("\t")[1] for line in lines]
    tokens[3], tokens[4] = tokens[4], tokens[3]
    vocab.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    counts.write_text(
        "".join(f"{token}\t{number}\n" for token, number in zip(tokens, numbers, strict=True)), encoding="utf-8"
    )
    return before, Vocabulary(tokens).digest()


def test_checkpoints_of_unknown_origin_are_not_trained_on(run: Path, sample_run: SampleRun) -> None:
    remove_training(run)
    before, after = other_vocabulary(run)
    assert elmo_zh("encode", "--run", run).status == 0
    shutil.copytree(sample_run.path / "checkpoints", run / "checkpoints")
    assert before != after
    answer = elmo_zh("train", "--run", run)
    assert answer.status == 1
    assert answer.errors[0].startswith(f"Error: {run} contains training progress that would be discarded. Reason: ")
    assert "Reason: the record of how the checkpoints were made is missing." in answer.errors[0]


@pytest.mark.parametrize(
    ("name", "maker"), [("vocab.counts", "vocab"), ("character_counts.tsv", "vocab"), ("word2vec.txt", "word2vec")]
)
def test_export_refuses_files_of_another_run(run: Path, tmp_path: Path, name: str, maker: str) -> None:
    (run / name).write_text((run / name).read_text(encoding="utf-8").replace("1", "7"), encoding="utf-8")
    for output in ((), ("--output", tmp_path / "bundle")):
        told = elmo_zh("export", "--run", run, *output).only_error()
        assert told.startswith(f"{run / name} is not the file that {maker} wrote: it was damaged or replaced. ")
        assert told.endswith(f". Recreate it with: elmo-zh {maker} --run {run} --force")
    assert elmo_zh(maker, "--run", run, "--force", "--quiet").status == 0
    assert elmo_zh("export", "--run", run, "--output", tmp_path / "bundle", "--quiet").status == 0


def test_ids_that_are_not_those_of_their_stage(untrained_run: Path) -> None:
    """Blocks that changed places, after the time stamp was set back."""
    path = untrained_run / "ids" / "train-00000.ids"
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content[64:128] + content[:64] + content[128:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    told = elmo_zh("train", "--run", untrained_run).only_error()
    assert told.startswith(f"{path} is not the file that encode wrote: it was damaged or replaced. Recreate it with: ")
    # Without the record, nothing says so; but what cannot be right is an error.
    (untrained_run / "stages" / "encode.json").unlink()
    offsets = path.with_suffix(".offsets")
    whole = offsets.read_bytes()
    offsets.write_bytes(whole[:8] + whole[16:24] + whole[8:16] + whole[24:])
    told = elmo_zh("train", "--run", untrained_run).only_error()
    assert told.startswith(f"{offsets} is damaged: its values do not rise from 0 to ")


def test_ids_of_another_vocabulary(untrained_run: Path) -> None:
    before, after = other_vocabulary(untrained_run)
    told = elmo_zh("train", "--run", untrained_run).only_error()
    assert told.startswith(f"{untrained_run / 'ids'} was encoded with a different vocabulary (digest {before[:19]}...,")
    assert f" has {after[:19]}...). Encode the text again with: elmo-zh encode --run {untrained_run} --force" in told


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_names_the_file_and_the_way_out(run: Path, name: str) -> None:
    path = run / "checkpoints" / "step-00000100" / name
    path.write_bytes(path.read_bytes()[:50])
    told = elmo_zh("train", "--run", run, "--set", "train.max_tokens=2310").only_error()
    assert told.startswith(str(path))
    assert "Remove its folder to use the " in told
    shutil.rmtree(path.parent)
    answer = succeed("train", "--run", run, "--set", "train.max_tokens=2310")
    assert "Resuming from step 90 of 110." in answer.stderr


def test_a_checkpoint_that_cannot_exist_and_one_that_does_not(sample_run: SampleRun) -> None:
    for checkpoint, status in (("bset", 2), ("7", 1)):
        answer = elmo_zh("export", "--run", sample_run.path, "--output", "out", "--checkpoint", checkpoint)
        assert answer.only_error(status).startswith(f"There is no checkpoint {checkpoint} in ")


def test_a_run_in_use(run: Path) -> None:
    expected = f"{run} is in use by another elmo-zh process. Wait until that process ends, or choose another --run."
    with (run / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in ("vocab", "train", "export"):
            assert elmo_zh(command, "--run", run).only_error() == expected
    assert elmo_zh("vocab", "--run", run).status == 0


# The disk


# HDF5 has been seen to bring down the whole process, so it gets one of its own.
WRITE_LITTLE = """
import resource, sys
from elmo_zh.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
main()
"""


def test_writes_of_hdf5_that_fail_are_a_known_problem(
    sample_run: SampleRun, empty_folder: Path, warm: WarmPython
) -> None:
    arguments = ("embed", sample_run.heldout, "--segmented", "--model", sample_run.model, "--output", "out.hdf5")
    assert "File too large" in warm.run(WRITE_LITTLE, *arguments, cwd=empty_folder).only_error()
    assert not [path for path in Path().rglob("*") if path.suffix in (".hdf5", ".unfinished")]
    assert elmo_zh(*arguments).status == 0
    with h5py.File("out.hdf5") as file:
        assert len(file["tokens"]) == len(sample_run.heldout.read_text(encoding="utf-8").splitlines())


def test_too_few_documents_for_the_streams(untrained_run: Path) -> None:
    changes = ("--set", "train.shuffle=documents", "--set", "train.batch_size=997")
    told = elmo_zh("train", "--run", untrained_run, *changes).only_error()
    counts = json.loads((untrained_run / "ids" / "store.json").read_text(encoding="utf-8"))
    assert told.startswith("train.shuffle = documents needs at least as many documents as streams (train.batch_size ")
    assert f" = 997), but the training text has only {counts['train_documents']}. Set train.shuffle=sentences, " in told


# The bundle


@pytest.fixture
def model(sample_run: SampleRun, empty_folder: Path) -> Path:
    return Path(shutil.copytree(sample_run.model, empty_folder / "model"))


def bundle_error(model: Path, sample: SampleRun) -> str:
    """Return the message of `embed` and `evaluate`, which is the same."""
    arguments = (sample.heldout, "--segmented", "--model", model)
    told = elmo_zh("embed", *arguments, "--output", "out.hdf5").only_error()
    assert elmo_zh("evaluate", *arguments).only_error() == told
    assert not Path("out.hdf5").exists()
    return told


@pytest.mark.parametrize(
    "name",
    ["options.json", "weights.hdf5", "vocab.data", "vocab_embedding.hdf5", "character_counts.tsv", "golden.hdf5"],
)
def test_one_changed_byte_in_a_bundle_is_refused_with_both_digests(
    model: Path, sample_run: SampleRun, name: str
) -> None:
    path = model / name
    expected = files.file_digest(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert bundle_error(model, sample_run) == (
        f"{path} is not the file that bundle.json describes:"
        f" found digest {files.file_digest(path)}, expected {expected}. Export or copy the bundle again."
    )


def test_a_bundle_with_a_file_missing(model: Path, sample_run: SampleRun) -> None:
    (model / "golden.hdf5").unlink()
    assert bundle_error(model, sample_run) == f"{model / 'golden.hdf5'} is missing. Export or copy the bundle again."


def test_a_strange_origin_in_bundle_json(model: Path, sample_run: SampleRun) -> None:
    with changed_json(model / "bundle.json") as info:
        info["origin"] = {"files": ["a"]}
    assert "is damaged (origin.files is not a JSON object)" in bundle_error(model, sample_run)
    with changed_json(model / "bundle.json") as info:
        info["origin"] = {"program": "a\nb\ud800\x1b[2J"}
    assert "a\\nb\\ud800\\x1b[2J" in succeed("info", model).stdout


def test_counts_of_thousands_of_digits(untrained_run: Path) -> None:
    counts = untrained_run / "vocab.counts"
    counts.write_text(counts.read_text(encoding="utf-8").replace("</S>\t", "</S>\t" + "9" * 5003), encoding="utf-8")
    told = elmo_zh("word2vec", "--run", untrained_run).only_error()
    assert told.startswith(f"{counts}: line 2 ('</S>\\t999")
    assert len(told) < 500


def test_raw_text_for_a_model_of_another_segmenter(model: Path, sample_run: SampleRun) -> None:
    """Segmented text still works: only the segmenter is not the same."""
    with changed_json(model / "bundle.json") as info:
        here = info["segmenter"]
        info["segmenter"] = {**here, "version": "0.39"}
    text = shutil.copyfile(sample_run.heldout, "text.txt")
    for command in ("embed", "evaluate"):
        told = elmo_zh(command, text, "--model", model).only_error()
        assert told.startswith(f"{model} was trained with segmenter jieba 0.39, but this machine has jieba ")
        assert f" has jieba {here['version']}. Install the version used in training, or segment the text " in told
        assert told.endswith(", or segment the text yourself and use --segmented.")
    for command in ("embed", "evaluate"):
        assert elmo_zh(command, text, "--segmented", "--model", model).status == 0


# Found by reading the code and trying


def test_text_settings_other_than_the_training_texts_are_not_exported(run: Path) -> None:
    """Also where the settings of the run say so; tests/run/test_other_stages.py has the command line."""
    saved = run / "config.toml"
    saved.write_text(saved.read_text("utf-8").replace('segmenter = "jieba"', 'segmenter = "character"'), "utf-8")
    told = elmo_zh("export", "--run", run).only_error()
    assert told.startswith(f"{run}: text settings have changed since ")
    assert " since the training text was segmented (text.segmenter jieba -> character)." in told


def test_vectors_for_another_vocabulary_do_not_start_a_training(untrained_run: Path) -> None:
    assert elmo_zh("vocab", "--run", untrained_run, "--set", "vocab.size=53").status == 0
    assert elmo_zh("encode", "--run", untrained_run).status == 0
    told = elmo_zh("train", "--run", untrained_run).only_error()
    assert told.endswith(f"Make it again with: elmo-zh word2vec --run {untrained_run}")


def test_vectors_of_other_words_leave_the_good_ones(untrained_run: Path, tmp_path: Path) -> None:
    before = (untrained_run / "word2vec.txt").read_bytes()
    vectors = tmp_path / "latin.txt"
    vectors.write_text("1 7\nfoo 1 2 3 4 5 6 7\n", encoding="utf-8")
    told = elmo_zh("word2vec", "--run", untrained_run, "--from", vectors).only_error()
    assert told.endswith(f" and {untrained_run}/vocab.data share no word. Do both use the same language and script?")
    assert (untrained_run / "word2vec.txt").read_bytes() == before
    assert elmo_zh("word2vec", "--run", untrained_run, "--json").result()["skipped"] is True


def test_two_dumps_of_one_output_do_not_mix(sample_run: SampleRun, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("今天 天气 好\n", encoding="utf-8")
    output = tmp_path / "text.txt.hdf5"
    with output_lock(output).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = elmo_zh("embed", text, "--segmented", "--model", sample_run.model).only_error()
    assert told.startswith(f"{output} is being written by another elmo-zh process.")
    assert elmo_zh("embed", text, "--segmented", "--model", sample_run.model).status == 0
    assert not output_lock(output).exists()
