"""``report.html``: one page that tells the story of a study, opens from disk and asks nothing of a network."""

from curious_explorer.experiments.page.assembly import report_html

__all__ = ["report_html"]
