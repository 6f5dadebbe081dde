"""The commands that are tried with faults, on inputs so small that each makes some hundred calls of the system."""

import importlib.util
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from faults.layer import WarmProcess

SAMPLE = Path(__file__).parents[2] / "data" / "sample"

# Distinct primes as in the other tests; ten steps of training.
SETTINGS = """
[text]
segmenter = "character"
num_workers = 1

[word2vec]
epochs = 1

[model]
cell_dim = 5
projection_dim = 3
num_layers = 2

[train]
max_tokens = 210
batch_size = 3
unroll_steps = 7
num_negatives = 29
num_threads = 1
device = "cpu"
log_every_steps = 1
evaluate_every_tokens = 84
checkpoint_every_tokens = 63
keep_checkpoints = 2
"""

STAGES = ("segment", "vocab", "word2vec", "encode", "train", "export")
TEXT = "今天天气很好\n\n我们吃米饭\n他喝茶\n春天来了\n我们喝茶\n今天下雨\n"
NUMBERS = [f"{kind}{number}" for kind in "共约" for number in "一二三四五六七八九十"]
LABELLED = "".join(f"今天天气很好{each},好\n我们吃米饭{each},吃\n" for each in NUMBERS[:12])
WORDS = "".join(f"我们\tPN\n喝\tVV\n{each}\tCD\n茶\tNN\n\n" for each in NUMBERS)


@dataclass(frozen=True)
class Command:
    name: str
    arguments: tuple[str, ...]
    start: str  # the folder from which it starts
    needs: str = "torch"  # a package without which it cannot run
    progress: str = ""  # pattern of the files that grow with the work

    def is_progress(self, name: str) -> bool:
        """Whether a file grows with the work, so that an unfinished one has its final name."""
        return bool(self.progress and re.search(self.progress, name))

    @property
    def can_run(self) -> bool:
        return importlib.util.find_spec(self.needs) is not None


# A record says of itself whether its stage has finished; checkpoints and figures are there as training goes on.
PROGRESS = r"/(stages/train\.json|metrics\.jsonl|checkpoints(/.*)?)$"


def _stage(name: str) -> Command:
    corpus = ("corpus.txt",) if name == "segment" else ()
    config = ("--config", "tiny.toml") if name == "segment" else ()
    progress = PROGRESS if name == "train" else ""
    return Command(name, (name, *corpus, "--run", "run", *config), f"before {name}", progress=progress)


def _embed(name: str, *options: str, needs: str = "torch") -> Command:
    arguments = ("embed", "text.txt", "--model", "model", "--output", f"{name}.vectors", *options)
    return Command(f"embed {name}", arguments, "with a model", needs)


MODEL = ("--model", "model")


def _index(output: str, start: str = "with a model") -> Command:
    return Command("index", ("index", "text.txt", *MODEL, "--output", output), start)


def _fit(output: str) -> Command:
    given = ("labelled.csv", *MODEL, "--output", output, "--epochs", "2", "--hidden", "5")
    return Command("task fit", ("task", "fit", "classify", *given), "with a model")


# What is made from a model before some commands start, by the names of the folders.
STARTS = {
    "with a model": (),
    "with indexes": (_index("old.index"), _index("later.index")),
    "with a task": (_fit("trained"),),
}
COMMANDS = (
    *map(_stage, STAGES),
    Command(
        "pipeline",
        ("pipeline", "corpus.txt", "--run", "runs/new", "--config", "tiny.toml"),
        "before segment",
        progress=PROGRESS,
    ),
    Command("evaluate", ("evaluate", "heldout.txt", "--segmented", *MODEL), "with a model"),
    _embed("hdf5"),
    _embed("npy", "--format", "npy"),
    _embed("parquet", "--format", "parquet", needs="pyarrow"),
    _embed("stateful", "--stateful"),
    Command("convert", ("convert", "model", "--output", "new/converted"), "with a model"),
    _index("new/an.index"),
    Command(
        "drift",
        ("drift", "old.index", "later.index", "--min-count", "2", "--permutations", "7", "--output", "new/drift.tsv"),
        "with indexes",
    ),
    Command("explore", ("explore", "old.index", "--word", "天", "--output", "new/page.html"), "with indexes", "bokeh"),
    Command("score", ("score", "text.txt", *MODEL, "--output", "a/new/folder/scores"), "with a model"),
    Command(
        "score, kept lines",
        ("score", "text.txt", *MODEL, "--keep-share", "0.5", "--output", "kept.txt"),
        "with a model",
    ),
    _fit("task"),
    Command("task predict", ("task", "predict", "text.txt", "--task", "trained", "--output", "labels"), "with a task"),
    Command(
        "task compare",
        (
            "task", "compare", "classify", "labelled.csv", "--test", "labelled.csv", *MODEL, "--output", "comparison",
            "--epochs", "1", "--hidden", "5", "--seeds", "1", "--shares", "1",
        ),
        "with a model",
    ),
    Command(
        "task probe",
        ("task", "probe", "tags", "words.txt", "--test", "words.txt", *MODEL, "--output", "probe"),
        "with a model",
    ),
)  # fmt: skip


def prepare(warm: WarmProcess, folder: Path, names: Collection[str]) -> None:
    """Make the folders from which commands start, by a whole run that also warms the process up for some commands."""
    base = folder / "base"
    base.mkdir()
    corpus = (SAMPLE / "food.txt").read_text(encoding="utf-8").splitlines(keepends=True)[:17]
    (base / "corpus.txt").write_text("".join(corpus), encoding="utf-8")
    (base / "tiny.toml").write_text(SETTINGS, encoding="utf-8")
    for stage in map(_stage, STAGES):
        shutil.copytree(base, folder / f"before {stage.name}")
        _require(warm, stage, base)
    model = folder / "model"
    model.mkdir()
    shutil.copytree(base / "run" / "model", model / "model")
    shutil.copyfile(base / "run" / "segmented" / "heldout-00000.txt", model / "heldout.txt")
    (model / "text.txt").write_text(TEXT, encoding="utf-8")
    (model / "labelled.csv").write_text(f"text,label\n{LABELLED}", encoding="utf-8")
    (model / "words.txt").write_text(WORDS, encoding="utf-8")
    for name, commands in STARTS.items():
        shutil.copytree(model, folder / name)
        for command in commands:
            _require(warm, command, folder / name)
    # What the other commands load and compile once.
    scratch = folder / "scratch"
    for name in STARTS:
        shutil.copytree(folder / name, scratch, dirs_exist_ok=True)
    for command in COMMANDS:
        if command.start.startswith("with") and command.name in names and command.can_run:
            _require(warm, command, scratch)


def _require(warm: WarmProcess, command: Command, folder: Path) -> None:
    outcome = warm.run(command.arguments, here=folder)
    assert outcome.status == 0, outcome.told
