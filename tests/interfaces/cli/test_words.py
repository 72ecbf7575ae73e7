"""Words of options, and what they are in Python."""

from __future__ import annotations

from typing import Any

import pytest

from suffice import BIC, Dag, load
from suffice.interfaces.cli import inputs, models, words
from suffice.interfaces.cli.arguments import RowOptions, TextOptions
from suffice.interfaces.cli.commands.learn import independence_of, number_of, with_structure_prior
from suffice.interfaces.cli.labels import label_weights_of, transitions_of, windows_of
from suffice.interfaces.cli.question import read_question, read_settings


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            inputs.text_path("rows.csv", TextOptions(separator="tab")).dialect,
            r"Dialect(separator='\t', decimal='.', encoding='utf-8')",
        ),  # type: ignore[attr-defined]
        (type(inputs.text_path("rows.parquet", TextOptions())), "<class 'str'>"),
        (
            inputs.declarations(RowOptions(finite=["smoke=no,yes"], bins=["age=5"]))["age"],
            "Bins(how=5, target=None, width=False)",
        ),
        (
            inputs.hidden_of(["ill=no,cold,flu", "class=2", "ability:real"]),
            "[Finite('ill', ['no', 'cold', 'flu']), Finite('class', ['1', '2']), Real('ability')]",
        ),
        (
            inputs.hidden_of(["state=2", "mood=calm,wild", "level", "slope=real"], in_steps=True),
            "[Finite('state', ['0', '1']), Finite('mood', ['calm', 'wild']), Real('level'), Real('slope')]",
        ),
        (inputs.missing_words(["NA,?", '"a,b"']), "('NA', '?', 'a,b')"),
        (inputs.missing_words(None), "()"),
        (inputs.engine_of("files"), "{'memory_limit': 0}"),
        (
            inputs.read_families(["y=logistic:1", "n=poisson,offset=t"]),
            "{'y': Logistic(ridge=1.0), 'n': PoissonLog(ridge=0.0, offset='t')}",
        ),
        (inputs.read_families(["wait=gamma", "ill=binomial,n=12"]), "{'wait': Gamma(), 'ill': Binomial(n=12)}"),
        (inputs.declared_by(inputs.read_families(["n=poisson", "y=linear"]), ["n", "y"]), "{'n': Count('n')}"),
        (inputs.fields('a, "b, c"'), "['a', 'b, c']"),
        (inputs.choice(words.ESTIMATES, "mode", "--estimate"), "Mode()"),
        ([models.is_model("asia"), models.is_model("a -> b")], "[True, False]"),
        ([len(models.model_of("asia")), len(models.network_of("asia", ""))], "[8, 8]"),
        (
            models.values_of(load("asia"), {"asia": "yes", "lung": (0.1, 0.9)}),
            "{'asia': 'yes', 'lung': (0.1, 0.9)}",
        ),
        (
            models.settings_of(load("asia"), ["smoke=yes", "lung=no, tub=[0.9, 0.1]"], "--do"),
            "{'smoke': 'yes', 'lung': 'no', 'tub': (0.9, 0.1)}",
        ),
        ([models.has_lines("a -- b"), models.has_lines("asia")], "[True, False]"),
        (
            read_question("P(a, b=yes | c=x, d=1.5, e=[0.2, 0.8])"),
            "WrittenQuestion(targets=('a', 'b'), states={'b': 'yes'}, given={'c': 'x', 'd': '1.5', 'e': (0.2, 0.8)})",
        ),
        (read_settings("x=yes, 'y z'=1.5", "--do"), "{'x': 'yes', 'y z': '1.5'}"),
    ],
)
def test_what_is_opened_and_declared(value: Any, shown: str) -> None:
    assert repr(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([words.prior_of("bdeu:10"), words.prior_of("mle"), words.prior_of("nig:2/df=5").df], "[BDeu(ess=10.0), None, 5.0]"),
        (
            words.prior_of("lung=9,1;1,1+smoke=k2+bdeu:1"),
            "({'lung': ((9.0, 1.0), (1.0, 1.0)), 'smoke': K2()}, BDeu(ess=1.0))",
        ),
        (words.numbers_of("2", ""), "2.0"),
        (words.numbers_of("9,1", ""), "(9.0, 1.0)"),
        (words.numbers_of("9,1;1,1", ""), "((9.0, 1.0), (1.0, 1.0))"),
        ([words.penalty_of("l1:0.1+l2:1"), words.penalty_of(None)], "[L1(0.1) + L2(1.0), None]"),
        ([words.objective_of("likelihood"), words.objective_of("conditional:y")], "[Likelihood(), Conditional('y')]"),
        (words.objective_of("margin", "tag"), "Margin('tag', cost=Hamming(cost=1.0))"),
        (words.objective_of("bayes:bdeu:10"), "Bayes(BDeu(ess=10.0))"),
        (words.prior_words("bayes:bdeu:10", "mle"), "(None, 'bdeu:10')"),
        (words.prior_words("bayes", "k2"), "(None, 'k2')"),
        (words.prior_words("conditional:y", "mle"), "('conditional:y', 'mle')"),
        ([words.score_of(w) for w in ("bic", "ebic:1", "bdeu:5")], "[BIC(), EBIC(gamma=1.0), Evidence(prior=BDeu(ess=5.0))]"),
        (words.method_of("hill-climb", max_parents=2, alpha=None).max_parents, "2"),
        ([words.is_graph_method(w) for w in ("glasso", "orders", "chow-liu-graph")], "[True, False, True]"),
        ([words.selection_of("ebic:0.25"), words.selection_of("cv:5")], "[EBIC(gamma=0.25), HeldOut(folds=5)]"),
        (words.strength_of("0.2"), "0.2"),
        (words.takes("hill-climb", "max_parents"), "True"),
        (
            words.plate_of(Dag("dose -> y"), "clinic", "y", "partial:dose").pooling,
            "Partial(strength=None, slopes=('dose',))",
        ),
        (words.ties_of(["q1,q2,q3", 'a,"b, c"']), "[('q1', 'q2', 'q3'), ('a', 'b, c')]"),
        (
            words.fixed_of(["state[0]", "level=intercept,level[-1]"]),
            "{'state[0]': True, 'level': ['intercept', 'level[-1]']}",
        ),
        (words.mechanism_of(["income=income,age", "age="]), "{'income': ['income', 'age'], 'age': []}"),
        ([words.sampler_of("lw:500"), words.sampler_of("exact")], "[LikelihoodWeighting(n=500), None]"),
        (words.edges_of(["a,b", '"x, y",b', "a, b -> c"], "--forbid"), "[('a', 'b'), ('x, y', 'b'), ('a', 'c'), ('b', 'c')]"),
        (words.constraints_of(["a,b"], [], None, 2), "Require(('a', 'b')) + MaxParents(2)"),
        ([independence_of("chi2"), independence_of("likelihood-ratio")], "[ChiSquared(adjusted=True), LikelihoodRatio()]"),
        (number_of("0.5", "the score ebic:0.5"), "0.5"),
        (with_structure_prior(BIC(), "koller-friedman", []), "GraphPosterior(score=BIC(), prior=KollerFriedman())"),
        (with_structure_prior(BIC(), None, ["a -> b=0.9"]).prior.beliefs, "{('a', 'b'): 0.9}"),
        (
            windows_of("word@-1,0,1; suffix3; shape"),
            "[Window(['word'], at=(-1, 0, 1)), Window([Suffix(column='word', length=3)], at=(0,)), "
            "Window([Shape(column='word')], at=(0,))]",
        ),
        (windows_of("pairs(word@0,1)"), "[Window(['word'], at=(0, 1), pairs=True)]"),
        (transitions_of("bio"), "BIO()"),
        (transitions_of("forbid: O -> I-x; <s> -> I-x"), "Transitions(forbidden=[('O', 'I-x'), ('<s>', 'I-x')])"),
        (label_weights_of("B-PER=5, I-PER=2"), "{'B-PER': 5.0, 'I-PER': 2.0}"),
    ],
)
def test_what_is_learned_and_how(value: Any, shown: str) -> None:
    assert repr(value) == shown
