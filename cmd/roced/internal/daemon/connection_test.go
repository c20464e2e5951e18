// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
)

// TestDialWaits: Dial waits while the backlog is full, as programs do.
func TestDialWaits(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, enough)
	defer cancel()
	if _, err := Dial(ctx, waittest.FullSocket(t)); !errors.Is(err, enough) {
		t.Errorf("%v, want %v", err, enough)
	}
}
