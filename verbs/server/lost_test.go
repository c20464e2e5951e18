// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// When a device is closed under its clients, also while they wait for events and give commands, each
// gets the fatal event, and ErrDeviceFatal: ErrClosed would say that they closed it themselves.
func TestDeviceIsClosed(t *testing.T) {
	for range 20 {
		r := newRig(t, anyone)
		p := newProgram(t, r.a.dial(t))
		var all sync.WaitGroup
		all.Go(func() {
			fatal := false
			for {
				report, err := p.ctx.GetAsyncEvent(guard(t))
				if err != nil {
					if !fatal || !errors.Is(err, verbs.ErrDeviceFatal) {
						t.Errorf("the fatal event: %t, then %v", fatal, err)
					}
					return
				}
				fatal = fatal || report.Type == verbs.EventDeviceFatal
			}
		})
		all.Go(func() {
			for {
				if _, err := p.ctx.QueryPort(1); err != nil {
					if !errors.Is(err, verbs.ErrDeviceFatal) {
						t.Errorf("a command: %v", err)
					}
					return
				}
			}
		})
		check(t, r.cards[0].Close())
		all.Wait()
	}
}

// locked is a log that goroutines write to, and that a test reads meanwhile.
type locked struct {
	sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(b)
}

func (l *locked) String() string {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.String()
}

// A client that dies while it is answered is no cause for a warning.
func TestDeathIsNoWarning(t *testing.T) {
	var log locked
	c := anyone
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	r := newRig(t, c)
	for range 10 {
		child := startChild(t, "busy client", r.a.path)
		check(t, child.Process.Signal(unix.SIGKILL))
		_ = child.Wait()
		r.a.alone(t, 0)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}
