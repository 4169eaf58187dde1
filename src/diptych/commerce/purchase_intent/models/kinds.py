"""One file per classifier."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel

# What is done to a matrix before a classifier sees it, fitted on training rows alone.
#
# A missing value is replaced by its column's median, and another column says that it was missing, so that a model
# may learn from that too. A column without any value in training becomes 0; a constant one stays: a fold that
# happens to lack a value must not change which columns there are.


def imputed(*steps: Any) -> Any:
    """A pipeline of ``steps`` behind the replacement of missing values."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(fill, *steps)


def imputed_and_scaled(*steps: Any) -> Any:
    """The same, and every column of mean 0 and variance 1: for models that measure distances or penalise weights."""
    from sklearn.preprocessing import StandardScaler

    return imputed(StandardScaler(), *steps)


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return imputed(GradientBoostingClassifier(random_state=seed))


GRADIENT_BOOSTING = MODELS.add(
    IntentModel(
        name="gradient-boosting",
        label="GBDT",
        description="100 boosted trees of depth 3, learning rate 0.1",
        presets=("paper",),
        build=_build,
        weighting="sample_weight",
    )
)


# Gradient boosted trees over binned values, many times faster than :mod:`gradient_boosting`.
#
# Trees are small and learn slowly: with scikit-learn's own settings (31 leaves, rate 0.1) a few thousand sessions are
# learned by heart. Of five settings these were best or near it on generated logs and on UCI's sessions.
def _hist_gradient_boosting_build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    weight = "balanced" if balanced else None
    # It takes missing values itself, but fails where the sample that it bins by holds none but them.
    return imputed(
        HistGradientBoostingClassifier(
            max_leaf_nodes=8,
            min_samples_leaf=50,
            learning_rate=0.05,
            class_weight=weight,
            early_stopping=False,
            random_state=seed,
        )
    )


HIST_GRADIENT_BOOSTING = MODELS.add(
    IntentModel(
        name="hist-gradient-boosting",
        label="HistGB",
        description="100 boosted trees of at most 8 leaves, each of at least 50 sessions, over 255 bins, learning "
        "rate 0.05; not the thesis's GBDT",
        presets=("fast",),
        build=_hist_gradient_boosting_build,
        weighting="class_weight",
    )
)


def _k_nearest_build(balanced: bool, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return imputed_and_scaled(KNeighborsClassifier(5, n_jobs=1))


K_NEAREST = MODELS.add(
    IntentModel(
        name="k-nearest",
        label="KNN",
        description="5 nearest neighbours among scaled columns; has no weights for classes",
        presets=("paper",),
        build=_k_nearest_build,
        weighting="none",
    )
)


def _linear_svm_build(balanced: bool, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    weight = "balanced" if balanced else None
    return imputed_and_scaled(LinearSVC(class_weight=weight, max_iter=10_000, random_state=seed))


LINEAR_SVM = MODELS.add(
    IntentModel(
        name="linear-svm",
        label="linear SVM",
        description="support vectors without a kernel, C 1, of scaled columns; not the thesis's SVM",
        presets=(),
        build=_linear_svm_build,
        weighting="class_weight",
        output="decision",
    )
)


def _logistic_regression_build(balanced: bool, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    weight = "balanced" if balanced else None
    return imputed_and_scaled(LogisticRegression(class_weight=weight, max_iter=1000, random_state=seed))


LOGISTIC_REGRESSION = MODELS.add(
    IntentModel(
        name="logistic-regression",
        label="LR",
        description="logistic regression, L2 with C 1, of scaled columns",
        presets=("paper", "fast"),
        build=_logistic_regression_build,
        weighting="class_weight",
    )
)


def _neural_network_build(balanced: bool, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return imputed_and_scaled(MLPClassifier((100,), early_stopping=True, random_state=seed))


NEURAL_NETWORK = MODELS.add(
    IntentModel(
        name="neural-network",
        label="NN",
        description="100 rectified units, Adam, of scaled columns; stops by a tenth of the training sessions",
        presets=("paper",),
        build=_neural_network_build,
        weighting="sample_weight",
    )
)


def _nystroem_svm_build(balanced: bool, seed: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.svm import LinearSVC

    weight = "balanced" if balanced else None
    return imputed_and_scaled(
        Nystroem(n_components=300, random_state=seed, n_jobs=1),
        LinearSVC(class_weight=weight, max_iter=10_000, random_state=seed),
    )


NYSTROEM_SVM = MODELS.add(
    IntentModel(
        name="nystroem-svm",
        label="Nyström SVM",
        description="support vectors on 300 columns of a Gaussian kernel, C 1, of scaled columns; "
        "close to the thesis's SVM, in linear time",
        presets=(),
        build=_nystroem_svm_build,
        weighting="class_weight",
        output="decision",
    )
)


def _random_forest_build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    weight = "balanced" if balanced else None
    return make_pipeline(RandomForestClassifier(100, class_weight=weight, random_state=seed, n_jobs=1))


RANDOM_FOREST = MODELS.add(
    IntentModel(
        name="random-forest",
        label="RF",
        description="random forest, 100 trees of full depth; missing values as they are (the thesis's primary model)",
        presets=("paper",),
        build=_random_forest_build,
        weighting="class_weight",
        has_impurity=True,
    )
)


def _random_forest_small_build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    weight = "balanced" if balanced else None
    forest = RandomForestClassifier(50, min_samples_leaf=10, class_weight=weight, random_state=seed, n_jobs=1)
    return make_pipeline(forest)


RANDOM_FOREST_SMALL = MODELS.add(
    IntentModel(
        name="random-forest-small",
        label="RF small",
        description="random forest, 50 trees, at least 10 sessions in a leaf; missing values as they are",
        presets=("fast",),
        build=_random_forest_small_build,
        weighting="class_weight",
        has_impurity=True,
    )
)


_CACHE_MEGABYTES = 500


def _svm_build(balanced: bool, seed: int) -> Any:
    from sklearn.svm import SVC

    weight = "balanced" if balanced else None
    return imputed_and_scaled(
        SVC(kernel="rbf", class_weight=weight, cache_size=_CACHE_MEGABYTES, random_state=seed)
    )


SVM = MODELS.add(
    IntentModel(
        name="svm",
        label="SVM",
        description="support vectors, Gaussian kernel, C 1, of scaled columns; time grows with the square of sessions",
        presets=("paper",),
        build=_svm_build,
        weighting="class_weight",
        output="decision",
    )
)
