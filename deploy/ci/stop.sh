#!/bin/sh
# Stops the service of start.sh after printing its counters. The capture remains in ROCED_DIR.
set -u
dir=${ROCED_DIR:?}
"$dir/bin/roced" show stat --socket "$dir/roced.sock"
kill "$(cat "$dir/pid")"
cat "$dir/roced.log"
