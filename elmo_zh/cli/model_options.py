"""Options of the commands that use a model, and functions that load the chosen or the default model."""

from pathlib import Path
from typing import TYPE_CHECKING

from elmo_zh.bundle.find_bundle import default_bundle, find_bundle, find_same_bundle
from elmo_zh.cli.declared import Function
from elmo_zh.cli.options import Common, shared_options
from elmo_zh.language import N_, _

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.embed.embedder import ElmoEmbedder

MODEL_OF_INDEX = "Folder of the model, or the name of an installed model. Default: the model that made the index."

UNSEEN = N_("{word} is outside the model's vocabulary: the model sees only the words around it.")


def index_options(function: Function) -> Function:
    """Add --index and --model to a command that uses an index and the model that made it."""
    return shared_options("index", required=True)(shared_options("model", help=MODEL_OF_INDEX)(function))


def load_index(common: Common) -> "ContextIndex":
    """Load the index that a command was given."""
    from elmo_zh.contexts.index import ContextIndex

    assert common.index is not None, "the option is required"
    return ContextIndex.load(common.index)


def load_embedder_of(common: Common, index: "ContextIndex") -> "ElmoEmbedder":
    """Load the model that made an index, with the settings recorded there; raise BundleError for another model."""
    made_with = index.model
    path = None if common.model else find_same_bundle(index.model_digest, Path(made_with["path"]), index.path)
    embedder = load_embedder(
        common,
        path,
        precision=made_with["precision"],
        unknown=made_with["unknown"],
        user_dictionary=index.user_dictionary,
    )
    index.require_model(embedder.bundle.digest, embedder.bundle.path)
    return embedder


def load_model(common: Common, path: Path | None) -> "Bundle":
    """Load the model at `path` or the default, report which it is, and warn if it needs a warm state or --stateful."""
    from elmo_zh.bundle.read import load_bundle, model_line
    from elmo_zh.info.describe import POOR_FROM_ZERO

    bundle = load_bundle(find_bundle(path) if path else default_bundle())
    common.console.note(model_line(bundle))
    if bundle.needs_warm_state() and not common.stateful:
        common.console.warn(_(POOR_FROM_ZERO))
    return bundle


def load_embedder(
    common: Common,
    path: Path | None = None,
    *,
    precision: str | None = None,
    unknown: str | None = None,
    user_dictionary: Path | None = None,
) -> "ElmoEmbedder":
    """Load the given or the default model, report which it is, and warn of user dictionary entries without effect."""
    from elmo_zh.allocator import keep_few_kernels, keep_freed_memory

    keep_few_kernels()
    keep_freed_memory()
    from elmo_zh.embed.embedder import ElmoEmbedder

    config = common.config.embed
    embedder = ElmoEmbedder(
        load_model(common, path or common.model),
        common.device or "auto",
        precision or config.precision,
        stateful=common.stateful,
        batch_tokens=config.batch_tokens,
        unknown=unknown or config.unknown,
        user_dictionary=user_dictionary or common.user_dictionary,
    )
    if common.user_dictionary is not None:
        embedder.report_dictionary(common.console)
    return embedder


def warn_of_unknown(common: Common, embedder: "ElmoEmbedder", word: str) -> None:
    """Warn if a word is outside the vocabulary, and say how the model reads it."""
    from elmo_zh.embed.text_tokens import known_parts

    if embedder.find_unknown([word])[0]:
        known = ", ".join(known_parts(embedder, word))
        text = _("{word} is outside the model's vocabulary: it is read as the known words {known}.")
        common.console.warn((text if known else _(UNSEEN)).format(word=word, known=known))
