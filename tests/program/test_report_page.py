"""The report's page in a real browser: what it shows, how it is used, and that it loads nothing."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from simple_gpu_scheduler.base.units import axis_unit, show_duration, show_percent
from simple_gpu_scheduler.report.page import page
from tests.conftest import ROOT, needs

HTML = ROOT / "simple_gpu_scheduler" / "report" / "html"
BEGUN = 1_700_000_000.0
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --no-default-browser-check"
)
HOSTILE = (
    "<script>document.body.dataset.owned = 1</script></script><!--<script>"
    "<img src=x onerror='document.body.dataset.owned=1'> \"'`${1} &lt; @report@ \u202egnp.exe\x1b[31m\x00\u2028 "
    + "x"
    * 10_000
)
KINDS = ["succeeded"] * 40 + ["failed"] * 2 + ["timed out", "stalled", "killed"]


def job(number: int, start: float | None = None, seconds: float = 60, state: str = "succeeded", **values) -> dict:
    """A job of a report, whose one attempt began `start` seconds after the run."""
    begun = None if start is None else BEGUN + start
    ended = None if begun is None or state == "running" else begun + seconds
    gpus = values.pop("gpus", ["0"])
    outcome = None if state == "running" else state
    code = 1 if state == "failed" else 0
    attempt = {"attempt": 1, "gpus": gpus, "started": begun, "ended": ended, "outcome": outcome, "code": code}
    return {
        "job": number, "name": None, "command": f"python train.py --seed {number}", "template": 0, "state": state,
        "reason": None, "code": code, "line": number, "source": None, "read": BEGUN, "started": begun, "ended": ended,
        "wait": start, "runtime": seconds if begun else None, "gpus": gpus, "attempts": [attempt] if begun else [],
        "log": f"logs/{number:04}.log", "tail": f"epoch 1\nthe last line of {number}\n", "parameters": {},
        "result": None,
    } | values  # fmt: skip


def report(jobs: list[dict], **values) -> dict:
    """A report of these jobs, with what follows from them."""
    states = [one["state"] for one in jobs]
    ended = max([BEGUN + 1, *(attempt["ended"] or 0 for one in jobs for attempt in one["attempts"])])
    gpus = sorted({gpu for one in jobs for gpu in one["gpus"]})
    run = {
        "id": "20231114-2213-ab", "state": "finished", "begun": BEGUN, "ended": ended, "seconds": ended - BEGUN,
        "sessions": [[BEGUN, ended]], "directory": "/home/me/project", "host": "node7",
        "argv": ["simple_gpu_scheduler", "--gpus", "0,1", "my jobs.txt"], "code": 1,
    }  # fmt: skip
    return {
        "version": 1, "made": ended + 60, "program": "0.2.0", "run": run,
        "outcomes": {state: states.count(state) for state in dict.fromkeys(states)},
        "templates": [{"template": "python train.py --seed *", "jobs": len(jobs), "mean": 60.0, "longest": 99.0,
                       "succeeded": states.count("succeeded"), "failed": states.count("failed"), "total": 6000.0}],
        "gpus": [{"gpu": gpu, "attempts": 1, "busy": 60.0, "share": 0.75} for gpu in gpus],
        "longest": [one["job"] for one in jobs[:2]],
        "failures": [one["job"] for one in jobs if one["state"] in {"failed", "timed out", "stalled", "killed"}],
        "waits": [{"gpu": "1", "for": "alice python 11.2 GiB for 2 h", "from": BEGUN, "to": BEGUN + 90}],
        "metric": None, "parameters": [], "axes": values.get("parameters", []), "jobs": jobs,
    } | values  # fmt: skip


def queue(jobs: int, gpus: int = 4) -> dict:
    """A run of many jobs on some GPUs, each busy all the time."""
    choice = random.Random(1)
    free = [0.0] * gpus
    made = []
    for number in range(1, jobs + 1):
        gpu = free.index(min(free))
        seconds = choice.randint(20, 200)
        made.append(job(number, free[gpu], seconds, choice.choice(KINDS), gpus=[str(gpu)]))
        free[gpu] += seconds
    return report(made)


def sweep(names: list[str], metric: str | None = "loss") -> dict:
    """Twenty jobs with a learning rate over decades, and a batch size and an optimiser where they are named."""
    jobs = []
    for number in range(1, 21):
        values = {
            "lr": f"{10 ** -(number % 5 + 1):g}",
            "bs": str(16 * (number % 3 + 1)),
            "opt": "adam" if number % 2 else "sgd",
        }
        result = None if metric is None or number == 20 else number / 7
        parameters = {name: values[name] for name in names}
        jobs.append(job(number, number * 10.0, 10.0 + number, parameters=parameters, result=result))
    return report(jobs, metric=metric, parameters=names)


def hostile_report() -> dict:
    """A report in which every text is meant to do harm."""
    hostile = {
        "name": HOSTILE,
        "command": HOSTILE,
        "tail": HOSTILE,
        "reason": HOSTILE,
        "log": HOSTILE,
        "source": HOSTILE,
    }
    values = report(
        [
            job(1, 0, state="failed", parameters={HOSTILE: HOSTILE}, gpus=[HOSTILE], **hostile),
            job(2, 60, parameters={HOSTILE: "2"}),
        ]
    )
    values["run"] |= dict.fromkeys(("id", "directory", "host", "state"), HOSTILE) | {"argv": [HOSTILE]}
    values |= {
        "metric": HOSTILE,
        "parameters": [HOSTILE],
        "axes": [HOSTILE],
        "program": HOSTILE,
        "outcomes": {HOSTILE: 2},
    }
    values["waits"][0]["for"] = values["templates"][0]["template"] = HOSTILE
    return values


class Page:
    """A page in the browser, and what a test wants to know of it."""

    def __init__(self, browser: webdriver.Chrome, directory: Path) -> None:
        self.browser = browser
        self.path = directory / "report.html"

    def open(self, values: dict) -> "Page":
        self.path.write_text(page(values), encoding="utf-8")
        self.browser.get_log("browser")  # what an earlier page has left
        self.browser.get_log("performance")
        self.browser.get(self.path.as_uri())
        self.until(lambda: self.js("return document.body.dataset.ready") == "1")
        return self

    def until(self, condition) -> None:
        WebDriverWait(self.browser, 20, poll_frequency=0.02).until(lambda _: condition())

    def js(self, script: str, *args):
        return self.browser.execute_script(script, *args)

    def one(self, selector: str):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0]).textContent", selector).replace("\u00a0", " ")

    def column(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.textContent)"
        return self.js(script, selector)

    def errors(self) -> list[dict]:
        return self.browser.get_log("browser")

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def emulate(self, name: str, **values) -> None:
        self.browser.execute_cdp_cmd(f"Emulation.{name}", values)

    def theme(self, name: str) -> None:
        self.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def size(self, width: int, height: int) -> None:
        self.emulate("setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser for all tests."""
    needs("chromium", "chromedriver")
    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}", "--window-size=1280,900"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield started
    started.quit()


@pytest.fixture
def view(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Page]:
    shown = Page(browser, tmp_path)
    shown.size(1280, 900)
    shown.theme("light")
    yield shown
    assert shown.errors() == []


def test_every_attempt_is_in_the_gantt_chart(view: Page) -> None:
    jobs = [
        job(1, 0),
        job(2, 5, gpus=["1"]),
        job(3, 60, state="failed"),
        job(4, 70, gpus=["0", "1"]),
        job(5, 70, state="running"),
    ]
    view.open(report([*jobs, job(6, state="waiting", gpus=[])]))
    counts = dict(
        view.js(
            "return [...document.querySelectorAll('#gantt .bars')].map((b) => [b.dataset.outcome, +b.dataset.count])"
        )
    )
    assert counts == {"succeeded": 4, "failed": 1, "running": 1}  # the one on two GPUs is drawn on both
    assert view.one("#gantt").get_attribute("data-attempts") == "5"
    assert view.column("#gantt .row-name") == ["GPU 0", "GPU 1"]
    assert len(view.all("#gantt .tick")) >= 3
    assert {one.get_attribute("fill") for one in view.all("#gantt .bars")} == {f"url(#is-{word})" for word in counts}


def test_attempts_that_share_a_gpu_do_not_hide_each_other(view: Page) -> None:
    view.open(report([job(1, 0), job(2, 10), job(3, 20)]))
    path = view.one("#gantt .bars").get_attribute("d")
    assert len(set(re.findall(r"M[\d.]+ ([\d.]+)", path))) == 3


def test_outcomes_are_a_stacked_bar_with_counts(view: Page) -> None:
    view.open(report([job(1, 0), job(2, 60), job(3, 120, state="failed")]))
    widths = {one.get_attribute("data-outcome"): one.size["width"] for one in view.all("#outcome-bar .part")}
    assert widths["succeeded"] == pytest.approx(2 * widths["failed"], abs=3)
    assert "succeeded 2" in view.text("#outcomes .legend")


def test_waiting_and_running_jobs_are_drawn_over_time(view: Page) -> None:
    view.open(queue(40))
    assert view.one("#area-running .area-line").get_attribute("data-most") == "4"
    assert view.one("#area-waiting .area-line").get_attribute("data-most") == "36"
    assert view.one("#area-waiting .area-fill").size["height"] > 50
    assert "alice python 11.2 GiB for 2 h" in view.text("#waits")


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_it_round(view: Page) -> None:
    view.open(report([job(1, 0, 50), job(2, 0, 9), job(3, 0, 700), job(4, state="waiting")]))
    heading = view.one("#jobs th:nth-child(6)")
    assert heading.text == "Runtime"
    for order, state in ((["2", "1", "3", "4"], "ascending"), (["3", "1", "2", "4"], "descending")):
        heading.find_element(By.TAG_NAME, "button").click()
        assert view.column("#jobs td:first-child .open") == order
        assert heading.get_attribute("aria-sort") == state


def test_the_table_is_filtered_by_text_and_by_outcome(view: Page) -> None:
    view.open(
        report([job(number, number * 60.0, state="failed" if number % 2 else "succeeded") for number in range(1, 31)])
    )
    view.one("#filter").send_keys("--SEED 3")
    assert view.column("#jobs td:first-child .open") == ["3", "30"]
    assert view.text("#count") == "Showing 2 of 2 jobs that match (30 in total)"
    toggle = view.one("#jobs .toggle[data-outcome=failed]")
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    assert view.column("#jobs td:first-child .open") == ["3"]
    toggle.click()
    view.one("#filter").clear()
    view.one("#filter").send_keys(Keys.SPACE)
    assert view.text("#count") == "Showing 30 of 30 jobs"


def test_the_last_lines_of_a_failure_are_lines_and_all_of_them_are_seen(view: Page) -> None:
    tail = "Traceback:\n" + "  File x\n" * 30 + "RuntimeError: CUDA out of memory\n"
    view.open(report([job(1, 0, state="failed", tail=tail), job(2, 9, state="killed", code=9)]))
    box = view.one(".card pre")
    assert box.text.splitlines()[-2:] == ["  File x", "RuntimeError: CUDA out of memory"]
    assert view.js("return arguments[0].scrollHeight <= arguments[0].clientHeight", box)
    assert view.column(".card .chip") == ["failed, exit code 1", "killed, signal 9"]
    assert view.one("#tiles a").get_attribute("href").endswith("#failures")


def test_why_jobs_were_not_started_is_shown_once(view: Page) -> None:
    reasons = ["job 1 did not succeed", "unknown option", "job 1 did not succeed"]
    jobs = [job(number, state="not started", reason=reason) for number, reason in enumerate(reasons, 2)]
    jobs[1]["command"] = ""
    view.open(report([job(1, 0, state="failed"), *jobs]))
    assert "2 jobs: job 1 did not succeed1 job: unknown option" in view.text("#failures")
    assert "unknown option" in view.column("#jobs td:nth-child(2)")


def test_a_survivor_is_drawn_up_to_now(view: Page) -> None:
    values = report([job(1, 0, state="running")])
    values["run"]["ended"], values["made"] = BEGUN + 10, BEGUN + 1000
    view.open(values)
    left, width = view.js("const box = document.querySelector('#gantt .bars').getBBox(); return [box.x, box.width]")
    assert width > 0.95 * (view.one("#gantt").size["width"] - left)


@pytest.mark.parametrize(("of", "shown"), [(1000, [">99 %", "<1 %"]), (4, ["75 %", "25 %"])])
def test_a_share_is_all_or_nothing_only_where_it_is(view: Page, of: int, shown: list[str]) -> None:
    values = report([job(1, 0), job(2, 60, state="failed")])
    view.open(values | {"outcomes": {"succeeded": of - 1, "failed": 1}})
    assert [text.replace("\u00a0", " ") for text in view.column("#outcomes .legend .quiet")] == shown


def test_the_details_open_by_click_and_close_on_escape(view: Page) -> None:
    view.open(report([job(1, 0), job(2, 60, state="failed", reason="no space left")]))
    view.one("#jobs tbody tr:nth-child(2) .open").click()
    assert view.text("#details-title") == "Job 2"
    body = view.text("#details-body")
    assert all(
        part in body for part in ("the last line of 2", "no space left", "logs/0002.log", "--seed 2", "exit code 1")
    )
    view.one("#details").send_keys(Keys.ESCAPE)
    assert not view.one("#details").is_displayed()
    assert view.js("return document.activeElement.textContent") == "2"


def test_a_click_on_a_bar_opens_its_details_and_pointing_at_it_tells_of_it(view: Page) -> None:
    view.open(report([job(1, 0, 60), job(2, 60, 60, "failed")]))
    pointer = webdriver.ActionChains(view.browser)
    pointer.move_to_element_with_offset(view.one("#gantt"), 300, 10).perform()
    assert "Job 2: failed" in view.text("#tip")
    assert "python train.py --seed 2" in view.text("#tip")
    pointer.click().perform()
    assert view.text("#details-title") == "Job 2"
    assert "the last line of 2" in view.text("#details-body")


def test_the_gantt_chart_is_used_by_keyboard(view: Page) -> None:
    view.open(report([job(1, 0, gpus=["0"]), job(2, 60, gpus=["0"]), job(3, 50, gpus=["1"])]))
    view.js("document.getElementById('zoom-all').focus()")
    view.one("#zoom-all").send_keys(Keys.TAB)
    chart = view.browser.switch_to.active_element
    for key, number in (
        (Keys.HOME, "1"),
        (Keys.ARROW_RIGHT, "2"),
        (Keys.ARROW_DOWN, "3"),
        (Keys.ARROW_UP, "2"),
        (Keys.END, "2"),
    ):
        chart.send_keys(key)
        assert view.one("#gantt .ring").get_attribute("data-job") == number
        assert view.text("#said").startswith(f"Job {number}")
    chart.send_keys(Keys.ENTER)
    assert view.text("#details-title") == "Job 2"


def test_zoom_shows_less_time_and_the_arrows_bring_attempts_into_view(view: Page) -> None:
    view.open(queue(400))
    for _ in range(5):
        view.one("#zoom-in").click()
    drawn = "return [...document.querySelectorAll('#gantt .bars')].reduce((all, bar) => all + +bar.dataset.count, 0)"
    assert view.js(drawn) < 60
    view.one("#gantt").send_keys(Keys.END)
    box = "document.querySelector('#timeline .scroll')"
    assert view.js(f"return {box}.scrollLeft + {box}.clientWidth > 0.9 * {box}.scrollWidth")
    view.one("#zoom-all").click()
    assert view.js(drawn) == 400


def test_a_sweep_of_one_parameter_is_a_scatter(view: Page) -> None:
    view.open(sweep(["lr"]))
    picture = view.one("#picture")
    assert (picture.get_attribute("data-kind"), picture.get_attribute("data-points")) == ("scatter", "19")
    assert "lr (log)" in picture.text
    assert sum(int(one.get_attribute("data-count")) for one in view.all("#picture [data-count]")) == 19
    assert "Lowest loss 0.142857 (job 1), highest 2.71429 (job 19)" in view.text("#sweep")


def test_a_sweep_of_several_parameters_is_parallel_coordinates(view: Page) -> None:
    view.open(sweep(["lr", "bs", "opt"]))
    picture = view.one("#picture")
    assert (picture.get_attribute("data-kind"), picture.get_attribute("data-points")) == ("parallel", "19")
    assert [one.text for one in view.all("#picture .axis-name")] == ["lr (log)", "bs", "opt", "loss"]
    assert "adam" in picture.text
    picture.send_keys(Keys.END)
    assert "loss = 2.71429" in view.text("#tip")
    picture.send_keys(Keys.ENTER)
    assert view.text("#details-title") == "Job 19"


def test_one_result_that_diverged_does_not_paint_the_others_alike(view: Page) -> None:
    values = sweep(["lr", "bs"])
    values["jobs"][0]["result"] = 1e12
    view.open(values)
    assert [one.get_attribute("data-count") for one in view.all("#picture [data-count]")] == ["4", "4", "4", "4", "3"]


@pytest.mark.parametrize("width", [1280, 375])
def test_the_names_of_axes_are_whole_and_lie_beside_each_other(view: Page, width: int) -> None:
    view.size(width, 800)
    values = sweep(["lr", "bs"], metric=None)
    for number, one in enumerate(values["jobs"]):
        one["runtime"] = 10.0**number
        one["parameters"]["a_name_that_is_very_long"] = 10.0**number
    view.open(values | {"axes": ["lr", "bs", "a_name_that_is_very_long"]})
    ends = "return [...document.querySelectorAll('#picture .axis-name')].map((n) => [n.getBBox().x, n.getBBox().width])"
    places = view.js(ends)
    assert all(x + across <= after for (x, across), (after, _) in pairwise(places))
    assert sum(places[-1]) <= float(view.one("#picture").get_attribute("width"))


def test_the_table_of_a_sweep_sorts_numbers_as_numbers(view: Page) -> None:
    view.open(sweep(["bs", "lr"]))
    view.one("#sweep-table th:nth-child(3) button").click()
    shown = [float(text) for text in view.column("#sweep-table td:nth-child(3)")]
    assert shown == sorted(shown)
    assert len(shown) == 20


def test_the_table_of_a_sweep_is_ordered_by_the_metric(view: Page) -> None:
    values = sweep(["bs", "lr"])
    values["jobs"].reverse()
    values["jobs"][3]["result"] = float("inf")
    view.open(values)
    shown = view.column("#sweep-table td:nth-child(2)")
    assert shown[18] == "inf"
    assert [float(text) for text in shown[:18]] == sorted(float(text) for text in shown[:18])
    assert view.one("#sweep-table th:nth-child(2)").get_attribute("aria-sort") == "ascending"


def test_what_only_names_the_jobs_is_no_axis_of_the_picture_and_no_column(view: Page) -> None:
    values = sweep(["lr"])
    for one in values["jobs"]:
        one["parameters"]["output"] = f"runs/{one['job']}.json"
    view.open(values | {"parameters": ["lr", "output"]})
    assert view.one("#picture").get_attribute("data-kind") == "scatter"
    assert "output" not in view.text("#sweep")
    view.one("#sweep-table .open").click()
    assert "output = runs/1.json" in view.text("#details-body")


def test_a_sweep_without_a_metric_says_how_to_get_one(view: Page) -> None:
    view.open(sweep(["lr"], metric=None))
    assert "--metric loss" in view.text("#sweep")
    assert view.one("#picture").get_attribute("data-points") == "20"
    assert "runtime" in view.text("#sweep-table")
    assert "runtime in s" in view.text("#picture")


def test_the_page_words_durations_and_shares_as_the_terminal_does(view: Page) -> None:
    view.open(sweep(["lr"]))
    functions = (HTML / "format.js").read_text()
    seconds = [
        0,
        0.04,
        0.33,
        2.345,
        5,
        9.94,
        9.96,
        59.4,
        60,
        303,
        3599.7,
        3600,
        5400,
        7199,
        86_399,
        86_400,
        172_799,
        1e6,
    ]
    shown = view.js(functions + "return arguments[0].map(duration)", seconds)
    assert [text.replace("\u00a0", " ") for text in shown] == [show_duration(each) for each in seconds]
    shares = [0, 0.001, 0.0051, 0.5, 0.994, 0.9951, 1]
    shown = view.js(functions + "return arguments[0].map(percent)", shares)
    assert [text.replace("\u00a0", " ") for text in shown] == [show_percent(each) for each in shares]
    assert view.js(functions + "return arguments[0].map(axisUnit)", seconds) == [
        list(axis_unit(each)) for each in seconds
    ]


def test_long_runtimes_are_drawn_in_hours_and_told_in_hours_and_minutes(view: Page) -> None:
    values = sweep(["lr"], metric=None)
    for one in values["jobs"]:
        one["runtime"] = 1800.0 * one["job"]
    view.open(values)
    assert "runtime in h" in view.text("#picture")
    view.one("#picture").send_keys(Keys.END)
    assert "runtime = 10 h" in view.text("#tip").replace("\u00a0", " ")


@pytest.mark.parametrize("width", [1280, 700])
def test_what_commands_share_gives_way_to_what_differs(view: Page, width: int) -> None:
    shared = (
        "python3 train.py --data /data/imagenet --model resnet50 --workers 16 --amp --checkpoint /scratch/me/last.pt"
    )
    values = sweep(["lr"])
    for one in values["jobs"]:
        one["command"] = f"{shared} --lr 0.{one['job']:02} --epochs 100 --resume never --seed {one['job']}"
    view.size(width, 800)
    view.open(values)
    ends = """
        return [...document.querySelectorAll('#jobs td.wide')].map((cell) => {
            const right = cell.getBoundingClientRect().right;
            const told = [...cell.querySelectorAll('.parts > span:not(.shared)')];
            return told.map((one) => [one.textContent.trim(), one.getBoundingClientRect().right <= right]);
        })
    """
    expected = [[[f"--lr 0.{job:02}", True], [f"--seed {job}", True]] for job in range(1, 21)]
    assert view.js(ends) == expected
    cut = "const s = document.querySelector('#jobs .shared'); return s.scrollWidth > s.clientWidth"
    assert view.js(cut)
    view.one("#jobs .open").click()
    assert values["jobs"][0]["command"] in view.text("#details-body")


def test_results_that_are_no_numbers_are_shown_and_left_out_of_the_picture(view: Page) -> None:
    values = sweep(["lr"])
    values["jobs"][0]["result"] = float("nan")
    view.open(values)
    assert view.one("#picture").get_attribute("data-points") == "18"
    assert "nan" in view.column("#sweep-table td:nth-child(2)")


def test_a_job_without_one_of_the_parameters_has_a_place_on_its_axis(view: Page) -> None:
    values = sweep(["lr", "opt"])
    del values["jobs"][2]["parameters"]["opt"]
    view.open(values)
    assert view.one("#picture").get_attribute("data-points") == "19"  # the 20th has no result
    assert "(none)" in view.text("#picture")
    assert len(view.all("#sweep-table tbody tr")) == 20


def test_hostile_text_is_shown_as_text_everywhere(view: Page) -> None:
    view.open(hostile_report())
    assert view.js("return document.body.dataset.owned") is None
    assert len(view.all("img")) == 0
    assert "<script>document.body.dataset.owned = 1</script>" in view.text("#jobs td.wide")
    view.one("#jobs .open").click()
    details = view.text("#details-body")
    assert "\\u202egnp.exe\\x1b[31m\\x00\\u2028" in details
    assert "x" * 10_000 in details
    for width in (1280, 375):
        view.size(width, 800)
        assert view.js("return document.documentElement.scrollWidth") <= width
    raw = view.text("main") + view.text("dialog") + view.text("header") + view.browser.title
    assert not set(raw) & set("\u202e\x1b\x00\u2028")


def test_what_is_embedded_cannot_end_its_element() -> None:
    text = page(report([job(1, 0, command=HOSTILE + "\u2029\ud800")]))
    assert text.isascii() or not re.search("[\u2028\u2029\ud800]", text)
    embedded = text.split('id="report">')[1].split("</script>")[0]
    assert not set(embedded) & set("<>&")
    assert json.loads(embedded)["jobs"][0]["command"] == HOSTILE + "\u2029\ud800"


def test_the_page_loads_nothing(view: Page) -> None:
    view.open(sweep(["lr", "bs"]))
    assert view.requests() == [view.path.as_uri()]
    source = view.path.read_text()
    assert "default-src 'none'" in source
    assert set(re.findall(r"\w+://[\w./]+", source)) == {"http://www.w3.org/2000/svg"}  # a name, which is not opened


def test_it_is_dark_where_the_system_is(view: Page) -> None:
    view.open(queue(20))
    brightness = {}
    for theme in ("light", "dark"):
        view.theme(theme)
        style = "const s = getComputedStyle(document.querySelector('section')); return [s.color, s.backgroundColor]"
        brightness[theme] = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in view.js(style)]
        text, back = brightness[theme]
        assert abs(text - back) > 150
    assert brightness["light"][1] > 200
    assert brightness["dark"][1] < 60


@pytest.mark.parametrize("values", [queue(60, 8), sweep(["lr", "bs", "opt"])], ids=["queue", "sweep"])
def test_a_phone_shows_it_without_scrolling_sideways(view: Page, values: dict) -> None:
    view.size(375, 800)
    view.open(values)
    assert view.js("return document.documentElement.scrollWidth") <= 375
    view.one("#jobs .open").click()
    assert view.js("return document.documentElement.scrollWidth") <= 375
    assert view.one("#details").size["width"] <= 375


def test_ten_thousand_jobs_open_at_once(view: Page) -> None:
    values = queue(10_000)
    for one in values["jobs"]:
        one["tail"] = "a line of output of a job\n" * 15
    view.open(values)
    milliseconds = view.js("return performance.getEntriesByName('drawn')[0].startTime")
    print(f"ready after {milliseconds:.0f} ms, {view.path.stat().st_size / 1e6:.1f} MB")
    assert milliseconds < 8000
    assert len(view.all("#jobs tbody tr")) == 200
    view.one("#jobs .more").click()
    assert len(view.all("#jobs tbody tr")) == 400
    assert view.text("#count") == "Showing 400 of 10,000 jobs"


@pytest.mark.parametrize("jobs", [[], [job(1, state="waiting", gpus=[])]], ids=["no job", "none started"])
def test_a_run_in_which_nothing_ran_is_shown_too(view: Page, jobs: list[dict]) -> None:
    view.open(report(jobs, failures=[], longest=[], waits=[], templates=[]))
    assert "Nothing has been started." in view.text("#timeline")


def test_each_chart_says_in_words_what_it_shows(view: Page) -> None:
    view.open(sweep(["lr", "bs"]))
    for chart in ("outcome-bar", "gantt", "area-waiting", "area-running", "picture"):
        assert len(view.one(f"#{chart}").get_attribute("aria-label")) > 20
    for chart in ("gantt", "picture"):
        described = view.one(f"#{chart}").get_attribute("aria-describedby")
        assert re.search(r"\d", view.text(f"#{described}"))


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast_with_its_background(view: Page, theme: str) -> None:
    view.theme(theme)
    states = ["succeeded", "failed", "timed out", "stalled", "killed", "running", "interrupted"]
    view.open(report([job(number, 100.0 * number, 90, state) for number, state in enumerate(states)]))
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    for text, ground in (
        ("body", "body"),
        (".quiet", "section"),
        ("a", "body"),
        (".quiet", "th"),
        (".badge", ".badge"),
    ):
        assert contrast(view.js(style, text, "color"), view.js(style, ground, "backgroundColor")) >= 4.5, text
    label = view.js(style, ".bar-label", "fill")
    for state in states:
        ground = view.js(style, f"pattern .is-{state.replace(' ', '-')}", "fill")
        assert contrast(label, ground) >= 4.5, state


def test_the_tab_key_stops_only_where_there_is_something_to_do(view: Page) -> None:
    view.open(sweep(["lr", "bs"]))
    stops = []
    while len(stops) < 200 and "filter" not in stops:
        ActionChains(view.browser).send_keys(Keys.TAB).perform()
        here = "const e = document.activeElement; return e.id || e.ariaLabel || e.textContent"
        stops.append(view.js(here))
        assert view.js("return getComputedStyle(document.activeElement).outlineStyle") == "solid", stops
    charts = [stop for stop in stops if stop in {"to-outcomes", "zoom", "gantt", "picture", "filter"}]
    assert charts == ["to-outcomes", "zoom", "gantt", "picture", "filter"]
    assert not any(":" in stop for stop in stops), "a chart that cannot be used is no stop"


def test_everything_is_named_and_in_order_for_a_screen_reader(view: Page) -> None:
    view.open(sweep(["lr", "bs"]))
    assert view.one("html").get_attribute("lang") == "en"
    assert [len(view.all(name)) for name in ("main", "header", "nav", "h1")] == [1, 1, 1, 1]
    ids = view.js("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    unnamed = """
        return [...document.querySelectorAll('button, input, [tabindex]')]
            .filter((one) => !one.textContent.trim() && !one.ariaLabel && !one.labels?.length)
            .map((one) => one.outerHTML)
    """
    assert view.js(unnamed) == []
    assert view.one("#count").get_attribute("aria-live") == "polite"
