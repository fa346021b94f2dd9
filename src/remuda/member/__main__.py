"""``python -m remuda.member``."""

from __future__ import annotations

import gc
import sys

# The modules stay to the end: looking through their objects for garbage, again and again while they
# are imported, would take a fifth of the time of a start. ``main`` switches the collector on.
gc.disable()

from remuda.member.main import main  # noqa: E402

sys.exit(main())
