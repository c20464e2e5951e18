// SPDX-License-Identifier: Apache-2.0

package peer

import "testing"

// TestUserPaysUntilNeighboursAnswer: a user that leaves while packets wait for neighbours pays for them when it connects
// again. It is forgotten when they have answered or failed.
func TestUserPaysUntilNeighboursAnswer(t *testing.T) {
	u := NewUsers(Limits{}, "")
	eve := Holder{UID: 1000}
	accounts := func() int {
		u.mu.Lock()
		defer u.mu.Unlock()
		return len(u.accounts)
	}
	first, err := u.Enter(eve)
	check(t, err)
	first.Quota().CountNeighbours(2, 2)
	first.Release()
	if len(u.List()) != 0 {
		t.Errorf("connected: %v", u.List())
	}
	second, err := u.Enter(eve)
	check(t, err)
	if second.Quota() != first.Quota() {
		t.Error("a user that connects again pays for nothing")
	}
	second.Release()
	first.Quota().CountNeighbours(-1, -1)
	if n := accounts(); n != 1 {
		t.Errorf("%d accounts", n)
	}
	first.Quota().CountNeighbours(-1, -1)
	eventually(t, "the account is forgotten", func() bool { return accounts() == 0 })
}
