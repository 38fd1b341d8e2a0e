"""The review in a real browser: ten labels by keyboard, undo, bulk, a killed server, and the export."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audited_runs import MakeRun, make_audit_with_other_issues
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.export import plan_export, write_export
from laplaceconfidence.records import read_audit
from laplaceconfidence.records.sample_arrays import SampleArrays
from laplaceconfidence.review.store import read_decisions
from review_server import Server

pytest.importorskip("fastapi", reason="the page is not installed: pip install 'laplaceconfidence[review]'")
webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed: pip install selenium"
)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    pytest.skip(
        "chromium is not installed: apt-get install chromium chromium-driver", allow_module_level=True
    )

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


class Browser:
    """The page as a person at a keyboard has it."""

    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self) -> None:
        self.driver.get(self.url)
        self.wait(lambda: self.row() is not None)

    def row(self) -> int | None:
        """The row of the sample that is shown."""
        return self.ask(
            "const s = document.querySelector('.sample'); return s ? Number(s.dataset.row) : null"
        )

    def ask(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def text(self, id: str) -> str:
        return str(self.ask(f"return document.getElementById('{id}').textContent"))

    def press(self, keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(keys)

    def decide(self, key: str) -> int:
        """Press a key and wait for the next sample; returns the row that was decided."""
        row = self.row()
        assert row is not None
        self.press(key)
        self.wait(lambda: self.row() != row)
        return row

    def click(self, id: str) -> None:
        self.driver.find_element("id", id).click()

    def wait(self, condition: Any, seconds: float = 15) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.text("toast")
            time.sleep(0.03)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        with contextlib.suppress(ProcessLookupError):
            server.kill()


def test_from_the_first_key_to_the_export(
    make_run: MakeRun, driver: Any, servers: list[Server], tmp_path: Path
) -> None:
    from selenium.webdriver.common.keys import Keys

    run = make_run("csv", wrong_every=4)
    samples = SampleArrays.of(run)
    assert len(samples.suspects) >= 18
    servers.append(Server(run))
    page = Browser(driver, servers[0].url)
    page.open()

    # Nothing of the data runs as code, and every label is shown as it is.
    assert "<script>alert(1)</script>" in page.ask("return document.body.textContent")
    assert page.ask("return document.querySelectorAll('script').length") == 1

    # Ten by keyboard.
    expected: dict[int, tuple[str, int | None]] = {}
    verdict_of = {"s": "suggestion", "k": "keep", "u": "unsure", "n": "none"}
    for key in "ssksunksss":
        row, verdict = page.decide(key), verdict_of[key]
        label = {"suggestion": samples.suggested[row], "keep": samples.given[row]}.get(verdict)
        expected[row] = (verdict, None if label is None else int(label))
    assert list(expected) == samples.suspects[:10].tolist()
    assert page.text("decided").startswith("10 of ")

    # Another class by typing its beginning.
    row = page.row()
    third = next(code for code in range(3) if code not in (samples.given[row], samples.suggested[row]))
    page.press("a")
    page.wait(lambda: page.ask("return document.querySelector('#dialog-other').open"))
    page.press(samples.class_names[third][:4] + Keys.ENTER)
    page.wait(lambda: page.row() != row)
    expected[row] = ("other", third)

    # Undo shows the sample again; then it is decided otherwise.
    page.press("z")
    page.wait(lambda: page.row() == row)
    assert page.text("decided").startswith("10 of ")
    page.decide("s")
    expected[row] = ("suggestion", int(samples.suggested[row]))

    # The server is killed: the page says that nothing was stored, and goes on when it is back.
    servers[0].kill()
    page.press("k")
    page.wait(lambda: "is not responding" in page.text("toast"))
    servers.append(Server(read_audit(run.folder), servers[0].port))
    page.open()  # a reload
    assert page.row() == samples.suspects[11]
    row = page.decide("k")
    expected[row] = ("keep", int(samples.given[row]))

    # Many at once, after a preview.
    page.press("b")
    page.wait(lambda: page.ask("return document.querySelector('#dialog-bulk').open"))
    driver.find_element("id", "bulk-least").clear()
    driver.find_element("id", "bulk-least").send_keys("0.1")
    page.wait(lambda: page.ask("return !document.getElementById('bulk-accept').disabled"))
    given, suggested = map(int, page.ask("return document.getElementById('bulk-pair').value").split(","))
    pair = (samples.given == given) & (samples.suggested == suggested)
    bulk = [r for r in samples.suspects.tolist() if pair[r] and r not in expected]
    page.wait(lambda: page.text("bulk-accept") == f"Accept {len(bulk)}")
    page.click("bulk-accept")
    page.wait(lambda: page.text("decided").startswith(f"{len(expected) + len(bulk)} of "))
    expected |= dict.fromkeys(bulk, ("suggestion", suggested))

    # The grid: mark two, keep them.
    page.press("g")
    page.wait(lambda: page.ask("return document.querySelectorAll('.tile[data-row]').length") > 1)
    tiles = page.ask(
        "return [...document.querySelectorAll('.tile[data-row]')].map((t) => Number(t.dataset.row))"
    )[:2]
    page.press(" " + Keys.ARROW_RIGHT)
    page.press(" ")
    page.press("k")
    page.wait(lambda: page.text("decided").startswith(f"{len(expected) + 2} of "))
    expected |= {r: ("keep", int(samples.given[r])) for r in tiles}

    # What the disk and the export say is what was pressed.
    decisions = read_decisions(run.folder, run.record)
    assert {d.row: (d.verdict, d.label) for d in decisions} == expected
    assert {d.who for d in decisions} == {"ann"}
    plan = plan_export(read_audit(run.folder))
    exported = write_export(plan, tmp_path / "corrected.csv")
    data = read_dataset(exported.path, features="emb_*")
    row_of = {id: number for number, id in enumerate(data.sample_ids.tolist())}
    for row, id in enumerate(samples.ids):
        verdict, label = expected.get(row, ("undecided", None))
        if verdict == "none":
            assert id not in row_of
        else:
            code = samples.given[row] if label is None else label
            assert data.class_names[data.labels[row_of[id]]] == samples.class_names[code]
    severe = [entry for entry in driver.get_log("browser") if "Content Security Policy" in entry["message"]]
    assert not severe


def test_copies_leaks_and_outliers_by_keyboard(driver: Any, servers: list[Server], tmp_path: Path) -> None:
    run = make_audit_with_other_issues(tmp_path)
    servers.append(Server(run))
    page = Browser(driver, f"{servers[0].url}#view=copies")
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    page.open()
    assert page.row() == 2  # conflicting labels first
    assert page.ask("return document.querySelectorAll('[data-copy]').length") == 2
    assert_readable(page)
    page.decide("2")  # keep the second copy
    assert "1 kept, 1 dropped" in page.text("toast")
    page.press("z")
    page.wait(lambda: page.row() == 2)
    page.decide("s")  # keep the recommended one
    assert page.decide("k") == 1  # keep all

    def to_queue(name: str, text: str) -> None:
        driver.find_element("css selector", f"[data-view={name}]").click()
        page.wait(lambda: text in page.text("stage"))

    to_queue("leaks", "Test text 1")
    assert page.row() == 4
    assert_readable(page)
    page.decide("d")
    page.decide("k")
    to_queue("outliers", "Unlike all other samples")
    assert page.row() == 94
    assert_readable(page)
    page.press("d")
    page.wait(lambda: "“Outliers” is done." in page.text("stage"))
    to_queue("copies", "because it is also in the test set")
    assert (
        page.text("other-counts") == "outliers decided1 of 1sets of copies decided2 of 3leaks decided2 of 4"
    )
    decisions = {(d.subject, d.row): d.verdict for d in read_decisions(run.folder, run.record)}
    assert decisions == {
        ("copies", 2): "keep",
        ("copies", 91): "drop",
        ("copies", 1): "keep",
        ("copies", 90): "keep",
        ("leaks", 4): "drop",
        ("leaks", 5): "keep",
        ("label", 94): "drop",
    }
    assert set(plan_export(read_audit(run.folder)).trail["row"]) == {91, 4, 94}
    assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


LONG_NAMES = ("قطة صغيرة جداً تنام", "a_name_without_any_space_" * 6, "👩‍👩‍👧‍👦 семья")


@pytest.mark.parametrize("colors", ["light", "dark"])
def test_on_a_phone_nothing_sticks_out_and_everything_can_be_read(
    make_run: MakeRun, driver: Any, servers: list[Server], tmp_path: Path, colors: str
) -> None:
    pytest.importorskip("matplotlib")
    from laplaceconfidence.report import write_report

    run = make_run("csv", names=LONG_NAMES, texts=["word " * 30_000] * 90, wrong_every=4)
    servers.append(Server(run))
    page = Browser(driver, servers[0].url)
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": colors}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    page.open()
    assert_readable(page)
    for key, dialog in (("?", "help"), ("a", "other"), ("b", "bulk")):
        page.press(key)
        opened = f"#dialog-{dialog}"
        page.wait(lambda at=opened: page.ask(f"return document.querySelector('{at}').open"))
        assert_readable(page)
        page.ask(f"document.querySelector('{opened}').close(); document.getElementById('stage').focus()")
    page.press("g")
    page.wait(lambda: page.ask("return document.querySelectorAll('.tile[data-row]').length") > 1)
    assert_readable(page)
    driver.get(write_report(run.folder, tmp_path / "report.html").path.as_uri())
    assert_readable(page)


def assert_readable(page: Browser) -> None:
    """Nothing is wider than the screen, and text stands out from what is behind it as WCAG AA asks."""
    assert page.ask("return document.documentElement.scrollWidth") <= 390
    assert page.ask(FAINT_TEXTS) == []


FAINT_TEXTS = """
const parse = (color) => color.match(/[\\d.]+/g).map(Number).concat(1).slice(0, 4);
const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const light = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
const behind = (e) => {
  const own = parse(getComputedStyle(e).backgroundColor);
  return own[3] === 1 || !e.parentElement ? own : over(own, behind(e.parentElement));
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const faint = [];
for (let node = texts.nextNode(); node; node = texts.nextNode()) {
  const e = node.parentElement;
  const skipped = e.closest("svg, script, :disabled, option, #toast");
  if (!node.data.trim() || skipped || !e.checkVisibility()) continue;
  const style = getComputedStyle(e), ground = behind(e);
  const [a, b] = [light(over(parse(style.color), ground)), light(ground)];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) faint.push(`${node.data.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
}
return faint;
"""


def test_the_end_of_a_queue_names_the_next_one(make_run: MakeRun, driver: Any, servers: list[Server]) -> None:
    run = make_run("csv", estimator="noise-aware")
    samples = SampleArrays.of(run)
    others = len(samples.first_rows) - len(samples.suspects)
    assert others > 0
    servers.append(Server(run))
    browser = Browser(driver, servers[0].url)
    browser.open()
    for _ in samples.suspects:
        browser.decide("k")
    done = "return document.querySelector('.done')?.textContent ?? ''"
    assert "“Suspects” is done." in browser.ask(done)
    assert "All done" not in browser.ask(done)
    assert f"Next: By rank ({others} left)" in browser.ask(done)
    assert run.record.statement.headline in browser.text("known")
    browser.click("next-queue")
    browser.wait(lambda: browser.row() == samples.first_rows[len(samples.suspects)])
    for _ in range(others):
        browser.decide("k")
    assert "“By rank” is done." in browser.ask(done)
    assert "Next: Random sample" in browser.ask(done)
