"""`python -m suffice.kernels`: compile the kernels that most calls need, while other packages are still being installed."""

import os

from suffice.kernels import ESSENTIAL, warm

if __name__ == "__main__":
    warm(processes=os.cpu_count() or 1, only=ESSENTIAL)
