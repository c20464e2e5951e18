// SPDX-License-Identifier: Apache-2.0

package peer

import "testing"

// TestIsPrivileged: privileged Q_Keys are for root and the members of a group.
func TestIsPrivileged(t *testing.T) {
	for _, row := range []struct {
		peer  *Peer
		group int
		want  bool
	}{
		{&Peer{UID: 0}, -1, true}, {&Peer{UID: 1000, Groups: []uint32{5, 7}}, 7, true},
		{&Peer{UID: 1000, Groups: []uint32{5, 7}}, -1, false}, {&Peer{UID: 1000, Groups: []uint32{5, 0}}, -1, false},
		{&Peer{UID: 1000}, 7, false}, {&Peer{UID: 1000, Groups: []uint32{0}}, 0, true},
	} {
		if got := row.peer.IsPrivileged(row.group); got != row.want {
			t.Errorf("user %d of groups %v, group %d: %v", row.peer.UID, row.peer.Groups, row.group, got)
		}
	}
}
