"""The figures that pages quote are those of the records; `python benchmarks/figures.py` writes them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("figures", ROOT / "benchmarks" / "figures.py")
assert SPEC is not None
assert SPEC.loader is not None
figures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(figures)

RECORD = """\
# A record.
## pairs
$ python pairs.py
name            pairs  right
first            300   7.5
second            20   98.0

## probe
| layer | accuracy |
| --- | --- |
| layer 1 | 0.6846 |

## old
name\tright
first\t6
second\t7
"""
PAGE = """\
Right: <!--pairs/first/right%-->0<!---->, <!--probe/layer 1/accuracy*100-->old<!---->.

<!--table pairs by right: pairs, right%, old.right-->

| name | pairs | right | before |
|---|--:|--:|--:|
| the first<!--first--> | |
| the second<!--second--> | 1 | 2 | 3 |

| another | table |
"""
WRITTEN = """\
Right: <!--pairs/first/right%-->7.5%<!---->, <!--probe/layer 1/accuracy*100-->68.5<!---->.

<!--table pairs by right: pairs, right%, old.right-->

| name | pairs | right | before |
|---|--:|--:|--:|
| the second<!--second--> | 20 | 98.0% | 7 |
| the first<!--first--> | 300 | 7.5% | 6 |

| another | table |
"""


def test_marked_places_get_the_figures_of_a_record(tmp_path: Path) -> None:
    record = tmp_path / "record.txt"
    record.write_text(RECORD, encoding="utf-8")
    assert figures.Figures([record]).written(PAGE) == WRITTEN


def test_a_figure_that_no_record_has_is_an_error(tmp_path: Path) -> None:
    record = tmp_path / "record.txt"
    record.write_text(RECORD, encoding="utf-8")
    with pytest.raises(KeyError, match="third"):
        figures.Figures([record]).written("<!--pairs/third/right-->1<!---->")


@pytest.mark.parametrize("path", figures.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_quote_the_records(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert figures.Figures(figures.RECORDS).written(page) == page, "Run: python benchmarks/figures.py"


def test_the_starter_has_at_most_40_megabytes() -> None:
    assert sum(path.stat().st_size for path in figures.STARTER.rglob("*") if path.is_file()) < 40e6
