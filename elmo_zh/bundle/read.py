"""Load a bundle and check all its digests; say which model it is."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from elmo_zh.bundle import BUNDLE_FORMAT, BundleLayout
from elmo_zh.bundle.find_bundle import explain_no_bundle, shown_model
from elmo_zh.bundle.options_json import TRAINING_KEYS, load_options, options_of, parse_shape
from elmo_zh.bundle.weights import load_model, load_warm_state
from elmo_zh.choices import SEGMENTERS
from elmo_zh.config import TextConfig, parse_section
from elmo_zh.errors import OTHER_DIGEST, BundleError, ConfigError, RunError
from elmo_zh.invocation import not_installed, path_from_here
from elmo_zh.language import N_, _
from elmo_zh.reader.bilm import BiLMShape
from elmo_zh.reader.weights import ModelWeights, build_lexicon
from elmo_zh.run.files import file_digest, read_json
from elmo_zh.run.record import spell_segmenter
from elmo_zh.run.reporter import counted, first_ten, format_date, joined
from elmo_zh.text.normalise import keeps_tokens
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary
from elmo_zh.vocabulary.lexicon import BYTES, Alphabet, Lexicon
from elmo_zh.vocabulary.spelling import SpellingModel, load_spelling_model
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_vocabulary

if TYPE_CHECKING:
    from elmo_zh.model.bilm import BiLM

OWN_PROGRAM = "elmo-zh"
_MOST_NAMES = 3
UNKNOWN_SEGMENTER = N_(
    "{path} does not say how its training text was segmented. Segment your text yourself and use --segmented, or"
    " convert the model again and specify the segmenter, as in --set text.segmenter=jieba"
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The training of a model: its run, the first few source names, the number of sources, and the date (ISO 8601)."""

    run: str = ""
    corpus: Sequence[str] = ()
    num_sources: int = 0
    trained_at: str = ""

    @classmethod
    def of(cls, run: str, sources: Sequence[str], trained_at: str) -> "History":
        """Return the history of a run, with the first few of its sources, sorted by name."""
        names = tuple(sorted(sources)[:_MOST_NAMES])
        return cls(run=run, corpus=names, num_sources=len(sources), trained_at=trained_at)


UNKNOWN_HISTORY = History()


@dataclass(frozen=True, kw_only=True)
class BundleContent:
    """The whole content of a bundle, as needed to write one."""

    weights: ModelWeights  # The trained model, with the warm state if it has one
    vocabulary: Vocabulary | None  # None for a converted character-mode model without one
    spelling: SpellingModel
    user_dictionary: Path | None
    text: TextConfig | None  # How the training text was prepared; None if unknown
    training_options: Mapping[str, Any]  # The training options of options.json
    carry_state: bool
    training: Mapping[str, Any]  # Counts and figures of the training, such as tokens and held-out perplexity
    origin: Mapping[str, Any]  # The program that made the model, and the digests of its files
    alphabet: Alphabet = BYTES
    history: History = UNKNOWN_HISTORY
    # The word2vec vectors of the vocabulary, float16, shape (V, P); None if there are none, or not loaded
    word2vec: NDArray[np.float16] | None = None

    @property
    def shape(self) -> BiLMShape:
        """The architecture of the biLM."""
        return self.weights.shape

    def build_lexicon(self) -> Lexicon:
        """Return the lexicon, which maps words to input ids."""
        return build_lexicon(self.shape, self.vocabulary, self.alphabet)

    def options(self) -> dict[str, Any]:
        """Return the content of options.json."""
        return options_of(self.shape, self.training_options, len(self.vocabulary) if self.vocabulary else None)

    def trained_preparation(self) -> TextPreparation | None:
        """Return a preparation that tokenises as in training, or None if the text settings are unknown."""
        split = self.vocabulary.split if self.vocabulary else None
        return TextPreparation.build(self.text, self.user_dictionary, split) if self.text else None


@dataclass(frozen=True, kw_only=True)
class Bundle(BundleContent):
    """A loaded model bundle; `load_bundle` leaves out the word2vec vectors."""

    path: Path
    info: dict[str, Any]  # Content of bundle.json
    digest: str  # Digest of bundle.json, which holds the digests of all other files

    @cached_property
    def bilm(self) -> "BiLM":
        """The biLM as a PyTorch module on the CPU, built when first asked for."""
        from elmo_zh.model.language_model import build_modules

        return build_modules(self.weights)[0]

    @property
    def keeps_tokens(self) -> bool:
        """Whether raw lines come segmented, so that sentences end only between two tokens."""
        return self.text is not None and keeps_tokens(self.text)

    def needs_warm_state(self) -> bool:
        """Return whether the model was trained with carried state, but has no warm state for sentences."""
        return self.carry_state and self.weights.warm_state is None

    def require_probabilities(self) -> Vocabulary:
        """Return the vocabulary that the softmax predicts; raise BundleError if either is missing."""
        if not self.weights.has_softmax or self.vocabulary is None:
            message = _(
                "{path} has no softmax or no vocabulary, as is usual for models from other programs, so it gives"
                " vectors but no probabilities. Use a model that elmo-zh trained."
            )
            raise BundleError(message.format(path=self.path))
        return self.vocabulary

    def build_preparation(self, given_dictionary: Path | None = None) -> TextPreparation:
        """Return a preparation that tokenises as in training, with a given user dictionary if there is one.

        Raises:
            BundleError: If the segmenter is unknown, missing or another version, or takes no further dictionary.
        """
        if self.text is None:
            raise BundleError(_(UNKNOWN_SEGMENTER).format(path=self.path))
        there = self.info["segmenter"]
        try:
            here = describe_segmenter(self.text, self.user_dictionary)
        except ConfigError as error:
            message = _("{path} was trained with segmenter {segmenter}. {error}")
            gaps = {"path": self.path, "segmenter": spell_segmenter(there), "error": error}
            if "package" in (there or {}) and self.text.segmenter not in SEGMENTERS:
                package = there["package"]
                gaps["error"] = not_installed(self.text.segmenter, package, f"pip install {package}")
            raise BundleError(message.format(**gaps)) from None
        if here != there:
            message = _(
                "{path} was trained with segmenter {there}, but this machine has {here}. Install the version used in"
                " training, or segment the text yourself and use --segmented."
            )
            gaps = {"there": spell_segmenter(there, here), "here": spell_segmenter(here, there)}
            raise BundleError(message.format(path=self.path, **gaps))
        kept: set[str] = set()
        if given_dictionary is not None:
            if self.user_dictionary or not getattr(
                SEGMENTERS.load(self.text.segmenter), "TAKES_USER_DICTIONARY", False
            ):
                message = _(
                    "{path} already has a user dictionary, or its segmenter does not support one. Leave out the user"
                    " dictionary {dictionary}, or segment the text yourself and use --segmented."
                )
                raise BundleError(message.format(path=self.path, dictionary=given_dictionary))
            if self.text.split_unknown:
                load_user_dictionary(given_dictionary, self.text, lambda word, *_: kept.add(word))
        split = partial(self.vocabulary.split, kept=kept) if self.vocabulary else None
        return TextPreparation.build(self.text, given_dictionary or self.user_dictionary, split)


def describe_model(bundle: Bundle) -> dict[str, Any]:
    """Return a model's path, digest, program, number of training tokens, and history."""
    return {
        "path": str(bundle.path),
        "digest": bundle.digest,
        "made_by": bundle.origin.get("program", OWN_PROGRAM),
        "train_tokens": bundle.training.get("train_tokens"),
        **asdict(bundle.history),
    }


def model_line(bundle: Bundle) -> str:
    """Return the line that tells the user which model a command uses."""
    about, path = describe_model(bundle), bundle.path
    place = shown_model(path)
    if path.resolve() != path.absolute():
        place += f" ({path_from_here(path.resolve())})"
    if about["made_by"] != OWN_PROGRAM:
        message = _("Model: {model}, converted from {program}.")
        return message.format(model=place, program=about["made_by"])
    tokens, date = about["train_tokens"], about["trained_at"]
    amount = counted(tokens, "{number} token", "{number} tokens") if isinstance(tokens, int) else ""
    history = bundle.history
    training = (first_ten(history.corpus, history.num_sources), amount, format_date(date) if date else "")
    return _("Model: {model}, trained on {text}.").format(model=place, text=joined(training) or "?")


def load_bundle(path: Path, digest: str | None = None) -> Bundle:
    """Load a bundle; raise BundleError if a file is missing or damaged, or if two values contradict each other.

    If `digest` is given, as in worker processes, the bundle must still have that digest.
    """
    layout = BundleLayout(path)
    info = _load_info(layout)
    _check_digests(layout, info)
    if digest not in (None, file_digest(layout.info)):
        message = _("{path} has changed since it was loaded. Restore it (digest {digest}), or load it again.")
        raise BundleError(message.format(path=path, digest=digest))
    try:
        vocabulary = load_vocabulary(layout.vocab) if layout.vocab.exists() else None
        text = None if info["text"] is None else _parse_text_settings(info["text"], str(layout.info))
    except (RunError, ConfigError) as error:
        raise BundleError(*error.messages) from None
    options = load_options(layout.options)
    shape = parse_shape(options, layout.options, len(vocabulary) if vocabulary else None)
    if shape.mode != info["mode"] or (vocabulary is None and shape.characters is None):
        raise BundleError.damaged(layout.options, f"mode: {shape.mode} != {info['mode']}")
    weights = load_model(layout.weights, shape)
    if layout.warm_state.exists():
        weights = replace(weights, warm_state=load_warm_state(layout.warm_state, shape))
    return Bundle(
        path=path,
        info=info,
        digest=file_digest(layout.info),
        weights=weights,
        vocabulary=vocabulary,
        spelling=load_spelling_model(layout.character_counts),
        user_dictionary=layout.user_dictionary if layout.user_dictionary.exists() else None,
        text=text,
        training_options={key: options[key] for key in TRAINING_KEYS if key in options},
        carry_state=info["carry_state"],
        training=info["training"],
        origin=info["origin"],
        alphabet=_load_alphabet(layout.alphabet, shape),
        history=load_history(layout.history),
    )


def load_text_settings(path: Path) -> TextConfig | None:
    """Return how a bundle's training text was prepared, or None if that is unknown."""
    layout = BundleLayout(path)
    text = _load_info(layout)["text"]
    return None if text is None else _parse_text_settings(text, str(layout.info))


def _parse_text_settings(recorded: dict[str, Any], source: str) -> TextConfig:
    """Parse the recorded settings, even if the segmenter is not installed: only raw text needs it."""
    segmenter = recorded.get("segmenter")
    known = {name: value for name, value in recorded.items() if name != "segmenter" or not isinstance(value, str)}
    text = parse_section(TextConfig(), known, "text", source)
    return replace(text, segmenter=segmenter) if isinstance(segmenter, str) else text


def _load_alphabet(path: Path, shape: BiLMShape) -> Alphabet:
    if shape.characters is None or shape.characters.is_published:
        return BYTES
    if not path.is_file():
        raise BundleError.missing(path)
    try:
        alphabet: Alphabet = read_json(path, Alphabet)
        numbers = [alphabet.begin_sentence, alphabet.end_sentence, alphabet.begin_word, alphabet.end_word]
        numbers += [alphabet.unknown, alphabet.padding, *(alphabet.numbers or {}).values()]
        if alphabet.size != shape.characters.num_characters or not 0 <= min(numbers) <= max(numbers) < alphabet.size:
            raise ValueError("its numbers are not those of the model")
    except ValueError as error:
        raise BundleError.damaged(path, error) from None
    return alphabet


def load_history(path: Path) -> History:
    """Return the history in a file, or UNKNOWN_HISTORY if there is no file; raise BundleError if it is damaged."""
    if not path.is_file():
        return UNKNOWN_HISTORY
    try:
        history: History = read_json(path, History)
        if history.trained_at:
            datetime.fromisoformat(history.trained_at)
    except ValueError as error:
        raise BundleError.damaged(path, error) from None
    return history


class _Origin(Struct, frozen=True):
    program: str = ""
    files: dict[str, str] = {}


class _Info(Struct):
    """The fields of bundle.json that are checked on loading, with their types."""

    format: int
    mode: str
    digests: dict[str, str]
    carry_state: bool
    segmenter: dict[str, str] | None
    text: dict[str, Any] | None
    origin: _Origin = _Origin()
    training: dict[str, Any] = {}


def _load_info(layout: BundleLayout) -> dict[str, Any]:
    if not layout.info.is_file():
        raise BundleError(explain_no_bundle(layout.path))
    try:
        info: dict[str, Any] = {"training": {}, "origin": {}, **read_json(layout.info, dict[str, Any])}
        msgspec.convert(info, _Info)
    except ValueError as error:
        raise BundleError.damaged(layout.info, error) from None
    if info["format"] != BUNDLE_FORMAT or info["mode"] not in ("token", "character"):
        raise BundleError.of_format(layout.info, f"{info['format']}, {info['mode'][:20]}")
    return info


def _check_digests(layout: BundleLayout, info: dict[str, Any]) -> None:
    there = {path.name: path for path in layout.digested()}
    for name in sorted({*there, *info["digests"]}):
        path = there.get(name)
        if path is None or not path.is_file():
            raise BundleError.missing(layout.path / Path(name).name)
        if file_digest(path) != info["digests"].get(name):
            raise BundleError.damaged(path, _(OTHER_DIGEST).format(name=layout.info.name))
