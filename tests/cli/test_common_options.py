"""What every command shares: help, settings, --quiet, --json, --print-config, exit statuses."""

import importlib.metadata
import json
import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from contract.command_line import COMMANDS, GROUPS, OF_MODELS, OF_TEXTS, ROOT, STAGES, SampleRun, elmo_zh, run_python

from elmo_zh import __version__
from elmo_zh.choices import OUTPUT_FORMATS
from elmo_zh.cli import main
from elmo_zh.cli import options as cli_options
from elmo_zh.config import Config

pytestmark = pytest.mark.usefixtures("empty_folder")

COMMON = ("--config FILE", "--set SECTION.KEY=VALUE", "--quiet", "--json", "--print-config")
# These overwrite nothing.
READERS = ("plan", "inspect", "runs", "info", "selftest", "evaluate", "substitutes", "neighbours")
# What the help of each command names, apart from the common options.
OWN_TABLE = """
pipeline: CORPUS..., --run RUN, --init BUNDLE, --engine [local|dask], --scheduler ADDRESS
segment: CORPUS..., --run RUN, --engine [local|dask], --scheduler ADDRESS
vocab: --run RUN, --init BUNDLE, --from FILE, --engine [local|dask], --scheduler ADDRESS
word2vec: --run RUN, --from FILE
encode: --run RUN, --engine [local|dask], --scheduler ADDRESS
train: --run RUN, --init BUNDLE, --device [auto|cpu|cuda]
export: --run RUN, --checkpoint best|last|STEP, --output DIR
embed: FILE..., --model BUNDLE, --output FILE, --segmented, --layers all|average|top|N, --dtype
convert: SOURCE, --output DIR, --weights FILE, --warm-on TEXT, --layout [bundle|simple_elmo|
index: FILE..., --model BUNDLE, --output INDEX, --segmented, --layers all|top|N, --max-per-word
neighbours: WORD, --in SENTENCE, --index INDEX, --same-word, --layer, --top, --model BUNDLE
drift: OLD NEW, --layer, --by, --min-count, --words FILE, --vectors, --permutations, --output FILE
senses: WORD, --index INDEX, --layer, --usages K, --top, --no-substitutes, --output FILE, --picture
explore: INDEX, --output PAGE, --word WORD, --num-words, --max-per-word, --model BUNDLE
info: BUNDLE
plan: CORPUS..., --run RUN, --no-training, --format, --input-format FORMAT
inspect: RUN, --samples, --tokens, --seed
runs: FOLDER
selftest: BUNDLE, --device [auto|cpu|cuda]
evaluate: FILE..., --model BUNDLE, --segmented, --device [auto|cpu|cuda]
score: FILE..., --by, --keep-below BITS, --keep-share FRACTION, --against BUNDLE, --output FILE
substitutes: [TEXT], --word WORD, --position N, --top, --model BUNDLE
concordance: QUERY, [FILE]..., --index INDEX, --where CONDITION, --sort KEY, --like NUMBER, --usage N, --output FILE
frequencies: [FILE]..., --index INDEX, --word QUERY, --by COLUMN, --where CONDITION, --top, --output FILE
collocates: QUERY, [FILE]..., --index INDEX, --window, --min-count, --by, --usages, --output FILE
keywords: [FILE]..., --index INDEX, --against-where CONDITION, --against INDEX, --min-count, --output FILE
"""
OWN = {command: names.split(", ") for command, names in (line.split(": ") for line in OWN_TABLE.strip().split("\n"))}
SECTIONS = ["Prepare", "Train", "Use", "Study", "Inspect"]
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


def minimal_arguments(command: str, run: Path) -> tuple[str | Path, ...]:
    """Return the least that a command asks for; none of it has to exist."""
    if command == "runs":
        return ("runs",)
    if command == "inspect":
        return (command, run)
    if command == "neighbours":
        return (command, "苹果", "--in", "吃苹果", "--index", "texts.index")
    if command == "drift":
        return (command, "old.index", "new.index")
    if command == "senses":
        return (command, "苹果", "--index", "texts.index")
    if command == "substitutes":
        return (command, "苹果", "--position", "0")
    if command in OF_TEXTS:
        return (command, "苹果", "corpus.txt")
    file = ("corpus.txt",) if command in ("pipeline", "segment", "plan", *OF_MODELS) else ()
    output = ("--output", "model") if command in ("convert", "index", "explore") else ()
    return (command, *file, *output, *(() if command in OF_MODELS else ("--run", run)))


def finished_arguments(command: str, sample: SampleRun, run: Path, folder: Path) -> tuple[str | Path, ...]:
    """Return arguments with which a command succeeds on a finished run."""
    if command in ("embed", "score"):
        output = folder / f"{len(list(folder.iterdir()))}.hdf5"
        return (command, sample.heldout, "--segmented", "--model", sample.model, "--output", output)
    if command == "convert":
        return ("convert", sample.model, "--output", folder / f"model {len(list(folder.iterdir()))}")
    if command in ("index", "neighbours", "senses", "drift", "explore"):
        return index_arguments(command, sample, folder)
    others: dict[str, tuple[str | Path, ...]] = {
        "plan": (sample.corpus, "--run", run, "--no-training"),
        "runs": (run.parent,),
        "inspect": (run,),
        "info": (sample.model,),
        "selftest": (sample.model,),
        "substitutes": ("今天天气很好", "--position", "1", "--model", sample.model),
        "concordance": ("的", sample.heldout),
        "frequencies": (sample.heldout,),
        "collocates": ("的", sample.heldout),
        "keywords": (sample.heldout, "--where", "source ~ a", "--against-where", "source ~ a"),
        "evaluate": (sample.heldout, "--segmented", "--model", sample.model),
    }
    if command in others:
        return (command, *others[command])
    return (command, *((sample.corpus,) if command in ("pipeline", "segment") else ()), "--run", run)


def index_arguments(command: str, sample: SampleRun, folder: Path) -> tuple[str | Path, ...]:
    output = folder / f"{len(list(folder.iterdir()))}.index"
    arguments = ("index", sample.heldout, "--segmented", "--model", sample.model, "--output", output)
    if command == "index":
        return arguments
    assert elmo_zh(*arguments, "--quiet").status == 0
    if command == "drift":
        old = sample.heldout.read_text("utf-8").splitlines(keepends=True)
        half, later = folder / "half.txt", folder / "half.index"
        half.write_text("".join(old[::2]), encoding="utf-8")
        made = elmo_zh(*("index", half, *arguments[2:-1]), later, "--quiet", "--force")
        assert made.status == 0, made.stderr
        return ("drift", output, later, "--min-count", "2")
    if command == "senses":
        return ("senses", "的", "--index", output)
    if command == "explore":
        return ("explore", output, "--word", "的", "--output", f"{output}.html")
    return ("neighbours", "的", "--in", "我 的", "--index", output)


def listed_commands(text: str) -> dict[str, str]:
    """Return the description of each command in the sections of the group's help."""
    sections = text.split(f"\n{SECTIONS[0]}:\n")[1]
    return dict(re.findall(r"^  (\w+) +(.*)$", sections, re.MULTILINE))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_every_option(command: str) -> None:
    answer = elmo_zh(command, "--help")
    assert answer.status == 0
    assert answer.stderr == ""
    assert f"elmo-zh {command} [OPTIONS]" in answer.stdout.splitlines()[0]
    example = answer.stdout.split("Example:\n")[1].split("\n\n")[0]
    assert f"elmo-zh {command} " in example
    for name in (*COMMON, *OWN[command]):
        assert name in answer.stdout, name
    assert ("--force" in answer.stdout) == (command not in READERS)


def test_force_is_still_accepted_where_it_has_no_effect(sample_run: SampleRun) -> None:
    answer = elmo_zh("info", sample_run.model, "--force")
    assert answer.status == 0
    assert answer.stderr.splitlines() == ["Warning: --force has no effect on info. Leave it out."]
    assert elmo_zh("info", sample_run.model).stdout == answer.stdout


def test_help_of_embed_names_every_format_and_the_output_of_standard_input() -> None:
    text = " ".join(elmo_zh("embed", "--help").stdout.split())
    assert f"--format [{'|'.join(OUTPUT_FORMATS.built_in)}]" in text
    for name in ("HDF5", "NumPy arrays (npy)", "Parquet", "JSON lines (jsonl)", "word2vec's text format"):
        assert name in text
    assert "for standard input, embeddings.hdf5 in the current folder" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_print_config_needs_nothing_else(command: str) -> None:
    answer = elmo_zh(command, "--print-config", "--set", "vocab.size=17")
    assert answer.status == 0, answer.stderr
    assert tomllib.loads(answer.stdout)["vocab"]["size"] == 17
    assert elmo_zh(command, "--print-config", "--no-such-option").status == 2
    assert list(Path().iterdir()) == []


def test_help_of_the_group_lists_the_commands() -> None:
    answer = elmo_zh("--help")
    assert answer.status == 0
    assert sorted(listed_commands(answer.stdout)) == sorted((*COMMANDS, *GROUPS))
    assert elmo_zh("--version").stdout == f"elmo-zh, version {__version__}\n"


def test_help_of_the_group_fits_a_terminal_and_cuts_nothing_off() -> None:
    """Each command has one line of at most 80 columns: the first sentence of its own help, up to the full stop."""
    text = elmo_zh("--help").stdout
    assert [title for title in re.findall(r"^(\w+):$", text, re.MULTILINE) if title != "Options"] == SECTIONS
    assert max(map(len, text.splitlines())) <= 80
    for command, sentence in listed_commands(text).items():
        paragraphs = elmo_zh(command, "--help").stdout.split("\n\n")
        assert paragraphs[1].strip() == sentence
        assert re.fullmatch(r"[A-Z][^.]*[^.]\.", sentence)
        # Then when to use it.
        assert len(paragraphs[2].split()) > 5


def test_help_waits_for_no_library(tmp_path: Path) -> None:
    answer = run_python("-c", SLOW_HELP, cwd=tmp_path)
    assert answer.status == 0
    assert answer.stdout.count("Usage: ") == len(WITH_GROUPS)
    assert answer.stderr == "[]\n"


def test_the_ways_to_call_it_are_one(tmp_path: Path) -> None:
    """`elmo-zh`, `python -m elmo_zh` and `python cli.py`, from any folder."""
    module = run_python("-m", "elmo_zh", "vocab", "--run", "nowhere", cwd=tmp_path)
    launcher = run_python(ROOT / "cli.py", "vocab", "--run", "nowhere", cwd=tmp_path)
    assert module == launcher
    assert module.only_error().startswith("nowhere does not exist. Begin a run with: make train CORPUS=my-texts/, or ")
    assert module.only_error().endswith(" -m elmo_zh segment CORPUS --run nowhere")
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="elmo-zh")
    assert script.load() is main


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("trian",),
        ("--run", "r"),
        ("segment", "--run", "r"),
        ("segment", "corpus.txt"),
        ("vocab",),
        ("vocab", "--run"),
        ("vocab", "surplus", "--run", "r"),
        ("train", "--run", "r", "--device", "tpu"),
        ("train", "--run", "r", "--batch-size", "3"),
        ("embed",),
        ("info",),
        ("selftest",),
        ("convert",),
        ("convert", "model"),
        ("embed", "a.txt", "--dtype", "float64"),
        ("evaluate", "--segmented"),
        ("vocab", "--run", "r", "--engine", "spark"),
        ("vocab", "--run", "r", "--engine", "dask"),
        ("encode", "--run", "r", "--scheduler", "tcp://127.0.0.1:9"),
        ("pipeline", "corpus.txt", "--run", "r", "--engine", "local", "--scheduler", "tcp://127.0.0.1:9"),
        ("train", "--run", "r", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:9"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    answer = elmo_zh(*arguments)
    assert answer.status == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith(("Usage: ", "Error: "))
    assert "Traceback" not in answer.stderr


def test_the_engine_and_its_scheduler_are_given_together(tmp_path: Path) -> None:
    """In any order; what is wrong with the cluster itself is one line."""
    options = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    told = elmo_zh("encode", "--run", tmp_path, *options[:2]).stderr
    assert told.endswith("Error: --engine dask and --scheduler ADDRESS need each other. Give both or neither.\n")
    for arguments in (options, (*options[2:], *options[:2])):
        told = elmo_zh("encode", "--run", tmp_path, *arguments).only_error()
        assert told == f"{tmp_path / 'segmented'} is missing. Make it with: elmo-zh segment CORPUS --run {tmp_path}"


def test_a_bug_is_reported_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not a known problem reaches Python, which prints it with the note."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli_options, "load_config", fail)
    with pytest.raises(ZeroDivisionError, match="a bug") as caught:
        elmo_zh("evaluate", "a.txt")
    assert caught.value.__notes__ == ["This is a bug in elmo-zh. Please report it with the lines above."]


@pytest.mark.parametrize("command", COMMANDS)
def test_print_config_is_toml_that_loads_back_to_the_same(command: str, tmp_path: Path) -> None:
    arguments = minimal_arguments(command, tmp_path / "run")
    changes = (
        "--set",
        "model.cell_dim=509",
        "--set",
        "text.user_dictionary=词 典",
        "--set",
        "train.max_tokens=2e6",
    )
    printed = elmo_zh(*arguments, *changes, "--print-config")
    assert printed.status == 0
    assert printed.stderr == ""
    default = Config()
    expected = replace(
        default,
        text=replace(default.text, user_dictionary="词 典"),
        model=replace(default.model, cell_dim=509),
        train=replace(default.train, max_tokens=2_000_000),
    )
    assert tomllib.loads(printed.stdout) == json.loads(json.dumps(asdict(expected)))  # tuples are lists in TOML
    config = tmp_path / "config.toml"
    config.write_text(printed.stdout, encoding="utf-8")
    assert elmo_zh(*arguments, "--config", config, "--print-config").stdout == printed.stdout
    # It only tells: nothing has been made.
    assert not (tmp_path / "run").exists()


def test_the_last_setting_wins_and_set_wins_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[vocab]\nsize = 11\nmin_count = 7\n", encoding="utf-8")
    changes = ("--set", "vocab.size=13", "--set", "vocab.size=17")
    printed = elmo_zh("vocab", "--run", tmp_path, "--config", config, *changes, "--print-config").stdout
    assert tomllib.loads(printed)["vocab"] == {"size": 17, "min_count": 7, "init": "", "words": ""}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_setting_is_refused_with_the_nearest_name(command: str, tmp_path: Path) -> None:
    answer = elmo_zh(*minimal_arguments(command, tmp_path / "run"), "--set", "train.batchsize=32")
    assert answer.only_error(2) == "--set: unknown key train.batchsize. Did you mean train.batch_size?"
    assert not (tmp_path / "run").exists()


def test_all_problems_of_the_settings_are_told_at_once(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text('[modle]\nx = 1\n[train]\nlearningrate = 1\nepochs = "many"\n', encoding="utf-8")
    changes = ("--set", "model.cell_dim=0", "--set", "vocab.size", "--set", "text.segmenter=pkuseg")
    answer = elmo_zh("train", "--run", tmp_path / "run", "--config", config, *changes)
    assert answer.status == 1
    assert answer.stderr.splitlines() == answer.errors
    for told, expected in zip(
        answer.errors,
        (
            f"{config}: unknown section modle. Did you mean model?",
            f"{config}: unknown key train.learningrate. Did you mean train.learning_rate?",
            f"{config}: train.epochs = 'many' should be a finite number.",
            "--set vocab.size: expected section.key=value, for example train.batch_size=32.",
            "text.segmenter = 'pkuseg' is not one of jieba, rjieba, whitespace, character.",
            "model.cell_dim = 0 is below 1.",
            "model.projection_dim = 256 is above model.cell_dim = 0:",
        ),
        strict=True,
    ):
        assert told.startswith(f"Error: {expected}")


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_one_object_on_stdout(command: str, sample_run: SampleRun, run: Path, tmp_path: Path) -> None:
    answer = elmo_zh(*finished_arguments(command, sample_run, run, tmp_path), "--json")
    result = answer.result()
    assert isinstance(result, dict)
    if command in STAGES:
        assert result["skipped"] is True
        assert answer.stderr == f"{command}: nothing has changed, skipped.\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_quiet_tells_nothing_where_all_is_well(command: str, sample_run: SampleRun, run: Path, tmp_path: Path) -> None:
    arguments = finished_arguments(command, sample_run, run, tmp_path)
    answer = elmo_zh(*arguments, "--quiet")
    assert (answer.status, answer.stdout, answer.stderr) == (0, "", "")
    again = elmo_zh(*finished_arguments(command, sample_run, run, tmp_path), "--quiet", "--json")
    assert json.loads(again.stdout)
    assert again.stderr == ""


def test_the_model_of_the_latest_run_is_the_default(
    sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("evaluate", sample_run.heldout, "--segmented", "--json")
    monkeypatch.chdir(tmp_path)
    told = elmo_zh(*arguments).only_error()
    assert told == (
        "No --model is given, and the default is missing: runs/latest/model does not exist. Train a model: make"
        " train CORPUS=my-texts/"
    )
    monkeypatch.setenv("ELMO_ZH_MODEL", "models/gone")
    told = elmo_zh(*arguments).only_error()
    assert told.startswith("$ELMO_ZH_MODEL is wrong: models/gone does not exist. ")
    monkeypatch.setenv("ELMO_ZH_MODEL", str(sample_run.model))
    by_variable = elmo_zh(*arguments).result()
    monkeypatch.delenv("ELMO_ZH_MODEL")
    monkeypatch.chdir(sample_run.folder)
    by_default = elmo_zh(*arguments).result()
    assert by_default.pop("model")["path"] == "runs/latest/model"
    assert by_variable.pop("model")["path"] == str(sample_run.model)
    assert by_default == by_variable
