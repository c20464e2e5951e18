// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
)

// TestDescriptorsInFlight: a client that does not receive the descriptors that it requests gets peer.MaxInFlight at most. Its
// connection ends, and counts as its user's until it has received them.
func TestDescriptorsInFlight(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	stillWell := neighbours(t, r)
	bad := r.a.openedAs(t, 4711)
	packet, err := proto.PassFile.EncodeRequest(1, &proto.None{})
	check(t, err)
	for range 2 * peer.MaxInFlight {
		if bad.Send(packet) != nil { // the service has hung up
			break
		}
	}
	c := r.a.youngest()
	eventually(t, "the connection is being ended", func() bool { return c.hungUp.Load() })
	stillWell()
	if r.a.uses(4711) == 0 {
		t.Error("the connection counts no longer, and its descriptors are still in flight")
	}
	got := 0
	for {
		_, ends, err := bad.Receive()
		if err != nil {
			break
		}
		got += len(ends)
		proto.CloseAll(ends)
	}
	if got != peer.MaxInFlight {
		t.Errorf("%d descriptors were in flight, want %d", got, peer.MaxInFlight)
	}
	eventually(t, "the connection is free", func() bool { return r.a.uses(4711) == 0 })
}

// uses returns the number of connections of a user.
func (d *daemon) uses(uid uint32) int {
	for _, u := range d.Users() {
		if u.UID == uid {
			return u.Used.Connections
		}
	}
	return 0
}
