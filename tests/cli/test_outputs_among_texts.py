"""What elmo-zh has written is not written over unasked, nor read as text: it is skipped and counted."""

import shutil
from pathlib import Path

from contract.command_line import SampleRun, elmo_zh, succeed

from elmo_zh.corpus.sources import find_sources

# Commands, and the output of each in the folder of texts: files named after their text, and folders.
WRITING = (
    ("score t.txt --model model --output", "text.txt.tsv"),
    ("score t.txt --model model --by token --format jsonl --output", "text.txt.jsonl"),
    ("concordance 苹果 t.txt --output", "text.txt.lines.csv"),
    ("explore index --word 果 --output", "text.txt.html"),
    ("embed t.txt --model model --format npy --output", "vectors"),
    ("convert model --layout safetensors --output", "published"),
)


def test_outputs_are_kept_and_skipped_among_texts(used: Path, sample_run: SampleRun) -> None:
    corpus = Path("corpus")
    (corpus / "deep").mkdir(parents=True)
    (corpus / "deep" / "text.txt").write_text("今天我们吃苹果。\n", encoding="utf-8")
    for words, name in WRITING:
        output = corpus / "deep" / name
        succeed(*words.split(), output, "--quiet")
        told = elmo_zh(*words.split(), output).only_error()
        assert told.startswith(f"{output} already exists. Choose another --output, or"), words
    shutil.copytree("model", corpus / "model")
    shutil.copytree("task", corpus / "task")
    shutil.copytree("index", corpus / "deep" / "index")
    shutil.copytree(sample_run.path, corpus / "run", ignore=shutil.ignore_patterns("checkpoints"))
    outputs = {f"deep/{name}" for _, name in WRITING} | {"model", "task", "deep/index", "run"}
    found = find_sources([str(corpus)])
    assert [source.name for source in found.sources] == ["corpus/deep/text.txt"]
    assert {str(path.relative_to(corpus)) for path in found.outputs} == outputs
    # A file that is named is always read.
    assert not find_sources([str(path) for path in corpus.rglob("*.tsv")]).outputs

    told = f"Skipped (elmo-zh outputs: {len(outputs)}): corpus/deep/index,"
    for command, result, number in (
        (("evaluate", corpus, "--model", "model"), "num_predictions", 9),
        (("score", corpus, "--model", "model", "--output", "s.tsv"), "lines", 1),
        (("embed", corpus, "--model", "model", "--output", "vectors"), "lines", 1),
        (("segment", corpus, "--run", "new", "--set", "text.segmenter=character"), "characters", 8),
    ):
        answer = elmo_zh(*command, "--json")
        assert told in answer.stderr, (command, answer)
        assert answer.result()[result] == number, command
