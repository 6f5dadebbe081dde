"""The weights file: every dataset named, there and back, and hostile files refused."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_zh.bundle.weights import load_model, named_parameters, save_weights, weight_table
from elmo_zh.errors import BundleError
from elmo_zh.model.bilm import BiLMShape
from elmo_zh.model.language_model import LanguageModel

V, P, D, L = 11, 3, 7, 2
SHAPE = BiLMShape(
    num_tokens=V, cell_dim=D, projection_dim=P, num_layers=L, cell_clip=3, projection_clip=3, skip_connections=True
)


def random_model(*, tied: bool = False, seed: int = 1) -> LanguageModel:
    model = LanguageModel.build(SHAPE, tie_softmax=tied)
    generator = torch.Generator().manual_seed(seed)
    for tensor in model.named_tensors().values():
        tensor.normal_(generator=generator)
    return model


def save(path: Path, model: LanguageModel) -> None:
    save_weights(path, model.bilm, model.softmax)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.hdf5"
    save(path, random_model())
    return path


def test_datasets_are_the_published_ones(weights: Path) -> None:
    expected = {"embedding": (V, P), "softmax/W": (V, P), "softmax/b": (V,)}
    for d in range(2):
        for i in range(L):
            cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            expected |= {f"{cell}/W_0": (2 * P, 4 * D), f"{cell}/B": (4 * D,), f"{cell}/W_P_0": (D, P)}
    found = {}
    with h5py.File(weights) as file:
        file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
        assert {name: item.shape for name, item in found.items()} == expected
        assert all(item.dtype == np.float32 and item.chunks is None for item in found.values())


def test_input_rows_come_before_recurrent_rows(weights: Path) -> None:
    layer = random_model().bilm.layers[1]
    with h5py.File(weights) as file:
        w_0 = file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0"][()]
    np.testing.assert_array_equal(w_0[:P], layer.input_weight[1].detach().numpy())
    np.testing.assert_array_equal(w_0[P:], layer.recurrent_weight[1].detach().numpy())


def test_every_parameter_has_its_place_and_comes_back(weights: Path) -> None:
    model = random_model()
    tensors = named_parameters(model.bilm, model.softmax)
    named = {name for entry in weight_table(SHAPE, has_softmax=True) for name in entry.parameters}
    assert named == set(tensors)
    other = named_parameters(*load_model(weights, SHAPE))
    for name, tensor in tensors.items():
        assert torch.equal(tensor, other[name]), name


def test_a_tied_softmax_is_written_out(tmp_path: Path) -> None:
    save(tmp_path / "tied.hdf5", random_model(tied=True))
    with h5py.File(tmp_path / "tied.hdf5") as file:
        np.testing.assert_array_equal(file["softmax/W"][()], file["embedding"][()])


def test_a_parameter_without_a_place_is_an_error(tmp_path: Path) -> None:
    model = random_model()
    model.bilm.extra = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(BundleError, match=r"No dataset is known for bilm\.extra"):
        save(tmp_path / "x.hdf5", model)


def change(path: Path, name: str, **create: object) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        if create:
            file.create_dataset(name, **create)


BIAS = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"


@pytest.mark.parametrize(
    ("create", "message"),
    [
        ({}, "is missing"),
        ({"data": np.zeros(3, np.float32)}, r"is float32 \(3,\), expected float32 \(28,\)"),
        ({"data": np.zeros(4 * D, np.int64)}, "is int64"),
        ({"data": np.full(4 * D, np.nan, np.float32)}, "not finite"),
        ({"shape": (4 * D,), "dtype": "f4", "chunks": (4,)}, "has 0 of 112 bytes in this file"),
        ({"shape": (4 * D,), "dtype": "f4", "external": [("elsewhere.bin", 0, 112)]}, "in this file"),
    ],
)
def test_unsound_datasets_are_refused(weights: Path, create: dict[str, object], message: str) -> None:
    change(weights, BIAS, **create)
    with pytest.raises(BundleError, match=message):
        load_model(weights, SHAPE)


def test_links_out_of_the_file_are_refused(weights: Path) -> None:
    with h5py.File(weights, "a") as file:
        del file[BIAS]
        file[BIAS] = h5py.ExternalLink("other.hdf5", "/x")
    with pytest.raises(BundleError, match="is missing"):
        load_model(weights, SHAPE)


def test_more_cells_than_the_options_say_are_refused(weights: Path) -> None:
    with h5py.File(weights, "a") as file:
        file.create_dataset("RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B", data=np.zeros(4 * D, np.float32))
    with pytest.raises(BundleError, match="Cell2/LSTMCell/B is not in the model"):
        load_model(weights, SHAPE)


def test_a_file_cut_off_is_refused(weights: Path) -> None:
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(BundleError, match="cannot be read as HDF5"):
        load_model(weights, SHAPE)
