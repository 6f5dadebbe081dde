"""The page of `explore` in a headless Chromium, from a corpus that is full of markup."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from contexts.chromium import Page, started_chromium
from contexts.explored import MARKUP, served

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.explore.page import build_page, write_page
from elmo_zh.explore.server import LiveSentences

pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'bokeh>=3.6'")
pytestmark = pytest.mark.browser

PLACE = """(() => {
  const view = Bokeh.index.get_by_id(figure.id);
  const area = view.canvas_view.el.getBoundingClientRect();
  const [x, y] = [source.data.x[INDEX], source.data.y[INDEX]];
  return [area.x + view.frame.x_scale.compute(x), area.y + view.frame.y_scale.compute(y)];
})()"""


Opened = tuple[Page, str, dict[str, Any]]


@pytest.fixture(scope="module")
def opened(page: tuple[Path, dict[str, Any]]) -> Iterator[Opened]:
    """The browser, the address of the page, and its content."""
    folder, data = page
    write_page(data, folder / "page.html")
    with started_chromium(folder / "profile") as browser:
        yield browser, (folder / "page.html").as_uri(), data


def texts(browser: Page, selector: str) -> list[str]:
    found: list[str] = browser.evaluate(f"[...document.querySelectorAll({selector!r})].map((each) => each.textContent)")
    return found


def text(browser: Page, name: str) -> str:
    return str(browser.evaluate(f"document.getElementById({name!r}).textContent"))


def click(browser: Page, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")


def place_of(browser: Page, index: int) -> tuple[float, float]:
    x, y = browser.evaluate(PLACE.replace("INDEX", str(index)))
    return x, y


def test_words_are_listed_and_a_point_shows_its_line(opened: Opened) -> None:
    browser, address, data = opened
    browser.open(f"{address}#en")
    assert texts(browser, "#words button") == ["苹果 1", "𠮷野 1"]
    for index in (0, 3):
        shown = data["lines"][data["points"][index][0]]
        browser.mouse(*place_of(browser, index))
        assert text(browser, "sentence") == shown[0]
        assert text(browser, "source") == f"{shown[1]}:{shown[2] + 1}"
        assert texts(browser, "#sentence mark") == ["苹果"]
    browser.mouse(*place_of(browser, 2), click=True)
    browser.mouse(1, 1)
    assert text(browser, "sentence") == data["lines"][data["points"][2][0]][0]
    neighbours = texts(browser, "#neighbours li")
    assert len(neighbours) == len(data["neighbours"]["2"][2])
    assert texts(browser, "#substitutes span")[0].split()[0] == data["parts"][0]["substitutes"][2][0][0]
    browser.evaluate("document.querySelector('#sentence span').onmouseenter()")
    assert text(browser, "surprisal").startswith("Surprisal: forward ")
    click(browser, "#neighbours button")
    assert browser.evaluate("state.kept") == data["neighbours"]["2"][2][0][0]


def test_colours_legend_and_examples(opened: Opened) -> None:
    browser, address, data = opened
    browser.open(f"{address}#en")
    _, _, start, end = data["words"][0]
    assert texts(browser, "#colourings button") == ["Usage", "Source", "shown"]
    for name in ("source", "label:shown", "usage"):
        click(browser, f"#colourings [data-value='{name}']")
        colouring = data["colourings"][name]
        own = [colouring["labels"][label] for label in colouring["points"][start:end] if label is not None]
        legend = [entry for entry in texts(browser, "#legend li") if "alike" not in entry]
        assert len(legend) == len(set(own)) + (len(own) < end - start)
        assert sum(int(entry.split()[-1]) for entry in legend) == end - start
        assert texts(browser, "#examples h2") == legend
        grey = browser.evaluate("source.data.colour.filter((colour) => colour === GREY).length")
        assert grey == end - start - len(own)
    # The examples are those of no chosen point.
    click(browser, "#examples button")
    assert browser.evaluate("[at('examples').hidden, at('details').hidden]") == [True, False]
    assert browser.evaluate("source.selected.indices.length") == 1


def test_usages_agree_with_labels(opened: Opened) -> None:
    browser, address, data = opened
    browser.open(f"{address}#en&colour=usage")
    # One usage and two labels. The page opens on the word that agrees best, if its address names none.
    assert "agreement of usages with “shown”: 0.00" in text(browser, "message")
    assert data["agreements"] == {"label:shown": [[0.0, 2], None]}
    browser.evaluate("data.agreements = {'label:shown': [[0.1, 2], [0.2, 3]]}")
    assert browser.evaluate("clearestWord()") == 1


def test_the_address_keeps_what_is_shown(opened: Opened) -> None:
    browser, address, data = opened
    browser.open(f"{address}#lang=zh&word=𠮷野&layer=1&map=pca&colour=source&occurrence=2")
    assert texts(browser, "h1") == ["语境中的词"]
    assert text(browser, "sentence") == data["lines"][data["points"][data["words"][1][2] + 2][0]][0]
    assert texts(browser, "[aria-pressed=true]") == ["𠮷野 1", "1", "PCA", "来源"]
    click(browser, "#layers [data-value='2']")
    kept = browser.evaluate("location.hash")
    browser.open(f"{address}{kept}")
    assert texts(browser, "[aria-pressed=true]") == ["𠮷野 1", "2", "PCA", "来源"]
    browser.open(f"{address}#word=none&layer=9&occurrence=-1&colour=toString")
    assert browser.evaluate("[state.word, state.layer, state.kept, state.colouring]") == [0, 1, None, "label:shown"]


def test_markup_is_text(opened: Opened) -> None:
    browser, address, data = opened
    browser.open(f"{address}#en")
    number_of_scripts = browser.evaluate("document.scripts.length")
    for point in range(len(data["points"])):
        browser.evaluate(f"chooseWord(wordOf({point})); keep({point})")
        assert text(browser, "sentence") == data["lines"][data["points"][point][0]][0]
    for line in MARKUP:
        assert line in [each[0] for each in data["lines"]]
    browser.evaluate("chooseWord(1)")
    browser.mouse(*place_of(browser, 0))
    assert texts(browser, "#sentence mark") == ["𠮷野"]
    assert browser.evaluate("document.scripts.length") == number_of_scripts
    assert browser.evaluate("document.querySelectorAll('#sentence img, #words img, img').length") == 0
    assert browser.evaluate("typeof window.broken") == "undefined"


def test_nothing_is_loaded_and_the_policy_refuses_the_rest(opened: Opened) -> None:
    browser, address, _ = opened
    browser.open(address)
    assert {each.partition("#")[0] for each in browser.requests() if not each.startswith(("about:", "data:"))} == {
        address
    }
    assert browser.problems() == []
    added = "Object.assign(document.createElement('script'), {textContent: 'window.broken = 1'})"
    browser.evaluate(f"document.body.append({added})")
    assert browser.evaluate("typeof window.broken") == "undefined"
    assert browser.evaluate("fetch('http://127.0.0.1:9').then(() => 'sent', () => 'refused')") == "refused"


def test_a_sentence_that_is_typed(opened: Opened) -> None:
    browser, address, data = opened
    browser.open(address)
    assert browser.evaluate("at('live').hidden") is True
    folder = Path(url2pathname(urlsplit(address).path)).parent
    sentences = LiveSentences(ContextIndex.load(folder / "a.index"), ElmoEmbedder.load(folder / "model", "cpu"))
    with served(build_page(data, live=True), sentences) as server:
        browser.open(f"{server.address}#en")
        assert browser.evaluate("at('live').hidden") is False
        browser.evaluate("at('typed').value = '我们 吃 <b>𠮷野</b> 苹果'; askSentence()")
        assert texts(browser, "#sentence span") == ["我们", "吃", "<b>𠮷野</b>", "苹果"]
        # Before a token is chosen, there are no headings above empty lists.
        shown = "[...document.querySelectorAll('#details h2')].map((each) => each.offsetHeight > 0)"
        assert browser.evaluate(shown) == [True, False, False]
        browser.evaluate("askToken({text: '我们 吃 苹果', tokens: [[0, 2, 1, 1, 0]]}, 2)")
        assert browser.evaluate(shown) == [True, True, True]
        assert len(texts(browser, "#neighbours li")) == len(sentences.token("我们 吃 苹果", 2, 2)["neighbours"])
        assert browser.evaluate("document.querySelectorAll('#sentence b').length") == 0
        # The sentence stays while the mouse moves over the map, until a point is chosen.
        browser.evaluate("draw(); source.inspect.emit([])")
        assert text(browser, "sentence") == "我们 吃 苹果"
        browser.evaluate("keep(0); chooseWord(1)")
        assert browser.evaluate("at('examples').hidden") is False
