"""The weights file: every dataset named, there and back, and hostile files refused."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from drawn_bundles import CHARACTERS, SHAPES, TOKENS, D, P

from elmo_zh.bundle.weights import (
    load_model,
    parameter_shapes,
    rounded_to_float16,
    save_weights,
    weight_table,
)
from elmo_zh.errors import BundleError
from elmo_zh.model.language_model import LanguageModel, build_modules, weights_of
from elmo_zh.reader.bilm import BiLMShape

N = sum(number for _, number in CHARACTERS.filters)


def random_model(shape: BiLMShape = TOKENS, *, tied: bool = False, seed: int = 1) -> LanguageModel:
    model = LanguageModel.build(shape, tie_softmax=tied)
    generator = torch.Generator().manual_seed(seed)
    for tensor in model.named_tensors().values():
        tensor.normal_(generator=generator)
    return model


def save(path: Path, model: LanguageModel) -> None:
    save_weights(path, weights_of(model.bilm, model.softmax))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.hdf5"
    save(path, random_model())
    return path


@pytest.mark.parametrize("shape", [TOKENS, SHAPES["character"]], ids=["token", "character"])
def test_every_parameter_has_its_place_and_comes_back(tmp_path: Path, shape: BiLMShape) -> None:
    model = random_model(shape)
    save(tmp_path / "x.hdf5", model)
    arrays = weights_of(model.bilm, model.softmax).arrays
    named = {name for entry in weight_table(shape, has_softmax=True) for name in entry.parameters}
    assert named == set(arrays)
    assert parameter_shapes(shape, has_softmax=True) == {name: array.shape for name, array in arrays.items()}
    loaded = load_model(tmp_path / "x.hdf5", shape)
    for other in (loaded, weights_of(*build_modules(loaded))):
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)


def change(path: Path, name: str, **create: object) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        if create:
            file.create_dataset(name, **create)


BIAS = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"


def test_without_highways_and_projection_their_datasets_are_not_there(tmp_path: Path) -> None:
    shape = replace(
        SHAPES["character"], projection_dim=N, cell_dim=23, num_layers=1, characters=replace(CHARACTERS, num_highways=0)
    )
    save(tmp_path / "x.hdf5", random_model(shape))
    with h5py.File(tmp_path / "x.hdf5") as file:
        assert not {"CNN_high_0", "CNN_proj"} & set(file)
    assert "bilm.character_cnn.projection_weight" not in load_model(tmp_path / "x.hdf5", shape).arrays


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (TOKENS, "char_embed"),
        (TOKENS, "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0"),
        (TOKENS, "RNN_2/RNN/MultiRNNCell/Cell0/LSTMCell/B"),
        (SHAPES["character"], "embedding"),
        (SHAPES["character"], "CNN_high_1/W_carry"),
        (replace(TOKENS, cell_dim=P), "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"),
        (replace(SHAPES["character"], projection_dim=N, cell_dim=N), "CNN_proj/b_proj"),
    ],
)
def test_parts_of_a_bilm_that_the_options_do_not_speak_of_are_refused(
    tmp_path: Path, shape: BiLMShape, name: str
) -> None:
    path = tmp_path / "x.hdf5"
    save(path, random_model(shape))
    load_model(path, shape)
    with h5py.File(path, "a") as file:
        file[name] = np.zeros((2, 3), np.float32)
    expected = f"{path} is damaged ({name} is not in the model that options.json describes)."
    with pytest.raises(BundleError) as caught:
        load_model(path, shape)
    assert str(caught.value).startswith(expected)


def test_a_compressed_dataset_with_damaged_content_is_refused(weights: Path) -> None:
    change(weights, BIAS, shape=(4 * D,), dtype="f4", chunks=(4 * D,), compression="gzip")
    with h5py.File(weights, "a") as file:
        file[BIAS].id.write_direct_chunk((0,), b"no deflated data" * 2)
    with pytest.raises(BundleError, match="is damaged"):
        load_model(weights, TOKENS)


@pytest.mark.parametrize("tied", [True, False])
def test_float16_holds_every_weight_rounded_and_a_shared_table_once(tmp_path: Path, tied: bool) -> None:
    model, path = random_model(tied=tied), tmp_path / "weights.hdf5"
    weights = weights_of(model.bilm, model.softmax)
    save_weights(path, weights, "float16")
    with h5py.File(path) as file:
        assert (file["softmax/W"] == file["embedding"]) is tied
        assert file["embedding"].dtype == np.float16
        stored = file["RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"][()]
    projection = model.bilm.layers[1].projection[0].detach().numpy()
    np.testing.assert_array_equal(stored, projection.astype(np.float16))
    loaded = load_model(path, TOKENS)
    for name, expected in rounded_to_float16(weights).arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], expected)


def test_a_weight_beyond_float16_is_refused() -> None:
    model = random_model()
    with torch.no_grad():
        model.softmax.bias[3] = 70_000.0
    with pytest.raises(BundleError, match=r"softmax\.bias .*--dtype float32"):
        rounded_to_float16(weights_of(model.bilm, model.softmax))
