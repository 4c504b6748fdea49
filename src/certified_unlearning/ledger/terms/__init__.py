"""When requests were received, when they are due, and which are on hold."""
