# SPDX-License-Identifier: Apache-2.0
"""usage: kill_later.py LOG STEP PID_FILE: reads the log of a run, a named pipe, and kills the process of PID_FILE once a
checkpoint of STEP or later is there. The pipe holds little, so that the run is not far ahead then."""

import fcntl
import json
import os
import signal
import sys

PIPE_BYTES = 4096

log = open(sys.argv[1], encoding="utf-8")
fcntl.fcntl(log, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_BYTES)
for line in log:
    event = json.loads(line)
    if event["event"] == "saved" and event["step"] >= int(sys.argv[2]):
        with open(sys.argv[3], encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        break
else:
    sys.exit("kill_later.py: the run has ended before")
for line in log:
    pass
