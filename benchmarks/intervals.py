"""Credible intervals of answers: ALARM fitted from 10,000 rows with BDeu(10), time and Monte-Carlo error by the number of draws.

The error is measured, as the spread of an interval's ends over seeds, and set beside the one that the answer states.
"""

from __future__ import annotations

import numpy as np

import suffice as sf
from suffice.models.questions.question import Question, evidence_codes
from suffice.numerics.inference.sampling.sampling import Gibbs, LikelihoodWeighting
from timing import line, seconds

QUESTIONS = [
    ("LVFAILURE", {"HRBP": "HIGH", "CVP": "LOW", "SAO2": "LOW"}),
    ("SHUNT", {"HRBP": "HIGH", "BP": "LOW", "EXPCO2": "LOW"}),
    ("HYPOVOLEMIA", {"CVP": "HIGH", "BP": "NORMAL", "HISTORY": "FALSE", "HREKG": "HIGH", "PRESS": "HIGH"}),
    (["KINKEDTUBE", "INTUBATION"], {"PRESS": "HIGH", "MINVOL": "LOW"}),
]


def main() -> None:
    alarm = sf.load("alarm")
    bn = sf.fit(alarm.dag, alarm.sample(10_000, seed=0), prior=sf.BDeu(10))
    for target, given in QUESTIONS:
        names = [target] if isinstance(target, str) else target
        n = len(Question.of(bn, names, evidence_codes(bn, given)).nodes)
        what = f"p({', '.join(names)} | {', '.join(given)}), {n} of {len(bn)} families matter"
        plain = seconds(lambda t=target, g=given: bn.query(t, g))
        for draws in (1_000, 10_000):
            took = seconds(lambda t=target, g=given, d=draws: bn.query(t, g, interval=0.95, draws=d))
            line(f"{what}: {draws:,} draws (one exact answer: {1000 * plain:.2g} ms)", took)
        answers = [bn.query(target, given, interval=0.95, seed=s) for s in range(50)]
        ends = np.array([a.interval for a in answers])
        stated = np.mean([float(a.how.rpartition("ends ")[2].rstrip(")")) for a in answers])
        width = (ends[:, 1] - ends[:, 0]).mean(axis=0)
        print(f"  1,000 draws: width {width.max():.4f}, error of the ends {ends.std(axis=0).max():.5f}, stated {stated:.5f}")
        sampled(bn, target, given)


def sampled(bn: sf.BayesNet, target: str | list[str], given: dict[str, str]) -> None:
    exact = bn.query(target, given)
    for method in (LikelihoodWeighting(100_000), Gibbs(100_000)):
        answer = bn.query(target, given, method=method)
        off = np.abs(answer.probs - exact.probs).max()
        took = seconds(lambda m=method: bn.query(target, given, method=m), 3)
        worth, error = answer.effective_sample_size, answer.error.max()
        print(f"  {method}: {took:.3g} s, worth {worth:,.0f}, off by {off:.5f}, error {error:.5f}")


if __name__ == "__main__":
    main()
