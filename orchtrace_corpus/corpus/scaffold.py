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
    """Write a new corpus into a folder, all of it or nothing, and create the folder and its parents.

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
            paths = {os.path.join(directory, *name.split("/")): text for name, text in files.items()}
            for path in filter(os.path.lexists, paths):
                raise CommandUseError(f"{path} is there already, and would be overwritten", "Name a new folder.")
            for path, text in paths.items():
                _create_folder(os.path.dirname(path), created)
                created.append(path)
                write_atomic(path, text)
    except BaseException:  # also an interruption leaves nothing half-written behind
        for path in reversed(created):  # a folder that somebody else has put a file into stays
            with suppress(OSError):
                if os.path.isdir(path):
                    os.rmdir(path)
                else:
                    os.unlink(path)
        raise


def starter_files() -> dict[str, str]:
    """Return the texts of the starter files by their paths, with forward slashes, in order."""
    folder = Path(__file__).with_name("templates")
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}
    files = {path.relative_to(folder).as_posix(): text for path, text in texts.items()}
    return dict(sorted({**files, "requirements.txt": f"{requirement()}\n"}.items()))


def requirement() -> str:
    """Return the requirement by which pip installs this package from where it was installed here.

    A clone is named by the address of its origin, or by its folder if it has none.
    Source: https://packaging.python.org/en/latest/specifications/direct-url-data-structure/
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.request import url2pathname

    try:
        recorded = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:  # a source tree that was put on the path
        recorded = None
    if not recorded:
        return f"{_PACKAGE}=={__version__}"
    direct = json.loads(recorded)
    address = str(direct["url"])
    if repository := direct.get("vcs_info"):
        return f"{_PACKAGE} @ {repository['vcs']}+{_without_secrets(address)}@{repository['commit_id']}"
    origin = _origin(url2pathname(address.removeprefix("file://"))) if "dir_info" in direct else ""
    return f"{_PACKAGE} @ {f'git+{origin}' if origin else _without_secrets(address)}"


def _origin(folder: str) -> str:
    """Return the address from which anybody can clone the repository of a folder; empty without one."""
    import subprocess

    if not os.path.lexists(os.path.join(folder, ".git")):
        return ""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", folder, "config", "--get", "remote.origin.url"]
    try:
        address = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""
    of_ssh = re.fullmatch(r"(?:ssh://)?git@([\w.-]+)[:/](.+)", address)
    address = f"https://{of_ssh[1]}/{of_ssh[2]}" if of_ssh else address
    return _without_secrets(address) if address.startswith("https://") else ""


def _without_secrets(address: str) -> str:
    """Return an address without user name and token."""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", address)


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
