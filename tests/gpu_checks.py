"""The checks that a GPU has to pass, against a processor: `pytest -m gpu` and `benchmarks/gpu.py` run the same ones.

Checks take the device as text: cuda, or cpu to go through the code for GPUs on a processor. A process has to have
CUBLAS_WORKSPACE_CONFIG before its first product on a GPU: torch looks only once.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from small_trainings import SHAPE, SHORT, VOCABULARY, build_trainer, train_some_steps
from torch import Tensor

from elmo_zh.config import TrainConfig
from elmo_zh.embed.sentence_vectors import SentenceVectors
from elmo_zh.model.kernels import recurrence
from elmo_zh.model.language_model import LanguageModel, weights_of
from elmo_zh.model.precision import BFLOAT16, FLOAT32, Precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.model.sentence_reader import build_gpu_reader
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS

Check = Callable[[], None]
YES_OR_NO = (False, True)
STEPS, STREAMS, INPUT, CELL = 5, 3, 7, 11


@contextmanager
def on_gpu_path(device: str) -> Iterator[None]:
    """On a processor: compute both directions at once and read batches as a GPU does."""
    if device != "cpu":
        yield
        return

    with (
        patch.object(recurrence, "side_by_side", lambda run: run(slice(None))),
        patch.object(recurrence, "can_pack", lambda *_: False),
        patch.object(recurrence, "scripted", lambda function, _: function),
        patch.object(torch.Tensor, "pin_memory", lambda tensor: tensor),
    ):
        yield


@contextmanager
def settings_put_back() -> Iterator[None]:
    """Undo what training on a GPU sets in torch."""
    allow_tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = allow_tf32
        torch.use_deterministic_algorithms(False)


def train_layers(device: str, precision: Precision, with_starts: bool) -> list[Tensor]:
    """Return values, states and weights of three training steps of two layers, the state carried on."""
    generator = torch.Generator().manual_seed(3)
    layers = [ProjectedLSTM(INPUT, CELL, INPUT, 0.3, 0.4) for _ in range(2)]
    for layer in layers:
        layer.initialise(generator)
        layer.to(device)
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimizer, found = torch.optim.SGD(parameters, lr=0.1), []
    states = [layer.zero_state(STREAMS) for layer in layers]
    keep = torch.ones(STEPS, STREAMS, 1)
    keep[0, 1] = keep[2, 0] = keep[3, 1] = keep[4, 2] = 0
    for _ in range(3):
        hidden = torch.randn(2, STEPS, STREAMS, INPUT, generator=generator).to(device)
        for index, layer in enumerate(layers):
            hidden, states[index] = layer(
                hidden, states[index], keep.to(device) if with_starts else None, precision=precision
            )
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()
        found += [hidden.detach().cpu(), states[0].cell.cpu()]
    return [*found, *(parameter.detach().cpu() for parameter in parameters)]


def check_layers(device: str, precision: Precision, tolerance: float, with_starts: bool) -> None:
    with on_gpu_path(device):
        found = train_layers(device, precision, with_starts)
    for ours, theirs in zip(found, train_layers("cpu", precision, with_starts), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def check_vectors(device: str) -> None:
    """Vectors of sentences of several lengths, in several batches, are those of a processor."""
    model, lexicon = LanguageModel.build(SHAPE, tie_softmax=False), Lexicon(VOCABULARY, None)
    model.initialise(1)
    words = VOCABULARY.tokens[len(SPECIALS) :]
    sentences = [words[start : start + length] for start, length in ((0, 3), (5, 11), (2, 1), (9, 7), (1, 0), (4, 7))]

    weights = weights_of(model.bilm, model.softmax)
    expected = SentenceVectors(weights, lexicon, batch_tokens=23, unknown="unk").read(sentences)
    with on_gpu_path(device):
        read_batch = build_gpu_reader(model.bilm, FLOAT32, torch.device(device))
        vectors = SentenceVectors(weights, lexicon, batch_tokens=23, unknown="unk", read_batch=read_batch)
        for ours, theirs in zip(vectors.read(sentences), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def check_training(device: str, config: TrainConfig) -> None:
    """The losses are those of a processor; without dropout, because each device draws its own masks."""
    config = replace(config, dropout=0.0)
    with tempfile.TemporaryDirectory() as folder, settings_put_back():
        expected, _ = train_some_steps(Path(folder) / "expected", torch.device("cpu"), config)
        with on_gpu_path(device):
            found, _ = train_some_steps(Path(folder) / "found", torch.device(device), config)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def check_same_bytes(device: str, config: TrainConfig) -> None:
    """Deterministic training gives the same losses and weights twice."""
    with tempfile.TemporaryDirectory() as folder, settings_put_back(), on_gpu_path(device):
        first, second = (train_some_steps(Path(folder) / name, torch.device(device), config) for name in "ab")
    assert first[0] == second[0]
    assert all(torch.equal(value, second[1][name]) for name, value in first[1].items())


def check_resuming(device: str) -> None:
    """A training that stops in the middle and resumes ends with the bytes of one that does not."""
    config = replace(SHORT, checkpoint_every_tokens=SHORT.max_tokens // 2, keep_checkpoints=9)
    model = LanguageModel.build(SHAPE, tie_softmax=False)
    with tempfile.TemporaryDirectory() as folder, settings_put_back(), on_gpu_path(device):
        _, expected = train_some_steps(Path(folder), torch.device(device), config)
        trainer = build_trainer(model, Path(folder), torch.device(device), config)
        for step in trainer.checkpoints.steps()[1:]:
            shutil.rmtree(trainer.checkpoints.folder(step))
        assert trainer.resume()
        trainer.train()
    assert all(torch.equal(value.cpu(), expected[name]) for name, value in model.named_tensors().items())


# Each goes another way through the code: tables with sparse gradients, all words scored, the published optimiser.
TRAININGS: dict[str, TrainConfig] = {
    "default": SHORT,
    "full softmax": replace(SHORT, softmax="full"),
    "carried state": replace(SHORT, carry_state=True),
    "Adagrad": replace(SHORT, optimizer="adagrad", learning_rate=0.2),
}


def checks(device: str) -> dict[str, Check]:
    found: dict[str, Check] = {"vectors": partial(check_vectors, device), "resuming": partial(check_resuming, device)}
    for (precision, tolerance), with_starts in itertools.product(((FLOAT32, 1e-5), (BFLOAT16, 0.05)), YES_OR_NO):
        name = f"layers, {precision.name}, sentences start: {with_starts}"
        found[name] = partial(check_layers, device, precision, tolerance, with_starts)
    for name, config in TRAININGS.items():
        found[f"training, {name}"] = partial(check_training, device, config)
    for name, softmax in itertools.product(("float32", "bfloat16"), ("sampled", "full")):
        config = replace(SHORT, precision=name, softmax=softmax)
        found[f"same bytes, {name}, {softmax}"] = partial(check_same_bytes, device, config)
    return found
