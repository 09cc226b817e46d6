"""The comparison's page in a real browser, alone and as a section of the reproduction's page."""

import pytest
from test_report_browser import errors, open_browser, wait_for

from curious_explorer.environments import combination_lock
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare, load_results
from curious_explorer.studies.page.study_pages import reproduction_html
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import by_experiment
from curious_explorer.studies.reproduction import run_study

METHODS = ("ucbvi", "trpo", "r-max")
HOSTILE = "a&b<img src=x onerror=alert(1)>.json"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    hostile = folder / HOSTILE
    combination_lock(2).save(hostile)
    environments = ("dcl/3", str(hostile))
    results = compare(Comparison(methods=METHODS, environments=environments, seeds=2, budget=3_000), folder / "out")
    return folder / "out", results


@pytest.fixture(scope="module")
def browser(compared, tmp_path_factory):
    browser = open_browser(tmp_path_factory.mktemp("profile"))
    browser.get((compared[0] / "report.html").as_uri())
    wait_for(browser, "document.querySelectorAll('#comparison-heat .heatmaplayer image').length > 0")
    yield browser
    browser.quit()


def lines(browser, plot):
    return browser.execute_script(f"return document.querySelectorAll('#{plot} path.js-line').length")


def column(browser, place):
    rows = "Array.from(document.querySelector('#comparison > .scroll tbody').rows)"
    return browser.execute_script(f"return {rows}.map(row => row.cells[{place}].textContent)")


def test_everything_draws_and_nothing_is_fetched(browser):
    assert lines(browser, "comparison-shares") == 3
    assert lines(browser, "comparison-value") >= 3
    assert browser.execute_script("return document.querySelectorAll('#comparison-bars .bars .point').length") == 3
    fetched = (
        "performance.getEntriesByType('resource').map(each => each.name).filter(name => !/^(data|blob):/.test(name))"
    )
    assert browser.execute_script(f"return {fetched}") == []
    assert errors(browser) == []


def test_methods_are_switched_by_keyboard(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    boxes = browser.find_elements(By.CSS_SELECTOR, "#comparison-methods input")
    boxes[1].send_keys(Keys.SPACE)
    assert lines(browser, "comparison-shares") == 2
    browser.find_element(By.ID, "comparison-none").send_keys(Keys.SPACE)
    assert lines(browser, "comparison-shares") == lines(browser, "comparison-value") == 0
    browser.find_element(By.ID, "comparison-all").send_keys(Keys.SPACE)
    assert lines(browser, "comparison-shares") == 3
    assert errors(browser) == []


def test_columns_sort_and_the_first_one_brings_the_order_back(browser, compared):
    from selenium.webdriver.common.by import By

    heads = browser.find_element(By.CSS_SELECTOR, "#comparison > .scroll").find_elements(By.CLASS_NAME, "sort")
    expected = sorted(METHODS, key=lambda name: compared[1].seconds(name).mean())
    heads[6].click()
    assert column(browser, 0) == expected
    heads[6].click()
    assert column(browser, 0) == expected[::-1]
    heads[0].click()
    assert column(browser, 0) == list(METHODS)


def test_environments_and_measures_are_chosen(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    picker = Select(browser.find_element(By.ID, "comparison-environment"))
    assert [HOSTILE in option.text for option in picker.options] == [False, True]
    picker.select_by_visible_text("dcl/3")
    Select(browser.find_element(By.ID, "comparison-measure")).select_by_value("samples_to_target")
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert errors(browser) == []


def test_it_is_a_section_of_the_reproduction_on_a_phone_in_the_dark(compared, tmp_path):
    study = Study(depths=(2,), environments=("cct",), optimizers=("trpo",), seeds=1)
    runs = run_study(study, tmp_path / "study")
    page = tmp_path / "both.html"
    page.write_text(reproduction_html(study, by_experiment(runs), load_results(compared[0])), encoding="utf-8")
    browser = open_browser(tmp_path / "profile", width=390, scheme="dark")
    try:
        browser.get(page.as_uri())
        wait_for(browser, "document.querySelectorAll('#comparison-heat .heatmaplayer image').length > 0")
        wait_for(browser, "document.querySelectorAll('#scatter .scatterlayer .point').length > 0")
        links = "Array.from(document.querySelectorAll('nav a')).map(each => each.hash)"
        assert "#comparison" in browser.execute_script(f"return {links}")
        missing = f"{links}.filter(each => document.querySelectorAll(each).length !== 1)"
        assert browser.execute_script(f"return {missing}") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert errors(browser) == []
    finally:
        browser.quit()
