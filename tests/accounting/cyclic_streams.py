"""What the tests of streams of requests to cyclic mini-batches share."""

from dataclasses import replace

from certified_unlearning.accounting.core.problem import Problem

STRENGTH = 1 / 80
SMOOTHNESS = 0.25 + STRENGTH


def first_of(schedule, number):
    places = schedule.places and schedule.places[:number]
    return replace(
        schedule, records_per_request=schedule.records[:number], steps=schedule.steps[:number], places=places
    )


def batch_problem(batch_size, *, strength=STRENGTH, adjacency="zero-out", step_size=1 / SMOOTHNESS):
    return Problem(batch_size, strength, 0.25 + strength, 1.0, step_size, adjacency)
