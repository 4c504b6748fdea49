"""The common part of the pipeline: jobs, rows, figures, claims, report and tracking. No paper is named here."""
