"""Take the pictures of `explore`'s page in docs/pictures, in English and in Chinese: `make pictures`.

It needs the model that `make train` makes of the sample (or RUN=runs/NAME), and Chromium with Chinese glyphs: on Debian
`apt-get install chromium fonts-noto-cjk`. The page is made by the command that README shows; the senses that colour it
are those of data/senses.tsv, and the pages in Chinese name them in Chinese.
"""

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

ROOT = Path(__file__).parents[1]
SENSES = ROOT / "data" / "senses.tsv"
PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The word that is shown, and its senses in Chinese.
SHOWN = "花"
IN_CHINESE = {"sense": "义项", "flower": "花朵", "spend": "花费"}
COLOURS = 200
MOST_BYTES = 150_000
# Milliseconds of the page's own time: enough to draw it, however slow the machine is.
TIME_BUDGET = 10_000
STATES = {
    "explore": {"size": "1280,640", "address": {"map": "tsne"}},
    "explore-line": {"size": "1280,640", "address": {"map": "tsne", "occurrence": 3}},
}


def write_labels(path: Path, language: str) -> list[str]:
    """Write the senses as `explore --labels` reads them, their names in one language, and return the words."""
    with SENSES.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    named = IN_CHINESE if language == "zh" else {}
    lines = ("\t".join(named.get(field, field) for field in row) for row in (header, *rows))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return sorted({row[header.index("word")] for row in rows})


def make_page(run: Path, language: str, folder: Path) -> Path:
    """Make the page with labels in one language, and return its path."""
    labels, page = folder / f"{language}.tsv", folder / f"{language}.html"
    words = write_labels(labels, language)
    (folder / "words.txt").write_text("\n".join(words), encoding="utf-8")
    command = [sys.executable, "-m", "elmo_zh", "explore", str(run), "--labels", str(labels), "--output", str(page)]
    subprocess.run([*command, "--words", str(folder / "words.txt")], cwd=ROOT, check=True)
    return page


def take_picture(browser: str, address: str, size: str, picture: Path, folder: Path) -> None:
    """Save what a browser without a window shows at an address, with few colours.

    Raises:
        SystemExit: If the browser fails, or the picture is too large.
    """
    taken = folder / "taken.png"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    options += [f"--user-data-dir={folder / 'profile'}", f"--virtual-time-budget={TIME_BUDGET}"]
    options += [f"--window-size={size}", f"--screenshot={taken}"]
    done = subprocess.run([browser, *options, address], capture_output=True, encoding="utf-8", errors="replace")
    if not taken.exists():
        sys.exit(f"Error: {browser} took no picture: {done.stderr.strip()[-500:]}")
    with Image.open(taken) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
    taken.unlink()
    num_bytes = picture.stat().st_size
    if num_bytes > MOST_BYTES:
        sys.exit(
            f"Error: {picture} has {num_bytes:,} bytes, more than {MOST_BYTES:,}. Lower COLOURS in docs/pictures.py."
        )
    print(f"{picture.relative_to(ROOT)}: {num_bytes:,} bytes")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("runs/sample"), help="Finished run on the sample.")
    run = parser.parse_args().run
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Error: there is no Chromium. On Debian type: sudo apt-get install chromium fonts-noto-cjk")
    if not (ROOT / run / "model").is_dir():
        sys.exit(f"Error: {run} has no model. Make it with: make train")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        for language in ("en", "zh"):
            page = make_page(run, language, Path(name))
            for state, shown in STATES.items():
                asked = urlencode({"lang": language, "word": SHOWN, **shown["address"]})
                picture = PICTURES / f"{state}.{language}.png"
                take_picture(browser, f"{page.as_uri()}#{asked}", shown["size"], picture, Path(name))


if __name__ == "__main__":
    main()
