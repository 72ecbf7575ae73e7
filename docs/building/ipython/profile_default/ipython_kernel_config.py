"""Cells of the site draw plots as SVG, which is sharp at every size."""

c = get_config()  # noqa: F821
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {"figure.dpi": 100, "figure.figsize": (6.4, 4.0), "svg.hashsalt": "suffice"}
c.HistoryManager.enabled = False
c.IPKernelApp.log_level = "ERROR"
