"""Models in the published layout, as written by bilm-tf, AllenNLP, simple_elmo and NLPL."""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.bundle.options_json import TRAINING_KEYS, load_options, parse_shape
from elmo_zh.bundle.weights import load_model
from elmo_zh.bundle.write import BundleSource
from elmo_zh.config import TextConfig
from elmo_zh.convert.model_files import ChosenFiles, find_options, find_weights, first_named, require_sane_gzip
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import BundleError, RunError
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Reporter
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import BEGIN, Vocabulary, load_vocabulary


@dataclass(frozen=True, kw_only=True)
class KnownText:
    """Facts that the user gives about how a model's training text was prepared."""

    config: TextConfig | None = None
    user_dictionary: Path | None = None


def read_published(folder: Path, chosen: ChosenFiles, text: KnownText, reporter: Reporter) -> BundleSource:
    """Read a model in the published layout, in character or token mode."""
    options_path, weights = chosen.options or find_options(folder), chosen.weights or find_weights(folder)
    vocab_path = chosen.vocab or first_named(folder, "vocab.data", "vocab.txt", "vocab.txt.gz", "*vocab*.txt")
    options = load_options(options_path)
    reads_characters = "char_cnn" in options
    has_softmax = ForeignFile.open(weights).has_group("softmax")
    is_needed = not reads_characters or has_softmax or chosen.vocab is not None
    vocabulary = _load_vocabulary(vocab_path, is_needed=is_needed, reporter=reporter)
    num_tokens = len(vocabulary) if vocabulary and (not reads_characters or has_softmax) else None
    shape = parse_shape(options, options_path, num_tokens)
    if shape.characters and not shape.characters.is_published:
        message = _("{path} belongs to an ELMoForManyLangs model in a bundle. Give the whole bundle.")
        raise BundleError(message.format(path=options_path))
    token_embeddings = chosen.token_embeddings or first_named(folder, "vocab_embedding.hdf5")
    if reads_characters:
        token_embeddings = None
    used = [options_path, weights, vocab_path if vocabulary else None, token_embeddings]
    return BundleSource(
        weights=load_model(weights, shape, token_embeddings),
        vocabulary=vocabulary,
        spelling=SpellingModel.build({}),
        user_dictionary=text.user_dictionary,
        text=text.config,
        training_options={key: options[key] for key in TRAINING_KEYS if key in options},
        # All other programs carry the state, without an option that says so.
        carry_state=options.get("carry_state") is not False,
        training={},
        origin={
            "program": "bilm-tf, AllenNLP or simple_elmo",
            "files": {path.name: file_digest(path) for path in used if path is not None},
        },
    )


def _load_vocabulary(path: Path | None, *, is_needed: bool, reporter: Reporter) -> Vocabulary | None:
    """Return the vocabulary, or None if it is optional and is missing or in a different format."""
    if path is None:
        if is_needed:
            raise BundleError(_("The model has no vocabulary. Give a file with one word per line: --vocab FILE"))
        return None
    require_sane_gzip(path)
    try:
        return load_vocabulary(path)
    except RunError as error:
        if is_needed and next(iter_lines(path), "").rstrip() == BEGIN != next(iter_lines(path)):
            message = _("{path}: lines end in spaces, so words would not be found. Remove them: {command}")
            command = f"sed -i 's/[[:space:]]*$//' {path}"
            raise BundleError(message.format(path=path, command=command)) from None
        if is_needed:
            raise BundleError(*error.messages) from None
        message = _("{path} was not used: a vocabulary must list <S>, </S> and <UNK>, then each word once.")
        reporter.note(message.format(path=path.name))
        return None
