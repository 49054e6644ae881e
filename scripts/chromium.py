"""A window of Chromium for scripts that open pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def window(width: int = 1200, height: int = 800) -> Iterator[Any]:
    """Yield a window of a size in CSS pixels, as a driver of Selenium.

    Raises:
        RuntimeError: Chromium or its driver is not installed.
    """
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    program = shutil.which("chromium")
    service = shutil.which("chromedriver")
    if program is None or service is None:
        raise RuntimeError("chromium or chromedriver is not installed")
    options = ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(service))
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.set_script_timeout(600)
        yield driver
    finally:
        driver.quit()
