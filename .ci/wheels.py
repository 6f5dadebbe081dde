"""Check that every pinned package has a wheel for each supported Python.

pip's dry run for another Python evaluates markers for the current one, and may download several GB, PyTorch's CUDA
libraries among them. So this script follows the requirements itself, through the metadata installed here, with the
markers of each Python. A package whose installed wheel fits every Python is settled; for the others, those with
compiled code, pip's dry run finds out whether there is a wheel. Answers are kept in .ci/wheels.json, one section per
platform, so that pip is asked only about pins that have changed. Commit that file.
"""

import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
}
KNOWN = ROOT / ".ci" / "wheels.json"
PLATFORM = sysconfig.get_platform()
# pip is asked about this many packages at a time, in this many processes.
PACKAGES_PER_QUESTION, QUESTIONS_AT_A_TIME = 8, 8
PYTHONS = [f"3.{minor}" for minor in range(8, 40) if SpecifierSet(PROJECT["requires-python"]).contains(f"3.{minor}")]


def own_requirements() -> Iterator[Requirement]:
    """Yield the project's requirements, with those of all extras."""
    extras = PROJECT["optional-dependencies"].values()
    for text in (*PROJECT["dependencies"], *(text for extra in extras for text in extra)):
        if not text.startswith(f"{PROJECT['name']}["):
            yield Requirement(text)


def installed(name: str) -> Distribution | None:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    return found if found.version.split("+")[0] == PINS.get(canonicalize_name(name)) else None


def packages_for(python: str) -> tuple[set[str], list[str]]:
    """Return the pinned packages that a Python needs, and problems: pins that do not fit what is required."""
    found: set[str] = set()
    problems: list[str] = []
    waiting = [(requirement, "pyproject.toml", "") for requirement in own_requirements()]
    while waiting:
        requirement, source, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": extra}
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        if name not in PINS:
            continue  # the extra tensorboard, and the CUDA libraries, whose versions torch itself pins
        if not requirement.specifier.contains(PINS[name], prereleases=True):
            problems.append(f"{source} requires {requirement}, and constraints.txt has {PINS[name]}")
        known = installed(name)
        if known is None or (name in found and not requirement.extras):
            found.add(name)
            continue
        found.add(name)
        for text in known.requires or ():
            waiting += [(Requirement(text), name, extra) for extra in ("", *requirement.extras)]
    return found, problems


def fits(name: str, python: str) -> bool:
    """Return whether the wheel that is installed here, of whatever Python, also fits another."""
    known = installed(name)
    if known is None or not SpecifierSet(known.metadata["Requires-Python"] or "").contains(f"{python}.0"):
        return False
    minor = int(python.split(".")[1])
    for tag in re.findall(r"^Tag: (\S+?)-(\S+?)-", known.read_text("WHEEL") or "", re.MULTILINE):
        interpreter, abi = tag
        oldest = re.fullmatch(r"cp3(\d+)", interpreter)
        if abi == "none" and interpreter.startswith("py"):
            return True
        if oldest and abi == "abi3" and int(oldest[1]) <= minor:
            return True
    return False


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--retries", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def is_index_reached() -> bool:
    return pip("index", "versions", "pip").returncode == 0


def without_wheel(names: Sequence[str], python: str) -> list[str]:
    """Return which of the pinned packages have no wheel for a Python."""
    missing = []
    names = list(names)
    target = ["--only-binary=:all:", "--python-version", python]
    if "torch" in names:  # half a GB, which a dry run may download
        names.remove("torch")
        answer = pip("index", "versions", "torch", *target)
        if PINS["torch"] not in re.findall(r"[\w.]+", answer.stdout):
            missing.append("torch")
    dry_run = ["install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--target", "nowhere", *target]
    while names:
        answer = pip(*dry_run, *(f"{name}=={PINS[name]}" for name in names))
        if answer.returncode == 0:
            break
        # pip names the first one only.
        named = re.search(r"No matching distribution found for ([\w.-]+)==", answer.stderr)
        if named is None:
            raise SystemExit(f"Error: pip's dry run for Python {python} failed:\n{answer.stderr}")
        missing.append(canonicalize_name(named[1]))
        names.remove(missing[-1])
    return missing


def ask(questions: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the packages without a wheel for each Python, given the packages to ask about."""
    parts = [
        (names[start : start + PACKAGES_PER_QUESTION], python)
        for python, names in questions.items()
        for start in range(0, len(names), PACKAGES_PER_QUESTION)
    ]
    with ThreadPoolExecutor(QUESTIONS_AT_A_TIME) as pool:
        answers = list(pool.map(without_wheel, *zip(*parts, strict=True)))
    missing: dict[str, list[str]] = {python: [] for python in questions}
    for (_, python), names in zip(parts, answers, strict=True):
        missing[python] += names
    return missing


def main() -> int:
    """Check all pins; return 1 if a requirement does not fit or a wheel is missing."""
    problems: list[str] = []
    platforms: dict[str, dict[str, list[str]]] = json.loads(KNOWN.read_text("utf-8")) if KNOWN.exists() else {}
    kept = platforms.setdefault(PLATFORM, {})
    needed: dict[str, set[str]] = {}
    questions: dict[str, list[str]] = {}
    for python in PYTHONS:
        names, found = packages_for(python)
        problems += [f"Python {python}: {problem}" for problem in found]
        needed[python] = {f"{name}=={PINS[name]}" for name in names if not fits(name, python)}
        questions[python] = [pin.partition("==")[0] for pin in sorted(needed[python].difference(kept.get(python, [])))]
    # An index that cannot be reached has no wheel either.
    is_skipped = any(questions.values()) and not is_index_reached()
    if is_skipped:
        print("Wheels for other Pythons are not checked: the package index cannot be reached.")
    elif any(questions.values()):
        missing = ask(questions)
        current = {f"{name}=={version}" for name, version in PINS.items()}
        for python, names in missing.items():
            without = {f"{name}=={PINS[name]}" for name in names}
            kept[python] = sorted((needed[python] | (current & set(kept.get(python, [])))) - without)
            problems += [
                f"Python {python}: there is no wheel of {name} {PINS[name]}. Change the pin, give the requirement a"
                f" marker in pyproject.toml, or end requires-python before {python}."
                for name in names
            ]
        KNOWN.write_text(json.dumps(platforms, indent=1) + "\n", encoding="utf-8")
        print(f"The answers are in {KNOWN.relative_to(ROOT)}. Commit it.")
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    if not (problems or is_skipped):
        print(f"All packages have wheels for Python {', '.join(PYTHONS)}.")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
