"""Build the documentation as a site in build/site, in English and Chinese: `make site`.

It holds README, README.zh and the pages of docs/. Links to files that are not pages, such as records of benchmarks,
become plain text, because the site does not know where the repository is.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "site"
LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
CONFIG = """\
[project]
site_name = "elmo-zh"
site_description = "ELMo for Chinese: from raw text to word vectors that depend on the sentence"
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
nav = {nav}

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


def main() -> None:
    """Write the pages and their configuration, and run the generator."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "pictures", BUILD / "pages" / "pictures")
    # Each file with its page on the site.
    places = {ROOT / "README.md": "index.md", ROOT / "README.zh.md": "zh/index.md"}
    places |= {path: str(path.relative_to(ROOT / "docs")) for path in sorted((ROOT / "docs").rglob("*.md"))}
    places |= {ROOT / name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
    entries: dict[str, list[str]] = {"English": [], "中文": []}
    for source, place in places.items():
        page, text = BUILD / "pages" / place, source.read_text(encoding="utf-8")

        def new_link(match: re.Match[str], source: Path = source, place: str = place) -> str:
            target = places.get((source.parent / match[2]).resolve())
            link = target and os.path.relpath(target, Path(place).parent)
            return f"[{match[1]}]({link}{match[3] or ''})" if link else match[1]

        pictures = os.path.relpath("pictures", Path(place).parent)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(LINK.sub(new_link, re.sub(r"\]\((\.\./)*docs/pictures/", f"]({pictures}/", text)), "utf-8")
        title = text.split("\n", 1)[0].removeprefix("# ").replace("`", "").replace('"', "'")
        entries["中文" if place.startswith("zh/") else "English"].append(f'{{ "{title}" = "{place}" }}')
    nav = ", ".join(f'{{ "{name}" = [{", ".join(rows)}] }}' for name, rows in entries.items())
    (BUILD / "zensical.toml").write_text(CONFIG.format(nav=f"[{nav}]"), encoding="utf-8")
    subprocess.run([sys.argv[1], "build", "--strict"], cwd=BUILD, check=True)
    # Chinese is searched by words only if the index says so; the language above is for the words of the interface.
    index = BUILD / "html" / "search.json"
    found = json.loads(index.read_text(encoding="utf-8"))
    found["config"]["lang"] = ["zh", "en"]
    index.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    print("Wrote the site: build/site/html/index.html")


if __name__ == "__main__":
    main()
