// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// TestTeardownGoesOn: steps that fail or panic are logged, and all others run, in order.
func TestTeardownGoesOn(t *testing.T) {
	var said locked
	var ran []string
	works := func(name string) step {
		return step{name, func(*connection) error { ran = append(ran, name); return nil }}
	}
	c := &connection{log: slog.New(slog.NewTextHandler(&said, nil))}
	c.runAll([]step{
		works("one"), {"panics", func(*connection) error { panic("a bug") }},
		works("two"), {"fails", func(*connection) error { return errors.New("a failure") }}, works("three"),
	})
	if want := []string{"one", "two", "three"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	for _, want := range []string{"step=panics", "a bug", "step=fails", "a failure"} {
		if text := said.String(); !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, text)
		}
	}
}

// TestTeardownOfNothing: a connection that has opened no device has nothing that a step could miss.
func TestTeardownOfNothing(t *testing.T) {
	var said locked
	d := startDaemon(t, Config{PrivilegedGroup: -1, Log: slog.New(slog.NewTextHandler(&said, nil))})
	silent := d.raw(t)
	eventually(t, "it is connected", func() bool { return d.Clients() == 1 })
	check(t, silent.socket.Close())
	d.alone(t, 0)
	if text := said.String(); text != "" {
		t.Errorf("the log has\n%s", text)
	}
}
