"""The run folder: the names of its files, its settings, and its lock."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import Config, load_config, render_config
from elmo_zh.errors import ElmoZhError, FullDiskError
from elmo_zh.run.files import atomic_path, locked


def documents_beside(segmented: Path) -> Path:
    """Return the path of a segmented file's document sizes: sentences of each document, little-endian uint32."""
    return segmented.with_suffix(".documents")


@dataclass(frozen=True)
class RunDir:
    """Names every file of a run."""

    path: Path

    @property
    def config(self) -> Path:
        """The file of the resolved settings."""
        return self.path / "config.toml"

    @property
    def plan(self) -> Path:
        """The estimates that `plan` made before the run."""
        return self.path / "plan.json"

    @property
    def coverage_picture(self) -> Path:
        """The picture of how much of the training text the most frequent words cover."""
        return self.path / "coverage.png"

    @property
    def user_dictionary(self) -> Path:
        """The copy of text.user_dictionary."""
        return self.path / "user_dictionary.txt"

    @property
    def segmented(self) -> Path:
        """The folder of {train,heldout}-*.txt, one sentence a line, tokens joined by U+0020."""
        return self.path / "segmented"

    @property
    def name(self) -> str:
        """The folder's own name, not that of a link such as `latest`."""
        return self.path.resolve().name

    @property
    def corpus_report(self) -> Path:
        """The report, written for people, of what was read, changed and dropped in the corpus, with examples."""
        return self.path / "corpus_report.md"

    @property
    def fetched(self) -> Path:
        """The folder of text from standard input and the network; exists only during segmentation."""
        return self.path / "fetched.unfinished"

    @property
    def vocab(self) -> Path:
        """The vocabulary file, one token per line."""
        return self.path / "vocab.data"

    @property
    def vocab_parts(self) -> Path:
        """The folder of the word counts of single files; removed when the vocabulary is finished."""
        return self.path / "vocab.parts"

    @property
    def vocab_counts(self) -> Path:
        """The file of token TAB count, in the order of vocab.data."""
        return self.path / "vocab.counts"

    @property
    def character_counts(self) -> Path:
        """The file of the spelling model for unknown words: character TAB count."""
        return self.path / "character_counts.tsv"

    @property
    def word2vec(self) -> Path:
        """The file of initial token embeddings, in word2vec's text format."""
        return self.path / "word2vec.txt"

    @property
    def ids(self) -> Path:
        """The folder of the token id store."""
        return self.path / "ids"

    @property
    def ids_parts(self) -> Path:
        """The folder of the id store's finished shards; removed when the store is finished."""
        return self.path / "ids.parts"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def start(self) -> Path:
        """The folder of the weights that training started from, if it started from a bundle."""
        return self.path / "start"

    @property
    def metrics(self) -> Path:
        """The file of training and held-out figures, one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def tensorboard(self) -> Path:
        """The folder of TensorBoard's event files."""
        return self.path / "tensorboard"

    @property
    def training_picture(self) -> Path:
        """The picture of training loss and held-out perplexity by number of tokens."""
        return self.path / "training.png"

    @property
    def about(self) -> Path:
        """The user's own words on the model, in Markdown, for its model card."""
        return self.path / "about.md"

    @property
    def model(self) -> Path:
        """The folder of the exported bundle."""
        return self.path / "model"

    @property
    def index(self) -> Path:
        """The folder of the index of the run's own text, which `explore` makes."""
        return self.path / "index"

    def holds(self, path: Path) -> bool:
        """Return whether a path is inside the run folder."""
        return path.resolve().is_relative_to(self.path.resolve())

    def stage_record(self, stage: str) -> Path:
        """Return the path of a stage's record."""
        return self.path / "stages" / f"{stage}.json"

    def train_files(self) -> list[Path]:
        """Return the segmented training files in order."""
        return sorted(self.segmented.glob("train-*.txt"))

    def document_files(self) -> list[Path]:
        """Return the files with the number of sentences of each document, one for each training file."""
        return sorted(self.segmented.glob("train-*.documents"))

    def heldout_files(self) -> list[Path]:
        """Return the segmented held-out files in order."""
        return sorted(self.segmented.glob("heldout-*.txt"))

    def load_config(self, path: Path | None, assignments: list[str]) -> Config:
        """Return the run's settings (the defaults for a new run) as changed by a file and by assignments."""
        base = load_config(Config(), self.config, []) if self.config.exists() else Config()
        return load_config(base, path, assignments)

    def save_config(self, config: Config) -> None:
        """Write the resolved settings, if they have changed."""
        text = render_config(config)
        if not self.config.exists() or self.config.read_text(encoding="utf-8") != text:
            with atomic_path(self.config) as unfinished:
                unfinished.write_text(text, encoding="utf-8")

    @contextmanager
    def config_kept_on_error(self) -> Iterator[None]:
        """Restore the settings file if the block fails with a known problem, such as a refused setting.

        A first command that fails before a stage of the run has begun leaves no settings, so that its mistakes are not
        those of the next one.
        """
        before = self.config.read_bytes() if self.config.exists() else None
        try:
            yield
        except FullDiskError:
            raise  # the same command continues, so its settings stay
        except ElmoZhError:
            if before is None and not any((self.path / "stages").glob("*.json")):
                self.config.unlink(missing_ok=True)
            elif before is not None and self.config.read_bytes() != before:
                with atomic_path(self.config) as unfinished:
                    unfinished.write_bytes(before)
            raise

    @property
    def lock(self) -> Path:
        """Its lock: held by the command that works on the run."""
        return self.path / ".lock"

    @contextmanager
    def locked(self, *, create: bool) -> Iterator[None]:
        """Lock the run for this process; without `create`, a run that does not exist is not created."""
        if not create and not self.path.exists():
            yield
            return
        refusal = f"{self.path} is in use by another elmo-zh process. Wait until it ends, or choose another --run."
        created = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            with locked(self.lock, refusal):
                yield
        finally:
            # A misspelt corpus leaves no run behind: only empty folders are removed.
            with suppress(OSError):
                for path in created:
                    path.rmdir()
