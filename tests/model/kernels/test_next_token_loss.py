"""Losses and all their gradients, written by hand and in row chunks, against plain formulas and autograd."""

import pytest
import torch
from torch import Tensor

from elmo_zh.model import softmax
from elmo_zh.model.kernels import next_token_loss
from elmo_zh.model.precision import BFLOAT16, FLOAT32, Precision
from elmo_zh.model.softmax import Negatives, Softmax

# Distinct primes, so that a swapped axis fails.
WORDS, WIDTH = 31, 5
NEGATIVES = (2, 3, 5, 11, 17, 23, 29)


def random(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def draw_targets(num_rows: int) -> Tensor:
    """Some words come again and again, some were drawn as negatives too, and the last of the vocabulary is there."""
    targets = torch.randint(0, WORDS, (num_rows,), generator=torch.Generator().manual_seed(num_rows))
    targets[: num_rows // 2] = torch.tensor([11, 4, 11, 29])[torch.arange(num_rows // 2) % 4]
    targets[-1] = WORDS - 1
    return targets


def build_softmax(dtype: torch.dtype) -> Softmax:
    module = Softmax(WORDS, WIDTH)
    with torch.no_grad():
        module.weight.copy_(random(1, WORDS, WIDTH))
        module.bias.copy_(random(2, WORDS))
    return module.to(dtype)


def build_negatives(ids: tuple[int, ...] = NEGATIVES) -> Negatives:
    # Not in the order of their ids, as they come from the sampler.
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(3))
    return Negatives(torch.tensor(ids)[order], torch.linspace(-3.0, -0.1, WORDS))


def plain_full(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    scores = hidden @ weight.T + bias
    return (scores.logsumexp(dim=1) - scores[torch.arange(len(targets)), targets]).mean()


def plain_sampled(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, negatives: Negatives) -> Tensor:
    """Score every word, then leave only the target and those negatives that are another word."""
    scores = hidden @ weight.T + bias - negatives.log_expected.to(bias)
    own = scores[torch.arange(len(targets)), targets]
    drawn = torch.zeros(WORDS, dtype=torch.bool)
    drawn[negatives.ids] = True
    candidates = drawn.repeat(len(targets), 1)
    candidates[torch.arange(len(targets)), targets] = True
    return (scores.masked_fill(~candidates, -torch.inf).logsumexp(dim=1) - own).mean()


def differentiate(loss: Tensor, *inputs: Tensor) -> list[Tensor]:
    """Return the loss and its gradients, three times as large as they are: a gradient comes from what follows."""
    return [loss.detach(), *torch.autograd.grad(3 * loss, inputs)]


@pytest.fixture(params=["whole", "one row", "odd chunks", "spans of chunks"])
def _chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are in scores: of 31 words in full softmax, of 7 negatives in sampled; a core has half of a span."""
    chunk, span = {
        "whole": (10**9, 10**9),
        "one row": (1, 1),
        "odd chunks": (2 * WORDS + 1, 10**9),
        "spans of chunks": (2 * WORDS, 2 * 3 * WORDS),
    }[request.param]
    monkeypatch.setitem(next_token_loss._CHUNK_SCORES, "cpu", chunk)
    monkeypatch.setattr(next_token_loss, "MIN_CHUNK_ROWS", 1)
    monkeypatch.setattr(softmax, "MAX_TRAINING_SCORES", span)


def compare(kind: str, num_rows: int, dtype: torch.dtype, precision: Precision = FLOAT32) -> list[list[Tensor]]:
    """Return loss and gradients of hidden, weight and bias, as computed in `dtype` and by the formula in float64."""
    module, targets = build_softmax(dtype), draw_targets(num_rows)
    negatives, results = build_negatives(), []
    hidden = random(4, num_rows, WIDTH, dtype=dtype).requires_grad_()
    is_full = kind == "full"
    arguments = (targets,) if is_full else (targets, negatives)
    loss = (module.full_loss if is_full else module.sampled_loss)(hidden, *arguments, precision)
    results.append(differentiate(loss, hidden, module.weight, module.bias))
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, module.weight, module.bias)]
    expected = plain_full(*exact, targets) if is_full else plain_sampled(*exact, targets, negatives)
    results.append(differentiate(expected, *exact))
    return results


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("num_rows", [1, 2, 13, 23])
@pytest.mark.parametrize("kind", ["full", "sampled"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 3e-6)])
def test_loss_and_gradients_equal_the_formula(kind: str, num_rows: int, dtype: torch.dtype, tolerance: float) -> None:
    for ours, plain in zip(*compare(kind, num_rows, dtype), strict=True):
        assert ours.dtype == dtype
        dense = (ours.to_dense() if ours.is_sparse else ours).double()
        torch.testing.assert_close(dense, plain, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_bfloat16_is_as_near_as_its_rounding(kind: str) -> None:
    """bfloat16 keeps 8 bits. What is carried on stays float32."""
    (loss, *ours), (expected, *plain) = compare(kind, 23, torch.float32, BFLOAT16)
    assert float(loss) == pytest.approx(float(expected), rel=1e-2)
    assert float(loss) != pytest.approx(float(expected), rel=1e-6)  # it was bfloat16
    for found, wanted in zip(ours, plain, strict=True):
        assert found.dtype == torch.float32
        error = (found.to_dense() if found.is_sparse else found).double() - wanted
        assert float(error.norm()) < 2e-2 * float(wanted.norm())


@pytest.mark.parametrize("ids", [NEGATIVES, (11,), (0,), tuple(range(WORDS))])
def test_each_row_in_play_has_one_place_in_the_sparse_gradients(ids: tuple[int, ...]) -> None:
    """They say that they are coalesced, and are believed: nobody would find out that a row is there twice."""
    module, targets = build_softmax(torch.float32), draw_targets(13)
    hidden = random(4, 13, WIDTH, dtype=torch.float32).requires_grad_()
    loss = module.sampled_loss(hidden, targets, build_negatives(ids))
    tables = [module.weight, module.bias]
    for table, gradient in zip(tables, torch.autograd.grad(loss, tables), strict=True):
        assert gradient.is_sparse
        assert gradient.is_coalesced()
        assert gradient.indices().tolist() == [sorted({*ids, *targets.tolist()})]
        assert gradient.shape == table.shape


@pytest.mark.parametrize("kind", ["full", "sampled"])
@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
@pytest.mark.parametrize("sign", [1, -1])
def test_extreme_scores_stay_finite(kind: str, precision: Precision, sign: int) -> None:
    """Scores of ten thousand, whose exponentials no float holds, above and below zero."""
    module, targets = build_softmax(torch.float32), draw_targets(13)
    with torch.no_grad():
        module.weight.mul_(1000 * sign)
    hidden = (10 * random(4, 13, WIDTH, dtype=torch.float32)).requires_grad_()
    scores = hidden.detach() @ module.weight.detach().T
    assert float(scores.abs().max()) > 1e4
    negatives = build_negatives()
    if kind == "full":
        loss, plain = module.full_loss(hidden, targets, precision), plain_full
        arguments: tuple[object, ...] = ()
    else:
        loss, plain, arguments = module.sampled_loss(hidden, targets, negatives, precision), plain_sampled, (negatives,)
    found = differentiate(loss, hidden, module.weight, module.bias)
    for value in found:
        assert (value.to_dense() if value.is_sparse else value).isfinite().all()
    exact = [tensor.detach().double() for tensor in (hidden, module.weight, module.bias)]
    assert float(found[0]) == pytest.approx(float(plain(*exact, targets, *arguments)), rel=2e-2)
