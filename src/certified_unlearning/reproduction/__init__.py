"""The machinery of the pipeline: jobs, rows, figures, claims, report, tracking. It names no paper."""
