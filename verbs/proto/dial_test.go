// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proto

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// TestDialWaitsInTurn: where there is no room to wait, Dial waits for its context, or for its deadline.
func TestDialWaitsInTurn(t *testing.T) {
	path, enough := waittest.FullSocket(t), errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, enough)
	defer cancel()
	if _, err := Dial(ctx, path, time.Now().Add(time.Hour)); !errors.Is(err, enough) {
		t.Errorf("%v, want %v", err, enough)
	}
	if _, err := Dial(t.Context(), path, time.Now().Add(-time.Second)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%v, want %v", err, unix.EAGAIN)
	}
	if _, err := Dial(t.Context(), path+"none", time.Now().Add(time.Hour)); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v, want %v", err, unix.ENOENT)
	}
}
