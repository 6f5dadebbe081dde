"""The command `plan`."""

import json
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, run_python, succeed
from drawn_bundles import install_model
from planning.corpora import FAST, PLAN_FAST, WIDTH, write_corpus

TINY = (
    *("--set", "model.cell_dim=13", "--set", "model.projection_dim=7", "--set", "train.max_tokens=210"),
    *("--set", "train.batch_size=3", "--set", "train.unroll_steps=7", "--set", "train.num_negatives=29"),
)


def test_a_plan_of_a_start_from_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = install_model(tmp_path, "starter", monkeypatch)
    answer = elmo_zh("plan", write_corpus(), "--init", "starter", "--run", "run", "--set", "train.epochs=1")
    assert answer.stdout.endswith("pipeline corpus --run run --init starter\n"), answer.stderr
    assert "Recommended: vocab.size" not in answer.stdout
    plan = json.loads(Path("run/plan.json").read_text(encoding="utf-8"))
    assert plan["settings"]["model"]["cell_dim"] == json.loads((model / "options.json").read_text())["lstm"]["dim"]
    assert "word2vec" not in plan["stages"]


def test_a_corpus_that_is_all_sample_gives_the_figures_of_its_run() -> None:
    corpus = write_corpus()
    plan = elmo_zh("plan", corpus, "--run", "run", *FAST, *TINY, "--json").result()
    assert json.loads(Path("run/plan.json").read_text(encoding="utf-8")) == plan
    assert plan["sample"]["is_all"] is True
    shares = [point["share"] for point in plan["coverage_curve"]]
    assert shares == sorted(shares)
    succeed("pipeline", corpus, "--run", "run", *FAST, *TINY)
    stages, figures = elmo_zh("info", "run", "--json").result()["stages"], plan["figures"]
    for name in ("characters", "kept_characters"):
        assert figures[name] == stages["segment"][name]
    for name in ("sentences", "tokens"):
        assert figures[name] == stages["segment"][f"train_{name}"] + stages["segment"][f"heldout_{name}"]
    for name in ("distinct_words", "rows"):
        assert figures[name] == pytest.approx(stages["vocab"][name], rel=0.05)
    assert plan["stages"]["word2vec"]["bytes"] == pytest.approx(Path("run/word2vec.txt").stat().st_size, rel=0.05)
    assert plan["training"]["tokens"] == stages["train"]["tokens"]


def test_a_corpus_without_text_and_no_corpus() -> None:
    Path("a.txt").touch()
    assert elmo_zh("plan", "a.txt", *PLAN_FAST).only_error().startswith("a.txt: no text found.")
    assert elmo_zh("plan").status == elmo_zh("plan", "a.txt", "--seconds", "0").status == 2


def test_a_plan_without_training_needs_no_torch(tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="without gensim, word2vec is trained in torch")
    (tmp_path / "a.txt").write_text("山水。\n" * 50, encoding="utf-8")
    code = (
        "import sys; from elmo_zh.cli import main\n"
        f"sys.argv = {['elmo-zh', 'plan', 'a.txt', *PLAN_FAST, *WIDTH, '--quiet']!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    answer = run_python("-c", code, cwd=tmp_path)
    assert answer.stderr.splitlines()[-1] == "False", answer
