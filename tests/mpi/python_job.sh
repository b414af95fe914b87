#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process of a job in Python, as run.sh starts it. A sanitized module needs the sanitizer before anything else.
exec env LD_PRELOAD="${OT_TEST_PRELOAD:-}" "$OT_TEST_PYTHON" "$(dirname "$0")/job.py" "$1"
