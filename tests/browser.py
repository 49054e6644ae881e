"""A real browser: Chromium, driven by Selenium, that may reach nothing but files and this machine.

Import the fixture `browser` into a module of tests marked `external`. Both programs come from the system (`chromium`
and `chromium-driver` of Debian), axe-core and vnu-jar from npm; the environment variables AXE and VNU are the paths of
`axe.min.js` and `vnu.jar`, which needs Java.
Where one of them is missing the test is skipped, but under `.ci/run`, which sets ORCHTRACE_EXTERNAL=required, that is
a failure.
"""

import json
import os
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

LOCAL_SCHEMES = frozenset(["file", "data", "blob", "about", "chrome", "devtools"])
_RULES_OF_LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")
LOOPBACK = frozenset(["127.0.0.1", "localhost", "::1"])


def missing(what: str) -> Any:
    """Skip a test for want of a program; under `.ci/run`, fail it."""
    if os.environ.get("ORCHTRACE_EXTERNAL") == "required":
        pytest.fail(what)
    pytest.skip(what)


def program(variable: str, *names: str) -> str:
    """The path of a program, from an environment variable or the search path."""
    path = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    return path or missing(f"{names[0]} is not installed; set {variable} to its path")


class Browser:
    """A window of Chromium, with what pages complained about and asked for.

    Attributes:
        driver: Selenium's driver, for all that has no short form here.
    """

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads
        self._problems: list[str] = []

    def open(self, page: Path | str, suffix: str = "") -> None:
        """Open a file, or an address, with a query or a fragment behind it; wait until it is loaded."""
        self.driver.get((page.as_uri() if isinstance(page, Path) else page) + suffix)

    def resize(self, width: int, height: int = 900) -> None:
        """Give pages this many CSS pixels, also fewer than a window can have."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str) -> None:
        """Prefer a colour scheme, `light` or `dark`, or show pages as they are printed: `print`."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if name == "dark" else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},  # so that clicks find what they scroll to
        ]
        media = "print" if name == "print" else ""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def scripts(self, allowed: bool) -> None:
        """Allow pages opened from now on their scripts, or not."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page; the value of its `return`."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        """The elements of the page that a CSS selector finds."""
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        """The first element of the page that a CSS selector finds."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of the elements that a CSS selector finds, seen or not."""
        return list(self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector))

    def press(self, *keys: str) -> None:
        """Type keys, at the element that has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def problems(self) -> list[str]:
        """What went wrong since the last call: messages on the console, and requests that would leave this machine."""
        for entry in self.driver.get_log("browser"):
            self._problems.append(f"{entry['level']}: {entry['message']}")
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = event["params"].get("url") or event["params"]["request"]["url"]
                parts = urlsplit(url)
                if parts.scheme not in LOCAL_SCHEMES and parts.hostname not in LOOPBACK:
                    self._problems.append(f"request: {url}")
        found, self._problems = self._problems, []
        return found

    def violations(self, *rules: str) -> list[str]:
        """Return what axe-core finds against the page as it is: rule, how grave, and the elements.

        Args:
            rules: The rules to ask for; without any WCAG 2.2 at levels A and AA, and best practice.
        """
        path = os.environ.get("AXE")
        if not path:
            missing("axe-core is not installed; set AXE to the path of axe.min.js")
        self.run(Path(str(path)).read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "const options = {resultTypes: ['violations'], preload: false, rules: {'target-size': {enabled: true}}};"
            "if (arguments[0].length) options.runOnly = arguments[0];"
            "axe.run(document, options).then(r => done(r.violations), e => done(String(e)))",
            list(rules),
        )
        assert isinstance(found, list), found
        return [
            f"{rule['id']} ({rule['impact']}): {node['target']} {node['failureSummary']}"
            for rule in found
            for node in rule["nodes"]
        ]

    def violations_of_looks(self, page: Path) -> list[str]:
        """Return what axe-core finds against a page, all unfolded: in light, dark and print, 390 and 1,200 pixels wide.

        The rules whose result depends on colours and widths are asked for each look, all others for the first.
        """
        found = []
        for number, (scheme, width) in enumerate(product(("light", "dark", "print"), (390, 1200))):
            self.scheme(scheme)
            self.resize(width)
            self.open(page)
            self.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
            found += [f"{scheme} {width}: {one}" for one in self.violations(*(_RULES_OF_LOOKS if number else ()))]
        return found


def markup_errors(*pages: Path) -> list[str]:
    """Return the errors that the checker of the W3C finds in pages: the page, the line and the message.

    What it says of styles is left out: its list of properties is older than browsers.
    """
    import subprocess

    jar = os.environ.get("VNU") or missing("vnu-jar is not installed; set VNU to the path of vnu.jar")
    java = program("JAVA", "java")
    command = [java, "-Xss1m", "-jar", jar, "--format", "json", "--stdout", "--exit-zero-always", "--errors-only"]
    checked = subprocess.run([*command, *map(str, pages)], capture_output=True, text=True, check=True)
    messages = [message for message in json.loads(checked.stdout)["messages"] if message["type"] == "error"]
    return [
        f"{Path(urlsplit(message['url']).path).name}:{message.get('lastLine')}: {message['message']}"
        for message in messages
        if not message["message"].startswith("CSS:")
    ]


def start(downloads: Path) -> Any:
    """Start Chromium without a window, without an address book: no name but loopback's is resolved."""
    try:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing("selenium is not installed; pip install selenium")
    options = ChromeOptions()
    options.binary_location = program("CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    for argument in (
        "--headless=new",
        "--no-sandbox",  # the gate may run as root, in a container
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--disable-ipc-flooding-protection",  # which holds back tests that follow hundreds of links a second
        "--no-proxy-server",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        "--force-color-profile=srgb",
        "--lang=en",
    ):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(program("CHROMEDRIVER", "chromedriver")))
    driver.set_script_timeout(120)
    return driver


@pytest.fixture(scope="module")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    downloads = tmp_path_factory.mktemp("downloads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")  # the driver is on this machine
        driver = start(downloads)
        try:
            yield Browser(driver, downloads)
        finally:
            driver.quit()


@pytest.fixture
def browser(_browser: Browser) -> Iterator[Browser]:
    """A browser, in which any message on the console and any request that leaves this machine fails the test."""
    _browser.problems()
    _browser.scheme("light")
    _browser.resize(1200)
    _browser.scripts(True)
    yield _browser
    assert _browser.problems() == []
