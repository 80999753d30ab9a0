"""The curves of GPUs on the report's page, in a real browser."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains

from simple_gpu_scheduler.journal.samples import curves_in
from tests.program import test_report_page
from tests.program.test_report_page import BEGUN, HOSTILE, Page, job, report
from tests.support.night import night
from tests.support.report import built

GIB = 2**30
# Fixtures, which pytest finds by these names.
browser, view = test_report_page.browser, test_report_page.view


def lane(gpu: str = "0", steps: int = 60, **values: list) -> dict:
    """Of a minute a step: at 0 % from the 20th to the 29th, and without a job from the 50th on."""
    at = range(steps)
    return {
        "gpu": gpu, "from": BEGUN, "step": 60.0, "total_memory": 80 * GIB,
        "seconds": [60 if each < 50 else 0 for each in at], "idle": [60 if 20 <= each < 30 else 0 for each in at],
        "utilization": [None if each >= 50 else 0 if 20 <= each < 30 else 90 for each in at],
        "memory": [None if each >= 50 else 40 * GIB for each in at],
        "temperature": [None if each >= 50 else 61 for each in at],
        "power": [None if each >= 50 else 250 for each in at],
    } | values  # fmt: skip


MEASURED = {
    "gpus": [{"gpu": "0", "seconds": 3000.0, "utilization": {"mean": 72.4, "max": 90, "p95": 90.0}, "idle": 600.0,
              "memory": {"mean": 1, "max": 40 * GIB}, "total_memory": 80 * GIB, "energy": 750_000.0,
              "throttled": {"heat": 90.0}, "power": {"mean": 250.0, "max": 301.0}, "xids": {"13": 2}}],
    "cpu": {"seconds": 120.0, "cores": 32}, "held": 3000.0, "utilization": 72.4, "wasted": 828.0, "idle": 600.0,
    "energy": 750_000.0, "energy_of_gpu": False,
}  # fmt: skip
USE = {"held": 3000.0, "measured": 3000.0, "utilization": 72.4, "idle": 600.0, "energy": 750_000.0,
       "wasted": 828.0, "held_by_failed": 0.0}  # fmt: skip


def measured_report(**values) -> dict:
    one = job(1, 0, 3000, measured=MEASURED)
    one["attempts"][0] |= {"measured": MEASURED, "curves": [lane(steps=30)]}
    made = report([one, job(2, 3000, 600, measured=None)], lanes=[lane()], use=USE, worst=[1], **values)
    made["gpus"][0]["measured"] = {"measured": 3000.0, "utilization": 72.4, "idle": 600.0, "energy": 750_000.0}
    return made


def meters(view: Page) -> list[str]:
    return view.js("return [...document.querySelectorAll('#gantt .meter-area')].map((area) => area.dataset.meter)")


def height(view: Page) -> int:
    return view.js("return document.getElementById('gantt').getBoundingClientRect().height")


def test_each_gpu_has_curves_under_its_jobs_that_can_be_hidden(view: Page) -> None:
    view.open(measured_report())
    assert meters(view) == ["utilization", "memory", "temperature", "power"]
    assert view.column("#gantt .meter-name") == [
        "util. 100\u00a0%",
        "mem. 80\u00a0GiB",
        "temp. 70\u00a0°C",
        "power 250\u00a0W",
    ]
    before = height(view)
    view.one("#timeline [data-meter=memory].toggle").click()
    assert meters(view) == ["utilization", "temperature", "power"]
    assert height(view) < before
    for name in ("utilization", "temperature", "power"):
        view.one(f"#timeline [data-meter={name}].toggle").click()
    assert (meters(view), view.all("#at-zero")) == ([], [])
    view.one("#timeline [data-meter=memory].toggle").click()
    assert meters(view) == ["memory"]


def test_where_a_job_left_its_gpu_idle_is_marked(view: Page) -> None:
    view.open(measured_report())
    box = view.js("const box = document.getElementById('at-zero').getBBox(); return [box.x, box.width]")
    left, across = view.js("const g = document.querySelector('#gantt .meter-area').getBBox(); return [g.x, g.width]")
    assert (box[0] - left) / across == pytest.approx(20 / 50, abs=0.02)
    assert box[1] / across == pytest.approx(10 / 50, abs=0.02)
    assert "a job had the GPU at 0\u00a0%" in view.one("#timeline .legend").text.replace(" %", "\u00a0%")


def test_pointing_at_a_curve_tells_its_values_and_a_click_opens_the_job(view: Page) -> None:
    view.open(measured_report())
    view.js("document.getElementById('timeline').scrollIntoView()")
    area = "const area = document.querySelector('#gantt [data-meter=temperature]'); const box = area.getBBox();"
    x, y = view.js(area + "return [box.x + box.width / 2, box.y + box.height / 2]")
    wide, high = view.js(
        "const box = document.getElementById('gantt').getBoundingClientRect(); return [box.width, box.height]"
    )
    gantt = view.one("#gantt")
    ActionChains(view.browser).move_to_element_with_offset(gantt, int(x - wide / 2), int(y - high / 2)).perform()
    told = view.text("#tip")
    assert told.startswith("GPU 0, ")
    assert "utilisation 0 %, memory 40 GiB, temperature 61 °C, power 250 W" in told
    assert "At 0 % for 1 min while a job had it" in told
    assert told.endswith("Job 1")
    ActionChains(view.browser).click().perform()
    view.until(lambda: view.one("#details").get_attribute("open"))


def test_the_details_of_a_job_show_what_was_measured(view: Page) -> None:
    view.open(measured_report())
    view.one("#use .open").click()
    text = view.text("#details-body")
    for word in (
        "72 % (max 90 %)",
        "10 min of 50 min",
        "40 GiB of 80 GiB",
        "208 Wh",
        "1 min 30 s by heat",
        "13 (2 times)",
    ):
        assert word in text
    assert len(view.all("#details-body .small-curve path")) == 1


def test_the_jobs_that_wasted_a_gpu_are_listed_and_advice_is_shown(view: Page) -> None:
    view.open(measured_report(advice=[HOSTILE, "Four of these fit on one GPU."]))
    said = view.text("#use").replace("\u00a0", " ")
    assert "0.8 GPU-hours held, 0.2 of them wasted (0.2 at 0 %), 208 Wh" in said
    assert view.text("#use tbody tr").startswith("13 min 48 s1python train.py --seed 1")
    assert "Four of these fit on one GPU." in view.text("#advice")
    assert view.js("return document.body.dataset.owned") is None
    assert [each.replace("\u00a0", " ") for each in view.column("#outcomes th")][4:6] == ["Used", "Energy"]


def test_advice_has_a_heading_and_opens_the_job_that_it_begins_with(view: Page) -> None:
    view.open(measured_report(advice=["job 1 held gpu 0 for 1 h at 0 %", "job 77 is none of them", "gpu 0: job 2 "]))
    assert view.one("#advice h2").text == "Advice"
    [link] = view.all("#advice .open")
    assert "job 1 held gpu 0 for 1 h at 0 %" in view.text("#advice")
    bottom = view.js("return document.getElementById('advice').getBoundingClientRect().bottom")
    assert view.js("return document.getElementById('tiles').getBoundingClientRect().top") >= bottom + 8
    link.click()
    assert view.text("#details-title").startswith("Job 1")


def test_the_head_of_the_page_of_a_job_tells_about_it_and_not_about_the_run(view: Page) -> None:
    failed = job(7, 60, 30, state="failed", code=3)
    view.open({**report([failed]), "job": 7})
    assert view.text("#state") == "failed"
    head = " ".join(view.text("#head dl").split())
    assert "Took30.0 s" in head or "Took30 s" in head
    assert head.endswith("Exit code3")
    for state, said in (("running", "Endednot yet"), ("interrupted", "Endedunknown")):
        view.open({**report([job(7, 60, 30, state=state) | {"ended": None}]), "job": 7})
        assert said in view.text("#head dl")
    view.open({**report([job(7, 60, 30, measured=MEASURED)], advice=["job 7 held gpu 0"]), "job": 7})
    assert view.all("#advice .open") == []


def test_without_measurements_there_is_none_of_this(view: Page) -> None:
    view.open(report([job(1, 0)]))
    assert meters(view) == []
    assert (view.all("#timeline [data-meter]"), view.all("#at-zero"), view.all("#use tbody tr")) == ([], [], [])
    assert not view.one("#use").is_displayed()
    assert not view.one("#advice").is_displayed()
    assert "Wasted" not in view.text("#jobs thead")


def test_a_gpu_whose_name_is_meant_to_do_harm_only_shows_it(view: Page) -> None:
    values = measured_report()
    for name in ("gpus", "lanes"):
        values[name][0]["gpu"] = HOSTILE
    for each in values["jobs"]:
        each["gpus"] = each["attempts"][0]["gpus"] = [HOSTILE]
    view.open(values)
    assert len(meters(view)) == 4
    assert view.js("return document.body.dataset.owned") is None


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_a_night_of_500_jobs_on_8_gpus_is_a_few_shapes_and_fits_the_screen(view: Page, theme: str, width: int) -> None:
    view.theme(theme)
    view.size(width, 900)
    dark = night(500, 8, most_points=60)
    view.open(built(*dark.records, curves=curves_in(dark.samples), now=1e6))
    assert view.js("return document.documentElement.scrollWidth") <= width
    assert len(meters(view)) == 4
    assert view.js("return document.querySelectorAll('#gantt *').length") < 500
    assert view.js("return document.getElementById('gantt').outerHTML.length") < 700_000
    colour = "return getComputedStyle(document.querySelector('#gantt .meter-area')).color"
    assert view.js(colour) == ("rgb(59, 92, 158)" if theme == "light" else "rgb(126, 168, 242)")


def test_the_page_of_one_job_shows_it_without_a_click_and_its_time_alone(view: Page) -> None:
    dark = night(40, 3, most_points=60)
    values = built(*dark.records, curves=curves_in(dark.samples), now=1e6, job=9)
    view.open(values)
    assert view.text("#title").startswith("Job 9 of run ")
    assert len(view.all("#jobs .small-curve")) == 1
    assert "Peak memory" in view.text("#jobs")
    for section in ("outcomes", "use", "waits", "failures"):
        assert not view.one(f"#{section}").is_displayed()
    across = view.js("return document.querySelector('#gantt .bars').getBBox().width")
    assert across == pytest.approx(
        view.js("return document.getElementById('gantt').getBoundingClientRect().width"), abs=80
    )
