"""A page -> pictures of its parts, by headless Chromium, on light ground and dark. What they show it does not know."""

import base64
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

WIDTH, HEIGHT = 1280, 3600
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
)
# The names of the pictures, and where on the page each begins and ends.
LIGHT, DARK = "light", "dark"
PICTURES = {
    "report.png": (LIGHT, "only('utilization') || [0, edge('#timeline', 'bottom') + 16]"),
    "report-dark.png": (DARK, "only('utilization') || [0, edge('#timeline', 'bottom') + 16]"),
    "sweep.png": (LIGHT, "[edge('#sweep', 'top') - 16, edge('#sweep table', 'top') - 8]"),
}
NIGHT = {
    "night.png": (LIGHT, "[edge('#use', 'top') - 16, edge('#timeline', 'bottom') + 16]"),
    "night-dark.png": (DARK, "[edge('#use', 'top') - 16, edge('#timeline', 'bottom') + 16]"),
}
EDGES = """
const edge = (selector, side) =>
  Math.round(document.querySelector(selector).getBoundingClientRect()[side] + window.scrollY);
const only = (meter) =>
  document.querySelectorAll('#timeline .toggle').forEach((each) => each.dataset.meter === meter || each.click());
return """


def photographs(page: Path, pictures: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Each picture with its file's name."""
    with browser_in(page.parent) as browser:
        tell = browser.execute_cdp_cmd
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        tell("Emulation.setDeviceMetricsOverride", size)
        tell("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
        for name, (theme, edges) in pictures.items():
            tell("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
            browser.get(page.as_uri())
            WebDriverWait(browser, 20).until(lambda each: each.execute_script("return document.body.dataset.ready"))
            top, bottom = browser.execute_script(EDGES + edges)
            clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
            yield name, smaller(base64.b64decode(tell("Page.captureScreenshot", {"clip": clip})["data"]))


@contextmanager
def browser_in(directory: Path) -> Iterator[webdriver.Chrome]:
    """A browser that keeps what it keeps here."""
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS.split(), f"--user-data-dir={directory / 'chromium'}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield browser
    finally:
        browser.quit()


def smaller(png: bytes) -> bytes:
    """The same picture in 256 colours, which looks the same; it takes a third of the room."""
    out = io.BytesIO()
    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()
