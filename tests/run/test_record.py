"""Stages run, are skipped, run again or are refused, and say what has changed."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import changed_json
from messages import Heard, message_of

from elmo_zh.config import Config, TextConfig, TrainConfig, VocabConfig, Word2vecConfig
from elmo_zh.errors import CorpusError, RunError
from elmo_zh.run.files import sealed, write_json
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import (
    StageContext,
    StageResult,
    describe_changes,
    load_record,
    run_stage,
)
from elmo_zh.run.stage_table import (
    ENCODE,
    EXPORT,
    STAGES,
    TRAIN,
    VOCAB,
    WORD2VEC,
    Stage,
    maker_of,
)


def of_size(size: int) -> Config:
    return Config(vocab=VocabConfig(size=size))


class Workshop:
    """A run with segmented text, whose stages only write how often they ran."""

    def __init__(self, folder: Path) -> None:
        self.run = RunDir(folder / "run")
        self.text = self.run.segmented / "train-00000.txt"
        self.text.parent.mkdir(parents=True)
        self.text.write_text("今天 天气 很 好\n", encoding="utf-8")
        self.heard = Heard()
        self.num_done = 0

    def work(self) -> StageResult:
        self.num_done += 1
        self.run.vocab.write_text(f"made {self.num_done}", encoding="utf-8")
        return StageResult(outputs=[self.run.vocab], counts={"rows": 29})

    def do(
        self,
        config: Config | None = None,
        *,
        stage: Stage = VOCAB,
        work: Callable[[], StageResult] | None = None,
        force: bool = False,
        **facts: str,
    ) -> StageResult:
        self.heard.notes.clear()
        context = StageContext(run=self.run, config=config or of_size(31), force=force, reporter=self.heard)
        return run_stage(stage, context, work or self.work, facts=facts)

    def start_training(self) -> None:
        (self.run.checkpoints / "step-00000013").mkdir(parents=True)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_every_required_input_is_made_by_an_earlier_stage() -> None:
    for number, stage in enumerate(STAGES):
        for pattern in stage.inputs(Config()):
            assert maker_of(Path(pattern)) in STAGES[:number]


def test_a_missing_input_names_the_command_that_makes_it(shop: Workshop) -> None:
    def refusal(stage: Stage) -> str:
        return message_of(RunError, lambda: shop.do(stage=stage))

    assert refusal(WORD2VEC) == f"{shop.run.vocab} is missing. Create it with: elmo-zh vocab --run {shop.run.path}"
    shop.text.unlink()
    assert refusal(VOCAB).startswith(f"{shop.text.parent}/train-*.txt is missing. Create it with: elmo-zh segment CORP")
    shop.text.parent.rmdir()
    assert refusal(ENCODE).startswith(f"{shop.run.segmented} is missing. Create it with: elmo-zh segment CORPUS --run ")
    assert list(shop.run.path.iterdir()) == []


def test_only_what_can_change_the_result_makes_a_stage_run_again(shop: Workshop) -> None:
    assert not shop.do().skipped
    others = replace(of_size(31), text=TextConfig(num_workers=7), train=TrainConfig(seed=7))
    assert shop.do(others).skipped
    os.utime(shop.text, ns=(7, 7))  # the same content
    assert shop.do().skipped
    assert not shop.do(of_size(37)).skipped
    assert shop.heard.notes == ["vocab runs again: vocab.size 31 -> 37."]
    shop.text.write_text("今天 天气 不 好\n", encoding="utf-8")
    assert not shop.do(of_size(37)).skipped
    assert shop.heard.notes == ["vocab runs again: 1 file changed (segmented/train-00000.txt)."]
    shop.run.vocab.unlink()
    assert not shop.do(of_size(37)).skipped
    assert not shop.do(of_size(37), force=True).skipped
    assert shop.num_done == 5


def test_a_change_that_would_discard_training_is_refused_up_to_train(shop: Workshop) -> None:
    shop.do()
    shop.run.checkpoints.mkdir()  # without a checkpoint there is none
    assert not shop.do(of_size(37)).skipped
    shop.start_training()
    told = message_of(RunError, lambda: shop.do(of_size(41)))
    assert "training progress that would be discarded. Reason: vocab.size 37 -> 41." in told
    assert not shop.do(of_size(41), force=True).skipped
    shop.run.character_counts.touch()
    shop.do(of_size(41), stage=EXPORT)
    assert not shop.do(of_size(41), stage=EXPORT, checkpoint="last").skipped


def test_training_resumes_unless_a_change_or_a_missing_record_forbids_it(shop: Workshop) -> None:
    config = Config(word2vec=Word2vecConfig(enabled=False))
    for path in (shop.run.vocab, shop.run.vocab_counts):
        path.touch()
    shop.run.ids.mkdir()

    def stop() -> StageResult:
        shop.start_training()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.do(config, stage=TRAIN, work=stop)
    longer = replace(config, train=TrainConfig(epochs=17.0))
    changed = replace(longer, train=TrainConfig(epochs=17.0, seed=7))
    assert "Reason: train.seed 1 -> 7." in message_of(RunError, lambda: shop.do(changed, stage=TRAIN))
    assert not shop.do(longer, stage=TRAIN).skipped
    assert shop.run.checkpoints.exists()
    shop.run.stage_record("train").unlink()
    told = message_of(RunError, lambda: shop.do(longer, stage=TRAIN))
    assert "Reason: the record" in told
    shop.do(changed, stage=TRAIN, force=True)
    assert not shop.run.checkpoints.exists()


@pytest.mark.parametrize("content", [b"null", b'{"format": 1, "inputs": {}}', b"{"])
def test_a_damaged_record(shop: Workshop, content: bytes) -> None:
    shop.do()
    shop.start_training()
    path = shop.run.stage_record("vocab")
    path.write_bytes(content)
    message = message_of(RunError, shop.do)
    assert message.startswith(f"{path} is damaged (")
    assert message.endswith("Delete it, and run the command again.")
    assert load_record(path, damaged_is_none=True) == {}
    path.unlink()
    shop.do()
    assert shop.do().skipped
    with changed_json(path) as changed:
        changed["counts"]["seen"] = -1
    assert f"{path} is damaged (" in message_of(RunError, shop.do)
    write_json(path, sealed({"format": 0}))
    shop.do(force=True)


def test_settings_are_put_back_on_an_error_but_not_when_the_stage_is_interrupted(shop: Workshop) -> None:
    def attempt(size: int, error: BaseException) -> int:
        def fail() -> StageResult:
            raise error

        with pytest.raises(type(error)):
            shop.do(of_size(size), work=fail)
        return shop.run.load_config(None, []).vocab.size

    attempt(37, CorpusError("no"))
    assert not shop.run.config.exists()
    assert attempt(41, KeyboardInterrupt()) == 41
    assert attempt(43, CorpusError("no")) == 41


def test_parts_of_a_forced_stage_that_was_interrupted_go_when_the_stage_is_skipped(shop: Workshop) -> None:
    shop.do()
    parts = shop.run.path / "vocab.data.parts"
    parts.mkdir()
    assert shop.do().skipped
    assert not parts.exists()


# What has changed

JIEBA = {"name": "jieba", "version": "0.42.1", "dictionary": "sha256:7197c3211d"}


def changes(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    files: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> list[str]:
    old, new = ({name: {"digest": digest} for name, digest in side.items()} for side in files)
    return describe_changes({"settings": before, "inputs": old}, {"settings": now, "inputs": new})


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"model.projection_dim": 64}, {"model.projection_dim": 128}, ["model.projection_dim 64 -> 128"]),
        # What a record leaves out has its default.
        ({}, {"text.script": "simplified"}, ["text.script none -> simplified"]),
        ({"store format": 1}, {"store format": 2}, ["store format 1 -> 2"]),
        ({"vocab.init": "sha256:1"}, {"vocab.init": "sha256:2"}, ["vocab.init 1 -> 2"]),
        ({"train.init": "sha256:1"}, {}, ["train.init 1 -> none"]),
        ({"model.tie_softmax": True, "model.highway_layers": 2}, {"model.tie_softmax": True}, []),
        (
            {"text.segmenter": "jieba", "text.segmenter_version": JIEBA},
            {"text.segmenter": "character", "text.segmenter_version": {"name": "character", "version": "1"}},
            ["text.segmenter jieba -> character"],
        ),
        (
            {"text.segmenter_version": JIEBA},
            {"text.segmenter_version": {**JIEBA, "version": "0.43"}},
            ["text.segmenter_version jieba 0.42.1 -> jieba 0.43"],
        ),
    ],
)
def test_settings(before: Mapping[str, Any], now: Mapping[str, Any], expected: list[str]) -> None:
    assert changes(before, now) == expected


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"a": "1"}, {"a": "2"}, ["1 file changed (a)"]),
        ({"a": "1"}, {"b": "2"}, ["2 files changed (a, b)"]),
        ({"a": "1"}, {"b": "1"}, []),  # the same content under another name
        ({"a": "1"}, {"a": "3", "c": "5", "d": "6"}, ["3 files changed (a, c, d)"]),
    ],
)
def test_files(before: Mapping[str, str], now: Mapping[str, str], expected: list[str]) -> None:
    assert changes({}, {}, (before, now)) == expected
