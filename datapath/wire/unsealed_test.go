// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
)

// TestUnsealed: Complete writes the ICRC of a packet that has none, and does not change other packets.
func TestUnsealed(t *testing.T) {
	for _, path := range []Path{pathIPv4, pathIPv6} {
		payload := []byte("a payload with a pad")
		want := build(t, path, Datagram{DestQP: 5}, payload)
		path.Unsealed = true
		got := build(t, path, Datagram{DestQP: 5}, payload)
		var p Packet
		if fault := Parse(got, &p); fault != FaultNone || !p.Unsealed() || p.CheckICRC() {
			t.Errorf("%v; without an ICRC: %v", fault, p.Unsealed())
		}
		if Complete(got); !bytes.Equal(got, want) {
			t.Errorf("completed: % x, want % x", got, want)
		}
		want[len(want)-1] ^= 1
		copy(got, want)
		if Complete(got); !bytes.Equal(got, want) {
			t.Error("a wrong ICRC was corrected")
		}
		got = got[:len(got)/2]
		if Complete(got); !bytes.Equal(got, want[:len(got)]) {
			t.Error("half a packet was changed")
		}
	}
}
