"""The common part of the pipeline: jobs, rows, figures, claims, report and tracking. Its modules name no paper."""
