"""How a run computes: chosen once, kept and reported; optional packages; the summary; predicted memory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from contract.command_line import (
    NUM_STEPS,
    ROOT,
    STEP_TOKENS,
    checkpoint_steps,
    elmo_zh,
    run_python,
    succeed,
    training_lines,
)
from messages import Heard
from training.ranks import changed_loss, sending

from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.model import precision
from elmo_zh.model.precision import BFLOAT16, FLOAT32
from elmo_zh.model.precision_choice import PrecisionChoice
from elmo_zh.training import computation
from elmo_zh.training.computation import Computation, choose_computation
from elmo_zh.training.report import report_summary

CPU = torch.device("cpu")
ONE_STEP = f"train.max_tokens={STEP_TOKENS}"

pytestmark = pytest.mark.usefixtures("no_training_picture", "threads_as_before")


Machine = Callable[..., None]

multiplies_bfloat16 = precision._processor_multiplies_bfloat16


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    def can(*, bfloat16: bool, packed: bool = True) -> None:
        choice = PrecisionChoice(BFLOAT16, 1.9) if bfloat16 else PrecisionChoice(FLOAT32, 0.5)
        monkeypatch.setattr(precision, "has_bfloat16", lambda _: bfloat16)
        monkeypatch.setattr(computation, "choose_precision", lambda *_: choice)
        monkeypatch.setattr(computation, "can_pack", lambda *_: packed)

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
    monkeypatch.setattr(precision, "_processor_multiplies_bfloat16", multiplies_bfloat16.__wrapped__)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    expected = expected and has_them_still
    assert precision.has_bfloat16(CPU) is expected


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_from_ampere_on_have_bfloat16(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], expected: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert precision.has_bfloat16(torch.device("cuda")) is expected


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
    assert chosen.product_bytes == (2 if expected == "bfloat16" and is_fast else 4)


@pytest.mark.parametrize(
    ("setting", "before", "expected"), [(0, {}, 5), (0, {"num_threads": 3}, 3), (2, {"num_threads": 3}, 2)]
)
def test_threads_are_as_set_or_as_before_or_as_they_are(setting: int, before: dict[str, int], expected: int) -> None:
    torch.set_num_threads(5)
    assert choose_computation(TrainConfig(num_threads=setting), ModelConfig(), CPU, before).num_threads == expected
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize(("packed", "kernel"), [(True, "onednn"), (False, "torch")])
def test_a_description_is_plain_and_tells_every_difference(machine: Machine, packed: bool, kernel: str) -> None:
    machine(bfloat16=False, packed=packed)
    chosen = choose_computation(TrainConfig(num_threads=2), ModelConfig(), CPU, {})
    described = json.loads(json.dumps(chosen.describe()))
    assert described == {
        "device": "cpu", "precision": "float32", "kernel": kernel, "num_threads": 2,
        "torch_version": str(torch.__version__),
    }  # fmt: skip
    assert chosen.differences(described) == chosen.differences({}) == []
    assert Computation(**described) == chosen
    other = replace(chosen, device="cuda", num_threads=7)
    assert other.differences({**described, "of another version": 1}) == [
        "device changed from cpu to cuda",
        "num_threads changed from 2 to 7",
    ]


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
    assert " times as fast " not in answer.stderr  # not measured again
    assert f" on cpu ({expected})." in answer.stderr
    assert answer.result()["computation"] == state_of(run, NUM_STEPS)["computation"] == chosen
    record = json.loads((run / "stages" / "train.json").read_text("utf-8"))
    assert record["counts"]["computation"] == chosen
    # The precision has an effect: the other one gives different losses.
    losses = [line["train_loss"] for line in training_lines(run)]
    answer = elmo_zh("train", "--run", run, "--force", "--set", ONE_STEP)
    assert "float32: bfloat16 is only 0.5 times as fast here" in answer.stderr.splitlines()
    assert state_of(run, 1)["computation"]["precision"] != expected
    assert training_lines(run)[0]["train_loss"] != losses[0]
    assert training_lines(run)[0]["train_loss"] == pytest.approx(losses[0], rel=0.01)


def test_what_cannot_be_kept_is_told(untrained_run: Path, machine: Machine) -> None:
    run = untrained_run
    machine(bfloat16=False)
    interrupted(run, step=5)
    assert state_of(run, 5)["computation"]["kernel"] == "onednn"
    machine(bfloat16=False, packed=False)
    answer = succeed("train", "--run", run, "--set", "train.num_threads=2")
    kernel, threads = warnings_of(answer.stderr)
    assert "kernel changed from onednn to torch" in kernel
    assert "num_threads changed from 1 to 2" in threads
    assert state_of(run, NUM_STEPS)["computation"]["num_threads"] == 2


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
    assert "matplotlib is not installed, so training.png is not drawn." in answer.stderr.splitlines()
    assert not (run / "training.png").exists()
    assert checkpoint_steps(run) == [1]
    record = json.loads((run / "stages" / "train.json").read_text("utf-8"))
    assert record["finished"] is True
    assert not [name for name in record["outputs"] if "training.png" in name]
    # Run again with matplotlib, the stage is skipped all the same.
    assert elmo_zh("train", "--run", run, "--json").result()["skipped"] is True


def test_the_table_at_the_end() -> None:
    both = {"perplexity": 97.32, "bits_per_character": 4.12345}
    counts: dict[str, Any] = {
        "tokens": 1234567, "epochs": 3.14159, "steps": 2357, "training_seconds": 754.0,
        "memory": {"peak_bytes": 1_260_000_000, "predicted_bytes": 1_949_000_000},
        "baselines": {"unigram": {**both, "perplexity": 1131.04}, "bigram": {**both, "bits_per_character": 5.5}},
        "heldout": {
            **both, "step": 2300, "num_predictions": 54321, "forward_perplexity": 12101.0, "backward_perplexity": 89.0,
        },
    }  # fmt: skip
    listener = Heard()
    report_summary(counts, listener)
    rows = {" ".join(line.split()[:-2]): line.split()[-2:] for line in listener.notes[3:]}
    assert (rows["biLM"], rows["bigram"], rows["unigram"][0]) == (["97.3", "4.123"], ["97.3", "5.500"], "1,131.0")
    assert "    forward LM     12,101.0" in listener.notes
    del listener.notes[:], counts["heldout"]
    report_summary(counts, listener)
    assert len(listener.notes) == 1


TRAINING = """
import json, resource, sys
from pathlib import Path
import numpy as np, torch
from small_trainings import build_trainer
from elmo_zh.allocator import keep_freed_memory
from elmo_zh.config import ModelConfig, TrainConfig
from elmo_zh.id_store.encoded_sentences import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.training.computation import choose_computation, predict_memory
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

folder, changes, rows = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
model_config = ModelConfig(cell_dim=509, projection_dim=127)
config = TrainConfig(max_tokens=5 * 64 * 20, epochs=0.0, num_threads=1, device="cpu", **changes)
vocabulary = Vocabulary([*SPECIALS, *(chr(0x4e00 + k) for k in range(rows - 3))])
generator = np.random.default_rng(1)
def sentences(number):
    ids = np.minimum(3 + generator.zipf(1.3, 17 * number), rows - 1).astype(np.uint16)
    return ids, np.arange(number + 1, dtype=np.uint64) * 17
heldout = HeldoutSentences.measured(*sentences(300), np.full(300, 29, np.uint32), np.zeros(300))
store = IdStore(EncodedSentences.in_memory(*sentences(3000)), heldout, Lexicon(vocabulary, None))
keep_freed_memory()
device = torch.device("cpu")
model = LanguageModel.build(build_shape(model_config, rows), tie_softmax=False)
build_trainer(model, folder, device, config, store).train()
product_bytes = choose_computation(config, model_config, device, {}).product_bytes
predicted = predict_memory(model_config, config, product_bytes, rows, 51000)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"predicted": predicted, "peak": peak}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "changes"),
    [
        (19_001, {"precision": "float32"}),
        (19_001, {"precision": "bfloat16"}),
        (7_001, {"precision": "float32", "softmax": "full", "batch_size": 128}),
        (7_001, {"precision": "float32", "num_negatives": 97, "unroll_steps": 61}),
    ],
)
def test_predicted_memory_is_near_what_training_takes(tmp_path: Path, rows: int, changes: dict[str, Any]) -> None:
    command = [sys.executable, "-W", "ignore", "-c", TRAINING, str(tmp_path), json.dumps(changes), str(rows)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["predicted"] / found["peak"] == pytest.approx(1, abs=0.35)
