#!/bin/sh
# Ends what start.sh has started. Says first what was dropped; the capture stays in ROCED_DIR.
set -u
dir=${ROCED_DIR:?}
"$dir/bin/roced" show stat --socket "$dir/roced.sock"
kill "$(cat "$dir/pid")"
cat "$dir/roced.log"
