"""Read and write weights.hdf5 through one table of names."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.create import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.shape import BiLMShape, CharacterShape
from elmo_zh.reader.weights import ModelWeights


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One dataset, and the parameters stacked in it row by row; `direction` is None if they serve both."""

    dataset: str
    shape: tuple[int, ...]
    parameters: tuple[str, ...]
    direction: int | None = None


def weight_table(shape: BiLMShape, *, has_softmax: bool) -> list[Entry]:
    """Return every dataset of a biLM and of its softmax, if it has one.

    The forget gate's added 1 is in neither the file nor our parameters: every reader adds it. There is no W_P_0 if
    the projection is as wide as the cell, and no CNN_proj if it is as wide as all filters together. `word_embed` is
    ours, for models of ELMoForManyLangs.
    """
    V, P = shape.num_tokens, shape.projection_dim
    table = _lstm_table(shape)
    if shape.characters is None:
        table.append(Entry(dataset="embedding", shape=(V, P), parameters=("bilm.token_table.weight",)))
    else:
        table += _character_table(shape.characters, shape)
    if has_softmax:
        table.append(Entry(dataset="softmax/W", shape=(V, P), parameters=("softmax.weight",)))
        table.append(Entry(dataset="softmax/b", shape=(V,), parameters=("softmax.bias",)))
    return table


def _lstm_table(shape: BiLMShape) -> list[Entry]:
    P, D = shape.projection_dim, shape.cell_dim
    table = []
    for direction in range(2):
        for layer in range(shape.num_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            ours = f"bilm.layers.{layer}"
            matrices = (f"{ours}.input_weight", f"{ours}.recurrent_weight")
            table.append(Entry(dataset=f"{cell}/W_0", shape=(2 * P, 4 * D), parameters=matrices, direction=direction))
            table.append(Entry(dataset=f"{cell}/B", shape=(4 * D,), parameters=(f"{ours}.bias",), direction=direction))
            if P < D:
                projection = (f"{ours}.projection",)
                table.append(Entry(dataset=f"{cell}/W_P_0", shape=(D, P), parameters=projection, direction=direction))
    return table


def _character_table(shape: CharacterShape, bilm_shape: BiLMShape) -> list[Entry]:
    N, c, P = shape.num_filters, shape.embedding_dim, bilm_shape.projection_dim
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {"char_embed": ("embedding", (shape.num_characters, c))}
    for index, (width, count) in enumerate(shape.filters):
        shapes[f"CNN/W_cnn_{index}"] = (f"kernels.{index}", (1, width, c, count))
        shapes[f"CNN/b_cnn_{index}"] = (f"kernel_biases.{index}", (count,))
    for index in range(shape.num_highways):
        for part in ("carry", "transform"):
            shapes[f"CNN_high_{index}/W_{part}"] = (f"highways.{index}.{part}_weight", (N, N))
            shapes[f"CNN_high_{index}/b_{part}"] = (f"highways.{index}.{part}_bias", (N,))
    if shape.word_dim:
        shapes["word_embed"] = ("word_embedding", (bilm_shape.num_tokens, shape.word_dim))
    if shape.has_projection(P):
        shapes["CNN_proj/W_proj"] = ("projection_weight", (shape.word_dim + N, P))
        shapes["CNN_proj/b_proj"] = ("projection_bias", (P,))
    return [
        Entry(dataset=dataset, shape=sizes, parameters=(f"bilm.character_cnn.{name}",))
        for dataset, (name, sizes) in shapes.items()
    ]


def published_arrays(weights: ModelWeights, dtype: str = "float32") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the name and value of each dataset in the published layout, with a dtype from `choices.WEIGHT_DTYPES`."""
    table = weight_table(weights.shape, has_softmax=weights.has_softmax)
    left_over = set(weights.arrays) - {name for entry in table for name in entry.parameters}
    if left_over:
        raise BundleError(
            _("The published layout has no place for {names}.").format(names=", ".join(sorted(left_over)))
        )
    for entry in table:
        array = np.concatenate([_part(weights.arrays[name], entry.direction) for name in entry.parameters])
        assert array.size == math.prod(entry.shape), entry
        yield entry.dataset, array.reshape(entry.shape).astype(dtype, copy=False)


def save_weights(path: Path, weights: ModelWeights, dtype: str = "float32") -> None:
    """Write weights.hdf5 in the published layout; in float16, a tied softmax is another name for the token table."""
    with create_hdf5(path) as file:
        for name, array in published_arrays(weights, dtype):
            if dtype == "float16" and name == "softmax/W" and weights.is_tied:
                file[name] = file["embedding"]
            else:
                file.create_dataset(name, data=array)


def num_parameters(shape: BiLMShape, *, has_softmax: bool = False) -> int:
    """Return how many numbers the published layout holds, counting a tied softmax separately from the token table."""
    return sum(math.prod(entry.shape) for entry in weight_table(shape, has_softmax=has_softmax))


def count_parameters(weights: ModelWeights) -> int:
    """Return the number of parameters of a model; numbers that a tied softmax shares are counted once."""
    shared = weights.arrays["softmax.weight"].size if weights.is_tied else 0
    return num_parameters(weights.shape, has_softmax=weights.has_softmax) - shared


def rounded_to_float16(weights: ModelWeights) -> ModelWeights:
    """Return a model with all weights rounded to float16; they remain float32 arrays."""
    arrays = {}
    for name, array in weights.arrays.items():
        with np.errstate(over="ignore"):
            arrays[name] = array.astype(np.float16).astype(np.float32)
        if not np.isfinite(arrays[name]).all():
            message = _("{name} contains numbers that float16 cannot represent. Use --dtype float32.")
            raise BundleError(message.format(name=name))
    return replace(weights, arrays=arrays)


def _part(array: NDArray[Any], direction: int | None) -> NDArray[Any]:
    return array if direction is None else array[direction]


def load_model(
    path: Path, shape: BiLMShape, token_embeddings: Path | None = None, *, with_softmax: bool = True
) -> ModelWeights:
    """Read a weights file; `token_embeddings` is the file with `embedding` if that is a separate file."""
    file = ForeignFile.open(path)
    has_softmax = with_softmax and file.has_group("softmax")
    table = weight_table(shape, has_softmax=has_softmax)
    sources = dict.fromkeys((entry.dataset for entry in table), file)
    if token_embeddings is not None:
        sources["embedding"] = ForeignFile.open(token_embeddings)
    _refuse_unknown_datasets(file, sources)
    shapes: dict[ForeignFile, dict[str, tuple[int, ...]]] = {}
    for entry in table:
        shapes.setdefault(sources[entry.dataset], {})[entry.dataset] = entry.shape
    for source, datasets in shapes.items():
        source.check_arrays(datasets)
    arrays = {
        name: np.empty(sizes, np.float32) for name, sizes in parameter_shapes(shape, has_softmax=has_softmax).items()
    }
    entries = {entry.dataset: entry for entry in table}
    for source, datasets in shapes.items():
        for name, array in source.read_arrays(datasets):
            _fill(arrays, entries[name], array)
    return ModelWeights(shape=shape, arrays=arrays)


def parameter_shapes(shape: BiLMShape, *, has_softmax: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter by name; in LSTM layers the first axis is the direction."""
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in weight_table(shape, has_softmax=has_softmax):
        rows, *others = entry.shape
        if entry.dataset.startswith("CNN/W_cnn"):
            rows, *others = others  # the file has a leading axis of 1
        for name in entry.parameters:
            sizes = (rows // len(entry.parameters), *others)
            shapes[name] = sizes if entry.direction is None else (2, *sizes)
    return shapes


def _fill(arrays: Mapping[str, Floats], entry: Entry, array: NDArray[Any]) -> None:
    for name, values in zip(entry.parameters, np.split(array, len(entry.parameters)), strict=True):
        target = _part(arrays[name], entry.direction)
        target[...] = values.reshape(target.shape)


def _refuse_unknown_datasets(file: ForeignFile, known: Iterable[str]) -> None:
    known = set(known)
    for name in sorted(file.names()):
        is_ours = name.startswith(("RNN_", "CNN")) or name in ("char_embed", "word_embed", "embedding")
        if is_ours and name not in known:
            message = _("{path}: {name} is not in the model that options.json describes. Copy both files again.")
            raise BundleError(message.format(path=file.path, name=name))
