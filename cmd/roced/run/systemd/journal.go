// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// NewLogger returns a logger of text lines. If out is the journal, lines start with their priority
// (sd-daemon(3)) and have no time, which the journal records.
func NewLogger(out *os.File, level slog.Leveler) *slog.Logger {
	if isJournal(out) {
		return slog.New(newJournal(out, level))
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// isJournal compares out with JOURNAL_STREAM, the device and inode of the journal's stream.
func isJournal(out *os.File) bool {
	var stat unix.Stat_t
	stream := os.Getenv("JOURNAL_STREAM")
	return stream != "" && unix.Fstat(int(out.Fd()), &stat) == nil && stream == fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// journal holds one handler per priority.
type journal [4]slog.Handler

// priorities are the syslog priorities of slog's levels, starting with slog.LevelDebug.
var priorities = [4]string{"<7>", "<6>", "<4>", "<3>"}

func newJournal(out io.Writer, level slog.Leveler) journal {
	var j journal
	for i, priority := range priorities {
		j[i] = slog.NewTextHandler(prefixed{out, priority}, &slog.HandlerOptions{Level: level, ReplaceAttr: omit})
	}
	return j
}

// omit removes attributes that the journal records.
func omit(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// of returns the handler of a level; levels are four apart.
func (j journal) of(level slog.Level) slog.Handler {
	return j[min(max(int(level-slog.LevelDebug)/4, 0), len(j)-1)]
}

// Enabled implements slog.Handler.
func (j journal) Enabled(ctx context.Context, level slog.Level) bool {
	return j.of(level).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (j journal) Handle(ctx context.Context, r slog.Record) error {
	return j.of(r.Level).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (j journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range j {
		j[i] = j[i].WithAttrs(attrs)
	}
	return j
}

// WithGroup implements slog.Handler.
func (j journal) WithGroup(name string) slog.Handler {
	for i := range j {
		j[i] = j[i].WithGroup(name)
	}
	return j
}

// prefixed writes a prefix before each record. Handlers write each record with one call.
type prefixed struct {
	out    io.Writer
	prefix string
}

func (p prefixed) Write(record []byte) (int, error) {
	if _, err := p.out.Write(append([]byte(p.prefix), record...)); err != nil {
		return 0, err
	}
	return len(record), nil
}
