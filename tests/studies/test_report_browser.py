"""The page in a real browser: it draws, its controls work by mouse and keyboard, and it asks nothing of a network."""

import json
import shutil

import numpy as np
import pytest

from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.studies import paper_experiments
from curious_explorer.studies.page.page_assembly import json_in_html
from curious_explorer.studies.page.study_pages import reproduction_html
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import by_experiment
from curious_explorer.studies.reproduction import can_encode, run_study
from curious_explorer.studies.video import write_video

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
STUDY = Study(preset="fixed", depths=(2, 4), environments=("cct", "dcl"), optimizers=("trpo",), seeds=2)
EVIL = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "a & b"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    runs = run_study(STUDY, folder / "study")
    path = folder / "report.html"
    results = by_experiment(runs)
    film = folder / "film.mp4"
    if can_encode():
        write_video(film, results[:1])
    path.write_text(reproduction_html(STUDY, results, film=film if film.exists() else None), encoding="utf-8")
    film.unlink(missing_ok=True)  # the page has it in itself
    return path


def open_browser(folder, width=1200, scheme="light"):
    driver_path, browser_path = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if driver_path is None or browser_path is None:
        pytest.skip("there is no chromium with its driver here")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = browser_path
    for flag in [*FLAGS.split(), f"--user-data-dir={folder}", f"--window-size={width},900"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver_path))
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    return browser


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    browser = open_browser(tmp_path_factory.mktemp("profile"))
    browser.get(page.as_uri())
    yield browser
    browser.quit()


def errors(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def wait_for(browser, script):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda each: each.execute_script(f"return {script}"))


def test_the_plots_draw_and_the_console_stays_silent(browser):
    wait_for(browser, "document.querySelectorAll('#scatter .scatterlayer .point').length > 0")
    for plot in ("by-episodes", "by-samples"):
        assert browser.execute_script(f"return document.querySelectorAll('#{plot} path.js-line').length") >= 2
    assert browser.execute_script("return document.querySelectorAll('#graph circle.state').length") == 3 * 4 + 4
    assert errors(browser) == []


def test_nothing_is_fetched(browser):
    fetched = (
        "performance.getEntriesByType('resource').map(each => each.name).filter(name => !/^(data|blob):/.test(name))"
    )
    assert browser.execute_script(f"return {fetched}") == []


@pytest.mark.skipif(not can_encode(), reason="the video's encoder is not installed")
def test_the_film_is_in_the_page(browser):
    assert wait_for(browser, "document.querySelector('video').readyState >= 1")
    assert browser.execute_script("return document.querySelector('video').duration") >= 1.0
    assert errors(browser) == []


def test_a_page_without_a_film_asks_for_none(evil_page):
    assert "<video" not in evil_page.read_text(encoding="utf-8")


def test_the_slider_moves_the_evolution_by_keyboard(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    slider = browser.find_element(By.ID, "round")
    colours = (
        "Array.from(document.querySelectorAll('#graph circle.state')).map(each => each.getAttribute('fill')).join()"
    )
    last = browser.execute_script(f"return {colours}")
    slider.send_keys(Keys.HOME)
    assert browser.find_element(By.ID, "round-words").text.startswith("1 of 4:")
    assert browser.execute_script(f"return {colours}") != last
    slider.send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element(By.ID, "round-words").text.startswith("2 of 4:")


def test_play_runs_to_the_end_and_stops(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.find_element(By.ID, "round").send_keys(Keys.END, Keys.ARROW_LEFT)
    play = browser.find_element(By.ID, "play")
    play.send_keys(Keys.SPACE)
    assert play.text == "Pause"
    wait_for(browser, "document.getElementById('round').value === '4'")
    wait_for(browser, "document.getElementById('play').textContent === 'Play'")


def test_another_experiment_draws_itself(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element(By.ID, "experiment")).select_by_visible_text("TRPO on CCT2")
    assert browser.execute_script("return document.querySelectorAll('#graph circle.state').length") == 3
    assert browser.find_element(By.ID, "round-words").text.startswith("2 of 2:")
    assert errors(browser) == []


def test_it_fits_a_phone_in_the_dark(page, tmp_path):
    browser = open_browser(tmp_path, width=390, scheme="dark")
    try:
        browser.get(page.as_uri())
        wait_for(browser, "document.querySelectorAll('#scatter .scatterlayer .point').length > 0")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(17, 22, 28)"
        assert errors(browser) == []
    finally:
        browser.quit()


@pytest.fixture
def evil_page(tmp_path, monkeypatch):
    def evil(depth, permute_actions):
        transitions = np.zeros((3, 2, 3))
        transitions[0, 0, 1] = transitions[0, 1, 0] = transitions[1, :, 2] = transitions[2, :, 2] = 1.0
        rewards = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
        return FiniteMDP(transitions, rewards, 0, terminal=[2], state_names=EVIL)

    monkeypatch.setitem(paper_experiments.ENVIRONMENTS, "cct", evil)
    monkeypatch.setattr(Study, "command", "curious-explorer reproduce '<b>'")
    study = Study(preset="fixed", depths=(2,), environments=("cct",), optimizers=("trpo",), seeds=1)
    runs = run_study(study, tmp_path / "study")
    path = tmp_path / "evil.html"
    path.write_text(reproduction_html(study, by_experiment(runs)), encoding="utf-8")
    return path


def test_hostile_names_stay_text_in_the_source(evil_page):
    text = evil_page.read_text(encoding="utf-8")
    assert "alert(1)</script>" not in text
    assert "<img src=x" not in text
    assert "&#x27;&lt;b&gt;&#x27;" in text


def test_hostile_names_show_as_they_are(evil_page, tmp_path):
    browser = open_browser(tmp_path / "profile")
    try:
        browser.get(evil_page.as_uri())
        wait_for(browser, "document.querySelectorAll('#scatter .scatterlayer .point').length > 0")
        shown = "Array.from(document.querySelectorAll('#graph text')).map(each => each.textContent)"
        assert browser.execute_script(f"return {shown}") == EVIL
        assert browser.execute_script("return document.querySelectorAll('img, #scatter script').length") == 0
        assert errors(browser) == []
    finally:
        browser.quit()


def test_json_in_html_is_still_the_same_json():
    value = {"<script>": ["</script>", "a & b", "\u2028", "<!--"]}
    text = json_in_html(value)
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == value
