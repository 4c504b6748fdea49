"""What captions and figures of this paper share."""

ANEW = ("retraining", "scikit-learn")
"""Mechanisms that learn anew, and so do not depend on epsilon."""

SPREAD = (
    "Lines: mean over trials. Shaded: one sample standard deviation over trials either way, within [0, 1]. All trials "
    "share one split and the same removed records; noiseless retraining has one value. Dotted and dash-dotted: "
    "scikit-learn fitted again on what is left, from zero, which is retraining, and from its old weights, of which "
    "nothing is guaranteed. Where accuracies come so low, a thin line is what guessing the most frequent class gets "
    "right."
)
