"""`elmo-zh train`: interrupted, continued, refused, failing; and `export` of what it leaves."""

import dataclasses
import json
import math
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from contract.command_line import (
    NUM_STEPS,
    STEP_TOKENS,
    Answer,
    SampleRun,
    checkpoint_steps,
    elmo_zh,
    metrics_lines,
    require_same_checkpoint,
    settings,
    succeed,
    training_lines,
)
from safetensors.torch import load_file
from training.ranks import Change, KilledError, changed_loss, kill, not_a_number, sending

from elmo_zh.training import trainer

pytestmark = pytest.mark.usefixtures("no_training_picture")


def train(run: Path, *options: str) -> Answer:
    return elmo_zh("train", "--run", run, *options)


def assert_same_training(run: Path, reference: Path) -> None:
    """Weights and optimiser state are equal bit for bit, and each step is told once, with equal figures."""
    require_same_checkpoint(run, reference, NUM_STEPS)
    names = ("step", "tokens", "train_loss", "learning_rate", "grad_norm")
    found, expected = ([[line[name] for name in names] for line in training_lines(path)] for path in (run, reference))
    assert found == expected


def test_training_stopped_again_and_again_equals_training_at_once(untrained_run: Path, sample_run: SampleRun) -> None:
    run = untrained_run
    with changed_loss(5, kill), pytest.raises(KilledError):
        train(run)  # before the first checkpoint
    assert not (run / "checkpoints").exists()
    with changed_loss(23, sending(signal.SIGINT)):
        answer = train(run)
    # The step that the signal came in is finished first.
    assert answer.status == 130
    assert answer.stdout == ""
    assert "Interrupted. Run the same command again" in answer.stderr.splitlines()[-1]
    assert json.loads((run / "stages" / "train.json").read_text(encoding="utf-8"))["finished"] is False
    assert checkpoint_steps(run) == [10, 20, 24]
    with changed_loss(47, kill), pytest.raises(KilledError):
        train(run)
    assert checkpoint_steps(run) == [30, 40]
    with changed_loss(61, sending(signal.SIGTERM)):
        answer = train(run)
    assert answer.status == 143
    assert "Interrupted. Run the same command again" in answer.stderr.splitlines()[-1]
    assert "Resuming from step 40 of 100." in answer.stderr.splitlines()
    assert checkpoint_steps(run) == [50, 60, 62]
    with changed_loss(71, sending(signal.SIGHUP)):
        answer = train(run)
    assert answer.status == 129
    assert checkpoint_steps(run) == [60, 70, 72]
    answer = train(run)
    assert answer.status == 0
    assert "Resuming from step 72 of 100." in answer.stderr.splitlines()
    assert_same_training(run, sample_run.path)


def test_a_larger_budget_goes_on(run: Path) -> None:
    before = [line for line in metrics_lines(run) if line.get("heldout_set") != "full"]
    answer = train(run, "--set", f"train.max_tokens={120 * STEP_TOKENS}", "--json")
    assert "Resuming from step 100 of 120." in answer.stderr.splitlines()
    assert answer.result()["steps"] == 120
    after = metrics_lines(run)
    assert [line for line in after if line["step"] <= NUM_STEPS and line.get("heldout_set") != "full"] == before
    assert [line["step"] for line in training_lines(run)] == list(range(1, 121))
    assert {100, 120} & {line["step"] for line in after if line.get("heldout_set") == "full"}
    assert checkpoint_steps(run)[-2:] == [110, 120]
    # The new budget is the run's own now, and what follows sees the new weights.
    assert train(run, "--json").result()["skipped"] is True
    assert elmo_zh("export", "--run", run, "--checkpoint", "last", "--json").result()["step"] == 120
    assert json.loads((run / "model" / "bundle.json").read_text(encoding="utf-8"))["training"]["step"] == 120
    assert "Resuming from step 120 of 1." in train(run, "--set", f"train.max_tokens={STEP_TOKENS}").stderr


def test_a_budget_below_an_interrupted_step_still_measures_the_model(untrained_run: Path) -> None:
    with changed_loss(4, sending(signal.SIGINT)):
        assert train(untrained_run).status == 130  # before the first evaluation
    answer = train(untrained_run, "--set", f"train.max_tokens={STEP_TOKENS}")
    assert "Resuming from step 5 of 1." in answer.stderr
    assert "Results on all held-out text, checkpoint from step 5: perplexity " in answer.stderr
    assert "No text was held out" not in answer.stderr


OTHER_TEXT = "今天没有下雨。我们去看海。\n" * 11


@pytest.fixture
def other_corpus(tmp_path: Path) -> Path:
    path = tmp_path / "other.txt"
    path.write_text(OTHER_TEXT, encoding="utf-8")
    return path


def test_force_starts_over(run: Path, other_corpus: Path) -> None:
    """With other settings, and then with another corpus."""
    answer = train(run, "--force", "--set", "model.cell_dim=11", "--set", f"train.max_tokens={10 * STEP_TOKENS}")
    assert answer.status == 0
    assert "train runs again: model.cell_dim 13 -> 11." in answer.stderr.splitlines()
    assert "Resuming" not in answer.stderr
    assert [line["step"] for line in training_lines(run)] == list(range(1, 11))
    assert checkpoint_steps(run) == [10]
    weights = load_file(run / "checkpoints" / "step-00000010" / "model.safetensors")
    assert {11, 4 * 11} <= {size for tensor in weights.values() for size in tensor.shape}
    answer = succeed("pipeline", other_corpus, "--run", run, "--force", "--set", "text.segmenter=character")
    words = (run / "model" / "vocab.data").read_text(encoding="utf-8").splitlines()[3:]
    assert set(words) == set(OTHER_TEXT) - {"\n"}


def bad_gradient(loss: torch.Tensor) -> torch.Tensor:
    """Adds nothing to the loss, but the square root has no gradient at zero."""
    return loss + (loss * 0).sqrt()


@pytest.mark.parametrize(
    ("step", "change", "problem"), [(13, not_a_number, "train_loss = nan"), (0, bad_gradient, "grad_norm = nan")]
)
def test_numbers_gone_wild_end_training(untrained_run: Path, step: int, change: Change, problem: str) -> None:
    """The checkpoints stay, and the same command goes on from them."""
    with changed_loss(step, change):
        told = train(untrained_run).only_error()
    kept = [10] if step else []
    assert told.startswith(
        f"Training diverged at step {step}: {problem}. Checkpoints kept: {kept[0] if kept else '-'}."
    )
    assert "train.learning_rate below 0.004" in told
    assert not kept or checkpoint_steps(untrained_run) == kept


def test_a_perplexity_that_is_not_finite_is_no_result(untrained_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights may have diverged in the very step that an evaluation follows."""
    real = trainer.evaluate_heldout
    calls = iter(range(1000))

    def evaluate_heldout(*arguments: Any) -> Any:
        is_diverged = next(calls) >= 2  # the evaluations of steps 0 and 4 come before
        return dataclasses.replace(real(*arguments), **({"forward_perplexity": math.nan} if is_diverged else {}))

    monkeypatch.setattr(trainer, "evaluate_heldout", evaluate_heldout)
    often = {"evaluate": 4, "checkpoint": 2}
    changes = [f"train.{name}_every_tokens={steps * STEP_TOKENS}" for name, steps in often.items()]
    answer = train(untrained_run, *settings(*changes))
    told = answer.only_error()
    assert told.startswith("Training diverged at step 8: heldout_perplexity = inf.")
    assert "Checkpoints kept: 4, 6." in told
    assert checkpoint_steps(untrained_run) == [4, 6]
    figures = [line["heldout_forward_perplexity"] for line in metrics_lines(untrained_run) if "heldout_set" in line]
    assert len(figures) == 2


@pytest.fixture
def best_is_step_20(untrained_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose held-out perplexity was lowest at its first measurement after the start."""
    real = trainer.evaluate_heldout
    factors = iter([1.0, 0.1, 1.0, 1.0, 1.0, 1.0])

    def evaluate_heldout(*arguments: Any) -> Any:
        figures = real(*arguments)
        return dataclasses.replace(figures, perplexity=next(factors) * figures.perplexity)

    monkeypatch.setattr(trainer, "evaluate_heldout", evaluate_heldout)
    answer = train(untrained_run, "--json")
    assert answer.result()["heldout"]["step"] == 20
    return untrained_run


def test_the_best_checkpoint_is_kept_and_exported(best_is_step_20: Path, tmp_path: Path) -> None:
    run = best_is_step_20
    assert checkpoint_steps(run) == [20, 90, 100]
    assert [line["step"] for line in metrics_lines(run) if line.get("heldout_set") == "full"] == [20]
    arguments = ("export", "--run", run, "--json")
    assert elmo_zh(*arguments).result()["step"] == 20
    output = tmp_path / "earlier"
    assert elmo_zh(*arguments, "--checkpoint", "90", "--output", output).result()["step"] == 90
    for model, step, heldout_set in ((run / "model", 20, "full"), (output, 90, None)):
        training = json.loads((model / "bundle.json").read_text(encoding="utf-8"))["training"]
        assert training["step"] == step
        assert training.get("heldout_set") == heldout_set
    told = elmo_zh(*arguments, "--checkpoint", "21").only_error()
    assert told == "--checkpoint 21; expected best, last, 20, 90, 100."


def test_a_run_without_heldout_text_is_trained_with_a_warning(sample_run: SampleRun, tmp_path: Path) -> None:
    corpus = tmp_path / "one paragraph.txt"
    corpus.write_text("今天没有下雨。我们去看海。" * 31, encoding="utf-8")
    run = tmp_path / "run"
    changes = (f"train.max_tokens={5 * STEP_TOKENS}", "text.segmenter=character", "train.num_negatives=5")
    answer = succeed("pipeline", corpus, "--run", run, "--config", sample_run.config, *settings(*changes))
    assert "Warning: No text was held out" in answer.stderr
    assert len(training_lines(run)) == len(metrics_lines(run)) == 5
    assert (run / "model" / "bundle.json").exists()


def test_word_vectors_can_be_left_out_and_training_needs_only_the_id_store_and_the_vocabulary(
    untrained_run: Path,
) -> None:
    run = untrained_run
    assert elmo_zh("word2vec", "--run", run, "--set", "word2vec.enabled=false").status == 0
    assert not (run / "word2vec.txt").exists()
    shutil.rmtree(run / "segmented")
    changes = ("--set", "word2vec.enabled=false", "--set", f"train.max_tokens={2 * STEP_TOKENS}")
    assert train(run, *changes).status == 0
    assert checkpoint_steps(run) == [2]
