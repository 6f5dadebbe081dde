"""Learning-rate schedule, optimiser steps and gradient clipping against formulas written out in NumPy."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_trainings import SHAPE
from torch import Tensor, nn

from elmo_zh.config import TrainConfig
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.training.optimizer import Optimizers, Schedule, choose_dropout, clip_gradients, step_tokens

ROWS, PROJECTION, CELL = 13, 5, 7
CONFIG = TrainConfig(
    batch_size=7,
    unroll_steps=11,
    learning_rate=0.03,
    table_learning_rate=0.2,
    adagrad_accumulator=0.5,
    weight_decay=0.1,
)


def build_model(seed: int = 3, *, tied: bool = False) -> LanguageModel:
    shape = replace(SHAPE, num_tokens=ROWS, cell_dim=CELL, projection_dim=PROJECTION)
    model = LanguageModel.build(shape, tie_softmax=tied)
    model.initialise(seed)
    return model


def build_optimizers(model: LanguageModel, config: TrainConfig = CONFIG) -> Optimizers:
    return Optimizers(config, model.bilm, model.softmax)


def parameters_of(model: LanguageModel) -> dict[str, nn.Parameter]:
    named = [*model.bilm.named_parameters(prefix="bilm"), *model.softmax.named_parameters(prefix="softmax")]
    return dict(named)


def dense_gradient(name: str, shape: torch.Size, step: int) -> Tensor:
    seed = 1000 * step + sum(map(ord, name))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def sparse_gradient(step: int, shape: Sequence[int] = (ROWS, PROJECTION)) -> Tensor:
    """Return a gradient of rows 2, 5 and 11, one of them twice, as two lookups of one word give it."""
    values = torch.randn(4, *shape[1:], generator=torch.Generator().manual_seed(step))
    return torch.sparse_coo_tensor(torch.tensor([[5, 2, 5, 11]]), values, tuple(shape))


def test_steps_of_a_schedule() -> None:
    assert step_tokens(CONFIG) == 77
    for max_tokens, epochs, num_steps in [
        (770, 0.0, 10), (771, 0.0, 11), (0, 2.0, 26), (0, 0.5, 7), (100, 2.0, 2), (10**6, 2.0, 26), (1, 0.0, 1),
    ]:  # fmt: skip
        config = replace(CONFIG, max_tokens=max_tokens, epochs=epochs)
        assert Schedule.build(config, epoch_tokens=1000).num_steps == num_steps


def test_warm_up_is_at_most_a_tenth() -> None:
    for warmup_tokens, warmup_steps in [(0, 0), (1, 1), (77, 1), (78, 2), (10**6, 13)]:
        config = replace(CONFIG, max_tokens=77 * 131, epochs=0.0, warmup_tokens=warmup_tokens)
        assert Schedule.build(config, epoch_tokens=1).warmup_steps == warmup_steps


def test_dropout_by_the_epochs_planned() -> None:
    """None up to one epoch, 0.07 for each doubling, at most 0.2; a given value stays."""
    for max_tokens, epochs, dropout in [
        (500, 0.0, 0.0), (1000, 0.0, 0.0), (2000, 0.0, 0.07), (0, 4.0, 0.14), (3_000, 10.0, 0.111), (0, 8.0, 0.2),
        (0, 100.0, 0.2),
    ]:  # fmt: skip
        config = replace(CONFIG, dropout=-1.0, max_tokens=max_tokens, epochs=epochs)
        assert choose_dropout(config, epoch_tokens=1000) == replace(config, dropout=dropout)
        assert choose_dropout(replace(config, dropout=0.3), epoch_tokens=1000).dropout == 0.3


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("constant", [1 / 3, 2 / 3, 1, 1, 1, 1]),
        ("linear", [1 / 3, 2 / 3, 1, 0.2 + 0.8 * 3 / 4, 0.2 + 0.8 * 2 / 4, 0.2 + 0.8 * 1 / 4]),
        ("cosine", [1 / 3, 2 / 3, 1, 0.6 + 0.4 * math.sqrt(0.5), 0.6, 0.6 - 0.4 * math.sqrt(0.5)]),
    ],
)
def test_course_of_the_learning_rate(kind: str, expected: list[float]) -> None:
    schedule = Schedule(num_steps=6, warmup_steps=2, config=TrainConfig(schedule=kind, final_learning_rate_share=0.2))
    assert [schedule.learning_rate_factor(step) for step in range(6)] == pytest.approx(expected)
    assert replace(schedule, num_steps=1, warmup_steps=0).learning_rate_factor(0) == 1.0


@pytest.mark.parametrize(
    ("kind", "name"),
    [("adagrad", "bilm.token_table.weight"), ("adamw", "bilm.token_table.weight"), ("adamw", "softmax.bias")],
)
def test_adagrad_on_sparse_and_dense_gradients_is_the_formula(kind: str, name: str) -> None:
    """One sum for each table entry in the published recipe, otherwise one for each row, of which a bias has many."""
    models = [build_model(), build_model()]
    optimizers = [build_optimizers(model, replace(CONFIG, optimizer=kind)) for model in models]
    sparse, dense = (parameters_of(model)[name] for model in models)
    expected = sparse.detach().numpy().astype(np.float64)
    before = expected.copy()
    squares = np.full_like(expected, 0.5)
    for step, factor in enumerate((1.0, 0.3, 0.7)):
        sparse.grad = sparse_gradient(step, sparse.shape)
        dense.grad = sparse.grad.to_dense()
        for optimizer in optimizers:
            optimizer.step(factor)
        whole = dense.grad.numpy().astype(np.float64)
        by_entry = kind == "adagrad" or whole.ndim == 1
        squares += whole**2 if by_entry else (whole**2).mean(axis=1, keepdims=True)
        expected -= factor * 0.2 * whole / np.sqrt(squares)
    kept = optimizers[0].state_tensors()
    assert kind == "adagrad" or {value.shape for key, value in kept.items() if key.startswith("tables")} == {(ROWS,)}
    result = sparse.detach()
    torch.testing.assert_close(result, dense.detach())
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-7)
    untouched = [row for row in range(ROWS) if row not in (2, 5, 11)]
    np.testing.assert_array_equal(result.numpy()[untouched], before[untouched].astype(np.float32))


def test_rows_without_any_gradient_stay_finite() -> None:
    model = build_model()
    optimizers = build_optimizers(model, replace(CONFIG, adagrad_accumulator=0.0))
    model.softmax.weight.grad = torch.zeros(ROWS, PROJECTION)
    optimizers.step(1.0)
    assert torch.isfinite(model.softmax.weight).all()


def test_adamw_is_the_formula_and_decays_matrices_only() -> None:
    model = build_model()
    optimizers = build_optimizers(model)
    network = {name: p for name, p in model.bilm.named_parameters() if not name.startswith("token_table")}
    expected = {name: p.detach().numpy().astype(np.float64) for name, p in network.items()}
    first = {name: np.zeros_like(value) for name, value in expected.items()}
    second = {name: np.zeros_like(value) for name, value in expected.items()}
    for step, factor in enumerate((0.5, 1.0, 0.25), start=1):
        for name, parameter in network.items():
            parameter.grad = dense_gradient(name, parameter.shape, step)
            gradient = parameter.grad.numpy().astype(np.float64)
            rate, decay = factor * 0.03, 0.0 if name.endswith("bias") else 0.1
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.98 * second[name] + 0.02 * gradient**2
            expected[name] *= 1 - rate * decay
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.98**step)
            expected[name] -= rate * mean / (np.sqrt(square) + 1e-8)
        optimizers.step(factor)
    assert any(name.endswith("bias") for name in network)
    for name, parameter in network.items():
        np.testing.assert_allclose(parameter.detach().numpy(), expected[name], rtol=1e-5, atol=1e-6)


def test_the_published_recipe_has_adagrad_everywhere() -> None:
    model = build_model()
    optimizers = build_optimizers(model, replace(CONFIG, optimizer="adagrad"))
    parameters = parameters_of(model)
    expected = {}
    for name, parameter in parameters.items():
        parameter.grad = dense_gradient(name, parameter.shape, 1)
        rate = 0.03 if "layers" in name else 0.2
        expected[name] = parameter.detach() - 0.5 * rate * parameter.grad / torch.sqrt(0.5 + parameter.grad**2)
    optimizers.step(0.5)
    for name, parameter in parameters.items():
        torch.testing.assert_close(parameter.detach(), expected[name])


@pytest.mark.parametrize("optimizer", ["adamw", "adagrad"])
@pytest.mark.parametrize(("tied", "train_embeddings"), [(False, False), (False, True), (True, True)])
def test_each_trained_parameter_belongs_to_one_optimiser(optimizer: str, tied: bool, train_embeddings: bool) -> None:
    model = build_model(tied=tied)
    optimizers = build_optimizers(model, replace(CONFIG, optimizer=optimizer, train_embeddings=train_embeddings))
    owned = [p for o in optimizers.by_name.values() for group in o.param_groups for p in group["params"]]
    expected = {id(parameter) for parameter in parameters_of(model).values()}
    if not train_embeddings:
        expected.remove(id(model.bilm.token_table.weight))
    for found in (owned, optimizers.parameters):
        assert len(found) == len(expected)
        assert {id(parameter) for parameter in found} == expected
    assert model.bilm.token_table.weight.requires_grad is train_embeddings


def parameter_with(gradient: Tensor | None) -> nn.Parameter:
    parameter = nn.Parameter(torch.zeros(3, 2))
    parameter.grad = gradient
    return parameter


def test_clipping_worked_out_by_hand() -> None:
    # Row 1 is there twice: 1 + 2 = 3. The norm is that of 3, 4 and 12.
    sparse = parameter_with(torch.sparse_coo_tensor([[1, 1]], [[1.0, 0.0], [2.0, 4.0]], (3, 2)))
    dense = parameter_with(torch.tensor([[0.0, 12.0], [0.0, 0.0], [0.0, 0.0]]))
    none = parameter_with(None)
    assert clip_gradients([sparse, none, dense], 6.5) == pytest.approx(13)
    assert sparse.grad is not None
    assert sparse.grad.is_sparse
    torch.testing.assert_close(sparse.grad.to_dense(), torch.tensor([[0.0, 0.0], [1.5, 2.0], [0.0, 0.0]]))
    torch.testing.assert_close(dense.grad, torch.tensor([[0.0, 6.0], [0.0, 0.0], [0.0, 0.0]]))
    assert none.grad is None
    clipped = dense.grad.clone()
    assert clip_gradients(iter([sparse, dense]), 6.6) == pytest.approx(6.5)
    assert torch.equal(dense.grad, clipped)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_norm_that_is_not_finite_is_told_and_nothing_scaled(bad: float) -> None:
    good = parameter_with(torch.full((3, 2), 7.0))
    broken = parameter_with(torch.sparse_coo_tensor([[2]], [[bad, 1.0]], (3, 2)))
    assert not math.isfinite(clip_gradients([good, broken], 1.0))
    assert torch.equal(good.grad, torch.full((3, 2), 7.0))
