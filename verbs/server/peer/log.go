// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"log/slog"
	"sync"
	"time"
)

// Log limits the warnings about clients to one a minute and user; each states how many were omitted. Otherwise a client
// could fill the log, so that lines about others are dropped.
type Log struct {
	mu   sync.Mutex
	last map[Holder]warning
}

type warning struct {
	at      time.Time
	omitted int // since then
}

const (
	warningGap = time.Minute
	mostWarned = 1000 // users that have lines of their own; the others share them
)

// Warn logs an error that a client of the holder has caused.
func (l *Log) Warn(log *slog.Logger, h Holder, what string, err error) {
	if omitted, allowed := l.allow(h, time.Now()); allowed {
		log.Warn(what, "error", err, "more_since_the_last", omitted)
	}
}

// allow counts a warning. It reports whether it may be logged, and how many were omitted before.
func (l *Log) allow(h Holder, now time.Time) (omitted int, allowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[Holder]warning{}
	}
	w, known := l.last[h]
	if !known && len(l.last) >= mostWarned {
		l.expire(now)
		if len(l.last) >= mostWarned {
			h = Unknown
			w, known = l.last[h]
		}
	}
	if known && now.Sub(w.at) < warningGap {
		w.omitted++
		l.last[h] = w
		return 0, false
	}
	l.last[h] = warning{at: now}
	return w.omitted, true
}

// expire removes the users whose next warning would be logged.
func (l *Log) expire(now time.Time) {
	for h, w := range l.last {
		if now.Sub(w.at) >= warningGap {
			delete(l.last, h)
		}
	}
}
