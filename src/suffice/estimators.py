"""scikit-learn adapters: networks and regressions with `fit`, `predict` and `predict_proba`."""
