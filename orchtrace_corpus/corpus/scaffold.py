"""Creates a new corpus: copies the starter files of the package into a folder."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import locked, write_atomic

_PACKAGE = "orchtrace-corpus"


def scaffold(directory: str, files: Mapping[str, str]) -> None:
    """Write a new corpus into a folder, completely or not at all; create the folder and its parents.

    `files` has the texts of the files by their paths below the folder, with forward slashes.

    Raises:
        CommandUseError: One of the files exists already, or the folder is a file.
        DataFileError: The folder cannot be created or written to.
    """
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise CommandUseError(f"{directory} is not a folder", "Name a new folder, or an empty one.")
    created: list[str] = []
    try:
        _create_folder(directory, created)
        with locked(directory):
            texts_by_path = {os.path.join(directory, *name.split("/")): text for name, text in files.items()}
            for path in texts_by_path:
                if os.path.lexists(path):
                    raise CommandUseError(f"{path} is there already, and would be overwritten", "Name a new folder.")
            for path, text in texts_by_path.items():
                _create_folder(os.path.dirname(path), created)
                created.append(path)
                write_atomic(path, text)
    except BaseException:  # also after an interruption, remove everything that was created
        for path in reversed(created):
            with suppress(OSError):  # such as a folder into which somebody else has put a file
                if os.path.isdir(path):
                    os.rmdir(path)
                else:
                    os.unlink(path)
        raise


def starter_files() -> dict[str, str]:
    """Return the texts of the starter files by their paths, with forward slashes, sorted by path."""
    folder = Path(__file__).with_name("templates")
    texts = {"requirements.txt": f"{requirement()}\n"}
    for path in folder.rglob("*"):
        if path.is_file():
            texts[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
    return dict(sorted(texts.items()))


def requirement() -> str:
    """Return the requirement (for pip) of this package, from the place from which it was installed here.

    A clone is named by the URL of its origin, or by its folder if it has no origin.
    Source: https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.request import url2pathname

    try:
        direct_url_text = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:  # a source tree on the path, not installed
        direct_url_text = None
    if not direct_url_text:  # installed from an index
        return f"{_PACKAGE}=={__version__}"
    direct_url = json.loads(direct_url_text)
    url = str(direct_url["url"])
    repository = direct_url.get("vcs_info")
    if repository:
        return f"{_PACKAGE} @ {repository['vcs']}+{_without_secrets(url)}@{repository['commit_id']}"
    if "dir_info" in direct_url:
        origin = _public_origin(url2pathname(url.removeprefix("file://")))
        if origin:
            return f"{_PACKAGE} @ git+{origin}"
    return f"{_PACKAGE} @ {_without_secrets(url)}"


def _public_origin(folder: str) -> str:
    """Return the https URL of the origin of a clone; empty if the folder is no clone or has no such origin."""
    import subprocess

    if not os.path.lexists(os.path.join(folder, ".git")):
        return ""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", folder, "config", "--get", "remote.origin.url"]
    try:
        url = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""
    ssh_url = re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.+)", url)
    if ssh_url:
        url = f"https://{ssh_url[1]}/{ssh_url[2]}"
    return _without_secrets(url) if url.startswith("https://") else ""


def _without_secrets(url: str) -> str:
    """Return a URL without user name and token."""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", url)


def _create_folder(path: str, created: list[str]) -> None:
    """Create a folder and its missing parents, and add each to `created`."""
    if not path or os.path.isdir(path):
        return
    _create_folder(os.path.dirname(path), created)
    try:
        os.mkdir(path)
    except FileExistsError as error:
        if not os.path.isdir(path):
            raise DataFileError(f"cannot create {path}: a file of that name is in the way") from error
    except OSError as error:
        raise DataFileError(f"cannot create {path}: {error.strerror}", "Nothing was written.") from error
    else:
        created.append(path)
