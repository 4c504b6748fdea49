"""C++ sources that the machine's own compiler builds (`source`), and what they do: `minibatch`."""
