"""Reports: what was learned from what, in one HTML file that asks nothing of anybody.

It may use models, learners, recipes and pictures. Start reading in `document`; `subject` says what is reported of each kind of
value, each section is a file that makes HTML of it, `document` puts them together with `page.css` and `page.js`.
"""

from suffice.interfaces.reports.document import report, report_html

__all__ = ["report", "report_html"]
