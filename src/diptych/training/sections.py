"""The sections of a recipe and their options."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from diptych.core.options import Options
from diptych.data.batches import PlanName
from diptych.encoders.targets.contract import TargetOptions

# What a stage trains when it does not say: everything but the backbone.
DEFAULT_TRAINED = ("image.head.*", "image.projection.*", "text.*", "objective.*", "reconstruction.*")


class Data(Options):
    """Options of the training data.

    Attributes:
        path: a dataset's folder or file; ``--data`` sets it.
        reader: the format, when it is not recognised.
        options: the reader's options, e.g. ``images``.
        train: the split that is trained on.
        validation: the split that chooses the best epoch.
        test: the split that the run is evaluated on.
        images: train on so many images of the split, among them those of any smaller number.
        scenes: generate the embedded dataset with these options instead of reading ``path``.
        skip_bad_images: leave out and count images that cannot be read instead of failing.
    """

    path: str | None = None
    reader: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    train: str = "train"
    validation: str = "val"
    test: str = "test"
    images: int | None = Field(None, ge=2)
    scenes: dict[str, Any] | None = None
    skip_bad_images: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.path is not None and self.scenes is not None:
            raise ValueError("give either path or scenes, not both")
        return self


class Batches(Options):
    """Options of batches; see :mod:`diptych.data.batches`.

    Attributes:
        plan: ``captions``: every caption once per epoch; ``distinct``: the same, no image twice in a batch;
            ``grouped``: every image once per epoch, with several captions.
        size: pairs per batch; images per batch of ``grouped``.
        captions_per_image: of ``grouped``.
        chunk: how many images or captions are encoded at once. The loss is that of the whole batch
            and its gradients are exact (gradient caching, Gao et al. 2021), in the memory of a
            chunk, for one more forward pass.
    """

    plan: PlanName = "distinct"
    size: int = Field(128, ge=2)
    captions_per_image: int = Field(5, ge=1)
    chunk: int | None = Field(None, ge=1)


class CaptionAugmentation(Options):
    """Noise on training captions' tokens (Bleeker et al. 2022, after PCME).

    Attributes:
        unknown: probability that a word becomes ``<unk>``.
        deleted: share of a caption's words that is left out, rounded down.
    """

    unknown: float = Field(0.1, ge=0, le=1)
    deleted: float = Field(0.1, ge=0, lt=1)


class Constraint(Options):
    """L_rec ≤ η by a Lagrange multiplier: L_con + λ (L_rec / η − 1), λ raised by gradient ascent.

    Attributes:
        bound: η, in the units of the reconstruction loss: 1 − cosine of ``latent`` (published: 0.2),
            nats per caption of ``input``.
        start: λ before the first step.
        learning_rate, momentum, dampening: of the ascent.
        highest: λ stays in [0, highest].
        compat: ``unprojected`` clamps λ where it is used but not where it is kept, so that it winds
            up beyond its bounds, as published.
    """

    bound: float = Field(gt=0)
    start: float = Field(1.0, ge=0)
    learning_rate: float = Field(5e-3, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    dampening: float = Field(0.9, ge=0, le=1)
    highest: float = Field(100.0, gt=0)
    compat: Literal["none", "unprojected"] = "none"


class Reconstruction(Options):
    """A decoder on caption embeddings that has to give the caption back.

    Attributes:
        kind: ``latent`` decodes a sentence encoder's vector of the caption (LTD), ``input`` its
            words (ITD).
        beta: weight of the reconstruction loss where there is no constraint.
        constraint: makes it a constraint.
        targets: of ``latent``: where the vectors come from.
        hidden: of ``latent``: widths of the decoder's two hidden layers.
        word_width: of ``input``: length of the decoder's word embeddings.
        compat: of ``input``: ``time-axis`` takes the soft-max over time instead of the vocabulary,
            as published.
    """

    kind: Literal["latent", "input"] = "latent"
    beta: float = Field(1.0, gt=0)
    constraint: Constraint | None = None
    targets: TargetOptions = TargetOptions()
    hidden: tuple[int, int] = (512, 512)
    word_width: int = Field(300, ge=1)
    compat: Literal["none", "time-axis"] = "none"


class Averaging(Options):
    """Stochastic weight averaging inside every epoch (Izmailov et al. 2018; Bleeker et al. 2022).

    Attributes:
        share: the last part of an epoch from which weights are averaged.
        checkpoints: how many weights are averaged, evenly spaced up to the epoch's last step;
            training continues from their mean.
        refresh_batch_norm: compute the batch-norm statistics of the mean anew, by one pass over the
            epoch's batches.
        compat: ``published`` averages after the steps that the published code chose, multiples of
            the spacing after the beginning of the last part: 5 to 10 of them in short epochs.
    """

    share: float = Field(0.1, gt=0, le=1)
    checkpoints: int = Field(5, ge=1)
    refresh_batch_norm: bool = True
    compat: Literal["none", "published"] = "none"


class Optimizer(Options):
    """Options of the optimizer.

    Attributes:
        name: ``adam``, ``adamw`` or ``adamp`` (timm's, Heo et al. 2021).
        weight_decay: of adamw and adamp on matrices; vectors (biases, norms) and word embeddings
            have none.
        betas: of all.
        clip: largest global gradient norm; no clipping when not given.
        accumulate: micro-batches whose gradients are averaged for one step. Each is scored against
            only itself: a contrastive loss on 4 × 128 is not the loss on 512, it has 127 negatives;
            ``batches.chunk`` gives the loss on 512.
    """

    name: Literal["adam", "adamw", "adamp"] = "adam"
    weight_decay: float = Field(0.0, ge=0)
    betas: tuple[float, float] = (0.9, 0.999)
    clip: float | None = Field(2.0, gt=0)
    accumulate: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _decays(self) -> Self:
        if self.name == "adam" and self.weight_decay:
            raise ValueError(f"weight_decay {self.weight_decay} does nothing with adam: name adamw or adamp")
        return self


class Stage(Options):
    """A part of training with its own learning rate and its own trained parameters.

    Attributes:
        epochs: how many.
        learning_rate: at the top of the schedule.
        schedule: ``constant``, ``step`` (times ``decay`` every ``step_epochs``), ``cosine`` or ``linear``
            (to ``final`` times the learning rate at the end of the stage).
        per: whether a cosine or a line moves every ``step`` or once an ``epoch``.
        step_epochs, decay: of ``step``.
        final: of ``cosine`` and ``linear``.
        warmup: steps over which the learning rate rises linearly from 0.
        train: patterns of parameter names; ``*`` unfreezes everything. By default the
            backbone stays frozen.
        scales: patterns of parameter names and their share of the learning rate, the first that
            fits, e.g. ``{"image.backbone.*" = 0.1}``.
    """

    epochs: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    schedule: Literal["constant", "step", "cosine", "linear"] = "constant"
    per: Literal["step", "epoch"] = "step"
    step_epochs: int = Field(15, ge=1)
    decay: float = Field(0.1, gt=0, le=1)
    final: float = Field(0.0, ge=0, le=1)
    warmup: int = Field(0, ge=0)
    train: tuple[str, ...] = DEFAULT_TRAINED
    scales: dict[str, float] = Field(default_factory=dict)


class Checkpoints(Options):
    """When a run is saved, and which of its encoders is kept.

    Attributes:
        keep: the encoder with the ``best`` validation rsum, or the ``last`` one.
        every_steps: a kill loses at most this many steps.
        patience: stop after so many validations without a better rsum; never when not given.
        validate_every: epochs between validations.
    """

    keep: Literal["best", "last"] = "best"
    every_steps: int = Field(200, ge=1)
    patience: int | None = Field(None, ge=1)
    validate_every: int = Field(1, ge=1)
