"""The accuracies of DPIS Tables 3 to 6, in percent."""

from typing import Final

EPSILONS: Final = (0.5, 1.0, 2.0, 3.0, 4.0)
ABSENT: Final = {"CIFAR-10": "the data set is not available"}
NO_GLOVE: Final = "the GloVe word vectors are not available: ours are random and fixed"
Row = tuple[float, ...]

TABLE_3: Final[dict[str, dict[str, Row]]] = {
    "MNIST": {
        "DPIS": (96.8, 97.7, 98.6, 98.8, 98.9),
        "DP-SGD-HF": (96.1, 97.2, 98.3, 98.4, 98.5),
        "DP-SGD-TS": (96.0, 96.8, 97.7, 98.1, 98.3),
        "DP-SGD-Decay": (96.2, 97.0, 97.8, 98.2, 98.3),
        "DP-SGD": (93.1, 94.9, 96.1, 96.8, 97.2),
    },
    "FMNIST": {
        "DPIS": (84.6, 86.6, 88.3, 88.8, 89.4),
        "DP-SGD-HF": (83.9, 86.0, 87.8, 88.3, 88.7),
        "DP-SGD-TS": (81.0, 83.0, 85.0, 86.3, 86.8),
        "DP-SGD-Decay": (80.8, 83.1, 85.1, 86.4, 86.8),
        "DP-SGD": (78.4, 80.8, 82.3, 84.1, 84.5),
    },
    "CIFAR-10": {
        "DPIS": (55.1, 62.2, 67.9, 69.7, 70.6),
        "DP-SGD-HF": (54.3, 61.1, 67.4, 69.2, 70.2),
        "DP-SGD-TS": (44.4, 51.0, 57.2, 60.7, 63.0),
        "DP-SGD-Decay": (44.1, 50.7, 56.6, 60.7, 63.1),
        "DP-SGD": (43.1, 48.3, 54.7, 58.9, 60.4),
    },
    "IMDb": {
        "DPIS": (59.1, 62.1, 65.9, 68.3, 70.2),
        "DP-SGD-TS": (57.5, 60.3, 62.8, 65.2, 66.5),
        "DP-SGD-Decay": (56.8, 60.4, 63.6, 66.3, 67.6),
        "DP-SGD": (56.4, 60.3, 63.5, 66.4, 67.4),
    },
}
NON_PRIVATE: Final = {"MNIST": 99.1, "FMNIST": 90.9, "CIFAR-10": 71.0, "IMDb": 79.5}

# with and without adaptive clipping, at epsilon 0.5, 1, 2, 3
TABLE_4: Final[dict[str, tuple[Row, Row]]] = {
    "MNIST": ((96.7, 97.6, 98.5, 98.7), (96.8, 97.7, 98.6, 98.8)),
    "FMNIST": ((84.6, 86.5, 88.2, 88.7), (84.6, 86.6, 88.3, 88.8)),
    "CIFAR-10": ((55.4, 62.4, 67.7, 69.3), (55.1, 62.2, 67.9, 69.7)),
    "IMDb": ((59.1, 62.2, 65.9, 68.3), (58.2, 61.7, 65.0, 67.6)),
}

SPLITS: Final = (0.0, 0.6, 0.8, 1.0)  # a_E
TABLE_5: Final[dict[str, Row]] = {
    "MNIST": (97.6, 97.6, 97.7, 97.6),
    "FMNIST": (86.6, 86.5, 86.7, 86.8),
    "CIFAR-10": (62.0, 62.1, 62.4, 61.9),
    "IMDb": (62.1, 61.8, 62.1, 62.1),
}

GROWTHS: Final = (3.0, 4.0, 5.0, 6.0)  # k
TABLE_6: Final[dict[str, Row]] = {
    "MNIST": (97.7, 97.7, 97.7, 97.7),
    "FMNIST": (86.7, 86.7, 86.8, 86.8),
    "CIFAR-10": (62.3, 62.2, 62.4, 62.4),
    "IMDb": (62.1, 62.2, 62.3, 62.3),
}
