"""Training ends in the same bits with one thread or two, and whichever thread has computed what."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from elmo_zh.config import Config
from elmo_zh.model.kernels import execution
from elmo_zh.model.precision import PRECISIONS
from elmo_zh.training.computation import build_trial, draw_lexicon

NUM_STEPS = 3
DEFAULTS = Config()
# Tables and matrices of more than the 32,768 numbers from which on torch shares an operation out among its threads.
CONFIG = replace(
    DEFAULTS,
    vocab=replace(DEFAULTS.vocab, size=1511),
    model=replace(DEFAULTS.model, cell_dim=127, projection_dim=67, character_filters=((1, 61), (3, 149))),
    train=replace(
        DEFAULTS.train, batch_size=13, unroll_steps=7, num_negatives=211, precision="float32", max_grad_norm=0.1
    ),
)


pytestmark = pytest.mark.usefixtures("threads_as_before")


def train(config: Config, num_threads: int) -> dict[str, Tensor]:
    """Return weights and optimiser state after a few steps, all of which clip the gradient, and the steps' figures."""
    torch.set_num_threads(num_threads)
    lexicon = draw_lexicon(config.vocab.size, config.model.num_slots)
    learner = build_trial(config, lexicon, torch.device("cpu"), PRECISIONS[config.train.precision])
    figures = []
    for step in range(NUM_STEPS):
        figures.append(learner.train_step(step, 1.0, lambda loss: loss))
        assert torch.get_num_threads() == num_threads
        assert figures[-1][1] > config.train.max_grad_norm
    tensors = {**learner.model.named_tensors(), **learner.tensors(), "figures": torch.tensor(figures).double()}
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(CONFIG, train=replace(CONFIG.train, softmax="full", optimizer="adagrad")),
        replace(CONFIG, train=replace(CONFIG.train, precision="bfloat16")),
        replace(CONFIG, model=replace(CONFIG.model, mode="character")),
    ],
    ids=["token", "full softmax, Adagrad", "bfloat16", "character"],
)
def test_threads_change_no_bit(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = train(config, 1), train(config, 2)
    is_over = threading.Event()
    with ThreadPoolExecutor(1) as helper:
        # Another program has the helper's core: the first thread computes everything.
        helper.submit(is_over.wait)
        monkeypatch.setattr(execution, "_helper", helper)
        in_turn = train(config, 2)
        is_over.set()
    assert alone.keys() == together.keys() == in_turn.keys()
    for name, expected in alone.items():
        assert expected.isfinite().all(), name
        assert torch.equal(together[name], expected), name
        assert torch.equal(in_turn[name], expected), name
