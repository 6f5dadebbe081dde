"""Write a bundle, or the files of a model in the layout of another program."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from shutil import copyfile
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BUNDLE_FORMAT, BundleForm, BundleLayout
from elmo_zh.bundle.options_json import TRAINING_KEYS, load_options, options_of
from elmo_zh.bundle.read import OWN_PROGRAM, UNKNOWN_HISTORY, Bundle, History
from elmo_zh.bundle.weights import (
    published_arrays,
    rounded_to_float16,
    save_tensors,
    save_warm_state,
    save_weights,
)
from elmo_zh.bundle.word2vec_table import read_table, shorten, write_table
from elmo_zh.config import TextConfig, preparation_settings
from elmo_zh.errors import BundleError
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.reader.weights import ModelWeights, build_lexicon
from elmo_zh.run.files import file_digest, write_json
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.version import __version__
from elmo_zh.vocabulary.lexicon import BYTES, Alphabet
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import Vocabulary

# Our own sentences: a plain one; one with punctuation, digits and Latin letters; one with a word never seen.
GOLDEN_TEXTS = ("今天天气很好，我们去公园散步。", "他用iPhone打了3个电话：“喂，是我！”", "你好，齉龘世界。")
# How far vectors may be from the stored ones, and far more text than the three sentences have.
GOLDEN_TOLERANCE, _MOST_CHARACTERS = 1e-5, 10_000
# Text settings that do not affect how a sentence becomes tokens; the dictionary is a file of the bundle.
NOT_IN_BUNDLE = ("user_dictionary", "heldout_share", "heldout_min_sentences", "heldout_max_tokens")


@dataclass(frozen=True, kw_only=True)
class BundleSource:
    """Everything needed to write a bundle."""

    weights: ModelWeights  # The trained model; its warm state is written if it has one
    vocabulary: Vocabulary | None
    spelling: SpellingModel
    user_dictionary: Path | None
    text: TextConfig | None  # How text is prepared; None if unknown
    training_options: Mapping[str, Any]  # The training options of options.json
    carry_state: bool
    training: Mapping[str, Any]  # Counts and figures of the training, such as tokens and held-out perplexity
    origin: Mapping[str, Any]  # The program that made the model, and the digests of its files
    alphabet: Alphabet = BYTES
    history: History = UNKNOWN_HISTORY
    # The word2vec vectors of the vocabulary, float16, shape (V, P), or None
    word2vec: NDArray[np.float16] | None = None

    def build_preparation(self) -> TextPreparation | None:
        """Return a preparation that tokenises as in training, or None if that is unknown."""
        split = self.vocabulary.split if self.vocabulary else None
        return TextPreparation.build(self.text, self.user_dictionary, split) if self.text else None

    def options(self) -> dict[str, Any]:
        """Return the content of options.json."""
        return options_of(self.weights.shape, self.training_options, len(self.vocabulary) if self.vocabulary else None)


def source_of(bundle: Bundle) -> BundleSource:
    """Return everything needed to write a loaded bundle again."""
    layout, vocabulary = BundleLayout(bundle.path), bundle.vocabulary
    options = load_options(layout.options)
    word2vec = None
    if vocabulary is not None and layout.word2vec.exists():
        word2vec = read_table(layout.word2vec, len(vocabulary))
    return BundleSource(
        weights=bundle.weights,
        vocabulary=vocabulary,
        spelling=bundle.spelling,
        user_dictionary=layout.user_dictionary if layout.user_dictionary.exists() else None,
        text=bundle.text,
        training_options={key: options[key] for key in TRAINING_KEYS if key in options},
        carry_state=bundle.info["carry_state"],
        training=bundle.info["training"],
        origin=bundle.info["origin"],
        alphabet=bundle.alphabet,
        history=bundle.history,
        word2vec=word2vec,
    )


def write_model(folder: Path, source: BundleSource, form: BundleForm) -> None:
    """Write a model into a new folder, in any form; float16 rounds the weights."""
    if form.dtype == "float16":
        source = replace(source, weights=rounded_to_float16(source.weights))
    if form.layout != "bundle":
        _write_plain(folder, source, form)
    else:
        write_bundle(folder, source, form.dtype)


def _write_plain(folder: Path, source: BundleSource, form: BundleForm) -> None:
    """Write only weights and options: with simple_elmo's file names, or as safetensors with the published names."""
    characters = source.weights.shape.characters
    if form.layout == "simple_elmo" and characters is None:
        raise BundleError(_("simple_elmo cannot read token-mode models such as this one. Choose another --layout."))
    if characters is not None and not characters.is_published:
        raise BundleError(_("An ELMoForManyLangs model can only be written as a bundle. Use --layout bundle."))
    folder.mkdir(parents=True)
    write_json(folder / "options.json", source.options())
    if source.vocabulary is not None:
        source.vocabulary.save(folder / "vocab.txt")
    if form.layout == "simple_elmo":
        save_weights(folder / "model.hdf5", source.weights, form.dtype)
    else:
        import torch

        arrays = published_arrays(source.weights, form.dtype)
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays}
        save_tensors(tensors, folder / "model.safetensors")


def write_tuned(folder: Path, bundle: Bundle, weights: ModelWeights) -> None:
    """Write a bundle without softmax, for a biLM that was trained further as part of another network."""
    start = {"digest": bundle.digest, "tokens": bundle.info["training"].get("tokens")}
    origin = {"program": OWN_PROGRAM, "started_from": {**start, "origin": bundle.info["origin"]}}
    write_bundle(folder, replace(source_of(bundle), weights=weights, origin=origin))


def write_bundle(folder: Path, source: BundleSource, dtype: str = "float32") -> None:
    """Write a bundle into a new folder."""
    layout = BundleLayout(folder)
    folder.mkdir(parents=True)
    write_json(layout.options, source.options())
    save_weights(layout.weights, source.weights, dtype)
    if _has_embedding_file(source, dtype):
        with create_hdf5(layout.vocab_embedding) as file:
            file.create_dataset("embedding", data=source.weights.token_table)
    if source.word2vec is not None:
        write_table(layout.word2vec, shorten(source.word2vec) if dtype == "float16" else source.word2vec)
    if source.weights.warm_state is not None:
        save_warm_state(layout.warm_state, source.weights.warm_state)
    if source.vocabulary is not None:
        source.vocabulary.save(layout.vocab)
    source.spelling.save(layout.character_counts)
    if source.user_dictionary is not None:
        copyfile(source.user_dictionary, layout.user_dictionary)
    if source.alphabet is not BYTES:
        write_json(layout.alphabet, asdict(source.alphabet))
    _write_golden(layout.golden, source)
    if source.history != UNKNOWN_HISTORY:
        write_json(layout.history, asdict(source.history))
    write_json(layout.info, _info(layout, source))


def _has_embedding_file(source: BundleSource, dtype: str) -> bool:
    # weights.hdf5 holds the same dataset. The copy is left out of a bundle that is meant to be small.
    return source.weights.shape.characters is None and dtype == "float32"


def _info(layout: BundleLayout, source: BundleSource) -> dict[str, Any]:
    text = source.text
    return {
        "format": BUNDLE_FORMAT,
        "elmo_zh": __version__,
        "mode": source.weights.shape.mode,
        "origin": dict(source.origin),
        "segmenter": describe_segmenter(text, source.user_dictionary) if text else None,
        "text": preparation_settings(text, without=NOT_IN_BUNDLE) if text else None,
        "vocabulary_digest": source.vocabulary.digest() if source.vocabulary else None,
        "carry_state": source.carry_state,
        "training": dict(source.training),
        "digests": {path.name: file_digest(path) for path in layout.digested()},
    }


def _write_golden(path: Path, source: BundleSource) -> None:
    """Write the texts, tokens and all layers of the sentences as `embed` does, and the tolerance as an attribute.

    If the segmenter is unknown, each character is a token.
    """
    preparation, reader = source.build_preparation(), source.weights.reader
    lexicon = build_lexicon(source.weights.shape, source.vocabulary, source.alphabet)
    with create_hdf5(path) as file:
        file.attrs["tolerance"] = GOLDEN_TOLERANCE
        for line, text in enumerate(GOLDEN_TEXTS):
            tokens = preparation.tokens(text) if preparation else list(text)
            words, numbered = source.weights.number_words(lexicon, [np.array(lexicon.encode(tokens), np.int64)])
            file.create_dataset(str(line), data=reader.read(words, numbered, reader.start_state(1))[0])
            file.create_dataset(f"tokens/{line}", data=tokens, dtype=h5py.string_dtype())
            file.create_dataset(f"texts/{line}", data=text, dtype=h5py.string_dtype())


@dataclass(frozen=True, kw_only=True)
class Golden:
    """The content of golden.hdf5: raw sentences, their tokens, and their vectors, each of shape (L + 1, n, 2P)."""

    texts: list[str]
    sentences: list[list[str]]
    vectors: list[NDArray[np.float32]]


def load_golden(path: Path) -> Golden:
    """Load golden.hdf5; raise BundleError if it is damaged, or has more text than a bundle needs."""
    file = ForeignFile(path)
    try:
        names = sorted((name.removeprefix("tokens/") for name in file.strings if name.startswith("tokens/")), key=int)
        texts = [file.strings[f"texts/{name}"][0] for name in names]
        sentences = [file.strings[f"tokens/{name}"] for name in names]
        shapes = {name: file.shapes[name] for name in names}
        if not all(sentences) or not 0 < len("".join(chain(texts, *sentences))) <= _MOST_CHARACTERS:
            raise ValueError("sentences are missing or too long")
    except (LookupError, ValueError) as error:
        message = _("{path} is damaged ({error}). Export or copy the bundle again.")
        raise BundleError(message.format(path=path, error=error)) from None
    vectors = [file.read_array(name, shape) for name, shape in shapes.items()]
    return Golden(texts=texts, sentences=sentences, vectors=vectors)
