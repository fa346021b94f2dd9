"""``python -m remuda.member``."""

from __future__ import annotations

import sys

from remuda.member.main import main

sys.exit(main())
