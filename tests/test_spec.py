import pytest
from typer.testing import CliRunner

from privamp import (
    ApproxDP,
    ClusterPPS,
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    InvalidInput,
    Laplace,
    MultiStage,
    Neighbors,
    NormNoise,
    Poisson,
    PureDP,
    RandomSize,
    Stratified,
    WithoutReplacement,
    WithReplacement,
    amplify,
    spec,
)
from privamp.cli.application import app

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("poisson:rate=0.01", Poisson(0.01)),
        ("wor:size=100,population=1000", WithoutReplacement(100, 1000)),
        ("wr:population=1000,size=100", WithReplacement(100, 1000)),
        ("multistage:wor=118,wr=200,population=10000", MultiStage([("wor", 118), ("wr", 200)], 10000)),
        ("multistage:wr=5,wr=4,wor=3,population=9", MultiStage([("wr", 5), ("wr", 4), ("wor", 3)], 9)),
    ],
)
def test_designs(text, design):
    assert spec.design(text) == design


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        ("laplace:scale=1", Laplace(1.0, neighbors=RO)),
        ("gaussian:sigma=4,sensitivity=2", Gaussian(4.0, 2.0, neighbors=RO)),
        ("gaussian:sigma=4,neighbors=add-remove", Gaussian(4.0, neighbors=AR)),
        ("discrete-gaussian:sigma=4,sensitivity=2", DiscreteGaussian(4.0, 2, neighbors=RO)),
        ("norm:scale=1,dimension=3,p=1", NormNoise(1.0, 3, p=1.0, neighbors=RO)),
        ("pure:epsilon=1", PureDP(1.0, neighbors=RO)),
        ("approx:epsilon=1,delta=1e-6", ApproxDP(1.0, 1e-6, neighbors=RO)),
    ],
)
def test_mechanisms_are_stated_for_the_relation_asked_about(text, mechanism):
    assert spec.mechanism(text, RO) == mechanism


def test_the_unknown_is_a_function():
    key, make = spec.design_with_unknown("wor:size=?,population=50")
    assert (key, make(7)) == ("size", WithoutReplacement(7, 50))
    key, make = spec.mechanism_with_unknown("gaussian:sigma=?", AR)
    assert (key, make(2.0)) == ("sigma", Gaussian(2.0))
    assert spec.design_with_unknown("poisson:rate=0.5") == Poisson(0.5)


def test_poisson_reads_its_mechanism_for_add_remove_whatever_is_asked():
    assert spec.stated_for(Poisson(0.1), RO) == AR
    assert spec.stated_for(WithReplacement(1, 2), AR) == AR
    assert spec.stated_for(WithReplacement(1, 2), None) == RO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bernoulli:rate=0.1",
        "poisson",
        "poisson:",
        "poisson:rate",
        "poisson:rate=x",
        "poisson:rate=0.1,rate=0.2",
        "poisson:speed=1",
        "poisson:rate=?",
        "wor:size=1.5,population=10",
        "wor:size=10",
        "multistage:population=10",
        "multistage:wor=11,population=10",
        "wor:size=?,population=?",
    ],
)
def test_bad_specs_are_one_sentence(text):
    with pytest.raises(InvalidInput) as caught:
        spec.design(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("rule=privacy-constrained,epsilon=1,scale=10", "exact-laplace:scale=10,sensitivity=4"),
        ("rule=privacy-constrained,epsilon=1,scale=10,arithmetic=idealised", "laplace:scale=10,sensitivity=4"),
        ("rule=privacy-constrained,epsilon=1,sigma=20,delta=1e-5", "exact-gaussian:sigma=20,sensitivity=4"),
        ("rule=uniform,rate=0.2,scale=10", "exact-laplace:scale=10,sensitivity=4"),
        (
            "rule=coreset,share=0.5,size=100,population=1000,mean_squared_norm=4,scale=10",
            "exact-laplace:scale=10,sensitivity=4",
        ),
    ],
)
def test_an_importance_spec_makes_the_rule_for_the_noise_it_names(text, noise):
    made = spec.design(f"importance:{text},radius=4,column=a+b")
    assert made.column == "a+b"
    assert made.rule.radius == 4.0
    mechanism = spec.mechanism(noise, Neighbors.ADD_REMOVE)
    delta = 1e-5 if "sigma" in text else 0.0
    assert amplify(mechanism, made).epsilon(delta) == pytest.approx(made.rule.guarantee().epsilon(delta), rel=1e-9)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("rule=best,scale=1", "rule must be one of"),
        ("rule=uniform,scale=1", "takes rate, got none"),
        ("rule=uniform,rate=0.1,epsilon=1,scale=1", "takes rate, got"),
        ("rule=uniform,rate=0.1", "scale=… (Laplace noise) or sigma=…"),
        ("rule=uniform,rate=0.1,scale=1,sigma=1", "not both"),
        ("rule=uniform,rate=0.1,scale=1,arithmetic=fast", "arithmetic must be one of"),
    ],
)
def test_bad_importance_specs_are_told(text, part):
    with pytest.raises(InvalidInput) as caught:
        spec.design(f"importance:{text},radius=4")
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "stratified:mines=[wor:size=5,population=50],shops=[poisson:rate=0.1]",
        "multistage:wor=118,wr=200,population=10000",
        "cluster:chosen=5,clusters=50,max_size=2,second_rate=0.3",
        "cluster:chosen=5,clusters=50,max_size=2,second_size=1,min_size=1",
        "cluster-by-size:clusters=50,max_size=4,min_size=2",
        "cluster-pps:probabilities=0.2+0.3+0.5,max_size=4",
        "cluster-pps:probabilities=0.1+0.9,caps=4+2",
        "pps-clusters:sizes=30+20+25,chosen=1,take=4",
        "systematic-pps:sizes=3+2+4+1,chosen=2",
        "systematic-pps:sizes=3+2+4+1,chosen=2,max_size=3",
        "random-size:low=2,high=10,population=30",
        "random-size-law:chances=0=0.25+3=1e-05+7=0.74999,population=9",
        "rounds:steps=3,design=random-size-law:chances=1=0.5+3=0.5,population=4",
        "stratified:a=[random-size-law:chances=1=0.5+3=0.5,population=4],b=[poisson:rate=0.1]",
        "proportional-pps:size=10.0,low=1.0,high=5.0,at_least=1000,capping=recursive",
        "rounds:steps=3,design=stratified:a=[poisson:rate=0.1],b=[multistage:wr=3,population=9]",
    ],
)
def test_a_spec_is_written_and_read_again(text):
    made = spec.design_or_schedule(text)
    assert made.spec == text
    assert spec.design_or_schedule(made.spec) == made


@pytest.mark.parametrize(
    "design",
    [
        RandomSize.truncated_normal(5, 2, 30),
        RandomSize.binomial(40, 0.3),
        RandomSize([0.1, 0.2, 0.3, 0.4]),
        RandomSize.uniform(3, 3, 9),
        ClusterPPS((1 / 3, 1 / 3, 1 / 3), 2),
        ClusterPPS((0.3, 0.7), (2, 5)),
    ],
)
def test_laws_of_sizes_and_of_clusters_survive_the_command_line(design):
    assert spec.design(design.spec) == design
    done = CliRunner().invoke(app, ["amplify", "--design", design.spec, "--mechanism", "pure:epsilon=1", "--json"])
    assert done.exit_code == 0, done.output
    assert Guarantee.from_json(done.stdout).claims[0].design == design


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("cluster-pps:probabilities=0.5+0.5", "max_size=… for all clusters, or caps=…"),
        ("cluster-pps:probabilities=0.5+0.5,max_size=2,caps=2+2", "max_size=… for all clusters, or caps=…"),
        ("cluster-pps:probabilities=0.5+0.5,caps=2+x", "caps must be whole numbers joined by '+'"),
        ("cluster-pps:probabilities=0.5+a,max_size=2", "probabilities must be numbers joined by '+'"),
        ("random-size-law:chances=1=0.5+1=0.5,population=4", "each size from 0 to 4 once"),
        ("random-size-law:chances=1=0.5+5=0.5,population=4", "each size from 0 to 4 once"),
        ("random-size-law:chances=1+2,population=4", "chances must be numbers joined by '+'"),
        ("random-size-law:chances=1=0.5,population=4", "sum to 1"),
    ],
)
def test_bad_laws_are_told(text, part):
    with pytest.raises(InvalidInput) as caught:
        spec.design(text)
    assert part in str(caught.value)


def test_strata_have_a_design_each_in_brackets():
    assert spec.design("stratified:a=[poisson:rate=0.1]") == Stratified({"a": Poisson(0.1)})
    key, make = spec.design_with_unknown("stratified:a=[poisson:rate=0.1],b=[wor:size=?,population=9]")
    assert (key, make(4)) == ("size", Stratified({"a": Poisson(0.1), "b": WithoutReplacement(4, 9)}))
    for wrong in (
        "stratified",
        "stratified:",
        "stratified:a=poisson:rate=0.1",
        "stratified:a=[poisson:rate=0.1]b=[poisson:rate=1]",
    ):
        with pytest.raises(InvalidInput, match=r"name=\[design\]"):
            spec.design(wrong)
    with pytest.raises(InvalidInput, match="twice"):
        spec.design("stratified:a=[poisson:rate=0.1],a=[poisson:rate=0.1]")
    with pytest.raises(InvalidInput, match="unknowns"):
        spec.design_with_unknown("stratified:a=[poisson:rate=?],b=[poisson:rate=?]")


def test_probabilities_of_clusters_are_joined_by_plus():
    assert spec.design("cluster-pps:probabilities=0.25+0.75,max_size=2") == ClusterPPS((0.25, 0.75), 2)
    with pytest.raises(InvalidInput, match="joined by"):
        spec.design("cluster-pps:probabilities=0.25;0.75,max_size=2")
