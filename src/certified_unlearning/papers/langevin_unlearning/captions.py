"""Words that captions of this paper share."""

SPREAD = (
    "Lines: mean over trials. Shaded: one sample standard deviation over trials either way, within [0, 1]. All trials "
    "share one split and the same removed records; noiseless retraining has one value."
)
