"""Drawing 1,000,000 rows of ALARM, beside pyAgrum and pgmpy on a twentieth of it (scaled up)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import suffice as sf
from timing import line, seconds


def main() -> None:
    import pyagrum as gum
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.sampling import BayesianModelSampling

    alarm = sf.load("alarm")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "alarm.bif"
        sf.write(alarm, path)
        theirs = gum.loadBN(str(path))
        slow = DiscreteBayesianNetwork.load(str(path), filetype="bif")
    generator = gum.BNDatabaseGenerator(theirs)
    ours = seconds(lambda: alarm.sample(1_000_000, seed=0), 5)
    frames = seconds(lambda: (generator.drawSamples(50_000), generator.to_pandas()), 1, warm=0) * 20
    pgmpy = seconds(lambda: BayesianModelSampling(slow).forward_sample(50_000, show_progress=False), 1, warm=0) * 20
    line("ALARM, 1,000,000 rows drawn", ours, 0.7, **{"pyAgrum to a frame": frames, "pgmpy": pgmpy})


if __name__ == "__main__":
    main()
