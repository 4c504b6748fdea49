"""The experiments on private learning: a module each, so that code of one reruns no other."""
