"""Convert another program's model, or a bundle, to a bundle."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.find_bundle import next_step_of_run
from elmo_zh.bundle.layout import BundleForm, BundleLayout, require_replaceable
from elmo_zh.bundle.read import load_bundle
from elmo_zh.bundle.warm_state import warm_up
from elmo_zh.bundle.write import BundleSource, least_bytes, source_of, write_model
from elmo_zh.convert.manylangs import is_manylangs, read_manylangs
from elmo_zh.convert.model_files import ChosenFiles, opened_source
from elmo_zh.convert.published import KnownText, read_published
from elmo_zh.corpus.text_files import iter_line_sentences, iter_lines
from elmo_zh.errors import BundleError, CorpusError
from elmo_zh.language import _
from elmo_zh.reader.weights import build_lexicon
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path, remove, temporary_path
from elmo_zh.run.find_runs import is_run
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import prepare_vocabulary


@dataclass(frozen=True, kw_only=True)
class ConvertSettings:
    """The settings of a conversion: the files to read, facts about the training text, and the form of the bundle."""

    chosen: ChosenFiles = field(default_factory=ChosenFiles)
    text: KnownText = field(default_factory=KnownText)
    warm_on: Path | None = None  # Text whose sentence ends give the warm state, or None
    segmented: bool = False  # That text is one sentence per line, with tokens split at U+0020
    swapped_marks: bool = True  # ELMoForManyLangs: the marks of words are swapped, as in all its released models
    form: BundleForm = field(default_factory=BundleForm)

    def files_read(self, source: Path) -> list[Path]:
        """Return the model to convert and any files that the user named."""
        others = [path for path in (self.text.user_dictionary, self.warm_on) if path is not None]
        return [source, *self.chosen.by_option().values(), *others]


def convert_model(
    source: Path, output: Path, settings: ConvertSettings, *, force: bool, reporter: Reporter
) -> BundleSource:
    """Read another program's model, or a bundle, and write it as a bundle; return the model as it was read."""
    if is_run(source):
        message = _("{path} is a run, not a model bundle. {step}")
        raise BundleError(message.format(path=source, step=next_step_of_run(source)))
    require_replaceable(output, settings.files_read(source), force=force)
    unpacked = output.with_name(f"{output.name}.source")
    remove(unpacked)  # left by a command that was killed
    with opened_source(source, temporary_path(unpacked)) as folder:
        found = _read_source(folder, settings, reporter)
        if settings.warm_on is not None and not found.carry_state:
            message = _("{path} was trained from zero state, so it needs no warm state. Leave out --warm-on.")
            raise BundleError(message.format(path=source))
        if settings.warm_on is not None:
            lexicon = build_lexicon(found.weights.shape, found.vocabulary, found.alphabet)
            sentences = _iter_sentences(found, lexicon, settings.warm_on, segmented=settings.segmented)
            warm_state, count = warm_up(found.weights, lexicon, sentences)
            found = replace(found, weights=replace(found.weights, warm_state=warm_state))
            message = _("{command}: sentences will start from the mean state at the end of {count} training sentences.")
            reporter.note(message.format(command="convert", count=f"{count:,}"))
        require_disk_space(output, least_bytes(found, settings.form))
        with atomic_path(output) as unfinished:
            write_model(unfinished, found, settings.form, "convert", reporter)
    return found


def _read_source(folder: Path, settings: ConvertSettings, reporter: Reporter) -> BundleSource:
    given = list(settings.chosen.by_option())
    if BundleLayout(folder).info.is_file():
        _refuse_options(folder, given)
        return _read_bundle(folder, settings.text)
    if is_manylangs(folder):
        _refuse_options(folder, [name for name in given if name != "--options"])
        source = read_manylangs(folder, settings.chosen.options, settings.text, swapped_marks=settings.swapped_marks)
    else:
        if not settings.swapped_marks:
            _refuse_options(folder, ["--straight-marks"])
        source = read_published(folder, settings.chosen, settings.text, reporter)
    if source.vocabulary is None or source.weights.shape.characters is not None:
        return source
    # bilm-tf strips the words of its vocabulary.
    entries = Entries(folder, build_normaliser(source.text) if source.text else str)
    vocabulary = prepare_vocabulary(source.vocabulary, entries)
    entries.report(reporter)
    return replace(source, vocabulary=vocabulary)


def _refuse_options(folder: Path, options: list[str]) -> None:
    if options:
        message = _("These options do not apply to the kind of model in {path}. Leave them out: {options}")
        raise BundleError(message.format(path=folder, options=", ".join(options)))


def _read_bundle(folder: Path, text: KnownText) -> BundleSource:
    bundle = load_bundle(folder)
    if text.config is not None and bundle.text is not None:
        message = _("{path} already records how its text was segmented. Leave out --config and --set text.*")
        raise BundleError(message.format(path=folder))
    source = source_of(bundle)
    dictionary = source.user_dictionary or text.user_dictionary
    return replace(source, user_dictionary=dictionary, text=bundle.text or text.config)


def _iter_sentences(source: BundleSource, lexicon: Lexicon, path: Path, *, segmented: bool) -> Iterator[NDArray[Any]]:
    if not path.is_file():
        raise CorpusError(_("{path} is missing. Check the path.").format(path=path))
    if not segmented and source.text is None:
        raise BundleError(
            _(
                "The model does not record how its training text was segmented. Pass segmented text to --warm-on, and"
                " add --segmented, or specify the segmenter, for example --set text.segmenter=jieba."
            )
        )
    preparation = None if segmented else source.build_preparation()
    is_empty = True
    for tokens in iter_line_sentences(iter_lines(path), preparation):
        is_empty = False
        yield np.asarray(lexicon.encode(tokens), np.int64)
    if is_empty:
        raise CorpusError(_("{names}: no text found. Use files that contain text.").format(names=path))
