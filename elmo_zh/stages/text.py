"""The stages before training: segment, vocab, word2vec and encode."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from shutil import copyfile
from typing import Any

from elmo_zh.bundle import BundleLayout
from elmo_zh.config import Config
from elmo_zh.corpus.counts import SKIPPED
from elmo_zh.corpus.sources import Sources, gathered_sources
from elmo_zh.engine import Engine
from elmo_zh.id_store import STORE_FORMAT, store_files
from elmo_zh.id_store.build import EncodeJob
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path, remove
from elmo_zh.run.job import run_job
from elmo_zh.run.layout import RunDir
from elmo_zh.run.outputs import require_no_input
from elmo_zh.run.record import (
    StageContext,
    StageResult,
    input_files,
    require_files,
    run_stage,
    source_digest,
)
from elmo_zh.run.reporter import first_ten, format_bytes
from elmo_zh.run.stage_table import ENCODE, SEGMENT, VOCAB, WORD2VEC
from elmo_zh.segmenting.report import describe_reading, report_segmented
from elmo_zh.segmenting.segment_corpus import segment_corpus
from elmo_zh.stages.settings import find_user_dictionary
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.vocabulary.selection import VocabularyJob, report_given_words
from elmo_zh.vocabulary.vocabulary import SPECIALS, load_counts, load_vocabulary, load_words
from elmo_zh.word2vec import train_word2vec
from elmo_zh.word2vec.vectors import TrainingJob, WordVectors, has_spread, read_given_vectors, save_word_vectors

# With vectors for a smaller fraction of the words, the other rows would be drawn to resemble a few accidental ones.
_LEAST_COVERAGE = 0.05


def _started_engine(context: StageContext, inputs: Iterable[Path]) -> AbstractContextManager[Engine]:
    return context.engine.started(sum(path.stat().st_size for path in inputs))


def segment(context: StageContext, corpus: Sequence[str]) -> StageResult:
    """Run the segment stage: find the sources of a corpus, and split their text into sentences and tokens."""
    run, config, reporter = context.run, context.config, context.reporter
    with gathered_sources(corpus, run.path, run.fetched) as sources:
        sources.report_skipped(reporter)
        dictionary = find_user_dictionary(run, config)
        folder = _shared_folder(sources)
        inputs = _input_names(sources, folder)
        require_no_input(run.segmented, inputs.values(), "--run")

        def work() -> StageResult:
            segmented = segment_corpus(
                sources, run.segmented, config.text, dictionary, reporter, context.engine, force=context.force
            )
            copy = copy_user_dictionary(run, dictionary)
            if empty := [source.name for source in sources.sources if not source.path.stat().st_size]:
                reporter.warn(_(SKIPPED).format(reason=format_bytes(0), names=first_ten(empty)))
            report_segmented(segmented, list(inputs), reporter)
            return StageResult(
                outputs=[*run.train_files(), *run.heldout_files(), *([copy] if copy else [])],
                counts=asdict(segmented.counts),
                details={
                    **describe_reading(segmented, list(inputs), sources),
                    "corpus": list(sources.arguments),
                    "folder": os.path.relpath(folder, run.path.resolve()),
                },
            )

        facts = {"text.segmenter_version": describe_segmenter(config.text, dictionary)}
        return run_stage(SEGMENT, context, work, files=inputs, facts=facts)


def _shared_folder(sources: Sources) -> Path:
    """Return the deepest folder that contains all local files of the corpus, or the root if it has no local files."""
    parents = [set(source.path.resolve().parents) for source in sources.sources if source.is_local]
    return max(set.intersection(*parents), key=lambda path: len(path.parts)) if parents else Path("/")


def _input_names(sources: Sources, folder: Path) -> dict[str, Path]:
    """Name local sources relative to their common folder, so that the corpus can be moved."""
    return {
        str(source.path.resolve().relative_to(folder)) if source.is_local else source.name: source.path
        for source in sources.sources
    }


def copy_user_dictionary(run: RunDir, dictionary: Path | None) -> Path | None:
    """Copy the user dictionary to the run and return the copy; delete an earlier copy if there is no dictionary."""
    if dictionary is None:
        remove(run.user_dictionary)
        return None
    if not (run.user_dictionary.exists() and run.user_dictionary.samefile(dictionary)):
        with atomic_path(run.user_dictionary) as unfinished:
            copyfile(dictionary, unfinished)
    return run.user_dictionary


def vocab(context: StageContext) -> StageResult:
    """Run the vocab stage: write the vocabulary, its counts and the spelling model."""
    run, config, reporter = context.run, context.config, context.reporter
    source, facts = _source_of_words(config), {}
    if source is not None:
        for output in (run.vocab, run.vocab_counts, run.character_counts):
            require_no_input(output, [source], "--from")
        name = "vocab.init" if config.vocab.init else "vocab.words"
        facts[name] = source_digest(run, "vocab", name, source)

    def work() -> StageResult:
        given = _load_given(context, source) if source else {}
        job = VocabularyJob(
            files=run.train_files(),
            config=config.vocab,
            output=run.vocab,
            counts=run.vocab_counts,
            character_counts=run.character_counts,
            given=given,
            source=source,
            split_unknown=config.text.split_unknown,
        )
        with _started_engine(context, job.files) as started:
            selected = run_job(job, force=context.force, replace=True, reporter=reporter, engine=started)
        message = _(
            "vocab: {rows} rows, covering {share} of the training tokens; the training text has {distinct} distinct"
            " words."
        )
        figures = {"rows": f"{len(selected.vocabulary):,}", "distinct": f"{selected.num_distinct_words:,}"}
        reporter.note(message.format(share=f"{selected.coverage:.2%}", **figures))
        counts: dict[str, Any] = {
            "rows": len(selected.vocabulary),
            "distinct_words": selected.num_distinct_words,
            "coverage": round(selected.coverage, 6),
        }
        if selected.num_refused:
            counts["refused_words"] = selected.num_refused
            message = _(
                "vocab: words excluded by vocab.refuse (by default, long numbers and email addresses): {count}."
            )
            reporter.note(message.format(count=f"{selected.num_refused:,}"))
        if source is not None:
            counts |= {"given_words": len(given), "absent_words": len(selected.absent)}
            report_given_words(selected, len(given), source, reporter)
            if not config.vocab.init:
                _report_divided(context, source, {word: given[word] for word in selected.absent & given.keys()})
        return StageResult(outputs=[run.vocab, run.vocab_counts, run.character_counts], counts=counts)

    return run_stage(VOCAB, context, work, facts=facts)


def _load_given(context: StageContext, source: Path) -> dict[str, int]:
    """Return words and their line numbers: a bundle's vocabulary as it is, or a word list prepared as the text is."""
    require_files(context.run, [source])
    if context.config.vocab.init:
        return load_words(source)
    entries = Entries(source, build_normaliser(context.config.text))
    words = load_words(source, entries)
    entries.report(context.reporter)
    return words


def _report_divided(context: StageContext, source: Path, absent: Mapping[str, int]) -> None:
    """Unless unknown words are split, warn of listed words that are absent because the segmenter divides them."""
    config = context.config
    # Parts of unknown words may be any word of the list.
    if absent and not config.text.split_unknown:
        preparation = TextPreparation.build(config.text, find_user_dictionary(context.run, config))
        entries = Entries(source, str)
        entries.require_whole(absent, preparation.segment)
        entries.report(context.reporter)


def _source_of_words(config: Config) -> Path | None:
    """Return the file of words that always get a row (a bundle's vocabulary or a word list), or None."""
    if config.vocab.init:
        return BundleLayout(Path(config.vocab.init)).vocab
    return Path(config.vocab.words) if config.vocab.words else None


def word2vec(context: StageContext) -> StageResult:
    """Run the word2vec stage: write trained or given vectors to word2vec.txt; if it is disabled, remove that file."""
    run, config, reporter = context.run, context.config, context.reporter
    dimension = config.model.projection_dim
    source = Path(config.word2vec.vectors) if config.word2vec.vectors else None
    if source:
        require_no_input(run.word2vec, [source], "--from")

    def work() -> StageResult:
        vocabulary = load_vocabulary(run.vocab)
        if not config.word2vec.enabled:
            remove(run.word2vec)
            return StageResult(outputs=[])
        counts = load_counts(run.vocab_counts, vocabulary)
        if source:
            entries = Entries(source, build_normaliser(config.text))
            vectors = read_given_vectors(entries, vocabulary, dimension)
            entries.report(reporter)
        else:
            job = TrainingJob(
                files=run.train_files(),
                vocabulary=vocabulary,
                counts=counts,
                dimension=dimension,
                config=config.word2vec,
            )
            vectors = train_word2vec(job, reporter)
        num_covered, num_words = len(vectors.rows), len(vocabulary) - len(SPECIALS)
        message = _("word2vec: vectors for {num_covered} of {num_words} words ({share}).")
        figures = {"num_covered": f"{num_covered:,}", "num_words": f"{num_words:,}"}
        reporter.note(message.format(share=f"{num_covered / num_words:.2%}", **figures))
        if source and not _can_start_from(vectors, num_words):
            reporter.warn(
                _(
                    "Too few words have vectors in {source}, or the vectors are all identical, so the file is not used."
                    " Use vectors for the language and script of the text."
                ).format(source=source)
            )
            vectors = WordVectors(rows=vectors.rows[:0], vectors=vectors.vectors[:0])
        save_word_vectors(run.word2vec, vocabulary, vectors)
        return StageResult(outputs=[run.word2vec], counts={"covered": len(vectors.rows)})

    return run_stage(WORD2VEC, context, work, files={"vectors": source} if source else {})


def _can_start_from(vectors: WordVectors, num_words: int) -> bool:
    return len(vectors.rows) >= _LEAST_COVERAGE * num_words and has_spread(vectors.vectors)


def encode(context: StageContext) -> StageResult:
    """Run the encode stage: write the segmented text to RUN/ids as vocabulary ids."""
    run, config, reporter = context.run, context.config, context.reporter
    files = {"train": run.train_files(), "heldout": run.heldout_files()}

    def work() -> StageResult:
        job = EncodeJob(
            files=files,
            vocabulary=run.vocab,
            character_counts=run.character_counts,
            num_slots=config.model.num_slots,
            output=run.ids,
            split_unknown=config.text.split_unknown,
        )
        with _started_engine(context, input_files(ENCODE, context).values()) as started:
            counts = run_job(job, force=context.force, replace=True, reporter=reporter, engine=started)
        oov_rate = counts["heldout_unknown"] / max(1, counts["heldout_tokens"])
        message = _(
            "encode: {train} training tokens and {heldout} held-out tokens; {unknown} of the held-out tokens are"
            " outside the vocabulary."
        )
        train, heldout = (f"{counts[f'{part}_tokens']:,}" for part in ("train", "heldout"))
        reporter.note(message.format(train=train, heldout=heldout, unknown=f"{oov_rate:.2%}"))
        return StageResult(outputs=store_files(run.ids), counts=counts)

    return run_stage(ENCODE, context, work, facts={"store format": STORE_FORMAT})
