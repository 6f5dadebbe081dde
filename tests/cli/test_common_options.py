"""What every command shares: help, settings, --quiet, --json, exit statuses."""

import re
from pathlib import Path

import pytest
from contract.command_line import COMMANDS, GROUPS, SampleRun, elmo_zh, run_python, succeed

# These overwrite nothing.
READERS = ("plan", "info", "evaluate", "substitutes", "neighbours", "task score")
# What is imported only once a command really works.
SLOW_MODULES = ("torch", "gensim", "h5py", "jieba", "matplotlib", "scipy")
WITH_GROUPS = (*COMMANDS, *(f"{group} {command}" for group, commands in GROUPS.items() for command in commands))
SLOW_HELP = f"""
import sys
from elmo_zh.cli import main

for command in {WITH_GROUPS!r}:
    sys.argv = ["elmo-zh", *command.split(), "--help"]
    try:
        main()
    except SystemExit as end:
        assert end.code == 0
print(sorted(set(sys.modules) & set({SLOW_MODULES!r})), file=sys.stderr)
"""


# What follows a command that is to succeed on a finished run; after the others comes only --run.
FINISHED_TABLE = """
pipeline: {corpus} --run {run}
segment: {corpus} --run {run}
embed: {heldout} --segmented --model {model} --output {new}.hdf5
evaluate: {heldout} --segmented --model {model}
score: {heldout} --segmented --model {model} --output {new}.tsv
substitutes: 今天天气很好 --word 很 --model {model}
index: {heldout} --segmented --model {model} --output {new}.index
neighbours: 的 --in {sentence} --index {index}
senses: 的 --index {index}
drift: {index} {later} --min-count 2
explore: {index} --word 的 --output {new}.html
concordance: 的 {corpus}
frequencies: {corpus}
collocates: 的 {corpus}
keywords: {corpus} --where {where} --against-where {where}
words: {corpus}
convert: {model} --output {new}
info: {model}
plan: {corpus} --run {run} --no-training
"""
FINISHED = dict(line.split(": ") for line in FINISHED_TABLE.strip().split("\n"))


@pytest.fixture(scope="module")
def indexes(sample_run: SampleRun, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("indexes")
    half = folder / "half.txt"
    half.write_text("".join(sample_run.heldout.read_text("utf-8").splitlines(keepends=True)[::2]), encoding="utf-8")
    for text, name in ((sample_run.heldout, "index"), (half, "later")):
        succeed("index", text, "--segmented", "--model", sample_run.model, "--output", folder / name)
    return {name: folder / name for name in ("index", "later")}


@pytest.mark.parametrize("command", WITH_GROUPS)
def test_help_begins_with_one_sentence_and_has_an_example(command: str) -> None:
    """And every option: tests/test_pages.py compares docs/commands.md with it."""
    answer = succeed(*command.split(), "--help")
    assert answer.stderr == ""
    usage, sentence, when, *_ = answer.stdout.split("\n\n")
    assert f"elmo-zh {command} [OPTIONS]" in usage
    assert re.fullmatch(r" *[A-Z][^.]*[^.]\.", sentence)
    assert len(when.split()) > 5
    assert f"elmo-zh {command} " in answer.stdout.split("Example:\n")[1].split("\n\n")[0]
    assert ("--force" in answer.stdout) == (command not in READERS)


def test_help_waits_for_no_library(tmp_path: Path) -> None:
    answer = run_python("-c", SLOW_HELP, cwd=tmp_path)
    assert answer.status == 0
    assert answer.stdout.count("Usage: ") == len(WITH_GROUPS)
    assert answer.stderr == "[]\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_quiet_tells_nothing_where_all_is_well_but_the_object_of_json(
    command: str, sample_run: SampleRun, indexes: dict[str, Path], run: Path, tmp_path: Path
) -> None:
    known = {name: getattr(sample_run, name) for name in ("corpus", "heldout", "model")}
    known |= {**indexes, "run": run, "sentence": "我 的", "where": "source ~ a"}
    for options, new in (((), "first"), (("--json",), "second")):
        words = FINISHED.get(command, "--run {run}").split(" ")
        answer = elmo_zh(command, *(word.format(**known, new=tmp_path / new) for word in words), "--quiet", *options)
        assert (answer.status, answer.stderr) == (0, "")
        assert isinstance(answer.result(), dict) if options else answer.stdout == ""


def test_the_model_of_the_latest_run_is_the_default(
    sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("evaluate", sample_run.heldout, "--segmented", "--json")
    monkeypatch.chdir(tmp_path)
    assert "runs/latest/model" in elmo_zh(*arguments).only_error()
    monkeypatch.setenv("ELMO_ZH_MODEL", "models/gone")
    assert elmo_zh(*arguments).only_error().startswith("$ELMO_ZH_MODEL: models/gone ")
    monkeypatch.setenv("ELMO_ZH_MODEL", str(sample_run.model))
    by_variable = elmo_zh(*arguments).result()
    monkeypatch.delenv("ELMO_ZH_MODEL")
    monkeypatch.chdir(sample_run.folder)
    by_default = elmo_zh(*arguments).result()
    assert by_default.pop("model")["path"] == "runs/latest/model"
    assert by_variable.pop("model")["path"] == str(sample_run.model)
    assert by_default == by_variable
