"""Mechanisms, which learn and unlearn in phases of descent.

A mechanism turns runs that use the same data sets into phases. The trials of all runs form one batch, run by run. The
randomness of a trial has the address (seed, data set, mechanism, sweep point, trial, phase).
"""
