"""Plan a run, make it, and look at it, by the command line."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import SampleRun, elmo_zh
from drawn_bundles import install_model

pytestmark = pytest.mark.usefixtures("empty_folder")

FAST = ("--set", "text.segmenter=character", "--set", "text.num_workers=1", "--set", "word2vec.epochs=1")
PLAN_FAST = (*FAST, "--no-training")
TINY = (
    *("--set", "model.cell_dim=13", "--set", "model.projection_dim=7", "--set", "train.max_tokens=210"),
    *("--set", "train.batch_size=3", "--set", "train.unroll_steps=7", "--set", "train.num_negatives=29"),
)
WIDTH = ("--set", "model.projection_dim=7", "--set", "model.cell_dim=13")


def write_corpus() -> Path:
    folder = Path("corpus")
    folder.mkdir()
    for name, sign in (("a", "山"), ("b", "水")):
        lines = [f"第{number}天我看见{sign}边有{number % 7}只鸟。" for number in range(200)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress('{"text": "苹果很甜。"}\n'.encode() * 40))
    return folder


def test_a_plan_of_a_small_corpus_is_exact() -> None:
    found = elmo_zh("plan", write_corpus(), *PLAN_FAST, *WIDTH, "--json").result()
    assert found["sample"]["is_all"] is True
    assert found["figures"]["sentences"] == {"value": 440, "low": 440, "high": 440}
    assert found["figures"]["documents"]["value"] == 42
    assert found["figures"]["characters"] == found["figures"]["tokens"]
    assert found["training"] == {}
    assert not Path("plan.json").exists()
    shares = [point["share"] for point in found["coverage_curve"]]
    assert shares == sorted(shares)


def test_a_plan_recommends_the_starter_for_much_less_text_than_it_has_seen(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, recommended = write_corpus(), "Recommended: start from the installed model starter"
    assert recommended not in elmo_zh("plan", corpus, *PLAN_FAST, *WIDTH).stdout
    model = install_model(empty_folder, "starter", monkeypatch)
    info = json.loads((model / "bundle.json").read_text(encoding="utf-8"))
    for seen, is_recommended in ((1_000_000, True), (20_000, False)):
        info["training"]["tokens"] = seen
        (model / "bundle.json").write_text(json.dumps(info), encoding="utf-8")
        answer = elmo_zh("plan", corpus, *PLAN_FAST, *WIDTH)
        assert (recommended in answer.stdout) == is_recommended, answer.stdout
    character = elmo_zh("plan", corpus, *PLAN_FAST, *WIDTH, "--set", "model.mode=character")
    assert recommended not in character.stdout


def test_a_plan_warns_of_a_corpus_without_chinese() -> None:
    warned = "There is no Chinese character in what was read of this corpus."
    assert warned not in elmo_zh("plan", write_corpus(), *PLAN_FAST, *WIDTH).stderr
    Path("english.txt").write_text("The quick brown fox.\n" * 50, encoding="utf-8")
    answer = elmo_zh("plan", "english.txt", *PLAN_FAST, *WIDTH)
    assert answer.status == 0
    assert warned in answer.stderr


def test_a_plan_is_told_in_tables() -> None:
    answer = elmo_zh("plan", write_corpus(), *PLAN_FAST, *WIDTH)
    assert answer.status == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("All of the corpus was read: 3 files, ")
    assert [line.split()[0] for line in lines if line.endswith("exact")][:3] == ["documents", "characters", "of"]
    for start in (
        "distinct words ",
        "Recommended: vocab.size = ",
        "segment ",
        "word2vec ",
        "together ",
        "Vectors of the",
    ):
        assert any(line.startswith(start) for line in lines), start
    assert not any(line.startswith("training with") for line in lines)
    (recommended,) = [line for line in lines if line.startswith("Recommended: ")]
    assert recommended.startswith(
        "Recommended: vocab.size = 1,000, since its words cover 95% of the tokens. Set: 30,000, which gives "
    )


def test_min_count_is_named_where_it_limits_the_vocabulary() -> None:
    """Most words occur once, so no size covers 95%."""
    Path("a.txt").write_text("".join(f"山{chr(0x4E00 + n)}。\n" for n in range(3000)), encoding="utf-8")
    answer = elmo_zh("plan", "a.txt", *PLAN_FAST, *WIDTH, "--set", "vocab.min_count=3")
    (recommended,) = [line for line in answer.stdout.splitlines() if line.startswith("Recommended: ")]
    assert recommended.startswith(
        "Recommended: vocab.size = 1,000, since it has room for every word that occurs vocab.min_count = 3 times or"
        " more. Set: 30,000, which gives 5 rows."
    )


def test_standard_input_and_options_of_reading() -> None:
    text = "id\t文\n1\t山水。\n".encode("gb18030")
    arguments = ("--format", "tsv", "--encoding", "gb18030", "--field", "文", *PLAN_FAST, *WIDTH, "--json")
    found = elmo_zh("plan", "-", *arguments, stdin=text).result()
    assert found["figures"]["tokens"]["value"] == 3


def test_planned_beside_actual() -> None:
    """What was planned is told at the end of the pipeline, and by inspect."""
    corpus = write_corpus()
    planned = elmo_zh("plan", corpus, "--run", "run", *FAST, *TINY, "--json").result()
    assert json.loads(Path("run/plan.json").read_text(encoding="utf-8")) == planned
    assert list(planned["training"])[:3] == ["this run", "tiny", "small"]
    made = elmo_zh("pipeline", corpus, "--run", "run", *FAST, *TINY)
    assert made.status == 0, made.stderr
    table = [line for line in made.stderr.splitlines() if line.endswith("in the interval")]
    assert len(table) == 1
    assert any(line.startswith("tokens ") and line.endswith("yes") for line in made.stderr.splitlines())
    found = elmo_zh("inspect", "run", "--json").result()["plan"]
    assert {name: found[name]["is_within"] for name in ("documents", "characters", "sentences", "tokens")} == {
        "documents": True, "characters": True, "sentences": True, "tokens": True,
    }  # fmt: skip
    assert found["distinct_words"]["is_within"]
    assert found["coverage"]["is_within"]
    assert found["bytes.segmented"]["deviation"] == pytest.approx(0, abs=0.02)
    for name in ("seconds.segment", "seconds.train", "bytes.checkpoints", "bytes.model", "bytes.ids"):
        assert found[name]["actual"] > 0
    assert found["bytes.checkpoints"]["is_within"]
    assert elmo_zh("inspect", "run", "--json").result()["changed_settings"] == []


def test_other_settings_than_planned_are_told() -> None:
    corpus = write_corpus()
    assert elmo_zh("plan", corpus, "--run", "run", *PLAN_FAST, *WIDTH).status == 0
    assert elmo_zh("segment", corpus, "--run", "run", *FAST, "--set", "vocab.size=17").status == 0
    assert elmo_zh("vocab", "--run", "run").status == 0
    answer = elmo_zh("inspect", "run")
    told = "Settings have changed since the plan was made: vocab.size, model.cell_dim, model.projection_dim."
    assert told in answer.stdout.splitlines()


def test_paths_and_corpora_that_are_not_there() -> None:
    told = elmo_zh("plan", "nowhere", *PLAN_FAST).only_error()
    assert told == f"nowhere does not exist. Check the path; it is taken from the current folder {Path.cwd()}."
    Path("empty").mkdir()
    assert elmo_zh("plan", "empty", *PLAN_FAST).only_error().startswith("empty holds no text files (")
    Path("a.txt").touch()
    told = elmo_zh("plan", "a.txt", *PLAN_FAST).only_error()
    assert told == "a.txt holds no text. Give a file with text."
    Path("a.json").write_text('{"name": "x"}', encoding="utf-8")
    told = elmo_zh("plan", "a.json", *PLAN_FAST).only_error()
    assert told == "a.json: no field is text for sure among name. Name one or several: --field NAME"
    assert elmo_zh("plan").status == elmo_zh("plan", "a.txt", "--seconds", "0").status == 2


def test_a_damaged_plan() -> None:
    corpus = write_corpus()
    assert elmo_zh("segment", corpus, "--run", "run", *FAST).status == 0
    for content, what in (
        ("{", "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('{"format": 1, "settings": {}}', "KeyError: 'figures'"),
        ('{"format": 1, "settings": {}, "figures": {"tokens": 3}}', "TypeError: 'int' object is not subscriptable"),
        ("[]", "TypeError: list indices must be integers or slices, not str"),
    ):
        Path("run/plan.json").write_text(content, encoding="utf-8")
        told = elmo_zh("inspect", "run").only_error()
        assert told == f"run/plan.json is damaged ({what}). Make it again with: elmo-zh plan CORPUS --run run"
    Path("run/plan.json").write_text('{"format": 99, "settings": {}, "figures": {}}', encoding="utf-8")
    told = elmo_zh("inspect", "run").only_error()
    assert told == "run/plan.json is of format 99, expected 1. Make it again with: elmo-zh plan CORPUS --run run"


def test_runs_that_hold_nothing() -> None:
    begin = "Begin a run with: make train CORPUS=my-texts/, or elmo-zh segment CORPUS --run run"
    told = elmo_zh("inspect", "run").only_error()
    assert told == f"run does not exist. {begin}"
    Path("run").mkdir()
    told = elmo_zh("inspect", "run").only_error()
    assert told == f"run is not the folder of a run. {begin}"
    assert list(Path("run").iterdir()) == []


def test_a_run_that_is_only_segmented() -> None:
    assert elmo_zh("segment", write_corpus(), "--run", "run", *FAST).status == 0
    answer = elmo_zh("inspect", "run", "--samples", "3")
    assert answer.status == 0, answer.stderr
    lines = answer.stdout.splitlines()
    start = lines.index("Random sentences:")
    sentences = [
        line for path in Path("run/segmented").glob("train-*.txt") for line in path.read_text("utf-8").split("\n")
    ]
    assert all(line.removeprefix("  ") in sentences for line in lines[start + 1 : start + 4])
    rows = {line.split()[0]: line.split() for line in lines if line}
    assert rows["a.txt"][1:3] == ["1", "1"]
    assert rows["c.jsonl.gz"][1:3] == ["1", "40"]
    assert Path("run/coverage.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_is_only_planned() -> None:
    assert elmo_zh("plan", write_corpus(), "--run", "run", *PLAN_FAST, *WIDTH).status == 0
    found = elmo_zh("inspect", "run", "--json").result()
    assert (found["stages"], found["text"], found["plan"]) == ({}, {}, {})
    assert elmo_zh("inspect", "run").stdout.splitlines()[0] == "No stage has finished yet."


def test_a_finished_run(sample_run: SampleRun, run: Path) -> None:
    found = elmo_zh("inspect", run, "--tokens", "7", "--json").result()
    assert list(found["stages"]) == ["segment", "vocab", "word2vec", "encode", "train", "export"]
    assert list(found["sources"]) == ["food.txt", "nature.txt"]
    text: Any = found["text"]
    assert text["tokens"] == found["stages"]["segment"]["train_tokens"]
    assert len(text["most_frequent"]) == len(text["longest"]) == 7
    for shares in text["kinds"].values():
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    curve = found["coverage_curve"]
    assert [point["share"] for point in curve] == sorted(point["share"] for point in curve)
    assert curve[-1]["share"] == pytest.approx(found["stages"]["vocab"]["coverage"], abs=1e-5)
    assert found["coverage_picture"] == str(run / "coverage.png")
    assert not (sample_run.path / "coverage.png").exists()


def test_the_verdict_of_a_finished_run_is_shown_again(sample_run: SampleRun, run: Path) -> None:
    found = elmo_zh("inspect", run, "--json").result()
    record = json.loads((run / "stages" / "train.json").read_text(encoding="utf-8"))
    assert found["verdict"] == record["counts"]["verdict"]
    assert list(found["verdict"]) == ["findings", "advice", "command"]
    trained = sample_run.answer.stderr.splitlines()
    start = trained.index("Verdict:")
    lines = elmo_zh("inspect", run).stdout.splitlines()
    shown = lines[lines.index("Verdict:") :]
    assert shown[: len(found["verdict"]["findings"])] == trained[start : start + len(found["verdict"]["findings"])]
    # A run of an earlier version has none.
    del record["counts"]["verdict"]
    (run / "stages" / "train.json").write_text(json.dumps(record), encoding="utf-8")
    assert "Verdict:" not in elmo_zh("inspect", run).stdout.splitlines()


def test_without_matplotlib_nothing_is_drawn(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_zh.inspection.inspect_run.can_draw", lambda: False)
    answer = elmo_zh("inspect", run)
    assert "matplotlib is not installed, so coverage.png is not drawn." in answer.stderr.splitlines()
    assert not (run / "coverage.png").exists()


def test_many_sources_are_folded() -> None:
    folder = Path("corpus")
    folder.mkdir()
    for number in range(25):
        (folder / f"{number:02}.txt").write_text("山水。\n" * (30 - number), encoding="utf-8")
    assert elmo_zh("segment", folder, "--run", "run", *FAST).status == 0
    lines = elmo_zh("inspect", "run").stdout.splitlines()
    assert sum(line.split()[:1] != [] and line.split()[0].endswith(".txt") for line in lines) == 20
    assert [line.split()[:3] for line in lines if line.startswith("5 others")] == [["5", "others", "5"]]


def test_a_plan_without_training_needs_no_torch(tmp_path: Path) -> None:
    from contract.command_line import run_python

    pytest.importorskip("gensim", reason="without gensim, word2vec is trained in torch")
    (tmp_path / "a.txt").write_text("山水。\n" * 50, encoding="utf-8")
    code = (
        "import sys; from elmo_zh.cli import main\n"
        f"sys.argv = {['elmo-zh', 'plan', 'a.txt', *PLAN_FAST, *WIDTH, '--quiet']!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    answer = run_python("-c", code, cwd=tmp_path)
    assert answer.stderr.splitlines()[-1] == "False", (answer, sys.path)
