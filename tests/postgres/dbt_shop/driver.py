"""Runs dbt's commands in one process, for dbt takes seconds to be imported: each line of the input
is the words of a command as JSON, and each line of the output its results."""

from __future__ import annotations

import json
import os
import sys

ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what dbt prints is no answer

from dbt.cli.main import dbtRunner  # noqa: E402 (nothing may print before)

runner = dbtRunner()
for line in sys.stdin:
    done = runner.invoke(json.loads(line))
    results = getattr(done.result, "results", None) or []
    found = {
        getattr(each, "node", each).unique_id: [str(each.status), each.message]
        for each in results
        if getattr(each, "status", None) is not None
    }
    answer = {"success": done.success, "error": str(done.exception or ""), "results": found}
    print(json.dumps(answer), file=ANSWERS, flush=True)
