"""How a run computes: chosen once, kept and reported; optional packages; memory."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from contract.command_line import (
    NUM_STEPS,
    STEP_TOKENS,
    checkpoint_steps,
    elmo_zh,
    run_python,
)
from messages import message_of
from training.ranks import changed_loss, sending

from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.errors import RunError
from elmo_zh.model import precision
from elmo_zh.model.kernels import products
from elmo_zh.model.language_model import build_shape
from elmo_zh.model.precision import BFLOAT16, FLOAT32
from elmo_zh.training import computation
from elmo_zh.training.computation import choose_computation, count_numbers, require_memory

CPU = torch.device("cpu")
ONE_STEP = f"train.max_tokens={STEP_TOKENS}"

pytestmark = pytest.mark.usefixtures("no_training_picture", "threads_as_before")


Machine = Callable[..., None]

multiplies_bfloat16 = products._processor_multiplies_bfloat16


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    def can(*, bfloat16: bool) -> None:
        monkeypatch.setattr(precision, "has_bfloat16", lambda _: bfloat16)
        monkeypatch.setattr(computation, "choose_precision", lambda *_: BFLOAT16 if bfloat16 else FLOAT32)
        monkeypatch.setattr(computation, "can_pack", lambda *_: True)

    return can


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({}, False),
        ({"avx512_f": True, "avx512_vnni": True, "avx512_bf16": False}, False),
        ({"avx512_bf16": True}, True),
        ({"amx_bf16": True, "avx512_bf16": False}, True),
    ],
)
@pytest.mark.parametrize(("limit", "has_them_still"), [("", True), ("avx512_core", False), ("AVX512_CORE_BF16", True)])
def test_processors_with_instructions_for_bfloat16(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool], expected: bool, limit: str, has_them_still: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(products, "_processor_multiplies_bfloat16", multiplies_bfloat16.__wrapped__)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    expected = expected and has_them_still
    assert precision.has_bfloat16(CPU) is expected


@pytest.mark.parametrize(
    ("setting", "before", "is_fast", "expected"),
    [
        ("auto", {}, True, "bfloat16"),
        ("auto", {}, False, "float32"),
        ("auto", {"precision": "float32"}, True, "float32"),
        ("auto", {"precision": "bfloat16"}, False, "bfloat16"),
        ("float32", {"precision": "bfloat16"}, True, "float32"),
        ("bfloat16", {}, False, "bfloat16"),
    ],
)
def test_the_setting_decides_then_the_run_then_the_machine(
    machine: Machine, setting: str, before: dict[str, Any], is_fast: bool, expected: str
) -> None:
    machine(bfloat16=is_fast)
    chosen = choose_computation(TrainConfig(precision=setting), ModelConfig(), CPU, before)
    assert chosen.precision == expected
    assert chosen.product_precision.dtype is getattr(torch, expected)


@pytest.mark.parametrize(
    ("setting", "before", "expected"), [(0, {}, 5), (0, {"num_threads": 3}, 3), (2, {"num_threads": 3}, 2)]
)
def test_threads_are_as_set_or_as_before_or_as_they_are(setting: int, before: dict[str, int], expected: int) -> None:
    torch.set_num_threads(5)
    assert choose_computation(TrainConfig(num_threads=setting), ModelConfig(), CPU, before).num_threads == expected
    assert torch.get_num_threads() == expected


def state_of(run: Path, step: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "checkpoints" / f"step-{step:08d}" / "state.json").read_text("utf-8"))
    return found


def interrupted(run: Path, step: int) -> None:
    with changed_loss(step - 1, sending(signal.SIGINT)):
        assert elmo_zh("train", "--run", run).status == 130
    assert checkpoint_steps(run)[-1] == step


def warnings_of(stderr: str) -> list[str]:
    return [line.removeprefix("Warning: ") for line in stderr.splitlines() if line.startswith("Warning: ")]


def test_what_was_chosen_is_recorded_and_kept_on_another_machine(untrained_run: Path, machine: Machine) -> None:
    run, expected = untrained_run, "bfloat16"
    settings = (run / "config.toml").read_text("utf-8")
    before, after = settings.split("[train]")
    after = after.replace('precision = "float32"', 'precision = "auto"', 1)
    (run / "config.toml").write_text(f"{before}[train]{after}", "utf-8")
    machine(bfloat16=True)
    interrupted(run, step=13)
    chosen = state_of(run, 13)["computation"]
    assert chosen["precision"] == expected
    machine(bfloat16=False)
    answer = elmo_zh("train", "--run", run, "--json")
    assert warnings_of(answer.stderr) == []
    assert f" on cpu ({expected})." in answer.stderr
    assert answer.result()["computation"] == state_of(run, NUM_STEPS)["computation"] == chosen
    record = json.loads((run / "stages" / "train.json").read_text("utf-8"))
    assert record["counts"]["computation"] == chosen


WITHOUT = """
import sys
for name in ("jieba", "gensim", "smart_open", "matplotlib", "tomlkit", "pandas"):
    sys.modules[name] = None
from elmo_zh.cli import main
main()
"""


def test_training_needs_no_segmenter_and_no_picture(untrained_run: Path, tmp_path: Path) -> None:
    run = untrained_run
    arguments = ("train", "--run", run, "--set", ONE_STEP)
    answer = run_python("-W", "ignore", "-c", WITHOUT, *arguments, cwd=tmp_path)
    assert answer.status == 0, answer.stderr
    assert "training.png needs matplotlib, which is not installed." in answer.stderr
    assert not (run / "training.png").exists()
    assert checkpoint_steps(run) == [1]
    record = json.loads((run / "stages" / "train.json").read_text("utf-8"))
    assert record["finished"] is True
    assert not [name for name in record["outputs"] if "training.png" in name]
    # Run again with matplotlib, the stage is skipped all the same.
    assert elmo_zh("train", "--run", run, "--json").result()["skipped"] is True


def test_a_model_that_cannot_fit_is_refused_before_the_system_kills_training(monkeypatch: pytest.MonkeyPatch) -> None:
    model, train = ModelConfig(cell_dim=3, projection_dim=2, num_layers=1), TrainConfig(optimizer="adamw")
    network, tables, states = count_numbers(model, train, build_shape(model, 7), 7)
    # Each direction: (P + P) x 4 D weights and 4 D biases, and a D x P projection; one table and a bias.
    assert (network, tables, states) == (2 * (4 * 12 + 12 + 6), 14 + 7, 2 * network + 7 * 2)
    pages = {"SC_PAGE_SIZE": 4, "SC_PHYS_PAGES": network + tables + states}
    monkeypatch.setattr(os, "sysconf", lambda name: pages[name])
    require_memory(model, train, 7, CPU)
    pages["SC_PHYS_PAGES"] -= 1
    assert "Lower model.cell_dim" in message_of(RunError, lambda: require_memory(model, train, 7, CPU))
    require_memory(model, train, 7, torch.device("cuda"))
