"""Abstract gradient training: descent, and boxes that contain the parameters learned from any neighbouring data set."""
