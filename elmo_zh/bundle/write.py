"""Write a bundle, or the files of a model in the layout of another program."""

from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from shutil import copyfile
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BUNDLE_FORMAT, BundleForm, BundleLayout
from elmo_zh.bundle.read import OWN_PROGRAM, UNKNOWN_HISTORY, Bundle, BundleContent
from elmo_zh.bundle.weights import (
    published_arrays,
    rounded_to_float16,
    save_tensors,
    save_warm_state,
    save_weights,
)
from elmo_zh.bundle.word2vec_table import read_table, shorten, write_table
from elmo_zh.config import preparation_settings
from elmo_zh.errors import BundleError
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import file_digest, write_json
from elmo_zh.text.segmenters import describe_segmenter
from elmo_zh.version import __version__
from elmo_zh.vocabulary.lexicon import BYTES

# Our own sentences: a plain one; one with punctuation, digits and Latin letters; one with a word never seen.
GOLDEN_TEXTS = ("今天天气很好，我们去公园散步。", "他用iPhone打了3个电话：“喂，是我！”", "你好，齉龘世界。")
# How far vectors may be from the stored ones, and far more text than the three sentences have.
GOLDEN_TOLERANCE, _MOST_CHARACTERS = 1e-5, 10_000
# Text settings that do not affect how a sentence becomes tokens; the dictionary is a file of the bundle.
NOT_IN_BUNDLE = ("user_dictionary", "heldout_share", "heldout_min_sentences", "heldout_max_tokens")


def with_word2vec(bundle: Bundle) -> Bundle:
    """Return a loaded bundle together with its word2vec vectors, if it has any, so that it can be written again."""
    path, vocabulary = BundleLayout(bundle.path).word2vec, bundle.vocabulary
    if vocabulary is None or not path.exists():
        return bundle
    return replace(bundle, word2vec=read_table(path, len(vocabulary)))


def write_model(folder: Path, content: BundleContent, form: BundleForm) -> None:
    """Write a model into a new folder; raise BundleError if it cannot be written in the given form."""
    if form.dtype == "float16":
        content = replace(content, weights=rounded_to_float16(content.weights))
    if form.layout != "bundle":
        _write_plain(folder, content, form)
    else:
        write_bundle(folder, content, form.dtype)


def _write_plain(folder: Path, content: BundleContent, form: BundleForm) -> None:
    """Write weights, options and any vocabulary: with simple_elmo's file names, or with the weights as safetensors."""
    characters = content.shape.characters
    if form.layout == "simple_elmo" and characters is None:
        raise BundleError.needs("--layout simple_elmo", "model.mode = character")
    if characters is not None and not characters.is_published:
        raise BundleError.needs("ELMoForManyLangs", "--layout bundle")
    folder.mkdir(parents=True)
    write_json(folder / "options.json", content.options())
    if content.vocabulary is not None:
        content.vocabulary.save(folder / "vocab.txt")
    if form.layout == "simple_elmo":
        save_weights(folder / "model.hdf5", content.weights, form.dtype)
    else:
        import torch

        arrays = published_arrays(content.weights, form.dtype)
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays}
        save_tensors(tensors, folder / "model.safetensors")


def write_tuned(folder: Path, bundle: Bundle, weights: ModelWeights) -> None:
    """Write a bundle without softmax, for a biLM that was trained further as part of another network."""
    start = {"digest": bundle.digest, "tokens": bundle.training.get("tokens")}
    origin = {"program": OWN_PROGRAM, "started_from": {**start, "origin": bundle.origin}}
    write_bundle(folder, replace(with_word2vec(bundle), weights=weights, origin=origin))


def write_bundle(folder: Path, content: BundleContent, dtype: str = "float32") -> None:
    """Write a bundle into a new folder."""
    layout = BundleLayout(folder)
    folder.mkdir(parents=True)
    write_json(layout.options, content.options())
    save_weights(layout.weights, content.weights, dtype)
    # weights.hdf5 holds the same dataset. The copy is left out of a bundle that is meant to be small.
    if content.shape.characters is None and dtype == "float32":
        with create_hdf5(layout.vocab_embedding) as file:
            file.create_dataset("embedding", data=content.weights.token_table)
    if content.word2vec is not None:
        write_table(layout.word2vec, shorten(content.word2vec) if dtype == "float16" else content.word2vec)
    if content.weights.warm_state is not None:
        save_warm_state(layout.warm_state, content.weights.warm_state)
    if content.vocabulary is not None:
        content.vocabulary.save(layout.vocab)
    content.spelling.save(layout.character_counts)
    if content.user_dictionary is not None:
        copyfile(content.user_dictionary, layout.user_dictionary)
    if content.alphabet is not BYTES:
        write_json(layout.alphabet, asdict(content.alphabet))
    _write_golden(layout.golden, content)
    if content.history != UNKNOWN_HISTORY:
        write_json(layout.history, asdict(content.history))
    write_json(layout.info, _info(layout, content))


def _info(layout: BundleLayout, content: BundleContent) -> dict[str, Any]:
    text = content.text
    return {
        "format": BUNDLE_FORMAT,
        "elmo_zh": __version__,
        "mode": content.shape.mode,
        "origin": dict(content.origin),
        "segmenter": describe_segmenter(text, content.user_dictionary) if text else None,
        "text": preparation_settings(text, without=NOT_IN_BUNDLE) if text else None,
        "vocabulary_digest": content.vocabulary.digest() if content.vocabulary else None,
        "carry_state": content.carry_state,
        "training": dict(content.training),
        "digests": {path.name: file_digest(path) for path in layout.digested()},
    }


def _write_golden(path: Path, content: BundleContent) -> None:
    """Write `GOLDEN_TEXTS`, their tokens and all layers as `embed` computes them, and the tolerance as an attribute.

    If the segmenter is unknown, each character is a token.
    """
    preparation, reader, lexicon = content.trained_preparation(), content.weights.reader, content.build_lexicon()
    with create_hdf5(path) as file:
        file.attrs["tolerance"] = GOLDEN_TOLERANCE
        for line, text in enumerate(GOLDEN_TEXTS):
            tokens = preparation.tokens(text) if preparation else list(text)
            words, numbered = content.weights.number_words(lexicon, [np.array(lexicon.encode(tokens), np.int64)])
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
        raise BundleError.damaged(path, error) from None
    vectors = [file.read_array(name, shape) for name, shape in shapes.items()]
    return Golden(texts=texts, sentences=sentences, vectors=vectors)
