"""The run folder: the names of its files, its settings, its lock, and where to find runs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from elmo_zh.config import Config, load_config, render_config
from elmo_zh.errors import RunError
from elmo_zh.invocation import train_command
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path, final_name, make_folder, require_regular
from elmo_zh.run.outputs import MARK, NOT_REPLACED, kind_of, locked, write_mark
from elmo_zh.run.stage_table import STAGES

# Bump it when a program that knows the old number would misread a run.
RUN_FORMAT = 1
# Where runs are, by default.
RUNS = Path("runs")
# A link to the run whose model is used by default.
LATEST = RUNS / "latest"


class RunDir:
    """A run folder, and the names of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = path / ".lock"  # held by the command that works on the run
        self.config = path / "config.toml"  # the resolved settings
        self.plan = path / "plan.json"  # the estimates that `plan` made before the run
        self.about = path / "about.md"  # the user's own words on the model, for its model card
        # Text: standard input and downloads while they are segmented; one sentence a line, tokens joined by U+0020;
        # the copy of text.user_dictionary.
        self.fetched = path / "fetched.unfinished"
        self.segmented = path / "segmented"
        self.user_dictionary = path / "user_dictionary.txt"
        # Vocabulary: one token a line; token TAB count in the same order; the spelling model, character TAB count.
        self.vocab = path / "vocab.data"
        self.vocab_counts = path / "vocab.counts"
        self.character_counts = path / "character_counts.tsv"
        self.word2vec = path / "word2vec.txt"  # initial token embeddings, in word2vec's text format
        self.ids = path / "ids"  # the token id store
        # Training: checkpoints; the weights that it started from, if it started from a bundle; figures, one JSON object
        # a line; loss and held-out perplexity by number of tokens.
        self.checkpoints = path / "checkpoints"
        self.start = path / "start"
        self.metrics = path / "metrics.jsonl"
        self.training_picture = path / "training.png"
        self.model = path / "model"  # the exported bundle
        self.index = path / "index"  # the index of the run's own text, which `explore` makes

    @property
    def name(self) -> str:
        """The folder's own name, rather than the name of a link such as `latest`."""
        return self.path.resolve().name

    def holds(self, path: Path) -> bool:
        """Return whether a path is inside the run folder."""
        return path.resolve().is_relative_to(self.path.resolve())

    def stage_record(self, stage: str) -> Path:
        """Return the path of a stage's record."""
        return self.path / "stages" / f"{stage}.json"

    def train_files(self) -> list[Path]:
        """Return the segmented training files in order."""
        return sorted(self.segmented.glob("train-*.txt"))

    def heldout_files(self) -> list[Path]:
        """Return the segmented held-out files in order."""
        return sorted(self.segmented.glob("heldout-*.txt"))

    def load_config(
        self, path: Path | None, assignments: Sequence[str], options: Mapping[str, Any] | None = None
    ) -> Config:
        """Return the run's settings (the defaults for a new run), changed by a file, assignments and options."""
        base = load_config(Config(), self.config, []) if self.config.exists() else Config()
        return load_config(base, path, assignments, options)

    def save_config(self, config: Config) -> None:
        """Write the resolved settings, if they have changed."""
        text = render_config(config)
        if not self.config.exists() or self.config.read_text(encoding="utf-8") != text:
            with atomic_path(self.config) as unfinished:
                unfinished.write_text(text, encoding="utf-8")

    @contextmanager
    def locked(self, *, create: bool) -> Iterator[None]:
        """Lock the run for this process, creating it if it is missing and `create` is true.

        Raises:
            RunError: If it is missing and `create` is false.
            OutputError: If another process holds its lock, or a file that is not ours stands in its place.
        """
        if not create and not self.path.exists():
            raise RunError(explain_no_run(self.path))
        created = [path for path in (self.path, *self.path.parents) if not path.exists()]
        is_new = not (self.path / MARK).exists()
        try:
            make_folder(self.path)
            with locked(self.lock, self.path, "--run"):
                if is_new:
                    write_mark(self.path, "run", RUN_FORMAT, {})
                yield
        finally:
            # A misspelt corpus must leave no run behind; `rmdir` removes only empty folders.
            with suppress(OSError):
                if is_new and [path.name for path in self.path.iterdir()] == [MARK]:
                    (self.path / MARK).unlink()
                for path in created:
                    path.rmdir()


def is_run(path: Path) -> bool:
    """Return whether a folder is a run."""
    return kind_of(path) == "run"


def iter_runs(folder: Path) -> Iterator[Path]:
    """Yield, once each, the runs with stage records in a folder and its direct subfolders.

    A run is yielded as a link, such as `latest`, only if no other path leads to it.
    """
    runs = [path.parent for pattern in ("*/stages", "*/*/stages") for path in folder.glob(pattern)]
    seen = set()
    for path in sorted(runs, key=lambda path: (path.is_symlink() or path.parent.is_symlink(), path)):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            yield path


def require_run_or_room(path: Path) -> None:
    """Raise RunError if a folder has files but is not a run, and OutputError for a pipe, a device or a socket in it."""
    names = sorted(file.name for file in path.iterdir() if not file.name.startswith(".")) if path.is_dir() else []
    # A copy of a run may have only some of these; one whose first command was killed, only an unfinished mark.
    of_runs = {MARK, "config.toml", "stages", *(name for stage in STAGES for name in stage.makes)}
    if names and of_runs.isdisjoint(map(final_name, names)):
        raise RunError(_(NOT_REPLACED).format(path=path / names[0], option="--run"))
    require_regular(*path.rglob("*"))


def explain_no_run(path: Path) -> str:
    """Return a message that a path is not a run, with the command that begins one."""
    return _("{path} is not a run. Begin one with: {command}").format(path=path, command=train_command())
