"""Build segmenters by name, and define the two simplest ones: whitespace and character."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from elmo_zh.choices import SEGMENTERS
from elmo_zh.config import TextConfig
from elmo_zh.errors import ConfigError
from elmo_zh.language import _
from elmo_zh.run.files import file_digest
from elmo_zh.text.script import describe_script

Segmenter = Callable[[str], list[str]]


class SegmenterModule(Protocol):
    """A segmenter as registered in `elmo_zh.choices.SEGMENTERS`: a module or object that defines these three names.

    Attributes:
        TAKES_USER_DICTIONARY: Whether the segmenter can use a user dictionary in jieba's format.
    """

    TAKES_USER_DICTIONARY: bool

    def build(self, config: TextConfig, user_dictionary: Path | None) -> Segmenter:
        """Return the function that turns a normalised sentence into tokens.

        Together the tokens must hold all characters of the sentence but spaces (U+0020), in order.

        Args:
            config: The text settings.
            user_dictionary: A user dictionary, or None.

        Raises:
            ConfigError: If something that the segmenter needs is not installed.
            CorpusError: If the user dictionary cannot be read.
        """

    def describe(self) -> dict[str, str]:
        """Return everything that must match to get the same tokens, such as "version" and a "dictionary" digest.

        Bundles record this description, and embedding checks that it still holds.

        Raises:
            ConfigError: If something that the segmenter needs is not installed.
        """


def build_segmenter(config: TextConfig, user_dictionary: Path | None = None) -> Segmenter:
    """Return the function that turns a normalised sentence into tokens.

    No token is empty or holds U+0020, and together they hold all other characters of the sentence in order. Time and
    memory of the built-in segmenters are proportional to the sentence's length.

    Raises:
        ConfigError: If the segmenter or its package is not installed.
        CorpusError: If the user dictionary cannot be read.
    """
    segment = _load(config.segmenter).build(config, user_dictionary)
    return segment if config.segmenter in SEGMENTERS.built_in else _checked(segment, config.segmenter)


def describe_segmenter(config: TextConfig, user_dictionary: Path | None = None) -> dict[str, str]:
    """Return what identifies a segmenter: its name, versions and digests, and the package of a plug-in."""
    described = {"name": config.segmenter, "version": "1", **describe_script(config.script)}
    if package := SEGMENTERS.package_of(config.segmenter):
        described["package"], described["version"] = package
    described |= _load(config.segmenter).describe()
    if user_dictionary is not None:
        described["user_dictionary"] = file_digest(user_dictionary)
    return described


def split_tokens(sentence: str) -> list[str]:
    """Return the tokens of text that this program has segmented, splitting at U+0020 and nowhere else."""
    return [token for token in sentence.split(" ") if token]


@dataclass(frozen=True)
class _RuleSegmenter:
    """A segmenter that consists of one function and needs neither a package nor a version."""

    segment: Segmenter
    TAKES_USER_DICTIONARY = False

    def build(self, _config: TextConfig, _user_dictionary: Path | None) -> Segmenter:
        return self.segment

    def describe(self) -> dict[str, str]:
        return {}


WHITESPACE = _RuleSegmenter(split_tokens)
CHARACTER = _RuleSegmenter(lambda sentence: list(sentence.replace(" ", "")))


def _load(name: str) -> SegmenterModule:
    return cast(SegmenterModule, SEGMENTERS.load(name))


def _checked(segment: Segmenter, name: str) -> Segmenter:
    """Wrap a plug-in's segmenter: split its tokens at spaces, and raise ConfigError if it changes the sentence."""

    def segment_checked(sentence: str) -> list[str]:
        tokens = [part for token in segment(sentence) for part in split_tokens(token)]
        if "".join(tokens) != sentence.replace(" ", ""):
            raise ConfigError(
                _(
                    "text.segmenter = {name} changes characters: it turned {sentence} into {tokens}. A segmenter may"
                    " only split text. Correct this segmenter, or choose another with --set text.segmenter=NAME"
                ).format(name=name, sentence=repr(sentence[:40]), tokens=repr(" ".join(tokens)[:40]))
            )
        return tokens

    return segment_checked
