"""The explorer and reports, used in Chromium as a person uses them: `make test-browser`."""
