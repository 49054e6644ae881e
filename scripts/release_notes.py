"""Print the changelog section of a tag, if the tag can be released.

Version, citation, Zenodo's record and changelog must all name the tag's version. It needs the standard library only, so
that release.yml runs it before anything is installed.

    python scripts/release_notes.py v0.1.0
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def package_version(root: Path) -> str:
    """Return the version that the package declares."""
    text = (root / "orchtrace_corpus" / "base" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


def changelog_section(changelog: str, version: str) -> str:
    """Return the text below a version's dated heading; empty if there is no such heading."""
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[[^\]]+\]: |\Z)"
    section = re.search(heading, changelog, re.DOTALL | re.MULTILINE)
    return section[1].strip() if section else ""


def problems(root: Path, tag: str) -> list[str]:
    """Return the reasons why a tag cannot be released, each with the file to fix."""
    version = tag.removeprefix("v")
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        return [f"{tag} is not a tag of a release, such as v0.1.0"]
    declared = package_version(root)
    cited = re.findall(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    archived = json.loads((root / ".zenodo.json").read_text(encoding="utf-8"))["version"]
    wrong = []
    if declared != version:
        wrong.append(f"orchtrace_corpus/base/__init__.py: __version__ is {declared}, not {version}")
    if cited != [version]:
        wrong.append(f"CITATION.cff: version is {', '.join(cited)}, not {version}")
    if archived != version:
        wrong.append(f".zenodo.json: version is {archived}, not {version}")
    if not changelog_section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version):
        wrong.append(f"CHANGELOG.md: missing or empty section, ## [{version}] - YYYY-MM-DD")
    return wrong


def main() -> int:
    """Print the section, or on stderr the reasons why the tag cannot be released."""
    if len(sys.argv) != 2:
        print("usage: release_notes.py TAG", file=sys.stderr)
        return 2
    tag = sys.argv[1]
    wrong = problems(ROOT, tag)
    for problem in wrong:
        print(problem, file=sys.stderr)
    if wrong:
        return 1
    print(changelog_section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), tag.removeprefix("v")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
