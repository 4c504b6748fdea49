"""Abstract gradient training: descent together with a box of all parameters that neighbouring data sets lead to."""
