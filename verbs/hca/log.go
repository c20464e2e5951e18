//go:build linux

package hca

import (
	"context"
	"log/slog"
)

// defaultLog is where messages of a device go unless WithLogger was given: warnings and errors to the
// program's default logger, the rest nowhere.
func defaultLog() *slog.Logger { return slog.New(warnings{slog.Default().Handler()}) }

// warnings lets nothing through below slog.LevelWarn.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
