"""The weights file: every dataset named, there and back, and hostile files refused."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_zh.bundle.weights import load_model, named_parameters, round_to_float16, save_weights, weight_table
from elmo_zh.errors import BundleError
from elmo_zh.model.bilm import BiLMShape
from elmo_zh.model.character_cnn import CharacterShape
from elmo_zh.model.language_model import LanguageModel

V, P, D, L = 11, 3, 7, 2
SHAPE = BiLMShape(
    num_tokens=V, cell_dim=D, projection_dim=P, num_layers=L, cell_clip=3, projection_clip=3, skip_connections=True
)


# Of the characters: c their width, N filters in all.
c, N = 5, 17
CHARACTERS = CharacterShape(
    num_characters=261,
    num_slots=19,
    embedding_dim=c,
    filters=((1, 2), (3, 2), (7, 13)),
    num_highways=3,
    activation="relu",
)
CHARACTER_SHAPE = replace(SHAPE, characters=CHARACTERS)


def random_model(shape: BiLMShape = SHAPE, *, tied: bool = False, seed: int = 1) -> LanguageModel:
    model = LanguageModel.build(shape, tie_softmax=tied)
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


@pytest.mark.parametrize("shape", [SHAPE, CHARACTER_SHAPE], ids=["token", "character"])
def test_every_parameter_has_its_place_and_comes_back(tmp_path: Path, shape: BiLMShape) -> None:
    model = random_model(shape)
    save(tmp_path / "x.hdf5", model)
    tensors = named_parameters(model.bilm, model.softmax)
    named = {name for entry in weight_table(shape, has_softmax=True) for name in entry.parameters}
    assert named == set(tensors)
    other = named_parameters(*load_model(tmp_path / "x.hdf5", shape))
    for name, tensor in tensors.items():
        assert torch.equal(tensor, other[name]), name


def test_a_tied_softmax_is_written_out(tmp_path: Path) -> None:
    save(tmp_path / "tied.hdf5", random_model(tied=True))
    with h5py.File(tmp_path / "tied.hdf5") as file:
        np.testing.assert_array_equal(file["softmax/W"][()], file["embedding"][()])


def test_a_parameter_without_a_place_is_an_error(tmp_path: Path) -> None:
    model = random_model()
    model.bilm.extra = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(BundleError, match=r"The published layout has no dataset for bilm\.extra"):
        save(tmp_path / "x.hdf5", model)


def change(path: Path, name: str, **create: object) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        if create:
            file.create_dataset(name, **create)


BIAS = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"


def datasets_of(path: Path) -> dict[str, tuple[int, ...]]:
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item.shape}) if isinstance(item, h5py.Dataset) else None)
    return found


@pytest.fixture
def character_weights(tmp_path: Path) -> Path:
    path = tmp_path / "characters.hdf5"
    save(path, random_model(CHARACTER_SHAPE))
    return path


def test_datasets_of_character_mode_are_the_published_ones(weights: Path, character_weights: Path) -> None:
    expected = {name: shape for name, shape in datasets_of(weights).items() if name != "embedding"}
    expected |= {
        "char_embed": (261, 5),
        "CNN/W_cnn_0": (1, 1, 5, 2),
        "CNN/b_cnn_0": (2,),
        "CNN/W_cnn_1": (1, 3, 5, 2),
        "CNN/b_cnn_1": (2,),
        "CNN/W_cnn_2": (1, 7, 5, 13),
        "CNN/b_cnn_2": (13,),
        "CNN_proj/W_proj": (17, 3),
        "CNN_proj/b_proj": (3,),
    }
    for k in range(3):
        expected |= {f"CNN_high_{k}/W_{part}": (17, 17) for part in ("carry", "transform")}
        expected |= {f"CNN_high_{k}/b_{part}": (17,) for part in ("carry", "transform")}
    assert datasets_of(character_weights) == expected
    with h5py.File(character_weights) as file:
        assert all(file[name].dtype == np.float32 and file[name].chunks is None for name in expected)


def test_without_highways_and_projection_their_datasets_are_not_there(tmp_path: Path) -> None:
    shape = replace(
        CHARACTER_SHAPE, projection_dim=N, cell_dim=23, num_layers=1, characters=replace(CHARACTERS, num_highways=0)
    )
    save(tmp_path / "x.hdf5", random_model(shape))
    assert not [name for name in datasets_of(tmp_path / "x.hdf5") if name.startswith(("CNN_high", "CNN_proj"))]
    assert load_model(tmp_path / "x.hdf5", shape)[0].character_cnn.projection_weight is None


@pytest.mark.parametrize("shape", [SHAPE, CHARACTER_SHAPE])
def test_without_a_softmax(tmp_path: Path, shape: BiLMShape) -> None:
    model = random_model(shape)
    save_weights(tmp_path / "x.hdf5", model.bilm, None)
    assert not [name for name in datasets_of(tmp_path / "x.hdf5") if name.startswith("softmax")]
    bilm, softmax = load_model(tmp_path / "x.hdf5", shape)
    assert softmax is None
    assert torch.equal(bilm.layers[1].projection, model.bilm.layers[1].projection)


def test_token_embeddings_in_a_file_of_their_own(weights: Path, tmp_path: Path) -> None:
    """As bilm-tf has them, which writes none into its weights."""
    model = random_model(seed=2)
    with h5py.File(tmp_path / "vocab_embedding.hdf5", "w") as file:
        file["embedding"] = model.bilm.token_table.weight.detach().numpy()
    change(weights, "embedding")
    bilm, _ = load_model(weights, SHAPE, tmp_path / "vocab_embedding.hdf5")
    assert torch.equal(bilm.token_table.weight, model.bilm.token_table.weight)
    with pytest.raises(BundleError, match=r"weights\.hdf5: dataset embedding is missing"):
        load_model(weights, SHAPE)
    change(tmp_path / "vocab_embedding.hdf5", "embedding", data=np.zeros((V + 1, P), np.float32))
    with pytest.raises(BundleError, match=r"vocab_embedding\.hdf5: embedding is float32 \(12, 3\), expected"):
        load_model(weights, SHAPE, tmp_path / "vocab_embedding.hdf5")


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (SHAPE, "char_embed"),
        (SHAPE, "CNN/W_cnn_0"),
        (SHAPE, "CNN_proj/W_proj"),
        (SHAPE, "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0"),
        (SHAPE, "RNN_2/RNN/MultiRNNCell/Cell0/LSTMCell/B"),
        (CHARACTER_SHAPE, "embedding"),
        (CHARACTER_SHAPE, "CNN/b_cnn_3"),
        (CHARACTER_SHAPE, "CNN_high_3/W_carry"),
        (CHARACTER_SHAPE, "CNN_high_0/W_other"),
        (replace(SHAPE, cell_dim=P), "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"),
        (replace(CHARACTER_SHAPE, projection_dim=N, cell_dim=N), "CNN_proj/b_proj"),
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
    expected = f"{path}: {name} is not in the model that options.json describes."
    with pytest.raises(BundleError) as caught:
        load_model(path, shape)
    assert str(caught.value).startswith(expected)


def test_datasets_of_others_are_nobodys_business(weights: Path) -> None:
    with h5py.File(weights, "a") as file:
        file["optimizer/RNN_0"] = np.zeros(3, np.int64)
        file["embedding_note"] = "ours"
        file["moved"] = h5py.SoftLink("/nowhere")
        file["RNN_9"] = h5py.ExternalLink("other.hdf5", "/x")
    load_model(weights, SHAPE)


@pytest.mark.parametrize("name", ["char_embed", "CNN/b_cnn_1", "CNN_high_2/W_carry", "CNN_proj/W_proj", "softmax/b"])
def test_a_dataset_of_character_mode_is_missing(character_weights: Path, name: str) -> None:
    change(character_weights, name)
    with pytest.raises(BundleError, match=f"dataset {name} is missing"):
        load_model(character_weights, CHARACTER_SHAPE)


def test_a_group_that_is_a_dataset_or_a_dataset_that_is_a_group(weights: Path) -> None:
    with h5py.File(weights, "a") as file:
        del file["softmax"]
        file["softmax"] = np.zeros(3, np.float32)
    with pytest.raises(BundleError, match="dataset softmax/W is missing"):
        load_model(weights, SHAPE)
    with h5py.File(weights, "a") as file:
        del file["softmax"]
        del file[BIAS]
        file.create_group(BIAS)
    with pytest.raises(BundleError, match="LSTMCell/B is missing"):
        load_model(weights, SHAPE)


def test_numbers_beyond_float32_are_refused_like_infinite_ones(weights: Path) -> None:
    """And without a warning of NumPy's, which would be an error here."""
    change(weights, BIAS, data=np.full(4 * D, 1e300))
    with pytest.raises(BundleError, match="not finite"):
        load_model(weights, SHAPE)


@pytest.mark.parametrize("kind", ["<f2", ">f4", "<f8"])
def test_other_floats_are_read_as_their_values(weights: Path, kind: str) -> None:
    values = np.arange(4 * D) / 8
    change(weights, BIAS, data=values.astype(kind))
    np.testing.assert_array_equal(load_model(weights, SHAPE)[0].layers[0].bias[0].detach().numpy(), values)


def test_compressed_datasets_are_read(weights: Path) -> None:
    values = np.random.default_rng(1).normal(size=4 * D).astype(np.float32)
    change(weights, BIAS, data=values, compression="gzip", shuffle=True)
    np.testing.assert_array_equal(load_model(weights, SHAPE)[0].layers[0].bias[0].detach().numpy(), values)


def test_a_compressed_dataset_with_damaged_content_is_refused(weights: Path) -> None:
    change(weights, BIAS, shape=(4 * D,), dtype="f4", chunks=(4 * D,), compression="gzip")
    with h5py.File(weights, "a") as file:
        file[BIAS].id.write_direct_chunk((0,), b"no deflated data" * 2)
    with pytest.raises(BundleError, match="cannot be read"):
        load_model(weights, SHAPE)


def test_float16_holds_every_weight_rounded_and_a_shared_table_once(tmp_path: Path) -> None:
    model, path = random_model(tied=True), tmp_path / "weights.hdf5"
    save_weights(path, model.bilm, model.softmax, "float16")
    with h5py.File(path) as file:
        assert file["softmax/W"] == file["embedding"]
        assert file["embedding"].dtype == np.float16
        stored = file["RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"][()]
    projection = model.bilm.layers[1].projection[0].detach().numpy()
    np.testing.assert_array_equal(stored, projection.astype(np.float16))
    bilm, softmax = load_model(path, SHAPE)
    round_to_float16(model.bilm, model.softmax)
    found = named_parameters(bilm, softmax)
    for name, expected in named_parameters(model.bilm, model.softmax).items():
        torch.testing.assert_close(found[name], expected, rtol=0, atol=0)


def test_float16_keeps_a_softmax_of_its_own_apart(tmp_path: Path) -> None:
    model, path = random_model(tied=False), tmp_path / "weights.hdf5"
    save_weights(path, model.bilm, model.softmax, "float16")
    with h5py.File(path) as file:
        assert file["softmax/W"] != file["embedding"]
        np.testing.assert_array_equal(file["softmax/W"][()], model.softmax.weight.detach().numpy().astype(np.float16))


def test_a_weight_beyond_float16_is_refused() -> None:
    model = random_model()
    with torch.no_grad():
        model.softmax.bias[3] = 70_000.0
    with pytest.raises(BundleError, match=r"softmax\.bias .* above 65,504"):
        round_to_float16(model.bilm, model.softmax)
