"""The report: one HTML page about the results of one or several presets, whole in itself (nothing is fetched).

`write_report` gathers what the page shows, one module each: `headline`, `exhibits` (figures and tables), `verdicts`
(the table of claims), `certificates`, `provenance`. Words stand in experiments and in the templates; numbers
come from rows, plans and certificates only.
"""

from certified_unlearning.reproduction.report.page import write_report

__all__ = ["write_report"]
