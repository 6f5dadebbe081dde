"""The stages of a run, from raw text to a bundle, each as `elmo_zh.stages` does and records it."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any

from elmo_zh.bundle.layout import BundleLayout
from elmo_zh.characters import SpellingModel, load_spelling_model
from elmo_zh.config import Config, preparation_settings, result_settings, with_later
from elmo_zh.errors import RunError
from elmo_zh.files import UNFINISHED, atomic_path, remove
from elmo_zh.id_store import build_id_store, store_files
from elmo_zh.lexicon import Lexicon
from elmo_zh.reporter import Reporter
from elmo_zh.run_dir import RunDir
from elmo_zh.stages import (
    Stage,
    StageOutcome,
    StageResult,
    is_in_training,
    load_record,
    require_inputs,
    run_stage,
    source_digest,
)
from elmo_zh.text.corpus_report import corpus_report
from elmo_zh.text.readers.sources import Sources, gathered_sources
from elmo_zh.text.segment import segment_corpus
from elmo_zh.text.segment_report import describe_reading, reading_settings, report_segmented
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.vocabulary import (
    SPECIALS,
    build_vocabulary,
    load_counts,
    load_vocabulary,
    load_words,
    report_given_words,
    require_words,
    save_counts,
)
from elmo_zh.word2vec import load_word_vectors, save_word_vectors, train_word2vec

if TYPE_CHECKING:
    from elmo_zh.training.distributed import ProcessGroup

LATEST = Path("runs/latest")
_BUNDLE_HINT = "Give --init the folder that `elmo-zh export` wrote, such as runs/NAME/model."


def segment(run: RunDir, config: Config, corpus: Sequence[str], *, force: bool, reporter: Reporter) -> StageOutcome:
    """Text of any kind to segmented text."""
    with gathered_sources(corpus, run.path, run.fetched) as sources:
        return _segment_sources(run, config, sources, force=force, reporter=reporter)


def _segment_sources(run: RunDir, config: Config, sources: Sources, *, force: bool, reporter: Reporter) -> StageOutcome:
    if sources.passed_over:
        names = ", ".join(path.name for path in sources.passed_over[:3])
        reporter.note(f"{len(sources.passed_over)} files are no text by their names and left out, such as {names}.")
    dictionary = _find_user_dictionary(run, config)
    inputs = _corpus_names(sources)

    def work() -> StageResult:
        done = segment_corpus(sources, run.segmented, config.text, dictionary, reporter)
        copy = _copy_user_dictionary(run, dictionary)
        report_segmented(done, config.text, reporter)
        outputs = [*run.train_files(), *run.heldout_files(), *([copy] if copy else [])]
        details = describe_reading(done, list(inputs), sources.passed_over)
        # No output that a later look would miss: it may be thrown away.
        with atomic_path(run.corpus_report) as unfinished:
            unfinished.write_text(corpus_report(done, list(inputs), config.text), encoding="utf-8")
        return StageResult(outputs=outputs, counts=asdict(done.counts), details=details)

    settings = _text_settings(config, dictionary) | reading_settings(config.text)
    stage = Stage(name="segment", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _find_user_dictionary(run: RunDir, config: Config) -> Path | None:
    """Return the user dictionary: the one given, or the run's copy where a run was moved away from it."""
    if not config.text.user_dictionary:
        return None
    given = Path(config.text.user_dictionary)
    if not given.exists() and run.user_dictionary.exists():
        return run.user_dictionary
    require_inputs(run, [given])
    return given


def _text_settings(config: Config, dictionary: Path | None) -> dict[str, Any]:
    """Return all that decides how text becomes tokens."""
    settings = preparation_settings(config.text, without=("user_dictionary",))
    return {**settings, "segmenter_version": describe_segmenter(config.text, dictionary)}


def _corpus_names(sources: Sources) -> dict[str, Path]:
    """Name the files by what tells them apart, so that a record does not depend on where the corpus stands."""
    files = [source.path for source in sources.sources if source.is_local]
    absolute = {path: path.resolve() for path in files}
    parents = [set(path.parents) for path in absolute.values()]
    common = max(set.intersection(*parents), key=lambda path: len(path.parts)) if parents else Path()
    return {
        str(absolute[source.path].relative_to(common)) if source.is_local else source.name: source.path
        for source in sources.sources
    }


def _copy_user_dictionary(run: RunDir, dictionary: Path | None) -> Path | None:
    if dictionary is None:
        remove(run.user_dictionary)
        return None
    if not (run.user_dictionary.exists() and run.user_dictionary.samefile(dictionary)):
        with atomic_path(run.user_dictionary) as unfinished:
            copyfile(dictionary, unfinished)
    return run.user_dictionary


def _segmented_inputs(run: RunDir) -> dict[str, Path]:
    require_inputs(run, [run.segmented])
    files = run.train_files()
    if not files:
        raise RunError(f"{run.segmented} holds no train-*.txt. Make them with: elmo-zh segment CORPUS --run {run.path}")
    return {f"segmented/{path.name}": path for path in files}


def _with_resolved_init(config: Config) -> Config:
    """Return the settings with whole paths of bundles: links such as runs/latest lead elsewhere later on."""
    paths = {name: getattr(config, name).init for name in ("vocab", "train")}
    whole = {name: str(Path(path).resolve()) for name, path in paths.items() if path}
    return replace(config, **{name: replace(getattr(config, name), init=path) for name, path in whole.items()})


def _adopt_model(
    run: RunDir,
    config: Config,
    init: str,
    text_settings: Mapping[str, Any],
    named: Collection[str],
    *,
    force: bool,
    reporter: Reporter,
) -> Config:
    """Return the settings with those of section model that the bundle to start from decides, if there is one.

    A run in training keeps its own, and one that has begun to use the bundle can do without it.
    """
    records = (load_record(run.stage_record(stage), damaged_is_none=True) for stage in ("vocab", "train"))
    is_begun = any({"init", "train.init"} & record.get("settings", {}).keys() for record in records)
    if not init or (is_in_training(run) and not force) or (is_begun and not Path(init).exists()):
        return config
    from elmo_zh.bundle.settings import adopt_bundle

    return adopt_bundle(config, Path(init), text_settings, named, reporter)


def vocab(run: RunDir, config: Config, *, named: Collection[str] = (), force: bool, reporter: Reporter) -> StageOutcome:
    """Segmented text to vocab.data, vocab.counts and the spelling model.

    With a bundle's words come its settings of section model, save those `named` as section.key by the user.
    """
    config = _with_resolved_init(config)
    text_settings = load_record(run.stage_record("segment"), damaged_is_none=force).get("settings", {})
    config = _adopt_model(run, config, config.vocab.init, text_settings, named, force=force, reporter=reporter)
    return _count_words(run, config, force=force, reporter=reporter)


def _count_words(run: RunDir, config: Config, *, force: bool, reporter: Reporter) -> StageOutcome:
    inputs = _segmented_inputs(run)
    settings = result_settings(config.vocab, without=("init", "words"))
    source = _source_of_words(config)
    if source is not None:
        name = "init" if config.vocab.init else "words"
        hint = _BUNDLE_HINT if config.vocab.init else "Check the path."
        settings[name] = source_digest(run, "vocab", name, source, hint)

    def work() -> StageResult:
        given: list[str] = []
        if source is not None:
            require_inputs(run, [source])
            given = load_words(source)
        built = build_vocabulary(run.train_files(), config.vocab, reporter, given)
        require_words(built, config.vocab, run.segmented, source)
        built.vocabulary.save(run.vocab)
        save_counts(built.vocabulary, built.counts, run.vocab_counts)
        SpellingModel.build(built.unknown_words).save(run.character_counts)
        reporter.note(
            f"vocab: {len(built.vocabulary):,} rows of {built.num_distinct_words:,} different words cover"
            f" {built.coverage:.2%} of the training tokens."
        )
        counts = {
            "rows": len(built.vocabulary),
            "distinct_words": built.num_distinct_words,
            "coverage": round(built.coverage, 6),
        }
        if source is not None:
            counts |= {"given_words": len(given), "absent_words": built.num_absent}
            report_given_words(built, config.vocab, len(given), source, reporter)
        if config.vocab.init and not config.train.init:
            reporter.note(f"To start from its weights: elmo-zh train --run {run.path} --init {config.vocab.init}")
        return StageResult(outputs=[run.vocab, run.vocab_counts, run.character_counts], counts=counts)

    stage = Stage(name="vocab", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _source_of_words(config: Config) -> Path | None:
    """Return the file of words that have a row in any case."""
    if config.vocab.init:
        return BundleLayout(Path(config.vocab.init)).vocab
    return Path(config.vocab.words) if config.vocab.words else None


def word2vec(run: RunDir, config: Config, *, force: bool, reporter: Reporter) -> StageOutcome:
    """Segmented text, or a file of ready vectors, to word2vec.txt for the vocabulary's words."""
    dimension = config.model.projection_dim
    source = Path(config.word2vec.vectors) if config.word2vec.vectors else None
    settings = {**result_settings(config.word2vec, without=("vectors",)), "dimension": dimension}
    inputs = {"vocab.data": run.vocab, "vocab.counts": run.vocab_counts}
    inputs |= {"vectors": source} if source else _segmented_inputs(run)

    def work() -> StageResult:
        vocabulary = load_vocabulary(run.vocab)
        if not config.word2vec.enabled:
            remove(run.word2vec)
            reporter.note("word2vec: switched off; token embeddings will start at random.")
            return StageResult(outputs=[])
        counts = load_counts(run.vocab_counts, vocabulary)
        num_words = len(vocabulary) - len(SPECIALS)
        if source:
            vectors = load_word_vectors(source, vocabulary, dimension)
        else:
            vectors = train_word2vec(run.train_files(), vocabulary, counts, dimension, config.word2vec, reporter)
        covered = len(vectors.rows)
        if not covered:
            raise RunError(
                f"{source} has no vector for any word of {run.vocab}. Is it of the same language and script?"
            )
        save_word_vectors(run.word2vec, vocabulary, vectors)
        origin = f"from {source.name}" if source else f"{config.word2vec.algorithm}, {config.word2vec.epochs} epochs"
        reporter.note(
            f"word2vec: vectors of {dimension} numbers for {covered:,} of {num_words:,} words"
            f" ({covered / num_words:.2%}), {origin}."
        )
        if not source and config.word2vec.num_workers > 1:
            reporter.warn("word2vec.num_workers is above 1, so these vectors cannot be reproduced exactly.")
        reproducible = bool(source) or config.word2vec.num_workers == 1
        return StageResult(outputs=[run.word2vec], counts={"covered": covered, "reproducible": reproducible})

    stage = Stage(name="word2vec", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def encode(run: RunDir, config: Config, *, force: bool, reporter: Reporter) -> StageOutcome:
    """Segmented text and vocabulary to the token id store."""
    inputs = _segmented_inputs(run) | {f"segmented/{path.name}": path for path in run.heldout_files()}
    inputs |= {"vocab.data": run.vocab, "character_counts.tsv": run.character_counts}
    reads_characters = config.model.mode == "character"

    def work() -> StageResult:
        spelling = load_spelling_model(run.character_counts)
        lexicon = Lexicon(load_vocabulary(run.vocab), config.model.num_slots)
        counts = build_id_store(run.ids, run.train_files(), run.heldout_files(), lexicon, spelling, reporter)
        oov = counts["heldout_unknown"] / max(1, counts["heldout_tokens"])
        reporter.note(
            f"encode: {counts['train_tokens']:,} tokens to train on, {counts['heldout_tokens']:,} held out,"
            f" of which {oov:.2%} are outside the vocabulary."
        )
        if reads_characters:
            _report_cut_words(lexicon, reporter)
        return StageResult(outputs=store_files(run.ids), counts=counts)

    settings = {"model.mode": "character"} if reads_characters else {}
    stage = Stage(name="encode", settings=settings, inputs=inputs, work=work)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _report_cut_words(lexicon: Lexicon, reporter: Reporter) -> None:
    words = (*lexicon.vocabulary.tokens[len(SPECIALS) :], *lexicon.other_words)
    cut = [word for word in words if lexicon.is_cut(word)]
    if cut and lexicon.num_slots is not None:
        reporter.note(
            f"encode: {len(cut):,} of {len(words):,} different words are longer than {lexicon.num_slots - 2} bytes;"
            f" the model reads only so many of them, such as of {cut[0]}."
        )


def train(
    run: RunDir,
    config: Config,
    *,
    device: str | None = None,
    group: "ProcessGroup | None" = None,
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """Token id store, vocabulary and initial embeddings to checkpoints, on `device` if one is given for this time.

    With a group this is its rank 0; the other ranks wait in `training.together.follow` for what it begins.
    """
    config = _with_resolved_init(config)
    require_inputs(run, [run.ids, run.vocab])
    if group:
        from elmo_zh.training.together import require_even_shares

        require_even_shares(config, group.size)
    inputs = {f"ids/{path.name}": path for path in store_files(run.ids)}
    inputs |= {"vocab.data": run.vocab, "vocab.counts": run.vocab_counts}
    if config.word2vec.enabled and not config.train.init:
        inputs["word2vec.txt"] = run.word2vec
    here = replace(config, train=replace(config.train, device=device)) if device else config

    def work() -> StageResult:
        from elmo_zh.training.train import train_run

        if group is None:
            return train_run(run, here, reporter)
        from elmo_zh.training.together import begin_together

        begin_together(run, here, group)
        return train_run(run, here, reporter, group)

    def discard() -> None:
        for path in (run.checkpoints, run.start, run.metrics, run.tensorboard, run.training_picture):
            remove(path)

    budget = ("max_tokens", "epochs")
    settings = {f"model.{name}": value for name, value in _model_settings(config).items()}
    settings |= {
        f"train.{name}": value for name, value in result_settings(config.train, without=(*budget, "init")).items()
    }
    if config.train.init:
        info = BundleLayout(Path(config.train.init)).info
        settings["train.init"] = source_digest(run, "train", "train.init", info, _BUNDLE_HINT)
    stage = Stage(
        name="train",
        settings=settings,
        inputs=inputs,
        work=work,
        budget={name: getattr(config.train, name) for name in budget},
        discard=discard,
    )
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _model_settings(config: Config) -> dict[str, Any]:
    """Return the settings of the model that have an effect in its mode; token mode names none of the characters'."""
    settings = result_settings(config.model)
    if config.model.mode == "character":
        return settings
    no_effect = ("mode", "highway_layers")
    return {
        name: value for name, value in settings.items() if name not in no_effect and not name.startswith("character_")
    }


def export(
    run: RunDir,
    config: Config,
    *,
    checkpoint: str,
    output: Path | None,
    layout: str = "bundle",
    force: bool,
    reporter: Reporter,
) -> StageOutcome:
    """A checkpoint (best, last or a step's number) to a bundle, by default RUN/model, or to another layout."""
    require_inputs(run, [run.checkpoints, run.vocab, run.character_counts])
    from elmo_zh.training.checkpoint import CheckpointFolder
    from elmo_zh.training.export import choose_step, export_checkpoint

    _require_text_settings_of_training(run, config)
    step = choose_step(CheckpointFolder(run.checkpoints), checkpoint, run)
    if output is not None:
        export_checkpoint(run, config, step, output, layout=layout, force=force, reporter=reporter)
        return StageOutcome(counts={"step": step}, skipped=False)
    inputs = {path.name: path for path in CheckpointFolder(run.checkpoints).files(step)}
    inputs |= {"vocab.data": run.vocab, "character_counts.tsv": run.character_counts}
    if (run.start / "start.json").exists():
        inputs["start.json"] = run.start / "start.json"

    def work() -> StageResult:
        export_checkpoint(run, config, step, run.model, layout="bundle", force=True, reporter=reporter)
        return StageResult(outputs=sorted(run.model.iterdir()), counts={"step": step})

    settings = {"checkpoint": checkpoint, "text": preparation_settings(config.text, without=("user_dictionary",))}
    stage = Stage(name="export", settings=settings, inputs=inputs, work=work, discards_training=False)
    return run_stage(run, config, stage, force=force, reporter=reporter)


def _require_text_settings_of_training(run: RunDir, config: Config) -> None:
    """Raise RunError unless the settings that the bundle will name are those that made the training text."""
    made_with = with_later(load_record(run.stage_record("segment")).get("settings", {}))
    dictionary = run.user_dictionary if config.text.user_dictionary else None
    now = with_later(_text_settings(config, dictionary))
    for name in now if made_with else ():
        if made_with.get(name) != now[name]:
            raise RunError(
                f"{run.path}: text.{name} was {made_with.get(name)!r} when the training text was segmented, but is"
                f" {now[name]!r}. Set it back, since a model only fits text that is prepared as its training text was."
            )


def pipeline(
    run: RunDir,
    config: Config,
    corpus: Sequence[str],
    *,
    named: Collection[str] = (),
    force: bool,
    reporter: Reporter,
) -> None:
    """All stages one after another; word2vec is left out where training starts from a bundle.

    With a bundle come its settings of section model, save those `named` as section.key by the user.
    """
    config = _with_resolved_init(config)
    if init := config.train.init or config.vocab.init:
        text_settings = _text_settings(config, _find_user_dictionary(run, config))
        config = _adopt_model(run, config, init, text_settings, named, force=force, reporter=reporter)
    segment(run, config, corpus, force=force, reporter=reporter)
    _count_words(run, config, force=force, reporter=reporter)
    if not config.train.init:
        word2vec(run, config, force=force, reporter=reporter)
    encode(run, config, force=force, reporter=reporter)
    train(run, config, force=force, reporter=reporter)
    export(run, config, checkpoint="best", output=None, force=force, reporter=reporter)


def link_latest(run: RunDir) -> None:
    """Make runs/latest in the current folder a link to a run; a real folder of that name is left alone."""
    if LATEST.absolute() == run.path.absolute() or (LATEST.exists() and not LATEST.is_symlink()):
        return
    unfinished = LATEST.with_name(LATEST.name + UNFINISHED)
    remove(unfinished)
    unfinished.parent.mkdir(exist_ok=True)
    unfinished.symlink_to(os.path.relpath(run.path.resolve(), LATEST.parent.resolve()), target_is_directory=True)
    unfinished.replace(LATEST)
