"""`vocab --init` and `--from`, `train --init`, `pipeline --init`: going on from a model on other text."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from contract.command_line import (
    CELL,
    ROOT,
    STEP_TOKENS,
    Answer,
    SampleRun,
    changed_json,
    checkpoint_steps,
    contents_alone,
    elmo_zh,
    metrics_lines,
    record_of,
    require_same_checkpoint,
    settings,
)
from training.ranks import KilledError, changed_loss, kill

from elmo_zh import Word2Vec
from elmo_zh.run.files import file_digest
from elmo_zh.training import train_run

pytestmark = pytest.mark.usefixtures("no_training_picture")

TRAINING = (
    "text.num_workers=1",
    f"train.max_tokens={30 * STEP_TOKENS}",
    "train.batch_size=3",
    "train.unroll_steps=7",
    "train.num_negatives=29",
    "train.num_threads=1",
    f"train.evaluate_every_tokens={20 * STEP_TOKENS}",
    f"train.checkpoint_every_tokens={10 * STEP_TOKENS}",
)


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of other text, segmented; its sizes are those of the defaults, not of the model."""
    folder = tmp_path_factory.mktemp("weather")
    run = folder / "run"
    corpus = shutil.copyfile(ROOT / "data" / "sample" / "weather_home.txt", folder / "weather.txt")
    assert elmo_zh("segment", corpus, "--run", run, *settings(*TRAINING)).status == 0
    return run


@pytest.fixture
def segmented_run(weather: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(weather, tmp_path / "weather"))


@pytest.fixture
def base(sample_run: SampleRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_run.model, tmp_path / "base"))


@pytest.fixture(scope="module")
def encoded(weather: Path, sample_run: SampleRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of other text with the model's words among its own, ready to train."""
    run = Path(shutil.copytree(weather, tmp_path_factory.mktemp("encoded") / "run"))
    assert elmo_zh("vocab", "--run", run, "--init", sample_run.model).status == 0
    assert elmo_zh("encode", "--run", run).status == 0
    return run


@pytest.fixture
def encoded_run(encoded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(encoded, tmp_path / "encoded"))


@pytest.fixture(scope="module")
def adapted(encoded: Path, sample_run: SampleRun, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """The run of other text trained from the model, and what was told."""
    run = Path(shutil.copytree(encoded, tmp_path_factory.mktemp("adapted") / "run"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_run, "can_draw", lambda: False)
        answer = elmo_zh("train", "--run", run, "--init", sample_run.model, "--json")
    assert elmo_zh("export", "--run", run).status == 0
    return run, answer


@pytest.fixture
def adapted_run(adapted: tuple[Path, Answer], tmp_path: Path) -> Path:
    return Path(shutil.copytree(adapted[0], tmp_path / "adapted"))


def words_of(folder: Path) -> list[str]:
    return (folder / "vocab.data").read_text(encoding="utf-8").splitlines()[3:]


def counts_of(run: Path) -> list[int]:
    lines = (run / "vocab.counts").read_text(encoding="utf-8").splitlines()
    return [int(line.rpartition("\t")[2]) for line in lines][3:]


# vocab


def test_vocab_keeps_the_words_of_the_model_and_adds_those_of_the_text(segmented_run: Path, base: Path) -> None:
    run = segmented_run
    answer = elmo_zh("vocab", "--run", run, "--init", base, "--json")
    result = answer.result()
    old, new, counts = words_of(base), words_of(run), counts_of(run)
    assert set(old) < set(new)
    assert counts == sorted(counts, reverse=True)
    assert [*zip(counts, new, strict=True)] == sorted(
        zip(counts, new, strict=True), key=lambda pair: (-pair[0], pair[1])
    )
    added = set(new) - set(old)
    assert min(count for word, count in zip(new, counts, strict=True) if word in added) == 2
    assert result["given_words"] == len(old)
    assert result["absent_words"] == counts.count(0) > 0
    assert f"not found in the text: {counts.count(0)}" in answer.stderr
    assert elmo_zh("encode", "--run", run).stdout == f"Next: elmo-zh train --run {run} --init {base}\n"
    config = (run / "config.toml").read_text(encoding="utf-8")
    assert f"cell_dim = {CELL}\n" in config
    assert f'init = "{base}"\n' in config


def test_vocab_of_a_file_has_its_words_and_no_others(segmented_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("<UNK>\n不在文中\n下雨\n妈妈\n", encoding="utf-8")
    answer = elmo_zh("vocab", "--run", segmented_run, "--from", path, "--json")
    assert answer.result()["given_words"] == 3
    assert sorted(words_of(segmented_run)) == ["下雨", "不在文中", "妈妈"]
    assert words_of(segmented_run)[-1] == "不在文中"
    assert counts_of(segmented_run)[-1] == 0 < counts_of(segmented_run)[1]
    # The stages after it live with a word that never comes.
    changes = settings("model.cell_dim=13", "model.projection_dim=7", "train.num_negatives=2")
    for stage in ("word2vec", "encode", "train", "export"):
        assert elmo_zh(stage, "--run", segmented_run, *changes).status == 0


def test_text_segmented_otherwise_is_refused(base: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "rain.txt"
    corpus.write_text("今天没有下雨。\n" * 11, encoding="utf-8")
    differences = "(text.segmenter character -> jieba)"
    run = tmp_path / "run"
    arguments = ("pipeline", corpus, "--run", run, "--init", base)
    assert differences in elmo_zh(*arguments, *settings("text.segmenter=character")).only_error()
    assert not (run / "segmented").exists()
    assert elmo_zh("segment", corpus, "--run", run, *settings("text.segmenter=character")).status == 0
    told = elmo_zh("vocab", "--run", run, "--init", base).only_error()
    assert told.startswith(f"{base} was trained on text prepared differently {differences}, ")
    # The first stage can take over the model's settings, and the other stages then start from it.
    other = ("--run", tmp_path / "other")
    options = settings("text.heldout_min_sentences=0")
    assert elmo_zh("segment", corpus, *other, "--init", base, *options).status == 0
    words = elmo_zh("vocab", *other).stderr
    assert f"vocab: words in {base / 'vocab.data'}: " in words


# train


def test_training_goes_on_from_the_model(
    adapted: tuple[Path, Answer], adapted_run: Path, sample_run: SampleRun, base: Path
) -> None:
    run, answer, model = adapted_run, adapted[1], sample_run.model
    result = answer.result()
    old, new = words_of(base), words_of(run)
    start = result["started_from"]
    assert start["digest"] == file_digest(base / "bundle.json")
    assert start["words_kept"] == len(old)
    assert start["words_kept"] + start["words_composed"] + start["words_drawn"] == len(new)
    assert f"Started from {model}: {len(old)} words keep their rows" in answer.stderr
    assert not (run / "word2vec.txt").exists()
    # Typed again, it needs the model no more and does nothing.
    elmo_zh("train", "--run", run, "--init", base)
    shutil.rmtree(base)
    for arguments in ((), ("--init", base)):
        assert elmo_zh("train", "--run", run, *arguments, "--json").result()["skipped"] is True
    more = elmo_zh("train", "--run", run, *settings(f"train.max_tokens={37 * STEP_TOKENS}"), "--json")
    assert "Resuming from step 30 of 37." in more.stderr.splitlines()
    assert "Started from" not in more.stderr
    assert more.result()["started_from"] == start


def test_the_model_made_says_where_it_comes_from_and_has_the_word2vec_vectors_of_that_model(
    adapted_run: Path, sample_run: SampleRun, encoded_run: Path
) -> None:
    """As word2vec reads words outside that model's vocabulary. A model made from the new one has both as well."""
    run, base, again = adapted_run, sample_run.model, encoded_run
    digest, theirs = file_digest(base / "bundle.json"), json.loads((base / "bundle.json").read_text(encoding="utf-8"))
    info = json.loads((run / "model" / "bundle.json").read_text(encoding="utf-8"))
    tokens = theirs["training"]["tokens"]
    started_from = {"digest": digest, "tokens": tokens, "origin": {"program": "elmo-zh"}}
    assert info["origin"] == {"program": "elmo-zh", "started_from": started_from}
    assert info["training"]["tokens"] == record_of(run, "train")["counts"]["heldout"]["step"] * STEP_TOKENS
    assert words_of(run / "model") == words_of(run)
    assert elmo_zh("info", run / "model", "--check").status == 0
    before, own = Word2Vec.load(base), Word2Vec.load(run / "model")
    words = list(own.vocabulary.tokens)
    new = [word for word in words if word not in before.vocabulary]
    assert new
    [expected] = before.of_words(words).embed_tokens([words])
    np.testing.assert_array_equal(own.embed_tokens([words])[0], expected)
    assert elmo_zh("export", "--run", run, "--json").result()["skipped"] is True
    assert elmo_zh("train", "--run", again, "--init", run / "model").status == 0
    assert elmo_zh("export", "--run", again).status == 0
    info = json.loads((again / "model" / "bundle.json").read_text(encoding="utf-8"))
    assert info["origin"]["started_from"]["origin"]["started_from"] == started_from
    np.testing.assert_array_equal(Word2Vec.load(again / "model").table, own.table)


def test_an_interrupted_training_goes_on_without_the_model(encoded_run: Path, base: Path, adapted_run: Path) -> None:
    run, reference = encoded_run, adapted_run
    # Before the first checkpoint, and after it.
    with changed_loss(3, kill), pytest.raises(KilledError):
        elmo_zh("train", "--run", run, "--init", base)
    assert not (run / "checkpoints").exists()
    before = (run / "start" / "start.json").read_bytes()
    shutil.rmtree(base)
    with changed_loss(13, kill), pytest.raises(KilledError):
        elmo_zh("train", "--run", run)
    assert checkpoint_steps(run) == [10]
    assert elmo_zh("train", "--run", run).status == 0
    assert (run / "start" / "start.json").read_bytes() == before
    require_same_checkpoint(run, reference, 30)
    counts, expected = (record_of(path, "train")["counts"] for path in (run, reference))
    for measured in ("memory", "training_seconds"):
        del counts[measured], expected[measured]
    assert counts == expected
    full = [line["step"] for line in metrics_lines(run) if line.get("heldout_set") == "full"]
    assert full == [counts["heldout"]["step"]]


def test_a_model_that_has_changed_is_another_start(adapted_run: Path, base: Path) -> None:
    encoded_run = adapted_run
    assert elmo_zh("train", "--run", encoded_run, "--init", base).status == 0
    path = base / "bundle.json"
    with changed_json(path) as info:
        info["training"] = {}
    answer = elmo_zh("train", "--run", encoded_run)
    assert answer.status == 1
    assert " would be discarded. Reason: train.init " in answer.errors[0]
    old = (encoded_run / "start" / "start.json").read_bytes()
    result = elmo_zh("train", "--run", encoded_run, "--force", "--json").result()
    assert result["started_from"]["digest"] == file_digest(path)
    assert (encoded_run / "start" / "start.json").read_bytes() != old
    # Without it, training starts from chance, and nothing is left of it.
    arguments = (*settings("train.init=", "word2vec.enabled=false"), "--force", "--json")
    assert "started_from" not in elmo_zh("train", "--run", encoded_run, *arguments).result()
    assert not (encoded_run / "start").exists()


def test_a_run_cannot_start_from_what_it_makes(run: Path) -> None:
    before = contents_alone(run)
    for arguments in (("vocab",), ("train",), ("train", "--force")):
        told = elmo_zh(*arguments, "--run", run, "--init", run / "model").only_error()
        assert f"is inside {run}, and a run cannot start from its own files." in told
    assert contents_alone(run) == before
