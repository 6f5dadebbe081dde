"""An independent NumPy forward pass of the biLM: token vectors to layer activations.

Written from the text of the file formats, like everything in the oracle. Plain loops in float64: one sentence, one
step at a time, no batches, no padding.

Shape letters: T steps, P projection, D cell, H recurrent size (P, or D without a projection), L layers.
"""

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LstmState = tuple[Array, Array]  # (c, h), shapes (D,) and (H,)
BilmState = list[list[LstmState]]  # [direction][layer], direction 0 forward LM, 1 backward LM


@dataclass(frozen=True)
class LstmLayer:
    """One layer of one direction as stored: gate columns i, j, f, o, the forget gate's +1 not in the bias."""

    weight: Array  # W_0, (input + H, 4D)
    bias: Array  # B, (4D,)
    projection: Array | None  # W_P_0, (D, P)


@dataclass(frozen=True)
class Bilm:
    directions: tuple[list[LstmLayer], list[LstmLayer]]
    cell_clip: float | None
    proj_clip: float | None
    use_skip_connections: bool


def load_bilm(weights: h5py.File, lstm_options: dict[str, Any]) -> Bilm:
    """Read both directions' LSTM layers from an open weights file (token or character mode alike)."""
    has_projection = lstm_options["projection_dim"] < lstm_options["dim"]
    directions: tuple[list[LstmLayer], list[LstmLayer]] = ([], [])
    for d, layers in enumerate(directions):
        for i in range(lstm_options["n_layers"]):
            cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            projection = read_array(weights, f"{cell}/W_P_0") if has_projection else None
            layers.append(LstmLayer(read_array(weights, f"{cell}/W_0"), read_array(weights, f"{cell}/B"), projection))
    return Bilm(directions, lstm_options["cell_clip"], lstm_options["proj_clip"], lstm_options["use_skip_connections"])


def read_array(weights: h5py.File, name: str) -> Array:
    return np.asarray(weights[name][()], dtype=np.float64)


def sigmoid(x: Array) -> Array:
    """Return the logistic function without overflow at either end."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def clip(x: Array, limit: float | None) -> Array:
    """Clip to +-limit; None is no clipping."""
    return x if limit is None else np.clip(x, -limit, limit)


def step(bilm: Bilm, layer: LstmLayer, x: Array, state: LstmState) -> LstmState:
    """Return the state after one more input x, shape (input,)."""
    c, h = state
    z = np.concatenate([x, h]) @ layer.weight + layer.bias
    i, j, f, o = np.split(z, 4)
    c = clip(sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j), bilm.cell_clip)
    h = sigmoid(o) * np.tanh(c)
    if layer.projection is not None:
        h = clip(h @ layer.projection, bilm.proj_clip)
    return c, h


def zero_state(layer: LstmLayer) -> LstmState:
    """Return (c, h) of zeros; without a projection h is as wide as the cell."""
    cell_dim = layer.bias.shape[0] // 4
    recurrent_dim = cell_dim if layer.projection is None else layer.projection.shape[1]
    return np.zeros(cell_dim), np.zeros(recurrent_dim)


def run_layer(bilm: Bilm, layer: LstmLayer, inputs: Array, state: LstmState) -> tuple[Array, LstmState]:
    """Return the outputs, shape (T, H), for inputs of shape (T, input), and the last state."""
    outputs = []
    for x in inputs:
        state = step(bilm, layer, x, state)
        outputs.append(state[1])
    return np.stack(outputs), state


def run_bilm(bilm: Bilm, token_vectors: Array, state: BilmState | None = None) -> tuple[Array, BilmState]:
    """Run both language models over one sentence, `<S>` and `</S>` included, from token vectors (T, P) in its order.

    The layer activations come in sentence order, (L + 1, T, 2P), the token layer twice over first, forward LM first in
    the last axis; then each direction's state after its last step, from which another call may start.
    """
    halves = []
    final_state: BilmState = []
    for d, layers in enumerate(bilm.directions):
        order = slice(None) if d == 0 else slice(None, None, -1)
        activations = [token_vectors]
        final_state.append([])
        for i, layer in enumerate(layers):
            inputs = activations[-1][order]
            start = zero_state(layer) if state is None else state[d][i]
            outputs, last = run_layer(bilm, layer, inputs, start)
            # The skip is added outside the recurrence: the carried h stays without it.
            if bilm.use_skip_connections and i > 0:
                outputs = outputs + inputs
            activations.append(outputs[order])
            final_state[d].append(last)
        halves.append(np.stack(activations))  # (L + 1, T, P)
    return np.concatenate(halves, axis=2), final_state
