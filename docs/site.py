"""Build the documentation as a site in build/site, in English and Chinese: `make site`.

It holds README, README.zh and the pages of docs/. Links to files that are not pages, such as records of benchmarks,
become plain text, because the site does not know where the repository is.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "site"
PAGES = BUILD / "pages"
LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")

CONFIG = """\
[project]
site_name = "elmo-zh"
site_description = "ELMo for Chinese: from raw text to word vectors that depend on the sentence"
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
nav = [{nav}]

[project.theme]
language = "en"
features = ["navigation.sections", "navigation.top", "content.code.copy", "search.highlight"]

[project.markdown_extensions]
toc.permalink = true
toc.slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
tables = {{}}
pymdownx.highlight.pygments_lang_class = true
pymdownx.superfences.custom_fences = [
  {{ name = "mermaid", class = "mermaid", format = "pymdownx.superfences.fence_code_format" }},
]
"""


def sources() -> dict[Path, Path]:
    """Return each page of the site with the file that it is made from."""
    found = {Path("index.md"): ROOT / "README.md", Path("zh/index.md"): ROOT / "README.zh.md"}
    found |= {path.relative_to(ROOT / "docs"): path for path in sorted((ROOT / "docs").rglob("*.md"))}
    return found | {Path(name): ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}


def linked(text: str, page: Path, source: Path, pages: dict[Path, Path]) -> str:
    """Return the text of a page with links to the pages of the site; other links become plain text."""
    places = {origin: place for place, origin in pages.items()}

    def new_link(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        if target not in places:
            return match[1]
        up = "../" * (len(page.parts) - 1)
        return f"[{match[1]}]({up}{places[target].as_posix()}{match[3] or ''})"

    text = re.sub(r"\]\((?:\.\./)*docs/pictures/", f"]({'../' * (len(page.parts) - 1)}pictures/", text)
    return LINK.sub(new_link, text)


def title_of(path: Path) -> str:
    """Return the heading of a page."""
    heading = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return heading.removeprefix("# ").replace("`", "").replace('"', "'")


def main() -> None:
    """Write the pages and their configuration, and run the generator."""
    shutil.rmtree(BUILD, ignore_errors=True)
    pages = sources()
    for page, source in pages.items():
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(linked(source.read_text(encoding="utf-8"), page, source, pages), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "pictures", PAGES / "pictures")
    entries: dict[str, list[str]] = {"English": [], "中文": []}
    for page, source in pages.items():
        language = "中文" if page.parts[0] == "zh" else "English"
        entries[language].append(f'{{ "{title_of(source)}" = "{page.as_posix()}" }}')
    nav = ", ".join(f'{{ "{name}" = [{", ".join(rows)}] }}' for name, rows in entries.items())
    (BUILD / "zensical.toml").write_text(CONFIG.format(nav=nav), encoding="utf-8")
    subprocess.run([sys.argv[1], "build", "--strict"], cwd=BUILD, check=True)
    # Chinese is searched by words only if the index says so; the language above is for the words of the interface.
    index = BUILD / "html" / "search.json"
    found = json.loads(index.read_text(encoding="utf-8"))
    found["config"]["lang"] = ["zh", "en"]
    index.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    print("Wrote the site: build/site/html/index.html")


if __name__ == "__main__":
    main()
