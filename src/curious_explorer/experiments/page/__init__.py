"""``report.html``: one page that tells the story of a study, opens from disk and asks nothing of a network."""

from curious_explorer.experiments.page.comparison import comparison_html
from curious_explorer.experiments.page.reproduction import report_html

__all__ = ["comparison_html", "report_html"]
