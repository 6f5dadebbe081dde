"""The index that `explore` builds from a model's own text: the text of its run or, without a run, the sample text."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

from elmo_zh.bundle.find_bundle import default_bundle, find_bundle, installed_name
from elmo_zh.config import Config, TextConfig
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts.build_index import IndexJob
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import INFO
from elmo_zh.contexts.index_text import IndexSettings
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.errors import CorpusError, OutputError
from elmo_zh.invocation import command, path_from_here
from elmo_zh.language import _
from elmo_zh.run.files import read_json
from elmo_zh.run.job import run_job
from elmo_zh.run.layout import RUNS, RunDir, is_run
from elmo_zh.run.outputs import kind_of
from elmo_zh.run.record import unchanged_corpus
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.vocabulary.vocabulary import SPECIALS, is_word, load_counts, load_vocabulary

# Maximum size of the text; more would make the first look at a model a long wait.
MOST_TEXT_BYTES = 20_000_000
# The mark in index.json of an index made by this module; no other index is ever replaced unasked.
_MAKER = "explore"
# Digits of a model's digest in the name of its index.
_SHOWN_DIGITS = 8
# Maximum number of occurrences in the index, for one word and for all words together.
MOST_PER_WORD, MOST_OCCURRENCES = 100, 50_000


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model that `explore` shows with its own text: the text of its run, or the sample for a model without a run."""

    model: Path
    run: RunDir | None

    @classmethod
    def find(cls, given: Path | None) -> "Subject":
        """Return the subject for the given model or run, or for the default model."""
        if given is not None and is_run(given):
            return cls(model=RunDir(given).model, run=RunDir(given))
        model = find_bundle(given) if given is not None else default_bundle()
        if is_run(model.parent) and model.name == RunDir(model.parent).model.name:
            return cls(model=model, run=RunDir(model.parent))
        return cls(model=model, run=None)

    def index(self, digest: str) -> Path:
        """Return the index folder: in the run or, without a run, runs/NAME-DIGITS.index for this model and `digest`."""
        if self.run is not None:
            return self.run.index
        name = installed_name(self.model) or self.model.resolve().name
        return RUNS / f"{name}-{digest.removeprefix('sha256:')[:_SHOWN_DIGITS]}.index"

    @property
    def arguments(self) -> tuple[str | Path, ...]:
        """The command-line arguments that name the subject."""
        return ("--model", installed_name(self.model) or self.model) if self.run is None else (self.run.path,)


@dataclass(frozen=True)
class _OwnText:
    """A subject's text: its files, and how to read them."""

    paths: tuple[Path, ...]
    config: TextConfig
    segmented: bool = False

    def inputs(self) -> list[InputText]:
        sources = find_sources([str(path) for path in self.paths]).sources
        return [input_text(source, self.config, segmented=self.segmented) for source in sources]


def load_own_index(subject: Subject, embedder: ElmoEmbedder, *, force: bool, reporter: Reporter) -> ContextIndex:
    """Return the index of a subject's own text; build one if none can be used, or with `force`."""
    place = subject.index(embedder.bundle.digest)
    if not force:
        if (index := _usable(place, embedder)) is not None:
            message = _("Using the index {place}, built with this model. To rebuild it, add --force.")
            reporter.note(message.format(place=place))
            return index
        _require_own(place, subject)
    index_line = command("index", "TEXT", "--model", subject.model, "--output", "my.index")
    problem = _(
        "{parent} no longer has its segmented text, so explore has no text to show. Index a text"
        " of your own with: {index} - then run: {value}"
    ).format(parent=subject.model.parent, index=index_line, value=command("explore", "my.index"))
    for text in _texts_of(subject):
        source = text.paths[0] if len(text.paths) == 1 else counted(len(text.paths), "{number} file", "{number} files")
        reporter.note(_("Building the index {place} from {description}.").format(place=place, description=source))
        try:
            _build(subject, text, embedder, place, force=force, reporter=reporter)
        except CorpusError as error:
            # `segment` leaves out text that it cannot read, but an index does not; then try the segmented text.
            problem = str(error)
            reporter.note(problem)
        else:
            return ContextIndex.load(place)
    raise CorpusError(problem)


def labels_of_sample(index: ContextIndex) -> Path | None:
    """Return the table of senses marked in the sample text, or None if the index was built from a different text."""
    is_sample = all(Path(text["name"]).parent == _shipped("sample") for text in index.info["texts"])
    return _shipped("senses.tsv") if is_sample else None


def _shipped(name: str) -> Path:
    """Return the path of the sample text or its senses, in the checkout or in the installed package."""
    here = Path("data") / name
    return here if here.exists() else Path(__file__).parents[1] / name


def _usable(path: Path, embedder: ElmoEmbedder) -> ContextIndex | None:
    """Return the index in a folder if it is complete and has the embedder's model and settings, else None."""
    try:
        index = ContextIndex.load(path)
    except OutputError:
        return None
    return index if all(index.model.get(name) == value for name, value in embedder.identity().items()) else None


def _require_own(path: Path, subject: Subject) -> None:
    """Raise OutputError if there is an index that `explore` did not build and therefore must not replace."""
    if kind_of(path) != "index":
        return
    try:
        is_own = read_json(path / INFO)["settings"].get("made_by") == _MAKER
    except (ValueError, KeyError, TypeError, AttributeError):
        is_own = False
    if not is_own:
        raise OutputError(
            _(
                "{path} is an index that explore did not create, so explore does not overwrite it. Move"
                " it elsewhere or, to replace it, run: {value}"
            ).format(path=path, value=command("explore", *subject.arguments, "--force"))
        )


def _build(
    subject: Subject, text: _OwnText, embedder: ElmoEmbedder, place: Path, *, force: bool, reporter: Reporter
) -> None:
    split = embedder.bundle.text is not None and embedder.bundle.text.split_sentences and not text.segmented
    settings = IndexSettings(
        layers=tuple(range(embedder.num_layers)),
        words=_words_of(subject),
        segmented=text.segmented,
        options=IndexOptions(split_sentences=split, max_per_word=MOST_PER_WORD),
        made_by=_MAKER,
    )
    job = IndexJob(embedder=embedder, texts=text.inputs(), output=place, settings=settings)
    run_job(job, force=force, replace=kind_of(place) == "index", reporter=reporter)


def _texts_of(subject: Subject) -> Iterator[_OwnText]:
    """Yield the texts to try: for a model without a run, the sample.

    For a run, they are its corpus, if that is small and unchanged, and then the first of its segmented files.
    """
    if subject.run is None:
        yield _OwnText((_shipped("sample"),), Config().text)
        return
    run = subject.run
    corpus = unchanged_corpus(run)
    if corpus and sum(path.stat().st_size for path in corpus) <= MOST_TEXT_BYTES:
        yield _OwnText(tuple(map(path_from_here, corpus)), run.load_config(None, []).text)
    files = [*run.heldout_files(), *run.train_files()]
    starts = accumulate((path.stat().st_size for path in files), initial=0)
    if segmented := tuple(path for path, start in zip(files, starts, strict=False) if start < MOST_TEXT_BYTES):
        yield _OwnText(segmented, Config().text, segmented=True)


def _words_of(subject: Subject) -> frozenset[str] | None:
    """Return a run's most frequent words, up to MOST_OCCURRENCES occurrences in total, or None for all words."""
    if subject.run is None or not subject.run.vocab_counts.is_file():
        return None
    vocabulary = load_vocabulary(subject.run.vocab)
    counts = load_counts(subject.run.vocab_counts, vocabulary)
    wanted: set[str] = set()
    total = 0
    for word, count in islice(zip(vocabulary.tokens, counts, strict=True), len(SPECIALS), None):
        if count >= IndexOptions.min_count and is_word(word):
            total += min(count, MOST_PER_WORD)
            if total > MOST_OCCURRENCES:
                return frozenset(wanted)
            wanted.add(word)
    return None
