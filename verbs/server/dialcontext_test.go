// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/roced/roced/verbs/client"
)

// TestDialContext: while the daemon does not answer it ends with its context, whose cause it gives; a
// session that is open stays.
func TestDialContext(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "silent.sock")
	listener, err := net.Listen("unixpacket", silent)
	check(t, err)
	t.Cleanup(func() { listener.Close() })
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := client.DialContext(ctx, silent, "a")
		failed <- err
	}()
	asks, err := listener.Accept()
	check(t, err)
	t.Cleanup(func() { asks.Close() })
	cancel(why)
	if err := <-failed; !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
	if _, err := client.DialContext(ctx, silent, "a"); !errors.Is(err, why) {
		t.Errorf("with a context that is done: %v", err)
	}
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	ctx, cancel = context.WithCancelCause(t.Context())
	c, err := client.DialContext(ctx, r.a.path, "a")
	check(t, err)
	cancel(why)
	p := newProgram(t, c)
	check(t, p.ctx.Close())
}
