"""scikit-learn's checks of every public estimator, with parameters other than the defaults.

Those of the defaults are in `test_contract.py`. Checks of sample weights against repeated rows are
there too.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from discernel import (
    AKFDClassifier,
    KernelDiscriminant,
    LearnedKernelTransformer,
    MultiLabelKernelDiscriminant,
    MultipleKernelDiscriminant,
    MultipleKernelRidge,
    SeparabilityClassifier,
)
from discernel.bank import LowRank
from discernel.criteria import GivenWeights
from discernel.kernels import RBF, Cosine, Laplace, Linear, Polynomial, Standardized

TWO = [RBF(), Linear()]
NAMED = {"first": RBF().on([0]), "all": Laplace()}

ESTIMATORS = [
    KernelDiscriminant(Laplace(), regularization=0.1),
    KernelDiscriminant(Polynomial(2, gamma=None), criterion="fdr", regularization=0.1),
    KernelDiscriminant(Cosine(), priors="uniform", class_weight="balanced"),
    KernelDiscriminant(Standardized(RBF()), n_components=1, threshold=0.3),
    KernelDiscriminant((RBF() + 1.0) ** 2, statistics="training"),
    KernelDiscriminant(RBF() + Linear(), regularization=0.1),
    MultipleKernelDiscriminant(TWO, criterion="rkda", bank="tiled"),
    MultipleKernelDiscriminant(TWO, bank=LowRank(10), criterion="rkda", regularization=0.1),
    MultipleKernelDiscriminant(TWO, bank="iterative", criterion="rkda", regularization=0.1),
    MultipleKernelDiscriminant(TWO, criterion="alignment", device="cpu", class_weight="balanced"),
    MultipleKernelDiscriminant(NAMED, criterion=GivenWeights({"all": 2.0, "first": 1.0})),
    MultipleKernelDiscriminant(TWO, criterion="fdr", regularization=0.1),
    LearnedKernelTransformer(TWO, criterion="rkda"),
    LearnedKernelTransformer(NAMED, criterion="uniform", bank="tiled"),
    MultiLabelKernelDiscriminant(TWO, criterion="rkda"),
    MultiLabelKernelDiscriminant(TWO, criterion="uniform", class_weight="balanced"),
    MultipleKernelRidge(TWO, criterion="rkda", bank="tiled"),
    MultipleKernelRidge(TWO, criterion="uniform", regularization=0.1),
    AKFDClassifier(TWO, nu=0.1),
    AKFDClassifier([Laplace()], nu=1.0, class_weight="balanced"),
    SeparabilityClassifier(TWO, require_unlabelled=False),
    SeparabilityClassifier([Linear()], require_unlabelled=False, method="dinkelbach"),
    SeparabilityClassifier(TWO, require_unlabelled=False, unlabelled="?", n_neighbors=3),
]

#: Names of checks that call ``partial_fit`` where there is one.
PARTIAL_FIT = (
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_estimators_partial_fit_n_features",
)
#: Checks that have to fail, by what is asked for, with the reason.
EXPECTED_FAILED_CHECKS = {
    "balanced": dict.fromkeys(
        PARTIAL_FIT, "class_weight='balanced' depends on all rows, which partial_fit does not know"
    ),
    "fdr": dict.fromkeys(PARTIAL_FIT, "the scatter of 'fdr' is not a sum over chunks of rows"),
    "threshold": {
        "check_classifiers_train": "predict compares probabilities with the threshold, and "
        "decision_function stays as it is, as of scikit-learn's FixedThresholdClassifier"
    },
    "cosine": {"check_fit2d_1feature": "the cosine of positive numbers is constant"},
    "priors": {
        "check_class_weight_classifiers": "uniform priors are those of classes of equal weight"
    },
    "labels": dict.fromkeys(
        [
            "check_classifiers_multilabel_representation_invariance",
            "check_classifiers_multilabel_output_format_predict",
            "check_classifiers_multilabel_output_format_predict_proba",
            "check_classifiers_multilabel_output_format_decision_function",
        ],
        "class_weight requires one class for each row",
    ),
    "neighbours": {
        "check_class_weight_classifiers": "classes weigh in the kernel, not in the neighbours"
    },
    "unlabelled": {
        "check_classifiers_classes": "-1, a label in this check, marks rows without one"
    },
}


def expected_failures(estimator):
    """Return the checks that an estimator has to fail, with the reasons."""
    params, kinds = estimator.get_params(deep=False), []
    balanced = params.get("class_weight") == "balanced"
    if hasattr(estimator, "partial_fit"):
        kinds += ["balanced"] * balanced + ["fdr"] * (params.get("criterion") == "fdr")
    kinds += ["labels"] * (balanced and isinstance(estimator, MultiLabelKernelDiscriminant))
    kinds += ["threshold"] * (params.get("threshold") is not None)
    kinds += ["priors"] * (params.get("priors") == "uniform")
    kinds += ["cosine"] * (params.get("kernel") == Cosine())
    if isinstance(estimator, SeparabilityClassifier):
        kinds += ["neighbours"] + ["unlabelled"] * (params["unlabelled"] == -1)
    return {name: why for kind in kinds for name, why in EXPECTED_FAILED_CHECKS[kind].items()}


def checks():
    """Yield every estimator with every check, marked where it has to fail."""
    for number, given in enumerate(ESTIMATORS):
        expected = expected_failures(given)
        for estimator, check in estimator_checks_generator(given, mark=None):
            name = getattr(check, "func", check).__name__
            if name.startswith("check_sample_weight_equivalence"):
                continue
            marks = [pytest.mark.xfail(reason=expected[name])] if name in expected else []
            label = f"{type(given).__name__} {number} {name}"
            yield pytest.param(estimator, check, id=label, marks=marks)


@pytest.mark.filterwarnings("ignore:A larger rank would reduce the error")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_estimator_check(estimator, check):
    check(estimator)


def test_the_expected_failures_are_those_of_some_estimator():
    found = [expected_failures(estimator) for estimator in ESTIMATORS]
    for kind in EXPECTED_FAILED_CHECKS.values():
        assert any(kind.items() <= each.items() for each in found)


@pytest.mark.parametrize(
    ("estimator", "many"),
    [
        (KernelDiscriminant(), True),
        (KernelDiscriminant(criterion="fdr"), False),
        (KernelDiscriminant(threshold="roc"), False),
        (MultipleKernelDiscriminant(criterion="margin"), False),
        (MultipleKernelDiscriminant(criterion="no such name"), True),
    ],
    ids=repr,
)
def test_the_tag_says_whether_there_may_be_many_classes(estimator, many):
    assert estimator.__sklearn_tags__().classifier_tags.multi_class is many
