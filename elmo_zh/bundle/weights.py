"""weights.hdf5: one table of names, used in both directions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.errors import BundleError
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.model.bilm import BiLMShape


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One dataset and the parameters that it is made of.

    Attributes:
        dataset: Its name in the file.
        shape: Its shape.
        parameters: Names of the parameters whose values stand in it, one below the other.
        direction: Which of the parameters' two directions, or None for those that both share.
    """

    dataset: str
    shape: tuple[int, ...]
    parameters: tuple[str, ...]
    direction: int | None = None


def weight_table(shape: BiLMShape) -> list[Entry]:
    """Return every dataset of a token-mode biLM with its softmax.

    The forget gate's 1 is in neither the file nor our parameters: every reader adds it. There is no W_P_0 where
    the projection is as wide as the cell.
    """
    V, P, D = shape.num_tokens, shape.projection_dim, shape.cell_dim
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
    table.append(Entry(dataset="embedding", shape=(V, P), parameters=("bilm.token_table.weight",)))
    table.append(Entry(dataset="softmax/W", shape=(V, P), parameters=("softmax.weight",)))
    table.append(Entry(dataset="softmax/b", shape=(V,), parameters=("softmax.bias",)))
    return table


def save_weights(path: Path, shape: BiLMShape, tensors: Mapping[str, Tensor]) -> None:
    """Write weights.hdf5 in the published layout: float32, contiguous.

    Args:
        path: The file.
        shape: The biLM's shape.
        tensors: All parameters by name; a tied softmax.weight is written from the token table.

    Raises:
        BundleError: If a parameter has no place in the file.
    """
    values = {"softmax.weight": tensors["bilm.token_table.weight"], **tensors}
    table = weight_table(shape)
    left_over = set(values) - {name for entry in table for name in entry.parameters}
    if left_over:
        raise BundleError(f"{path}: no dataset is known for {', '.join(sorted(left_over))}.")
    with create_hdf5(path) as file:
        for entry in table:
            parts = [_part(values[name], entry.direction) for name in entry.parameters]
            array = torch.cat(parts).float().cpu().numpy()
            assert array.shape == entry.shape, entry
            file.create_dataset(entry.dataset, data=array)


def _part(tensor: Tensor, direction: int | None) -> Tensor:
    return tensor if direction is None else tensor[direction]


def load_weights(path: Path, shape: BiLMShape, targets: Mapping[str, Tensor]) -> None:
    """Read weights.hdf5 into parameters.

    Args:
        path: The file.
        shape: The biLM's shape, from options.json and the vocabulary.
        targets: All parameters by name, overwritten in place.

    Raises:
        BundleError: If a dataset is missing, of another shape, no plain float array, or holds no finite numbers;
            if the file has more LSTM cells than the options say.
    """
    table = weight_table(shape)
    with open_hdf5(path) as file:
        _refuse_unknown_cells(file, path, {entry.dataset for entry in table})
        for entry in table:
            array = read_array(file, path, entry.dataset, entry.shape)
            if not np.isfinite(array).all():
                raise BundleError(f"{path}: {entry.dataset} holds numbers that are not finite.")
            start = 0
            for name in entry.parameters:
                target = _part(targets[name], entry.direction)
                with torch.no_grad():
                    target.copy_(torch.from_numpy(array[start : start + len(target)]))
                start += len(target)


def _refuse_unknown_cells(file: Any, path: Path, known: set[str]) -> None:
    found: list[str] = []
    # visit() follows hard links only, so nothing outside the file is touched.
    file.visit(found.append)
    for name in found:
        if name.startswith("RNN_") and name.rsplit("/", 1)[-1] in ("W_0", "B", "W_P_0") and name not in known:
            raise BundleError(f"{path}: {name} is not in the model that options.json describes.")


def open_hdf5(path: Path) -> Any:
    """Open an HDF5 file for reading, with BundleError for one that is missing, cut off or none."""
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise BundleError(f"{path} cannot be read as HDF5 ({error}). Copy or export it again.") from None


def read_array(file: Any, path: Path, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Read a dataset whose data really is in the file; memory is taken only for what is stored.

    Raises:
        BundleError: If it is missing, of another shape or kind, or stored outside the file.
    """
    if not isinstance(file.get(name, getlink=True), h5py.HardLink) or not isinstance(file[name], h5py.Dataset):
        raise BundleError(f"{path}: dataset {name} is missing.")
    dataset = file[name]
    if dataset.shape != shape or dataset.dtype.kind != "f":
        raise BundleError(f"{path}: {name} is {dataset.dtype} {dataset.shape}, expected float32 {shape}.")
    stored = dataset.id.get_storage_size()
    if dataset.external or dataset.is_virtual or (stored < dataset.nbytes and dataset.compression is None):
        raise BundleError(f"{path}: {name} has {stored} of {dataset.nbytes} bytes in this file.")
    return np.asarray(dataset[()], np.float32)
