"""A page of a drawn model and a corpus that is full of markup."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contexts.texts import indexed, model_of_words, write_text

from elmo_zh import ElmoEmbedder
from elmo_zh.contexts import PageChoice
from elmo_zh.explore.page import PageContent
from elmo_zh.explore.points import PointLabels
from elmo_zh.explore.server import ExploreServer, LiveSentences
from elmo_zh.run.reporter import SilentReporter

WORDS = ("我们", "今天", "吃", "苹果", "。", "𠮷野", "<script>")
MARKUP = (
    "吃 苹果 <script>window.broken=1</script> 。",
    "今天 </script><script>window.broken=1</script> 苹果",
    "苹果 \" ' & &amp; &lt; <img src=x onerror=window.broken=1> 。",
    "<!-- 苹果 <![CDATA[ ]]> --> ${data} $data",
    "😀 👩‍👩‍👧 苹果 𠮷野 家 𠮷野 。",
    "\u2028 苹果 \u2029 \\u003c \x01",
)
PLAIN = ("我们 今天 吃 苹果 。", "苹果 很 贵 ， 我们 吃 米饭 。", "今天 𠮷野 吃 苹果", "我们 今天 吃 苹果 。")


def explored(folder: Path, **choice: Any) -> dict[str, Any]:
    path = model_of_words(folder / "model", with_softmax=True, words=WORDS)
    embedder = ElmoEmbedder.load(path, "cpu")
    texts = [write_text(folder / "a&b.txt", MARKUP), write_text(folder / "c.txt", PLAIN)]
    index = indexed(embedder, texts, folder / "a.index", min_count=1)
    chosen = PageChoice(**{"words": ("苹果", "𠮷野"), **choice})
    rows = write_text(
        folder / "labels.tsv",
        (
            "file\tline\tstart\tword\tshown\tshown_zh",
            "a&b.txt\t0\t2\t苹果\t<i>one</i>\t<b>一",
            "c.txt\t1\t0\t苹果\ttwo\t二",
        ),
    )
    labels = PointLabels.load(rows, [text["name"] for text in index.info["texts"]])
    return PageContent(index, embedder, chosen, SilentReporter(), labels).whole()


@contextmanager
def served(page: str, sentences: LiveSentences) -> Iterator[ExploreServer]:
    with ExploreServer(0).serving(page, sentences) as server:
        yield server
