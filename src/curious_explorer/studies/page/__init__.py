"""``report.html``: one page that tells the story of a study, opens from disk and asks nothing of a network."""

from curious_explorer.studies.page.comparison_page import comparison_html
from curious_explorer.studies.page.reproduction_page import report_html

__all__ = ["comparison_html", "report_html"]
