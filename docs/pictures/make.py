"""The picture of docs/index.md, the pictures and the table of docs/importance_guide.md: python docs/pictures/make.py"""

from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from privamp import Gaussian, Neighbors, Poisson, PrivateKMeans, WithoutReplacement, WithReplacement, amplify
from privamp.papers.importance_sampling import figure_1 as is_figure_1
from privamp.papers.importance_sampling import figure_2 as is_figure_2
from privamp.report.overlaid_rules import Facts, even, overlay, picture_of_overlay
from privamp.report.pictures import COLORS, new_figure, tidy

HERE = Path(__file__).parent
PLACES = np.array([[0.0, 0.0], [0.6, 0.45], [-0.65, 0.3], [0.1, -0.7]])
PEOPLE = (40_000, 4_000, 3_000, 3_000)
FITS = 12


def save(figure, name):
    """A PNG of few colours."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    Image.open(buffer).convert("RGB").quantize(96).save(HERE / name, optimize=True)


def rules(name, noise, delta, size, population):
    """What `privamp weights` draws."""
    facts = Facts(noise, 1.0, delta, 1.0, 2, even(1.0, population))
    save(picture_of_overlay(overlay(facts, scale=None, size=size)), name)


def people():
    """The records of the example."""
    return np.repeat(PLACES, PEOPLE, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(50_000, 2))


def table(fits=101):
    """How far the worst place is from its nearest centre, median of several fits."""
    x, sized = people(), {"sample_size": 1000}
    settings = {
        "uniform": sized | {"sampler": "uniform"},
        "coreset": sized | {"sampler": "coreset"},
        "privacy-constrained": sized,
        "privacy-constrained, gaussian": sized | {"noise": "gaussian", "delta": 1e-6},
        "everybody": {"sampler": None},
    }
    for name, options in settings.items():
        models = [PrivateKMeans(n_clusters=4, epsilon=1.0, radius=1.0, **options).fit(x) for _ in range(fits)]
        apart = [np.linalg.norm(PLACES[:, None] - m.cluster_centers_[None], axis=2).min(axis=1).max() for m in models]
        print(f"{name:30} {np.median(apart):.3f}")


def clusters(name):
    """Centres of several private fits, by two samplers, over the points."""
    x = people()
    figure = new_figure(11.0, 5.4)
    panels = zip(figure.subplots(1, 2, sharey=True), ("privacy-constrained", "uniform"), strict=True)
    for axes, sampler in panels:
        axes.scatter(*x[::10].T, s=1.5, color="#d0d0d0", lw=0, rasterized=True)
        for _ in range(FITS):
            model = PrivateKMeans(n_clusters=4, epsilon=1.0, radius=1.0, sample_size=1000, sampler=sampler).fit(x)
            axes.plot(*model.cluster_centers_.T, "o", color=COLORS[1], markersize=6, alpha=0.6, mew=0)
        axes.plot(*PLACES.T, "+", color="black", markersize=13, mew=2)
        axes.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        tidy(axes, f"sampler: {sampler}", f"{FITS} fits of four centres, 1000 of 50,000 records, ε = 1")
    save(figure, name)


def sampled_shares(name):
    """Epsilon of one noisy sum against the share of the records that is drawn, for three designs."""
    people, noise, delta = 1000, Gaussian(sigma=2.0, sensitivity=2.0, neighbors=Neighbors.REPLACE_ONE), 1e-6
    sizes = np.unique(np.geomspace(2, 500, 14).astype(int))
    designs = {
        "Poisson": lambda m: amplify(Gaussian(sigma=2.0), Poisson(m / people), neighbors=Neighbors.REPLACE_ONE),
        "without replacement": lambda m: amplify(noise, WithoutReplacement(int(m), people)),
        "with replacement": lambda m: amplify(noise, WithReplacement(int(m), people)),
    }
    figure = new_figure(7.2, 4.2)
    axes = figure.subplots()
    for color, (label, certified) in zip(COLORS, designs.items(), strict=False):
        found = [certified(m) for m in sizes]
        axes.plot(sizes / people, [g.epsilon(delta) for g in found], color=color, lw=2, label=label)
        axes.plot(sizes / people, [g.lower.epsilon(delta) for g in found], color="white", lw=1, ls=(0, (4, 4)))
    axes.axhline(noise.profile(Neighbors.REPLACE_ONE).epsilon(delta), color="#606060", ls=":", lw=1.4)
    axes.text(0.0021, 5.1, "all records, same noise", color="#606060", va="bottom")
    axes.set(xscale="log", yscale="log", xlabel="share of the records in the sample", ylabel="ε at δ = 1e-6")
    axes.legend(frameon=False, loc="lower right")
    tidy(axes, "The same noisy sum of a sample", "Gaussian noise, replace-one; white dashes: a known attack")
    save(figure, name)


if __name__ == "__main__":
    sampled_shares("sampled_shares.png")
    rules("weights.png", "norm", 0.0, None, 1000)
    rules("weights_gaussian.png", "gaussian", 1e-6, 50, 10_000)
    save(is_figure_1.picture(is_figure_1.sampled()), "who_is_kept.png")
    points = is_figure_2.Points.made_up()
    save(is_figure_2.picture(is_figure_2.left(points), is_figure_2.right(points)), "is_figure_2.png")
    clusters("private_centres.png")
    table()
