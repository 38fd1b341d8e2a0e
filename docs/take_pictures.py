"""Take the pictures of docs/images that show the review page, reports and a notebook.

    python docs/take_pictures.py [audit] [notebook] [training] [bench]

Needs the package with all extras, selenium, chromium and chromedriver; takes a few minutes, most of them for
a training run and a bench on the digits. All seeds are fixed: pictures change only where the pages do.
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

from laplaceconfidence import add_noise, audit, load_digits

IMAGES = Path(__file__).parent / "images"
NOISES = ("symmetric:0.2", "symmetric:0.8", "asymmetric:0.4")
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


def take_from(driver: Any, name: str, width: int, heading: str, until: str) -> None:
    """Save a page from one heading (or from its top, if that is empty) to the end of another section."""

    def edge(text: str, side: str) -> int:
        found = f"[...document.querySelectorAll('h1, h2')].find(one => one.textContent.includes({text!r}))"
        return int(
            driver.execute_script(f"return {found}.closest('section, header').getBoundingClientRect().{side}")
        )

    size = {"width": width, "height": 8000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    top, bottom = edge(heading, "top") - 12 if heading else 0, edge(until, "bottom") + 12
    take(driver, name, width, 8000)
    path = IMAGES / name
    Image.open(path).crop((0, top, width, bottom)).save(path, optimize=True)


def take_notebook(driver: Any, folder: Path) -> None:
    digits = add_noise(load_digits(), "symmetric", 0.1, random_state=0)
    shown = audit(digits, random_state=0)._repr_html_()
    page = folder / "notebook.html"
    page.write_text(f"<body style='margin: 16px'>{shown}</body>", encoding="utf-8")
    driver.get(page.as_uri())
    size = {"width": 700, "height": 600, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    height = driver.execute_script("return document.querySelector('.lc-notebook').scrollHeight")
    take(driver, "notebook.png", 700, height + 32)


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


def reported(*words: str, run: Path) -> str:
    """Make a run with a command, write its report, and return the address of that."""
    laplaceconfidence(*words, folder=run.parent)
    laplaceconfidence("report", str(run), folder=run.parent)
    return (run / "report.html").as_uri()


def take_audit(driver: Any, folder: Path) -> None:
    run = folder / "laplaceconfidence-demo"
    driver.get(reported("demo", "--no-training", run=run))
    take(driver, "report.png", 1280, 1450)
    with review_page(run) as url:
        take_review(driver, url)


def take_training(driver: Any, folder: Path) -> None:
    few = ("--rounds", "12", "--set", "method.warmup=4")
    driver.get(reported("train", "digits", *few, run=folder / "laplaceconfidence-train-digits"))
    take_from(driver, "report-training.png", 1120, "Confusions", "Learned features")


def take_bench(driver: Any, folder: Path) -> None:
    noises = [word for noise in NOISES for word in ("--noise", noise)]
    driver.get(reported("bench", "digits", *noises, run=folder / "laplaceconfidence-bench-digits"))
    take_from(driver, "bench-report.png", 1000, "", "Estimators: AUROC")


def main() -> None:
    parts = {"audit": take_audit, "notebook": take_notebook, "training": take_training, "bench": take_bench}
    with tempfile.TemporaryDirectory() as name, browser() as driver:
        for part in sys.argv[1:] or parts:
            parts[part](driver, Path(name))


if __name__ == "__main__":
    main()
