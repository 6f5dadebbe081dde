"""Load a bundle and check all its digests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from msgspec import ValidationError, convert

from elmo_zh.bundle.find_bundle import explain_no_bundle
from elmo_zh.bundle.layout import BUNDLE_FORMAT, BundleLayout
from elmo_zh.bundle.options_json import load_options, parse_shape
from elmo_zh.bundle.warm_state import load_warm_state
from elmo_zh.bundle.weights import load_model
from elmo_zh.choices import SEGMENTERS
from elmo_zh.config import TextConfig, parse_section
from elmo_zh.errors import BundleError, ConfigError, RunError
from elmo_zh.reader.shape import BiLMShape
from elmo_zh.reader.weights import ModelWeights, build_lexicon
from elmo_zh.run.files import file_digest, note_input, read_json
from elmo_zh.run.record import spell_segmenter
from elmo_zh.text.normalise import keeps_tokens
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters.registry import describe_segmenter
from elmo_zh.text.segmenters.user_dictionary import load_user_dictionary
from elmo_zh.vocabulary.lexicon import BYTES, Alphabet, Lexicon
from elmo_zh.vocabulary.spelling import SpellingModel, load_spelling_model
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_vocabulary

if TYPE_CHECKING:
    from elmo_zh.model.bilm import BiLM
    from elmo_zh.model.softmax import Softmax

_MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class History:
    """The training of a model: its run, the first sources as the user named them, and the date (ISO 8601)."""

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
class Bundle:
    """A loaded model bundle."""

    path: Path
    info: dict[str, Any]  # Content of bundle.json
    digest: str  # Digest of bundle.json, which holds the digests of all other files
    text: TextConfig | None  # How the training text was prepared; None if unknown
    vocabulary: Vocabulary | None  # None for a converted character-mode model without one
    spelling: SpellingModel
    weights: ModelWeights
    alphabet: Alphabet
    history: History = UNKNOWN_HISTORY

    @cached_property
    def modules(self) -> "tuple[BiLM, Softmax | None]":
        """The biLM and the softmax, if there is one, as PyTorch modules on the CPU, built when first asked for."""
        from elmo_zh.model.language_model import build_modules

        return build_modules(self.weights)

    @property
    def bilm(self) -> "BiLM":
        """The biLM as a PyTorch module."""
        return self.modules[0]

    @property
    def shape(self) -> BiLMShape:
        """The architecture of the biLM."""
        return self.weights.shape

    def build_lexicon(self) -> Lexicon:
        """Return the lexicon, which maps words to input ids."""
        return build_lexicon(self.shape, self.vocabulary, self.alphabet)

    @property
    def keeps_tokens(self) -> bool:
        """Whether raw lines come segmented, so that sentences end only between two tokens."""
        return self.text is not None and keeps_tokens(self.text)

    def needs_warm_state(self) -> bool:
        """Return whether the model was trained with carried state, but has no warm state for sentences."""
        return bool(self.info["carry_state"]) and self.weights.warm_state is None

    def require_probabilities(self) -> Vocabulary:
        """Return the vocabulary that the softmax predicts; raise BundleError if either is missing."""
        if not self.weights.has_softmax or self.vocabulary is None:
            raise BundleError(
                f"{self.path} has no {'softmax' if self.vocabulary else 'vocabulary'}, so the model gives vectors but"
                " no probabilities, and its perplexity cannot be computed. Models from other programs usually lack this"
                " part."
            )
        return self.vocabulary

    def build_preparation(self, given_dictionary: Path | None = None) -> TextPreparation:
        """Return a preparation that tokenises as in training, but keeps the words of a given dictionary whole."""
        if self.text is None:
            raise BundleError(
                f"{self.path} does not say how its training text was segmented. Segment your text yourself and use"
                " --segmented, or convert the model again and specify the segmenter, as in --set text.segmenter=jieba"
            )
        dictionary = BundleLayout(self.path).user_dictionary
        user_dictionary = dictionary if dictionary.exists() else None
        try:
            here = describe_segmenter(self.text, user_dictionary)
        except ConfigError as error:
            package = (self.info["segmenter"] or {}).get("package")
            is_missing = package is not None and self.text.segmenter not in SEGMENTERS
            advice = f"Install it with: pip install {package}" if is_missing else error
            segmenter = spell_segmenter(self.info["segmenter"])
            raise BundleError(f"{self.path} was trained with segmenter {segmenter}. {advice}") from None
        if here != self.info["segmenter"]:
            raise BundleError(
                f"{self.path} was trained with segmenter {spell_segmenter(self.info['segmenter'], here)}, but this"
                f" machine has {spell_segmenter(here, self.info['segmenter'])}. Install the version used in training,"
                " or segment the text yourself and use --segmented."
            )
        if given_dictionary is not None:
            self._require_place_for(given_dictionary, user_dictionary)
        kept: set[str] = set()
        if given_dictionary is not None and self.text.split_unknown:
            load_user_dictionary(given_dictionary, self.text, lambda word, *_: kept.add(word))
        split = partial(self.vocabulary.split, kept=kept) if self.vocabulary else None
        return TextPreparation.build(self.text, given_dictionary or user_dictionary, split)

    def _require_place_for(self, given: Path, own: Path | None) -> None:
        """Raise BundleError if the model already has a user dictionary, or if its segmenter takes none."""
        assert self.text is not None
        problem = f"the model was trained with its own dictionary {own}" if own else ""
        if not getattr(SEGMENTERS.load(self.text.segmenter), "TAKES_USER_DICTIONARY", False):
            problem = f"the model's segmenter {self.text.segmenter} does not support user dictionaries"
        if problem:
            raise BundleError(
                f"{self.path} cannot use the user dictionary {given}: {problem}. Leave out the dictionary, or segment"
                " the text yourself and use --segmented."
            )


def load_same_bundle(path: Path, digest: str) -> Bundle:
    """Load a bundle again from its folder; raise BundleError if its digest is no longer the recorded one."""
    bundle = load_bundle(path)
    if bundle.digest != digest:
        raise BundleError(f"{path} has changed since it was loaded. Restore it (digest {digest}), or start again.")
    return bundle


def load_bundle(path: Path) -> Bundle:
    """Load a bundle; raise BundleError if a file is missing or damaged, or if two values contradict each other."""
    note_input(path)
    layout = BundleLayout(path)
    info = _load_info(layout)
    _check_digests(layout, info)
    try:
        vocabulary = load_vocabulary(layout.vocab) if layout.vocab.exists() else None
        text = None
        if info["text"] is not None:
            text = _parse_text_settings(info["text"], str(layout.info))
    except (RunError, ConfigError) as error:
        raise BundleError(*error.messages) from None
    shape = parse_shape(load_options(layout.options), layout.options, len(vocabulary) if vocabulary else None)
    if shape.mode != info["mode"] or (vocabulary is None and shape.characters is None):
        raise BundleError(
            f"{layout.options} describes a different kind of model than {layout.info}. Export the model again."
        )
    weights = load_model(layout.weights, shape)
    if layout.warm_state.exists():
        weights = replace(weights, warm_state=load_warm_state(layout.warm_state, shape))
    return Bundle(
        path=path,
        info=info,
        digest=file_digest(layout.info),
        text=text,
        vocabulary=vocabulary,
        spelling=load_spelling_model(layout.character_counts),
        weights=weights,
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
        raise BundleError(
            f"{path} is missing, and the model needs it to read characters. Copy or convert the bundle again."
        )
    try:
        alphabet = Alphabet(**read_json(path))
        numbers = [alphabet.begin_sentence, alphabet.end_sentence, alphabet.begin_word, alphabet.end_word]
        numbers += [alphabet.unknown, alphabet.padding, *(alphabet.numbers or {}).values()]
        if alphabet.size != shape.characters.num_characters:
            raise ValueError(f"it has {alphabet.size} numbers")
        if any(type(number) is not int or not 0 <= number < alphabet.size for number in numbers):
            raise ValueError("a number is out of range")
    except (ValueError, TypeError, AttributeError) as error:
        raise BundleError(f"{path} does not fit the model ({error}). Convert the model again.") from None
    return alphabet


def load_history(path: Path) -> History:
    """Return the history from its file, which older and converted bundles lack and no digest protects."""
    if not path.is_file():
        return UNKNOWN_HISTORY
    try:
        history = History(**read_json(path))
        if history.trained_at:
            datetime.fromisoformat(history.trained_at)
        if not isinstance(history.corpus, list) or not all(isinstance(name, str) for name in history.corpus):
            raise TypeError("corpus is not a list of names")
        if not isinstance(history.run, str) or type(history.num_sources) is not int:
            raise TypeError("run is not a name, or num_sources not a number")
    except (ValueError, TypeError) as error:
        raise BundleError(f"{path} is damaged ({error}). Export the bundle again, or remove this file.") from None
    return history


def _load_info(layout: BundleLayout) -> dict[str, Any]:
    if not layout.info.is_file():
        raise BundleError(explain_no_bundle(layout.path))
    try:
        info = read_json(layout.info)
        problem = _find_problem(info)
    except ValueError as error:
        problem = str(error)
    if problem:
        raise BundleError(f"{layout.info} is damaged ({problem}). Export or copy the bundle again.")
    if info["format"] != BUNDLE_FORMAT or info["mode"] not in ("token", "character"):
        raise BundleError(
            f"{layout.info} has format {info['format']} and mode {info['mode'][:20]}; this version of elmo-zh reads"
            f" format {BUNDLE_FORMAT} and the modes token and character. Update elmo-zh."
        )
    return dict(info)


class _Origin(TypedDict):
    """The files that a converted model was made from."""

    files: NotRequired[dict[str, str]]


class _Info(TypedDict):
    """The entries of bundle.json that every bundle has, and two that older ones lack."""

    format: int
    mode: str
    carry_state: bool
    digests: dict[str, str]
    segmenter: dict[str, str] | None
    text: dict[str, Any] | None
    training: NotRequired[dict[str, Any]]
    origin: NotRequired[_Origin]


def _find_problem(info: Any) -> str:
    """Describe the first missing or wrong value in bundle.json, or return ""; add missing optional entries."""
    try:
        convert(info, _Info)
    except ValidationError as error:
        return str(error)
    info.update({name: info.get(name, {}) for name in ("training", "origin")})
    return ""


def _check_digests(layout: BundleLayout, info: dict[str, Any]) -> None:
    there = {path.name: path for path in layout.digested()}
    for name in sorted({*there, *info["digests"]}):
        path = there.get(name)
        if path is None or not path.is_file():
            raise BundleError(f"{layout.path / Path(name).name} is missing. Export or copy the bundle again.")
        found, expected = file_digest(path), info["digests"].get(name)
        if found != expected:
            raise BundleError(
                f"{path} is not the file that {layout.info.name} describes: found digest {found}, expected {expected}."
                " Export or copy the bundle again."
            )
