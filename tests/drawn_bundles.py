"""Bundles of small models with drawn weights, in both modes, and the NumPy oracle's vectors of them."""

import json
import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from contract.command_line import changed_json
from parity.numpy_bilm import Array, load_bilm, read_array, run_bilm
from parity.numpy_character_cnn import load_character_cnn, sentence_vectors
from torch import nn

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.read import BundleContent
from elmo_zh.bundle.word2vec_table import write_table
from elmo_zh.bundle.write import write_bundle
from elmo_zh.config import TextConfig
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.language_model import weights_of
from elmo_zh.model.softmax import Softmax
from elmo_zh.reader.bilm import BiLMShape, CharacterShape
from elmo_zh.run.files import file_digest
from elmo_zh.vocabulary.spelling import SpellingModel
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, load_vocabulary

WORDS = ("我们", "今天", "吃", "苹果", "。")
P, D, L = 5, 13, 2
TOKENS = BiLMShape(
    num_tokens=len(SPECIALS) + len(WORDS),
    cell_dim=D,
    projection_dim=P,
    num_layers=L,
    cell_clip=0.5,
    projection_clip=0.3,
    skip_connections=True,
)
CHARACTERS = CharacterShape(
    num_characters=261, num_slots=50, embedding_dim=3, filters=((1, 2), (2, 17)), num_highways=1, activation="relu"
)
SHAPES = {"token": TOKENS, "character": replace(TOKENS, characters=CHARACTERS)}


def draw_source(
    shape: BiLMShape,
    *,
    warm: bool = False,
    seed: int = 3,
    words: Sequence[str] | None = WORDS,
    with_softmax: bool = False,
    **others: Any,
) -> BundleContent:
    """Draw the weights of a model with these words, or of one without a vocabulary."""
    vocabulary = Vocabulary((*SPECIALS, *words)) if words is not None else None
    bilm = BiLM(replace(shape, num_tokens=len(vocabulary)) if vocabulary else shape)
    generator = torch.Generator().manual_seed(seed)
    draw_parameters(bilm, 0.5, generator)
    if warm:
        output, cell = (
            torch.randn(shape.num_layers, 2, width, generator=generator)
            for width in (shape.projection_dim, shape.cell_dim)
        )
        bilm.set_warm_state(output.clamp(-0.3, 0.3), cell)
    softmax = Softmax(bilm.shape.num_tokens, shape.projection_dim) if with_softmax else None
    if softmax is not None:
        draw_parameters(softmax, 1.0, generator)
    given = {"carry_state": warm, "origin": {"program": "elmo-zh"}, "text": None, "spelling": SpellingModel.build({})}
    return BundleContent(
        weights=weights_of(bilm, softmax),
        vocabulary=vocabulary,
        user_dictionary=None,
        training_options={},
        training={},
        **{**given, **others},
    )


def draw_parameters(module: nn.Module, deviation: float, generator: torch.Generator) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, deviation, generator=generator)


def write_model(folder: Path, shape: BiLMShape, **drawn: Any) -> Path:
    """Write a bundle of what `draw_source` gives; `text` says how raw text becomes tokens."""
    write_bundle(folder, draw_source(shape, **drawn))
    return folder


def write_published(folder: Path, mode: str) -> Path:
    """Write a model in the published layout: options, weights and vocabulary."""
    bundle = write_model(folder.with_name(f"{folder.name} bundle"), SHAPES[mode])
    folder.mkdir()
    for name in ("options.json", "weights.hdf5", "vocab.data"):
        shutil.copyfile(bundle / name, folder / name)
    return folder


def zip_folder(folder: Path, prefix: str = "") -> Path:
    path = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{prefix}{file.name}")
    return path


def oracle_layers(bundle: Path, words: Sequence[str]) -> Array:
    """Return the NumPy oracle's layers of a sentence and its marks, shape (L + 1, n + 2, 2P)."""
    options = json.loads((bundle / "options.json").read_text(encoding="utf-8"))
    vocabulary = (bundle / "vocab.data").read_text(encoding="utf-8").splitlines()[3:]
    with h5py.File(bundle / "weights.hdf5") as file:
        bilm = load_bilm(file, options["lstm"])
        if "char_cnn" in options:
            vectors = sentence_vectors(load_character_cnn(file, options), words)
        else:
            rows = [0, *(3 + vocabulary.index(word) if word in vocabulary else 2 for word in words), 1]
            vectors = read_array(file, "embedding")[rows]
    return run_bilm(bilm, vectors)[0]


def install_model(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package that brings a model, as pip does, and return the folder of the model."""
    model = write_model(
        folder / "packaged", SHAPES["token"], text=TextConfig(), with_softmax=True, words=("我们", "时候")
    )
    described = folder / "site" / "toy_model-1.dist-info"
    described.mkdir(parents=True)
    (folder / "site" / "toy_model.py").write_text(f"MODEL = {str(model)!r}\n", encoding="utf-8")
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-model\nVersion: 1\n", encoding="utf-8")
    (described / "entry_points.txt").write_text(f"[elmo_zh.models]\n{name} = toy_model:MODEL\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder / "site")
    monkeypatch.delitem(sys.modules, "toy_model", raising=False)
    return model


def add_word2vec(folder: Path, dimension: int = 5) -> Path:
    layout = BundleLayout(folder)
    num_tokens = len(load_vocabulary(layout.vocab))
    table = np.random.default_rng(1).normal(size=(num_tokens, dimension)).astype(np.float16)
    write_table(layout.word2vec, table)
    with changed_json(layout.info) as info:
        info["digests"][layout.word2vec.name] = file_digest(layout.word2vec)
    return folder
