"""`elmo-zh info` of folders other than runs and bundles, and what protects them."""

import os
from pathlib import Path

import pytest
from contract.command_line import elmo_zh, succeed

pytestmark = pytest.mark.usefixtures("used")
INDEXING = ("index", "t.txt", "--model", "model", "--min-count", "1", "--output", "index")


def test_an_index() -> None:
    found = elmo_zh("info", "index", "--check", "--json").result()
    assert (found["kind"], found["texts"], found["changed_files"]) == ("index", ["t.txt"], [])
    assert found["next"] == "elmo-zh senses WORD --index index"
    lines = succeed("info", "index").stdout.splitlines()
    assert [line for line in lines if line.startswith("texts: ")] == ["texts:      t.txt"]
    assert lines[-1] == f"Next: {found['next']}"


@pytest.mark.parametrize("kind", ["comparison", "probe"])
def test_a_comparison_or_probe_is_shown_as_its_report(kind: str) -> None:
    Path(kind).mkdir()
    Path(kind, f"{kind}.json").write_text('{"metric": "accuracy", "what": "tags"}', encoding="utf-8")
    Path(kind, f"{kind}.md").write_text("# Names\n\nELMo is better.\n", encoding="utf-8")
    assert succeed("info", kind).stdout.splitlines() == ["# Names", "", "ELMo is better."]
    assert elmo_zh("info", kind, "--json").result()["kind"] == kind


def test_a_model_of_another_program() -> None:
    Path("other").rename("foreign")
    Path("foreign/bundle.json").unlink()
    found = elmo_zh("info", "foreign", "--json").result()
    assert (found["kind"], found["next"]) == ("model", "elmo-zh convert foreign --output DIR")
    assert found["options"]["lstm"]["projection_dim"] == 5


@pytest.mark.parametrize(("folder", "name"), [("index", "layer-0.npy"), ("task", "task.json")])
def test_a_file_that_was_changed_fails_the_check(folder: str, name: str) -> None:
    path = Path(folder, name)
    path.write_bytes(path.read_bytes().replace(path.read_bytes()[-9:-6], b"   "))
    answer = elmo_zh("info", folder, "--check")
    assert answer.status == 1
    assert name in answer.errors[0]


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("index/index.json", ("senses", "果", "--index", "index")),
        ("task/task.json", ("task", "predict", "t.txt", "--task", "task")),
    ],
)
def test_a_changed_description_is_not_believed(path: str, command: tuple[str, ...]) -> None:
    changed = Path(path).read_text(encoding="utf-8").replace("t.txt", "s.txt").replace("有", "在")
    Path(path).write_text(changed, encoding="utf-8")
    assert elmo_zh(*command).only_error().startswith(f"{path} is damaged (its digest")


@pytest.mark.parametrize("folder", ["index", "task", "model"])
def test_a_pipe_is_named_and_never_opened(folder: str) -> None:
    os.mkfifo(Path(folder, "notes"))
    assert elmo_zh("info", folder).only_error().startswith(f"{folder}/notes is a device, a pipe or a socket")


def test_other_paths() -> None:
    assert elmo_zh("info", "t.txt").only_error().startswith("t.txt is not ")
    assert elmo_zh("info", "nowhere").only_error().startswith("nowhere does not exist")
