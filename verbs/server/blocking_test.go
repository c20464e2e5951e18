// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// blocked returns the number of goroutines that are in a system call for a connection, or for a socket that is not served.
func blocked() int {
	return goroutines(" [syscall", "peer.(*blocking)", "peer.(*Users)", "server.(*connection)", "server.(*Server)")
}

// goroutines returns the number of goroutines in a state that execute one of some functions.
func goroutines(state string, functions ...string) (n int) {
	stacks := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, state) && slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(stack, f) }) {
			n++
		}
	}
	return n
}

// TestClosesThatBlock: closes that never return occupy peer.MaxUserThreads threads of a user that passes lingering sockets and
// disconnects, on and on. They keep the user's connections until the limit is reached. Another user notices nothing. When
// the closes return, everything is free again.
func TestClosesThatBlock(t *testing.T) {
	const connections = 3 * peer.MaxUserThreads
	r := newRig(t, Config{Limits: peer.Limits{Connections: connections}, PrivilegedGroup: -1})
	r.a.open(t)
	stillWell := neighbours(t, r)
	passes := r.a.opened(t)
	listener := newLingerer(t)
	for range connections {
		bad := r.a.openedAs(t, 4711)
		listener.sendRights(bad.passing())
		check(t, bad.socket.Close())
	}
	eventually(t, "the closes block", func() bool { return blocked() >= peer.MaxUserThreads })
	asUser(t, 4711, func() error {
		c, err := client.Dial(r.a.path, "")
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, verbs.ErrLimit) {
			return fmt.Errorf("one more connection than the user may have: %w", err)
		}
		return nil
	})
	stillWell()
	for range 2 * peer.MaxUserThreads { // another user's files are closed at once
		openDomain(t, passes)
	}
	eventually(t, "as many closes block as may", func() bool { return blocked() == peer.MaxUserThreads })
	listener.close()
	eventually(t, "the closes have returned", func() bool { return blocked() == 0 && len(r.a.Users()) == 1 })
	openDomain(t, r.a.openedAs(t, 4711))
}

// openDomain opens an XRC domain by a file that is passed.
func openDomain(t *testing.T, c *raw) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "domain")
	check(t, err)
	defer file.Close()
	check(t, unix.Sendmsg(c.passing(), []byte{0}, unix.UnixRights(int(file.Fd())), nil, 0))
	ask(c, proto.OpenXRCD, &proto.OpenXRCDRequest{HasFile: true, Create: true})
}

// TestUnreadEventsTakeNoThread: for a client that reads no wake-ups, the service waits without a thread. The client gets all
// of them when it reads.
func TestUnreadEventsTakeNoThread(t *testing.T) {
	const sessions = 20
	const deliver = "server.(*signals).deliver"
	var all []*signals
	var told [sessions]uint64
	for i := range sessions {
		s, err := newSignals()
		check(t, err)
		defer s.close()
		all = append(all, s)
		for owed := 0; owed < 10; told[i]++ {
			s.notify(told[i])
			s.mu.Lock()
			owed = s.owed.Len()
			s.mu.Unlock()
		}
	}
	eventually(t, "all wait", func() bool { return goroutines(" [IO wait", deliver)+goroutines(" [syscall", deliver) == sessions })
	if n := goroutines(" [syscall", deliver); n > 0 {
		t.Errorf("%d threads wait for clients that read nothing", n)
	}
	for i, s := range all {
		check(t, unix.SetNonblock(s.client, false))
		for id := range told[i] {
			var record [8]byte
			if _, err := unix.Read(s.client, record[:]); err != nil || binary.LittleEndian.Uint64(record[:]) != id {
				t.Fatal(record, err)
			}
		}
	}
}
