"""The report: one HTML page, which needs no other files, about the results of one or several presets.

`write_report` collects what the page shows, from one module for each part: `headline`, `exhibits` (figures and tables),
`verdicts` (the table of claims), `certificates` and `provenance`. Texts come from experiments and from the templates.
Numbers come only from rows, plans and certificates.
"""

from certified_unlearning.reproduction.report.page import write_report

__all__ = ["write_report"]
