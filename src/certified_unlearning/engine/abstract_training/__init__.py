"""Abstract gradient training: it runs descent and bounds the parameters of all neighbouring data sets by a box."""
