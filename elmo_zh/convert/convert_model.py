"""Convert another program's model, or a bundle, to any `BundleForm`."""

import gzip
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np

from elmo_zh.bundle import BundleForm, BundleLayout, is_model
from elmo_zh.bundle.find_bundle import explain_no_bundle
from elmo_zh.bundle.options_json import TRAINING_KEYS, load_options, parse_shape, require_published
from elmo_zh.bundle.read import UNKNOWN_SEGMENTER, BundleContent, load_bundle
from elmo_zh.bundle.weights import MOST_TOKENS, load_model, warm_up
from elmo_zh.bundle.write import with_word2vec, write_model
from elmo_zh.convert import Conversion
from elmo_zh.convert.manylangs import is_manylangs, read_manylangs
from elmo_zh.corpus.text_files import iter_line_sentences, iter_lines
from elmo_zh.errors import NO_EFFECT, BundleError, CorpusError, ElmoZhError, RunError
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import atomic_path, file_digest, make_folder, remove, require_disk_space, temporary_path
from elmo_zh.run.layout import is_run
from elmo_zh.run.outputs import claimed_output
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.entries import Entries
from elmo_zh.text.normalise import build_normaliser
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_vocabulary, prepare_vocabulary

# Suffixes of the files of a model; nothing else is unpacked from an archive.
_WANTED = (".json", ".hdf5", ".h5", ".txt", ".data", ".gz", ".dic", ".pkl")
# Weights hardly compress at all, word lists to a third; far more is a malicious file. Small files compress better.
_MOST_COMPRESSION, _ALWAYS_ALLOWED_BYTES = 50, 1 << 24
_COPY_BYTES = 1 << 20
# Exceptions for a damaged, encrypted or unusually compressed archive; OSError is left to problems of the disk.
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError, EOFError,
)  # fmt: skip


def convert_model(
    source: Path, output: Path, settings: Conversion, form: BundleForm, *, force: bool, reporter: Reporter
) -> BundleContent:
    """Read another program's model, or a bundle, and write it in the given form; return the model before rounding."""
    if is_run(source):
        raise BundleError(explain_no_bundle(source))
    others = [path for path in (settings.user_dictionary, settings.warm_on) if path is not None]
    unpacked = output.with_name(f"{output.name}.source")
    with claimed_output(output, [source, *settings.named_files().values(), *others], is_model, force=force):
        remove(unpacked)  # left by a command that was killed
        with _opened_source(source, temporary_path(unpacked)) as folder:
            model = _read_source(folder, settings, reporter)
            if settings.warm_on is not None:
                _refuse_options(source, [] if model.carry_state else ["--warm-on"])  # it starts from zero
                weights = _warm(source, model, settings.warm_on, segmented=settings.segmented)
                model = replace(model, weights=weights)
            with atomic_path(output) as unfinished:
                write_model(unfinished, model, form)
    return model


@contextmanager
def _opened_source(source: Path, unpacked: Path) -> Iterator[Path]:
    """Yield the folder of a model's files; an archive is temporarily unpacked to `unpacked`."""
    if source.is_dir():
        yield source
        return
    if not source.is_file() or not zipfile.is_zipfile(source):
        message = _("{path} is neither a folder nor a zip archive. Use the folder or zip archive of a model.")
        raise BundleError(message.format(path=source))
    make_folder(unpacked)
    try:
        _unpack(source, unpacked)
        yield unpacked
    except ElmoZhError as error:
        # The folder will have been removed when the message is read.
        raise type(error)(*(message.replace(str(unpacked), str(source)) for message in error.messages)) from None
    finally:
        remove(unpacked)


def _unpack(source: Path, folder: Path) -> None:
    """Unpack the files of a model under their names without folders, so that none ends up outside `folder`."""
    try:
        with zipfile.ZipFile(source) as archive:
            names = {
                entry: PurePosixPath(entry.filename).name for entry in archive.infolist() if entry.filename[-1:] != "/"
            }
            # macOS puts a file of its own beside each file, with the same suffix.
            wanted = {entry: name for entry, name in names.items() if name.endswith(_WANTED) and name[:2] != "._"}
            needed = sum(entry.file_size for entry in wanted)
            # Files may share their packed bytes, so the archive's size is the measure.
            if needed > _ALWAYS_ALLOWED_BYTES + _MOST_COMPRESSION * source.stat().st_size:
                raise _unsafe(source)
            require_disk_space(folder / source.name, needed, advice="TMPDIR=FOLDER")
            for entry, name in wanted.items():
                if (path := folder / name).exists():
                    message = _("{path} contains several files named {name}. Unpack it, and use the right folder.")
                    raise BundleError(message.format(path=source, name=name))
                # zipfile never reads more of an entry than the size that it claims.
                with archive.open(entry) as packed, path.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    except _ARCHIVE_ERRORS as error:
        raise BundleError.damaged(source, error) from None


def _unsafe(path: Path) -> BundleError:
    message = _("{path} expands to far more than a model needs. It is unsafe; do not use it.")
    return BundleError(message.format(path=path))


def _read_source(folder: Path, settings: Conversion, reporter: Reporter) -> BundleContent:
    named = list(settings.named_files())
    if BundleLayout(folder).info.is_file():
        _refuse_options(folder, named)
        model: BundleContent = with_word2vec(load_bundle(folder))
        if settings.text is not None and model.text is not None:
            _refuse_options(folder, ["--config", "--set text.*"])
        dictionary = model.user_dictionary or settings.user_dictionary
        return replace(model, user_dictionary=dictionary, text=model.text or settings.text)
    if is_manylangs(folder):
        _refuse_options(folder, [name for name in named if name != "--options"])
        model = read_manylangs(folder, settings.options, swapped_marks=not settings.straight_marks)
    else:
        _refuse_options(folder, ["--straight-marks"] * settings.straight_marks)
        model = _read_published(folder, settings, reporter)
    model = replace(model, text=settings.text, user_dictionary=settings.user_dictionary)
    if model.vocabulary is None or model.weights.shape.characters is not None:
        return model
    # bilm-tf strips white space from the words of its vocabulary.
    entries = Entries(folder, build_normaliser(model.text) if model.text else str)
    vocabulary = prepare_vocabulary(model.vocabulary, entries)
    entries.report(reporter)
    return replace(model, vocabulary=vocabulary)


def _refuse_options(folder: Path, options: list[str]) -> None:
    if options:
        raise BundleError(_(NO_EFFECT).format(name=", ".join(options), other=folder))


def _warm(source: Path, model: BundleContent, text: Path, *, segmented: bool) -> ModelWeights:
    """Return the weights with a warm state, which `warm_up` computes from the start of a text."""
    if not text.is_file():
        raise CorpusError.missing(text)
    if not segmented and model.text is None:
        raise BundleError(_(UNKNOWN_SEGMENTER).format(path=source))
    lexicon = model.build_lexicon()
    sentences = iter_line_sentences(iter_lines(text), None if segmented else model.trained_preparation())
    numbered = [np.asarray(lexicon.encode(tokens), np.int64) for tokens in islice(sentences, MOST_TOKENS)]
    if not numbered:
        raise CorpusError.no_text(text)
    return replace(model.weights, warm_state=warm_up(model.weights, lexicon, numbered)[0])


# Models in the published layout, as written by bilm-tf, AllenNLP, simple_elmo and NLPL


def _read_published(folder: Path, settings: Conversion, reporter: Reporter) -> BundleContent:
    """Read a model in the published layout, in character or token mode."""
    options_path = settings.options or _only(folder, _named(folder, "options.json", "*options.json"), "options")
    weights = settings.weights or _find_weights(folder)
    names = ("vocab.data", "vocab.txt", "vocab.txt.gz", "*vocab*.txt")
    vocab_path = settings.vocab or next(iter(_named(folder, *names)), None)
    options = load_options(options_path)
    reads_characters, has_softmax = "char_cnn" in options, ForeignFile(weights).has_group("softmax")
    is_needed = not reads_characters or has_softmax or settings.vocab is not None
    vocabulary = _load_vocabulary(vocab_path, is_needed=is_needed, reporter=reporter)
    num_tokens = len(vocabulary) if vocabulary and (not reads_characters or has_softmax) else None
    shape = parse_shape(options, options_path, num_tokens)
    require_published(shape, options_path, "elmo-zh convert BUNDLE")
    token_embeddings = settings.token_embeddings or next(iter(_named(folder, "vocab_embedding.hdf5")), None)
    if reads_characters:
        token_embeddings = None
    used = [options_path, weights, vocab_path if vocabulary else None, token_embeddings]
    return BundleContent(
        weights=load_model(weights, shape, token_embeddings),
        vocabulary=vocabulary,
        spelling=SpellingModel.build({}),
        user_dictionary=None,
        text=None,
        training_options={key: options[key] for key in TRAINING_KEYS if key in options},
        # All other programs carry the state, without an option that says so.
        carry_state=options.get("carry_state") is not False,
        training={},
        origin={
            "program": "bilm-tf, AllenNLP or simple_elmo",
            "files": {path.name: file_digest(path) for path in used if path is not None},
        },
    )


def _find_weights(folder: Path) -> Path:
    """Return the only HDF5 file that contains LSTM cells; raise BundleError unless there is exactly one."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".hdf5", ".h5") and path.is_file())
    weights = [path for path in files if ForeignFile(path).has_group("RNN_0")]
    if not weights and (folder / "checkpoint").is_file():
        message = _(
            "{path} is a TensorFlow checkpoint. Write its weights as HDF5 with bilm-tf's bin/dump_weights.py, and use"
            " that file: --weights FILE"
        )
        raise BundleError(message.format(path=folder))
    return _only(folder, weights, "weights")


def _named(folder: Path, *patterns: str) -> list[Path]:
    """Return the files that match the first pattern with any matches, or [] if no pattern matches a file."""
    matches = (sorted(path for path in folder.glob(pattern) if path.is_file()) for pattern in patterns)
    return next(filter(None, matches), [])


def _only(folder: Path, files: list[Path], what: str) -> Path:
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "-"
        raise BundleError.needs(f"{folder} ({names})", f"--{what} FILE")
    return files[0]


def _load_vocabulary(path: Path | None, *, is_needed: bool, reporter: Reporter) -> Vocabulary | None:
    """Return the vocabulary; for no file or a wrong line, return None, or raise BundleError if it is needed."""
    if path is None:
        if is_needed:
            raise BundleError.needs("model.mode = token", "--vocab FILE")
        return None
    if path.suffix == ".gz":
        _require_sane_gzip(path)
    try:
        return load_vocabulary(path)
    except RunError as error:
        if is_needed:
            raise BundleError(*error.messages) from None
        message = _("{path} was not used: a vocabulary must list <S>, </S> and <UNK>, then each word once.")
        reporter.note(message.format(path=path.name))
        return None


def _require_sane_gzip(path: Path) -> None:
    """Raise BundleError if a file expands more than any word list does; damage is reported when the file is read."""
    allowed = _COPY_BYTES + _MOST_COMPRESSION * path.stat().st_size
    with gzip.open(path) as file, suppress(EOFError, zlib.error, gzip.BadGzipFile):
        while block := file.read(_COPY_BYTES):
            if (allowed := allowed - len(block)) < 0:
                raise _unsafe(path)
