"""Write a bundle."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any

import h5py
import torch

from elmo_zh import __version__
from elmo_zh.batches import mark_sentence, pad_sentences
from elmo_zh.bundle.layout import BUNDLE_FORMAT, BundleLayout
from elmo_zh.bundle.options import options_of
from elmo_zh.bundle.weights import save_weights
from elmo_zh.config import TextConfig, TrainConfig, result_settings
from elmo_zh.files import file_digest, write_json
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.vocabulary import Vocabulary

# Our own sentences: a plain one, one with signs, digits and Latin, and one of two words with a word never seen.
GOLDEN_TEXTS = ("今天天气很好，我们去公园散步。", "他用iPhone打了3个电话：“喂，是我！”", "你好，齉龘世界。")
GOLDEN_TOLERANCE = 1e-5
# Text settings that say nothing about how a sentence becomes tokens; the dictionary is a file of the bundle.
NOT_IN_BUNDLE = ("user_dictionary", "heldout_share", "heldout_min_sentences", "heldout_max_tokens")


@dataclass(frozen=True, kw_only=True)
class BundleSource:
    """What a bundle is made from.

    Attributes:
        model: The trained model, on the CPU.
        vocabulary: Its words.
        vocab: vocab.data.
        character_counts: The spelling model's file.
        user_dictionary: The segmenter's user dictionary, or None.
        text: How text is prepared.
        train: How the model was trained.
        training: Counts and figures for people and programs, such as tokens and held-out perplexity.
    """

    model: LanguageModel
    vocabulary: Vocabulary
    vocab: Path
    character_counts: Path
    user_dictionary: Path | None
    text: TextConfig
    train: TrainConfig
    training: Mapping[str, Any]


def write_bundle(folder: Path, source: BundleSource) -> None:
    """Write all files of a bundle into a new folder."""
    layout = BundleLayout(folder)
    folder.mkdir(parents=True)
    shape = source.model.bilm.shape
    write_json(
        layout.options, options_of(shape, source.train, source.training["train_tokens"], source.training["epochs"])
    )
    save_weights(layout.weights, shape, source.model.named_tensors())
    with create_hdf5(layout.vocab_embedding) as file:
        file.create_dataset("embedding", data=source.model.bilm.token_table.weight.detach().numpy())
    copyfile(source.vocab, layout.vocab)
    copyfile(source.character_counts, layout.character_counts)
    if source.user_dictionary is not None:
        copyfile(source.user_dictionary, layout.user_dictionary)
    _write_golden(layout.golden, source)
    write_json(layout.info, _info(layout, source))


def _info(layout: BundleLayout, source: BundleSource) -> dict[str, Any]:
    return {
        "format": BUNDLE_FORMAT,
        "elmo_zh": __version__,
        "mode": "token",
        "segmenter": describe_segmenter(source.text, source.user_dictionary),
        "text": result_settings(source.text, without=NOT_IN_BUNDLE),
        "vocabulary_digest": source.vocabulary.digest(),
        "carry_state": source.train.carry_state,
        "training": dict(source.training),
        "digests": {path.name: file_digest(path) for path in layout.digested()},
    }


def _write_golden(path: Path, source: BundleSource) -> None:
    """Write texts, tokens and all layers of three sentences, in the layout of `embed`, tolerance as an attribute."""
    preparation = TextPreparation.build(source.text, source.user_dictionary)
    source.model.bilm.set_product_dtype(None)
    with create_hdf5(path) as file:
        file.attrs["tolerance"] = GOLDEN_TOLERANCE
        for line, text in enumerate(GOLDEN_TEXTS):
            tokens = preparation.tokens(text)
            ids, mask = pad_sentences([mark_sentence(source.vocabulary.encode(tokens))])
            activations = source.model.bilm.layer_activations(ids, mask)[:, 0, 1:-1]
            file.create_dataset(str(line), data=activations.to(torch.float32).numpy())
            file.create_dataset(f"tokens/{line}", data=tokens, dtype=h5py.string_dtype())
            file.create_dataset(f"texts/{line}", data=text, dtype=h5py.string_dtype())
