"""Stages are done, skipped, done again or refused, and say which."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import changed_json
from messages import Heard, message_of

from elmo_zh.config import Config, TrainConfig
from elmo_zh.errors import RunError
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import Stage, StageOutcome, StageResult, load_record, run_stage


class Workshop:
    """A run with one stage, "vocab", that writes the number of times it was done."""

    def __init__(self, folder: Path) -> None:
        self.run = RunDir(folder / "run")
        self.corpus = folder / "corpus.txt"
        self.corpus.write_text("今天天气很好", encoding="utf-8")
        self.heard = Heard()
        self.num_done = self.num_discarded = 0
        self.stage = Stage(
            name="vocab",
            settings={"size": 31, "form": {"name": "NFC"}},
            inputs={"corpus.txt": self.corpus},
            budget={"epochs": 5.0},
            discard=self.discard,
            work=self.work,
        )

    def work(self) -> StageResult:
        self.num_done += 1
        self.run.vocab.write_text(f"made {self.num_done}", encoding="utf-8")
        return StageResult(outputs=[self.run.vocab], counts={"rows": 29})

    def discard(self) -> None:
        self.num_discarded += 1

    def do(self, *, force: bool = False, config: Config | None = None, **changes: Any) -> StageOutcome:
        self.heard.notes.clear()
        stage = replace(self.stage, **changes)
        return run_stage(self.run, config or Config(), stage, force=force, reporter=self.heard)

    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.run.stage_record("vocab").read_text(encoding="utf-8")))

    def start_training(self) -> None:
        (self.run.checkpoints / "step-00000013").mkdir(parents=True)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_a_change_after_an_interruption_discards_the_half_done(shop: Workshop) -> None:
    def fail() -> StageResult:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        shop.do(work=fail)
    shop.do(settings={"size": 37, "form": {"name": "NFC"}})
    assert shop.heard.notes == ["vocab runs again: vocab.size 31 -> 37."]
    assert shop.num_discarded == 1


def test_changes_that_discard_no_training_are_not_refused(shop: Workshop) -> None:
    shop.do()
    shop.run.checkpoints.mkdir()  # without a checkpoint there is none
    assert not shop.do(settings={"size": 37}).skipped
    shop.start_training()
    assert not shop.do(settings={"size": 41}, discards_training=False).skipped


def test_a_missing_input_stops_before_anything_is_written(shop: Workshop) -> None:
    shop.corpus.unlink()
    assert message_of(RunError, shop.do) == f"{shop.corpus} is missing. Check the path."
    assert not shop.run.path.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"format": "\xff"}', "'utf-8' codec can't decode byte 0xff"),
        (b"null", "it holds a NoneType, not an object"),
        (b'{"format": 1, "inputs": {}}', "it has no settings"),
        (b'{"format": 1, "inputs": {}, "settings": {}, "finished": true}', "it has no outputs"),
        (b'{"format": 1, "inputs": {}, "settings": {}, "started_at": "now"}', "its start or its seconds are wrong"),
    ],
)
def test_a_damaged_record(shop: Workshop, content: bytes, problem: str) -> None:
    shop.do()
    shop.start_training()
    path = shop.run.stage_record("vocab")
    path.write_bytes(content)
    message = message_of(RunError, lambda: shop.do(discard=None))
    assert message.startswith(f"{path} is damaged ({problem}")
    assert message.endswith("). Delete this file; the stage vocab then runs again, and nothing else is lost.")
    assert load_record(path, damaged_is_none=True) == {}
    path.unlink()
    shop.do(discard=None)
    assert shop.do(discard=None).skipped


def test_a_changed_value_of_a_record(shop: Workshop) -> None:
    shop.do()
    path = shop.run.stage_record("vocab")
    record = shop.record()
    with changed_json(path) as changed:
        changed["counts"]["seen"] = -1
    told = message_of(RunError, shop.do)
    assert f"{path} is damaged (its digest does not match its content). Delete this file; the stage vocab" in told
    # Some depth that can still be read is too deep to be written.
    for depth in range(700, 1000, 7):
        path.write_text(f'{{"format": 1, "digest": "", "a": {"[" * depth}{"]" * depth}}}', encoding="utf-8")
        assert message_of(RunError, shop.do).startswith(f"{path} is damaged ("), depth
    # A record of an earlier version has no digest of its own.
    del record["digest"]
    path.write_text(json.dumps(record), encoding="utf-8")
    assert shop.do().skipped


def test_a_damaged_record_of_training(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """--force would remove the checkpoints, and a training without a record is not continued."""
    monkeypatch.setattr("sys.argv", ["elmo-zh"])
    path = shop.run.stage_record("train")
    path.parent.mkdir(parents=True)
    path.write_text("[]", encoding="utf-8")
    assert message_of(RunError, lambda: load_record(path)) == (
        f"{path} is damaged (it holds a list, not an object). The checkpoints are still there: export the model with"
        f" elmo-zh export --run {shop.run.path}, or start over with elmo-zh train --run {shop.run.path} --force"
    )


def test_a_record_of_another_format_counts_as_none(shop: Workshop) -> None:
    shop.do()
    path = shop.run.stage_record("vocab")
    path.write_text('{"format": 0}', encoding="utf-8")
    assert not shop.do().skipped
    assert shop.heard.notes == []
    assert shop.do().skipped


def test_settings_are_put_back_when_a_stage_refuses_but_not_when_it_is_interrupted(tmp_path: Path) -> None:
    run = RunDir(tmp_path)

    def attempt(seed: int, error: BaseException) -> None:
        with run.config_kept_on_error():
            run.save_config(Config(train=TrainConfig(seed=seed)))
            raise error

    def change(seed: int, error: BaseException) -> None:
        with pytest.raises(type(error)):
            attempt(seed, error)

    change(3, RunError("no"))
    assert not run.config.exists()
    # When a stage has begun, a first command leaves its settings.
    run.stage_record("segment").parent.mkdir()
    run.stage_record("segment").touch()
    change(5, RunError("no"))
    change(7, RunError("no"))
    assert run.load_config(None, []).train.seed == 5
    change(11, KeyboardInterrupt())
    assert run.load_config(None, []).train.seed == 11


# Parts


def leave_part(shop: Workshop, *, expect: bool = False, **changes: Any) -> None:
    """Have the stage interrupted after a part was made; see whether one of before was there."""
    parts = shop.run.vocab_parts

    def stop() -> StageResult:
        assert (parts / "one").exists() == expect
        (parts / "one").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.do(work=stop, parts=parts, discard=None, **changes)


def test_parts_stay_after_an_interruption_and_go_at_the_end(shop: Workshop) -> None:
    leave_part(shop)
    leave_part(shop, expect=True)
    os.utime(shop.corpus, ns=(7, 7))  # the same content
    leave_part(shop, expect=True)
    assert not shop.do(parts=shop.run.vocab_parts, discard=None).skipped
    assert not shop.run.vocab_parts.exists()


def test_parts_of_anything_else_are_discarded(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_part(shop)
    leave_part(shop, settings={"size": 37})
    leave_part(shop, settings={"size": 37}, expect=True)
    leave_part(shop, settings={"size": 37}, force=True)
    shop.corpus.write_text("今天天气不好", encoding="utf-8")
    leave_part(shop, settings={"size": 37})
    monkeypatch.setattr("elmo_zh.run.record.__version__", "0.0.7")
    leave_part(shop, settings={"size": 37})
    (shop.run.vocab_parts / "manifest.json").unlink()
    leave_part(shop, settings={"size": 37})


def test_parts_of_a_forced_stage_that_was_interrupted_go_when_the_stage_is_skipped(shop: Workshop) -> None:
    shop.do(discard=None)
    leave_part(shop, force=True)
    assert shop.do(parts=shop.run.vocab_parts, discard=None).skipped
    assert not shop.run.vocab_parts.exists()
