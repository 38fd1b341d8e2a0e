"""Take the pictures of docs/images that show the review page and the report of an audit.

    python docs/take_pictures.py

Needs the extra `review`, selenium, chromium and chromedriver; takes about a minute. The demonstration has a
fixed seed, so that pictures change only where the pages do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

IMAGES = Path(__file__).parent / "images"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")


def laplaceconfidence(*words: str, folder: Path) -> None:
    command = [sys.executable, "-m", "laplaceconfidence", *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@contextmanager
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@contextmanager
def review_page(run: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "laplaceconfidence", "review", str(run), "--no-browser"]
    server = subprocess.Popen([*command, "--reviewer", "ann"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.]+:\d+/", line)))
    server.terminate()
    server.wait(10)


def take(driver: Any, name: str, width: int, height: int) -> None:
    """Save what the browser shows, with 256 colors: pages have few."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    time.sleep(0.5)
    path = IMAGES / name
    driver.save_screenshot(str(path))
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


def wait(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("The page does not show what the picture needs.")
        time.sleep(0.05)


def take_review(driver: Any, url: str) -> None:
    def ask(script: str) -> Any:
        return driver.execute_script(f"return {script}")

    def press(*keys: str) -> None:
        for key in keys:
            driver.switch_to.active_element.send_keys(key)
            time.sleep(0.4)

    driver.get(url)
    wait(lambda: ask("document.querySelector('.sample')"))
    take(driver, "review.png", 1280, 750)
    press("g")
    wait(lambda: ask("document.querySelectorAll('.tile').length") > 1)
    press(Keys.SPACE, Keys.ARROW_RIGHT, Keys.SPACE, Keys.ARROW_RIGHT, Keys.SPACE)
    take(driver, "review-grid.png", 1280, 750)
    press(Keys.ESCAPE, "b")
    wait(lambda: ask("!document.getElementById('bulk-accept').disabled"))
    take(driver, "review-bulk.png", 1280, 750)
    driver.find_element("id", "bulk-cancel").click()
    next(b for b in driver.find_elements("css selector", "#views button") if "Random" in b.text).click()
    wait(lambda: ask("document.querySelector('.sample')"))
    for _ in range(60):
        suggests = ask("[...document.querySelectorAll('.sample kbd')].some(key => key.textContent === 'S')")
        press("s" if suggests else "k")
    time.sleep(6)  # until the message about the last decision is gone
    take(driver, "review-random.png", 1280, 750)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, browser() as driver:
        folder = Path(name)
        laplaceconfidence("demo", "--no-training", folder=folder)
        run = folder / "laplaceconfidence-demo"
        laplaceconfidence("report", str(run), folder=folder)
        driver.get((run / "report.html").as_uri())
        take(driver, "report.png", 1280, 1450)
        with review_page(run) as url:
            take_review(driver, url)


if __name__ == "__main__":
    main()
