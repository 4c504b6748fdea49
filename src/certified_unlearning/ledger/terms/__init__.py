"""The terms of requests: when they were received, when they are due, and which are on hold."""
