"""Load a bundle, with every digest checked."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.bundle.layout import BUNDLE_FORMAT, BundleLayout
from elmo_zh.bundle.options import load_shape
from elmo_zh.bundle.weights import load_weights
from elmo_zh.characters import SpellingModel, load_spelling_model
from elmo_zh.config import TextConfig, parse_section
from elmo_zh.errors import BundleError, ConfigError, RunError
from elmo_zh.files import file_digest
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.vocabulary import Vocabulary, load_vocabulary


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A loaded bundle.

    Attributes:
        path: Its folder.
        info: The content of bundle.json.
        digest: The digest of bundle.json, which holds those of all other files.
        text: How its training text was prepared.
        vocabulary: Its words.
        spelling: What unknown words cost.
        model: The biLM and its softmax, on the CPU.
    """

    path: Path
    info: dict[str, Any]
    digest: str
    text: TextConfig
    vocabulary: Vocabulary
    spelling: SpellingModel
    model: LanguageModel

    def build_preparation(self) -> TextPreparation:
        """Return what turns raw text into tokens exactly as in training.

        Raises:
            BundleError: If the segmenter here is not the one that the model was trained with.
        """
        dictionary = BundleLayout(self.path).user_dictionary
        user_dictionary = dictionary if dictionary.exists() else None
        here = describe_segmenter(self.text, user_dictionary)
        if here != self.info["segmenter"]:
            raise BundleError(
                f"{self.path} was trained with segmenter {self.info['segmenter']}, here it is {here}."
                " Install that version, or segment the text yourself and use --segmented."
            )
        return TextPreparation.build(self.text, user_dictionary)


def load_bundle(path: Path) -> Bundle:
    """Read a bundle into memory.

    Raises:
        BundleError: If a file is missing or damaged, or anything does not fit together, with both values.
    """
    layout = BundleLayout(path)
    info = _load_info(layout)
    _check_digests(layout, info)
    try:
        vocabulary = load_vocabulary(layout.vocab)
        text = parse_section(TextConfig(), info["text"], "text", str(layout.info))
    except (RunError, ConfigError) as error:
        raise BundleError(*error.messages) from None
    model = LanguageModel.build(load_shape(layout.options, len(vocabulary)), tie_softmax=False)
    load_weights(layout.weights, model.bilm.shape, model.named_tensors())
    return Bundle(
        path=path,
        info=info,
        digest=file_digest(layout.info),
        text=text,
        vocabulary=vocabulary,
        spelling=load_spelling_model(layout.character_counts),
        model=model,
    )


def _load_info(layout: BundleLayout) -> dict[str, Any]:
    if not layout.info.is_file():
        raise BundleError(
            f"{layout.path} is not a model bundle: {layout.info.name} is missing."
            " Give --model the folder that `elmo-zh export` wrote, such as runs/NAME/model."
        )
    try:
        info = json.loads(layout.info.read_text(encoding="utf-8"))
        wanted = {"format": int, "mode": str, "segmenter": dict, "text": dict, "digests": dict, "carry_state": bool}
        for name, kind in wanted.items():
            if not isinstance(info[name], kind):
                raise TypeError(f"{name} is {info[name]!r}")
    except (ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{layout.info} is damaged ({error!r}). Export or copy the bundle again.") from None
    if info["format"] != BUNDLE_FORMAT or info["mode"] != "token":
        raise BundleError(
            f"{layout.info}: format {info['format']}, mode {info['mode']}; this elmo-zh reads format {BUNDLE_FORMAT},"
            " mode token. Update elmo-zh."
        )
    return dict(info)


def _check_digests(layout: BundleLayout, info: dict[str, Any]) -> None:
    for path in layout.digested():
        if not path.is_file():
            raise BundleError(f"{path} is missing. Export or copy the bundle again.")
        found, expected = file_digest(path), info["digests"].get(path.name)
        if found != expected:
            raise BundleError(
                f"{path} is not the file that {layout.info.name} was written with: found {found}, expected {expected}."
                " Export or copy the bundle again."
            )
