"""Commands that count and encode, killed without a warning: typed again they go on and give the same files."""

import re
import subprocess
import sys
from pathlib import Path

from waiting import wait_until

from elmo_zh.config import Config, TextConfig
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.encode import encode
from elmo_zh.stages.vocab import vocab


def build_run(folder: Path) -> RunDir:
    """A run with segmented text in nine files."""
    run = RunDir(folder)
    run.segmented.mkdir(parents=True)
    for number in range(9):
        kind = f"train-{number:05d}" if number < 8 else "heldout-00000"
        lines = (f"好 第{k} 天 第{k % 1013}\n" for k in range(7000 * number, 7000 * number + 15_000))
        (run.segmented / f"{kind}.txt").write_text("".join(lines), encoding="utf-8")
    return run


STAGES = {"vocab": vocab, "encode": encode}


def do(run: RunDir, stage: str, *, is_killed: bool = False) -> str:
    """Run a stage, killed as soon as it has finished a part or not; return what it told."""
    arguments = [sys.executable, "-m", "elmo_zh", stage, "--run", str(run.path), "--set", "text.num_workers=2"]
    parts = run.vocab_parts if stage == "vocab" else run.ids_parts
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        if is_killed:
            wait_until(lambda: list(parts.glob("*.json")), process)
            process.kill()
        _, told = process.communicate()
    assert process.returncode == (-9 if is_killed else 0), told
    assert bool(list(parts.glob("*.json"))) == is_killed
    return told


def test_killed_stages_go_on(tmp_path: Path) -> None:
    killed, whole = build_run(tmp_path / "killed"), build_run(tmp_path / "whole")
    for stage, resumed in (("vocab", r"of 8 files are counted"), ("encode", r"of 9 shards are finished")):
        assert "Resuming" not in do(killed, stage, is_killed=True)
        assert re.search(rf"^Resuming: [1-9] {resumed}\.$", do(killed, stage), re.MULTILINE)
        STAGES[stage](whole, Config(text=TextConfig(num_workers=1)), force=False, reporter=SilentReporter())
    made = [
        {str(path.relative_to(run.path)): path.read_bytes() for path in sorted(run.path.rglob("*")) if path.is_file()}
        for run in (killed, whole)
    ]
    for files in made:
        for name in ("stages/vocab.json", "stages/encode.json", "config.toml"):
            del files[name]
    assert made[0] == made[1]
    assert not [name for name in made[0] if "unfinished" in name or "parts" in name]
