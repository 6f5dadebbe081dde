"""warm_state.hdf5: what every sentence starts from, for a model that was trained with carried state.

Datasets `output` (L, 2, P) and `cell` (L, 2, D), float32; the second axis is the direction, forward LM first.
"""

from pathlib import Path

import torch

from elmo_zh.bundle.weights import open_hdf5, read_array
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.model.bilm import BiLM


def save_warm_state(path: Path, bilm: BiLM) -> None:
    """Write the warm state of a biLM that has one."""
    assert bilm.warm_output is not None
    assert bilm.warm_cell is not None
    with create_hdf5(path) as file:
        file.create_dataset("output", data=bilm.warm_output[:, :, 0].cpu().numpy())
        file.create_dataset("cell", data=bilm.warm_cell[:, :, 0].cpu().numpy())


def load_warm_state(path: Path, bilm: BiLM) -> None:
    """Give a biLM the warm state of a file.

    Raises:
        BundleError: If the file is damaged or of another model.
    """
    L, P, D = bilm.shape.num_layers, bilm.shape.projection_dim, bilm.shape.cell_dim
    with open_hdf5(path) as file:
        output, cell = read_array(file, path, "output", (L, 2, P)), read_array(file, path, "cell", (L, 2, D))
    bilm.set_warm_state(torch.from_numpy(output), torch.from_numpy(cell))
