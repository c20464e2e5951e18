// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// The causes for which sessions end, as programs and the log get them.
const (
	holes     = "the program has taken pages out of its session's memory"
	holesMore = "two programs of the user have taken pages out of their sessions' memory, within a minute"
)

// punchUntilEnded takes the pages of a session's memory out and puts them back, on and on, until its session has ended. It
// returns why.
func (r *raw) punchUntilEnded() error {
	r.Helper()
	const size = 16 << 20
	ask(r, proto.AllocMR, &provider.AllocMRRequest{PD: r.allocPD(), Length: size})
	memory, err := unix.Mmap(r.memory, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(r, err)
	defer unix.Munmap(memory)
	ended := make(chan error, 1)
	go func() { ended <- r.ended() }()
	for give := guard(r); ; {
		select {
		case cause := <-ended:
			return cause
		case <-give.Done():
			r.Fatal("its session goes on")
		default:
		}
		check(r, unix.Madvise(memory, unix.MADV_REMOVE))
		check(r, unix.Madvise(memory, unix.MADV_POPULATE_WRITE))
	}
}

// ended waits for the message that the session has ended, and returns its cause.
func (r *raw) ended() error {
	m, _, err := r.Receive()
	if err != nil || m.Kind != proto.Ended {
		return errors.Join(errors.New("another message"), err)
	}
	cause, err := proto.DecodeFailure(m.Body)
	return errors.Join(cause, err)
}

// TestHolesInSessions: a program that takes pages out of its session's memory on and on loses its session with a line in the log, and
// its user opens no other one for a minute. When a second program does it meanwhile, all sessions of the user end. Other users
// notice nothing.
func TestHolesInSessions(t *testing.T) {
	var said locked
	r := newRig(t, Config{PrivilegedGroup: -1, Log: slog.New(slog.NewTextHandler(&said, nil))})
	r.a.open(t)
	stillWell := neighbours(t, r)
	first, second, third := r.a.openedAs(t, 4711), r.a.openedAs(t, 4711), r.a.openedAs(t, 4711)
	if cause := first.punchUntilEnded(); !errors.Is(cause, verbs.ErrDeviceFatal) || !strings.Contains(cause.Error(), holes) {
		t.Errorf("the first session: %v", cause)
	}
	if _, _, err := first.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end the connection has %v", err)
	}
	if text := said.String(); !strings.Contains(text, holes) || !strings.Contains(text, "uid=4711") {
		t.Errorf("the log has %q", text)
	}
	stillWell()
	late := r.a.connectAs(t, 4711)
	ask(late, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
	refusedFirst(late, "a new session", proto.OpenDevice, &proto.OpenRequest{}, verbs.ErrPermission, unix.EPERM)
	third.allocPD()
	if cause := second.punchUntilEnded(); !strings.Contains(cause.Error(), holes) {
		t.Errorf("the second session: %v", cause)
	}
	if cause := third.ended(); !strings.Contains(cause.Error(), holesMore) {
		t.Errorf("the third session: %v", cause)
	}
	r.a.opened(t)
	stillWell()
}
