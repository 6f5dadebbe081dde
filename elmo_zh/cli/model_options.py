"""Options of the commands that use a model, and the model that they use by default."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmo_zh.bundle.find_bundle import DEFAULT_MODEL, STARTER, default_bundle, find_bundle, find_same_bundle
from elmo_zh.cli.options import Common, Function
from elmo_zh.config import EmbedConfig, config_names
from elmo_zh.invocation import program

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.embed.embedder import ElmoEmbedder

_DEFAULT = f"$ELMO_ZH_MODEL, else {DEFAULT_MODEL}, else {STARTER}"


def _model_option(default: str) -> Callable[[Function], Function]:
    """Return the option --model; its help says which model is used without it."""
    description = f"Folder of the model, or name of an installed one. Default: {default}."
    return click.option("--model", type=click.Path(path_type=Path), metavar="BUNDLE", help=description)


model_option = _model_option(_DEFAULT)
index_model_option = _model_option("the one that made the index, if it is still there")
explore_model_option = _model_option(f"that of INDEX or RUN; without these {_DEFAULT}")
segmented_option = click.option(
    "--segmented", is_flag=True, help="The text has one sentence per line, its tokens separated by single spaces."
)


class IndexPath(click.Path):
    """The folder of an index, as a value on the command line."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Return how to make an index, which click adds to its message that the value is missing."""
        return f"Make an index with: {program()} index TEXT --output INDEX"


index_option = click.option(
    "--index",
    "index_path",
    type=IndexPath(),
    metavar="INDEX",
    help="Folder that the command index has written. Default: the index that explore has made of the model's own text.",
)
stateful_option = click.option(
    "--stateful",
    is_flag=True,
    help="Carry the LSTM state from sentence to sentence, as the original programs do; slower, one sentence at a time.",
)

# The settings that a command takes which reads texts with a model; the model brings those for segmenting with it.
_SETTINGS_FOR_READING = {"text.format", "text.field", "text.encoding", "text.private"}
_REASONS = {
    "text.bad_bytes": ", which leaves no line out: a line that cannot be decoded is an error",
    "text": ": the model determines how text is segmented",
    "model": ": the model has these settings already",
}


def refuse_settings_of_the_model(common: Common, command: str, *, also: str = "") -> None:
    """Raise UsageError for a --set without effect on a command that reads texts with a model; it uses `also`."""
    names = config_names(None, common.assignments) - _SETTINGS_FOR_READING
    for name in sorted(names):
        section = name.partition(".")[0]
        if section != also:
            why = _REASONS.get(name) or _REASONS.get(section, "")
            raise click.UsageError(f"--set {name} has no effect on {command}{why}. Leave it out.")


def refuse_reading_of_segmented(common: Common, *, segmented: bool, split_sentences: bool = False) -> None:
    """Raise UsageError if text that is already segmented has a format or fields, or should be split."""
    if split_sentences and segmented:
        raise click.UsageError("--segmented text has one sentence per line already. Leave out --split-sentences.")
    names = config_names(None, [*common.assignments, *common.reading])
    for name, option, problem in (
        ("text.format", "--input-format", "is always plain text"),
        ("text.field", "--field", "is always plain text"),
        ("text.user_dictionary", "--user-dictionary", "has its tokens already"),
    ):
        if segmented and name in names:
            raise click.UsageError(f"--segmented text {problem}. Leave out {option} or --segmented.")


def model_path(given: Path | None) -> Path:
    """Return the folder of the model to use: the given one, or the default."""
    return find_bundle(given) if given else default_bundle()


def model_of_index(index: "ContextIndex", given: Path | None) -> Path:
    """Return the given model, else the one that made the index, else the default."""
    own = None if given else find_same_bundle(index.model_digest, Path(index.model["path"]), index.path)
    return own or model_path(given)


def index_or_own(common: Common, given: Path | None, model: Path | None = None) -> Path:
    """Return the folder of the given index, else of the one that `explore` has made; UsageError if there is none."""
    if given is not None:
        return given
    found = own_index_path(model)
    if found is None:
        raise click.UsageError(f"Missing option '--index'. Make an index with: {program()} index TEXT --output INDEX")
    common.console.note(f"Index: {found}, which explore has made. For another one: --index INDEX")
    return found


def own_index_path(model: Path | None = None) -> Path | None:
    """Return the folder of the index that `explore` has made of a model's own text; None if there is none."""
    from elmo_zh.bundle.layout import BundleLayout
    from elmo_zh.contexts.explore.own_index import Subject
    from elmo_zh.contexts.index_files import is_index
    from elmo_zh.errors import BundleError
    from elmo_zh.run.files import file_digest

    try:
        subject = Subject.find(model)
    except BundleError:
        if model is not None:
            raise
        return None  # without any model nothing has been made
    info = BundleLayout(subject.model).info
    path = subject.index(file_digest(info)) if info.is_file() else None
    return path if path and is_index(path) else None


def load_embedder_of(
    common: Common, index: "ContextIndex", given: Path | None, config: EmbedConfig, device: str | None
) -> "ElmoEmbedder":
    """Load the model that computed an index, to compute as it did then."""
    path, made_with = model_of_index(index, given), index.model
    precision, unknown = made_with["precision"], made_with["unknown"]
    embedder = load_embedder(
        common, path, config, device, precision=precision, unknown=unknown, user_dictionary=index.user_dictionary
    )
    index.require_model(embedder.bundle.digest, embedder.bundle.path)
    return embedder


def load_model(common: Common, path: Path, results: str, *, stateful: bool = False) -> "Bundle":
    """Load a model, say which one it is, and warn if its `results` ("vectors are") suffer from its zero state."""
    from elmo_zh.bundle.description import model_line
    from elmo_zh.bundle.read import load_bundle

    bundle = load_bundle(path)
    common.console.note(model_line(bundle))
    if bundle.needs_warm_state() and not stateful:
        common.console.warn(
            "This model was trained with carried state, but here every sentence starts from zero state, so its"
            f" {results} worse than necessary. Give it a warm state (command convert, option --warm-on; or export the"
            " run again), or use --stateful."
        )
    return bundle


def load_embedder(
    common: Common,
    path: Path,
    config: EmbedConfig,
    device: str | None,
    *,
    stateful: bool = False,
    precision: str | None = None,
    unknown: str | None = None,
    user_dictionary: Path | None = None,
) -> "ElmoEmbedder":
    """Load the model, say which one it is, and warn of what makes its vectors worse or slower."""
    from elmo_zh.allocator import keep_few_kernels, keep_freed_memory

    keep_few_kernels()
    keep_freed_memory()
    from elmo_zh.embed.embedder import ElmoEmbedder

    bundle = load_model(common, path, "vectors are", stateful=stateful)
    embedder = ElmoEmbedder(
        bundle,
        device or "auto",
        precision or config.precision,
        stateful=stateful,
        batch_tokens=config.batch_tokens,
        unknown=unknown or config.unknown,
        user_dictionary=user_dictionary or common.user_dictionary,
    )
    if advice := embedder.precision_advice():
        common.console.warn(f"{advice}. --precision float32 is as fast or faster, and exact.")
    return embedder


def warn_of_unknown(common: Common, embedder: "ElmoEmbedder", word: str) -> None:
    """Warn if the word that is asked about is outside the vocabulary, and say how it is read."""
    from elmo_zh.embed.text_tokens import known_parts

    if embedder.find_unknown([word])[0]:
        known = known_parts(embedder, word)
        read = f"it is read by its parts {', '.join(known)}" if known else "the model knows its neighbours only"
        common.console.warn(f"{word} is outside the model's vocabulary: {read}.")
