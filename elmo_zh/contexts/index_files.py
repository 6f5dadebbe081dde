"""Index files from Python: the work of `ContextIndex.build`, which does what `elmo-zh index` does."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_zh.checks import check_instance, check_layers, check_strings, check_whole_number
from elmo_zh.config import TextConfig
from elmo_zh.contexts.build_index import IndexSettings, build_index, texts_to_index
from elmo_zh.contexts.choice import Choice, describe_missing_words, word_former
from elmo_zh.corpus.input_texts import opened_inputs
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.run.reporter import Reporter

# Seeds are hashed as eight bytes.
_LARGEST_SEED = 2**63 - 1


def settings_in_python(
    embedder: ElmoEmbedder,
    layers: str | int | Sequence[int],
    words: Iterable[str] | None,
    *,
    min_count: int,
    max_per_word: int,
    seed: int,
    segmented: bool,
    split_sentences: bool,
) -> IndexSettings:
    """Return the settings for the arguments of `ContextIndex.build`, which describes them and their errors."""
    check_instance(embedder, ElmoEmbedder, "build", "embedder", "an ElmoEmbedder; ElmoEmbedder.load takes a path")
    if segmented and split_sentences:
        raise ValueError("build: segmented text has one sentence per line already; leave out split_sentences")
    form = word_former(embedder, segmented=segmented)
    chosen = check_strings(words, "build", "words") if words is not None else None
    formed = None if chosen is None else frozenset(form(word.strip()) for word in chosen) - {""}
    if formed is not None and not formed:
        raise ValueError("build: words has no word in it; leave it out to index all words")
    choice = Choice(
        min_count=check_whole_number(min_count, "build", "min_count", 1),
        max_per_word=check_whole_number(max_per_word, "build", "max_per_word", 0),
        words=formed,
        seed=check_whole_number(seed, "build", "seed", 0, _LARGEST_SEED),
    )
    return IndexSettings(
        layers=check_layers(layers, embedder.num_layers, "build"),
        segmented=segmented,
        split_sentences=split_sentences,
        choice=choice,
    )


def index_files(
    embedder: ElmoEmbedder, paths: list[str], output: Path, settings: IndexSettings, *, force: bool, reporter: Reporter
) -> None:
    """Write the index of files and folders; the errors are those of `build_index`.

    Args:
        embedder: The model.
        paths: Files, folders and globs.
        output: The folder to write.
        settings: What the index holds.
        force: Replace an existing index, and do not resume an unfinished one.
        reporter: Receives messages and progress.
    """
    with opened_inputs(paths, reporter) as sources:
        texts = texts_to_index(sources, TextConfig(), segmented=settings.segmented)
        report = build_index(embedder, texts, output, settings, force=force, reporter=reporter)
    if report.missing_words:
        reporter.warn(describe_missing_words(report.missing_words, "words"))
