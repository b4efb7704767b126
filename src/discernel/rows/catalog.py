"""What is known of each data set: its size, its classes, and where it can be had.

OpenML's copies are named where they hold the same numbers. Those left out do not: ``heart-c``
counts one patient to the other class and stores words, ``satimage`` is standardised,
``waveform-5000`` is another draw, with 40 features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets

from discernel.arrays import FloatArray
from discernel.rows.generators import make_monks

Label: TypeAlias = int | str


@dataclass(frozen=True)
class OpenML:
    """A set on OpenML.

    Attributes
    ----------
    ids : dict of str to int
        The data id of each view; one, named ``""``, for a set without views. An id stands for
        one version of a set for good.
    labels : dict of str to label
        From the labels there to the labels here, where they differ.
    target : str
        The column to predict.
    """

    ids: Mapping[str, int]
    labels: Mapping[str, Label] = field(default_factory=dict)
    target: str = "default-target"


@dataclass(frozen=True)
class CatalogEntry:
    """One public data set.

    Attributes
    ----------
    title : str
        What it is.
    shape : tuple of (n_samples, n_features)
        Its size.
    classes : dict of label to int, or None
        How many samples each class has; None for a number to predict.
    features : tuple of str
        Names of the features, where they have any.
    views : dict of str to int
        How many features each view has, in their order.
    n_missing : int
        How many values are missing.
    bundled : callable or None
        Returns features and labels, or a bunch, without a folder or, for Olivetti, from the web.
    file : str
        The file in the folder; empty where none is looked for.
    openml : OpenML or None
        Where it is on OpenML.
    complete_rows : bool
        Whether rows with missing values are left out.
    relabel : callable or None
        From the numbers stored to the classes of the task.
    n_train : int or None
        How many of the first rows of the file are the training part its donor made.
    """

    title: str
    shape: tuple[int, int]
    classes: Mapping[Any, int] | None
    features: tuple[str, ...] = ()
    views: Mapping[str, int] = field(default_factory=dict)
    n_missing: int = 0
    bundled: Callable[[], Any] | None = None
    file: str = ""
    openml: OpenML | None = None
    complete_rows: bool = False
    relabel: Callable[[FloatArray], NDArray[Any]] | None = None
    n_train: int | None = None


@dataclass(frozen=True)
class Private:
    """A data set that a paper used and that is not public.

    Attributes
    ----------
    title : str
        What it is.
    instead : tuple of str
        Public sets for the same kind of task.
    """

    title: str
    instead: tuple[str, ...]


def _above_21(medv: FloatArray) -> NDArray[Any]:
    return np.where(medv > 21.0, "above 21", "up to 21")


def _one(data_id: int, target: str = "default-target", **labels: Label) -> OpenML:
    return OpenML({"": data_id}, labels, target)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FROM_1_TO_10: Mapping[str, Label] = {str(digit + 1): digit for digit in range(10)}
_HEART = _words("age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal")
_CELLS = (
    "clump_thickness",
    "cell_size_uniformity",
    "cell_shape_uniformity",
    "marginal_adhesion",
    "epithelial_cell_size",
    "bare_nuclei",
    "bland_chromatin",
    "normal_nucleoli",
    "mitoses",
)
_HOUSING = _words("CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT")
_REGION = _words(
    "region-centroid-col region-centroid-row region-pixel-count short-line-density-5 "
    "short-line-density-2 vedge-mean vedge-sd hedge-mean hedge-sd intensity-mean rawred-mean "
    "rawblue-mean rawgreen-mean exred-mean exblue-mean exgreen-mean value-mean saturation-mean "
    "hue-mean"
)
_SURFACES = ("BRICKFACE", "CEMENT", "FOLIAGE", "GRASS", "PATH", "SKY", "WINDOW")
_MONKS = ("a1", "a2", "a3", "a4", "a5", "a6")
_FOLDS = [19, 16, 32, 15, 18, 15, 74, 21, 29, 13, 16, 32, 12, 13, 16, 77, 23, 24, 40, 22]
_FOLDS += [17, 22, 18, 15, 15, 40, 40]


CATALOG: dict[str, CatalogEntry] = {
    "boston_housing": CatalogEntry(
        "Boston housing: median value of homes in a tract, in 1000 dollars",
        (506, 13),
        None,
        features=_HOUSING,
        file="boston_housing.csv",
        openml=_one(531),
    ),
    "boston_housing_binary": CatalogEntry(
        "Boston housing: whether the median value of homes is above 21 000 dollars",
        (506, 13),
        {"above 21": 257, "up to 21": 249},
        features=_HOUSING,
        file="boston_housing.csv",
        openml=_one(531),
        relabel=_above_21,
    ),
    "breast_cancer_wisconsin": CatalogEntry(
        "Breast cancer Wisconsin (original), complete rows: benign (2) or malignant (4)",
        (683, 9),
        {2: 444, 4: 239},
        features=_CELLS,
        file="breast_cancer_wisconsin.csv",
        openml=_one(15, benign=2, malignant=4),
        complete_rows=True,
    ),
    "breast_cancer_wisconsin_raw": CatalogEntry(
        "Breast cancer Wisconsin (original), all rows: benign (2) or malignant (4)",
        (699, 9),
        {2: 458, 4: 241},
        features=_CELLS,
        n_missing=16,
        file="breast_cancer_wisconsin_raw.csv",
        openml=_one(15, benign=2, malignant=4),
    ),
    "bupa": CatalogEntry(
        "BUPA liver disorders: the selector field, which its donor made to split the data",
        (345, 6),
        {1: 145, 2: 200},
        features=_words("mcv alkphos sgpt sgot gammagt drinks"),
        file="bupa.csv",
        openml=_one(8, target="selector"),
    ),
    "digits": CatalogEntry(
        "Handwritten digits of 8 × 8 pixels",
        (1797, 64),
        dict(enumerate((178, 182, 177, 183, 181, 182, 181, 179, 174, 180))),
        bundled=sklearn_datasets.load_digits,
    ),
    "heart_cleveland": CatalogEntry(
        "Cleveland heart disease, complete rows: absent (0) or present (1)",
        (297, 13),
        {0: 160, 1: 137},
        features=_HEART,
        file="heart_cleveland.csv",
    ),
    "heart_cleveland_raw": CatalogEntry(
        "Cleveland heart disease, all rows: degree 0 to 4",
        (303, 13),
        {0: 164, 1: 55, 2: 36, 3: 35, 4: 13},
        features=_HEART,
        n_missing=6,
        file="heart_cleveland_raw.csv",
    ),
    "heart_statlog": CatalogEntry(
        "Statlog heart disease: absent (1) or present (2)",
        (270, 13),
        {1: 150, 2: 120},
        features=_HEART,
        file="heart_statlog.csv",
        openml=_one(53, absent=1, present=2),
    ),
    "ionosphere": CatalogEntry(
        "Radar returns from the ionosphere: good (g) or bad (b)",
        (351, 34),
        {"b": 126, "g": 225},
        file="ionosphere.csv",
        openml=_one(59),
    ),
    "iris": CatalogEntry(
        "Iris flowers: three species",
        (150, 4),
        {0: 50, 1: 50, 2: 50},
        bundled=sklearn_datasets.load_iris,
    ),
    "mfeat": CatalogEntry(
        "Handwritten digits in six views: Fourier coefficients, profile correlations, "
        "Karhunen-Loève coefficients, pixels, Zernike moments, morphology",
        (2000, 649),
        dict.fromkeys(range(10), 200),
        views={"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6},
        file="mfeat.npz",
        openml=OpenML(
            {"fou": 14, "fac": 12, "kar": 16, "pix": 20, "zer": 22, "mor": 18}, _FROM_1_TO_10
        ),
    ),
    "monks1": CatalogEntry(
        "MONK's problem 1, all points",
        (432, 6),
        {0: 216, 1: 216},
        features=_MONKS,
        bundled=lambda: make_monks(1),
    ),
    "monks2": CatalogEntry(
        "MONK's problem 2, all points",
        (432, 6),
        {0: 290, 1: 142},
        features=_MONKS,
        bundled=lambda: make_monks(2),
    ),
    "monks3": CatalogEntry(
        "MONK's problem 3, all points, without noise",
        (432, 6),
        {0: 204, 1: 228},
        features=_MONKS,
        bundled=lambda: make_monks(3),
    ),
    "monks3_train": CatalogEntry(
        "MONK's problem 3, the training points, 6 labels of which are noise",
        (122, 6),
        {0: 62, 1: 60},
        features=_MONKS,
        file="monks3_train.csv",
    ),
    "olivetti": CatalogEntry(
        "Olivetti faces of 64 × 64 pixels: ten pictures of each of 40 people",
        (400, 4096),
        dict.fromkeys(range(40), 10),
        bundled=lambda: sklearn_datasets.fetch_olivetti_faces(n_retries=1, delay=0.5),
    ),
    "pima": CatalogEntry(
        "Pima Indians diabetes: absent (0) or present (1); zeros in columns 1 to 5 mean missing",
        (768, 8),
        {0: 500, 1: 268},
        features=_words("pregnancies glucose pressure skin insulin bmi pedigree age"),
        file="pima.csv",
        openml=_one(37, tested_negative=0, tested_positive=1),
    ),
    "protein_fold": CatalogEntry(
        "Protein folds: twelve kernels, each as an embedding of rank 27 made of all rows",
        (694, 324),
        dict(enumerate(_FOLDS, start=1)),
        views={f"view{index}": 27 for index in range(12)},
        file="protein_fold_rank27.npz",
        n_train=311,
    ),
    "satimage": CatalogEntry(
        "Landsat pixels: six kinds of ground, numbered 1 to 5 and 7",
        (6435, 36),
        {1: 1533, 2: 703, 3: 1358, 4: 626, 5: 707, 7: 1508},
        file="satimage.csv",
        n_train=4435,
    ),
    "segment": CatalogEntry(
        "Image segmentation: seven kinds of surface",
        (2310, 19),
        dict.fromkeys(_SURFACES, 330),
        features=_REGION,
        file="segment.csv",
        openml=OpenML({"": 36}, {surface.lower(): surface for surface in _SURFACES}),
        n_train=210,
    ),
    "sonar": CatalogEntry(
        "Sonar returns from mines (M) and rocks (R)",
        (208, 60),
        {"M": 111, "R": 97},
        file="sonar.csv",
        openml=_one(40, Mine="M", Rock="R"),
    ),
    "usps": CatalogEntry(
        "Handwritten digits of the US postal service, 16 × 16 pixels in [−1, 1]",
        (9298, 256),
        dict(enumerate((1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821))),
        file="usps.csv",
        openml=OpenML({"": 41082}, _FROM_1_TO_10),
        n_train=7291,
    ),
    "waveform": CatalogEntry(
        "Breiman's waveforms, the draw stored at UCI (version 1)",
        (5000, 21),
        {0: 1657, 1: 1647, 2: 1696},
        file="waveform.csv",
    ),
    "wdbc": CatalogEntry(
        "Breast cancer Wisconsin (diagnostic): malignant (0) or benign (1)",
        (569, 30),
        {0: 212, 1: 357},
        bundled=sklearn_datasets.load_breast_cancer,
    ),
    "wine": CatalogEntry(
        "Wines of three cultivars",
        (178, 13),
        {0: 59, 1: 71, 2: 48},
        bundled=sklearn_datasets.load_wine,
    ),
}

PRIVATE: dict[str, Private] = {
    "colon_cad": Private(
        "300 candidates of polyps in CT images, 14 features", ("wdbc", "heart_cleveland")
    ),
    "feret": Private("faces of 47 people from the FERET database", ("olivetti", "usps")),
    "flyexpress": Private(
        "2705 images of gene expression in fly embryos, 24 Gabor filters",
        ("mfeat", "protein_fold"),
    ),
}


def names() -> list[str]:
    """Return the names of all public data sets.

    Examples
    --------
    >>> from discernel.datasets import names
    >>> names()[:3]
    ['boston_housing', 'boston_housing_binary', 'breast_cancer_wisconsin']
    """
    return sorted(CATALOG)


def private_names() -> list[str]:
    """Return the names of the data sets that a paper used and that are not public."""
    return sorted(PRIVATE)
