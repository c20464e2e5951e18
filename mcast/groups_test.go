// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

var (
	mgidA = wire.GIDFromAddr(netip.MustParseAddr("239.1.2.3"))
	mgidB = wire.GIDFromAddr(netip.MustParseAddr("ff0e::1"))
	roomy = Limits{Groups: 10, QPsPerGroup: 10, Attachments: 20}
)

// TestAdd checks the return values of rvt_mcast_add, as errnos.
func TestAdd(t *testing.T) {
	table := NewTable[int](roomy)
	for _, step := range []struct {
		name string
		mgid wire.GID
		mlid wire.MLID
		qp   int
		want unix.Errno // 0: nil
	}{
		{"both are added", mgidA, 5, 1, 0},
		{"the group exists", mgidA, 5, 2, unix.EEXIST},
		{"attached already", mgidA, 5, 2, unix.ESRCH},
		{"another MLID", mgidA, 6, 3, unix.EINVAL},
		{"another MGID with the same MLID", mgidB, 5, 1, 0},
	} {
		err := table.Add(NewGroup[int](step.mgid, step.mlid), step.qp)
		if step.want == 0 && err != nil || step.want != 0 && !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.name, err, step.want)
		}
	}
	if got := table.Members(mgidA); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("members %v", got)
	}
}

func TestAttachTwiceNeedsOneDetach(t *testing.T) {
	table := NewTable[int](roomy)
	for range 2 {
		if err := table.Attach(mgidA, 0, 7); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Detach(mgidA, 0, 7); err != nil {
		t.Fatal(err)
	}
	if err := table.Detach(mgidA, 0, 7); !errors.Is(err, unix.EINVAL) {
		t.Errorf("second detach: %v", err)
	}
	if len(table.Groups()) != 0 {
		t.Error("the last detach did not free the group")
	}
}

func TestDetachOfWhatIsNotAttached(t *testing.T) {
	table := NewTable[int](roomy)
	if err := table.Attach(mgidA, 5, 1); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another queue pair": table.Detach(mgidA, 5, 2),
		"another MLID":       table.Detach(mgidA, 6, 1),
		"another group":      table.Detach(mgidB, 5, 1),
	} {
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := table.Members(mgidA); !slices.Equal(got, []int{1}) {
		t.Errorf("members %v", got)
	}
}

func TestFindHoldsAReference(t *testing.T) {
	table := NewTable[int](roomy)
	if err := table.Attach(mgidA, 5, 1); err != nil {
		t.Fatal(err)
	}
	if table.Find(mgidA, 6) != nil || table.Find(mgidB, 5) != nil {
		t.Error("found an absent attachment")
	}
	group := table.Find(mgidA, 5)
	if group == nil || group.refs != 2 {
		t.Fatalf("found %+v", group)
	}
	if err := table.Detach(mgidA, 5, 1); err != nil {
		t.Fatal(err)
	}
	if group.refs != 1 || group.MGID != mgidA || len(group.qps) != 0 {
		t.Errorf("after the last detach: %+v", group)
	}
	if table.Put(group); group.refs != 0 {
		t.Errorf("%d references are left", group.refs)
	}
}

// TestLimits: a reached limit is ENOMEM, and nothing is changed.
func TestLimits(t *testing.T) {
	for name, limits := range map[string]Limits{
		"groups":                 {Groups: 1, QPsPerGroup: 9, Attachments: 9},
		"attachments":            {Groups: 9, QPsPerGroup: 9, Attachments: 1},
		"queue pairs of a group": {Groups: 9, QPsPerGroup: 1, Attachments: 9},
	} {
		table := NewTable[int](limits)
		if err := table.Attach(mgidA, 0, 1); err != nil {
			t.Fatal(err)
		}
		second := mgidB
		if name == "queue pairs of a group" {
			second = mgidA
		}
		if err := table.Attach(second, 0, 2); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("%s: %v", name, err)
		}
		if len(table.Groups()) != 1 || !slices.Equal(table.Members(mgidA), []int{1}) {
			t.Errorf("%s: changed after an error", name)
		}
		if err := errors.Join(table.Detach(mgidA, 0, 1), table.Attach(second, 0, 2)); err != nil {
			t.Errorf("%s: no room after a detach: %v", name, err)
		}
	}
}

// TestMembersAreReplacedNotChanged: the list that Members has returned does not change.
func TestMembersAreReplacedNotChanged(t *testing.T) {
	table := NewTable[int](roomy)
	for qp := range 3 {
		if err := table.Attach(mgidA, 0, qp); err != nil {
			t.Fatal(err)
		}
	}
	held := table.Members(mgidA)
	if err := errors.Join(table.Detach(mgidA, 0, 0), table.Attach(mgidA, 0, 9)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(held, []int{0, 1, 2}) || !slices.Equal(table.Members(mgidA), []int{1, 2, 9}) {
		t.Errorf("held %v, now %v", held, table.Members(mgidA))
	}
}

func TestTreeEmptyCountsPortsInUse(t *testing.T) {
	one, other := NewTable[int](roomy), NewTable[int](roomy)
	if got := TreeEmpty(one, other); got != 0 {
		t.Errorf("%d in use", got)
	}
	if err := one.Attach(mgidA, 0, 1); err != nil {
		t.Fatal(err)
	}
	if got := TreeEmpty(one, other); got != 1 {
		t.Errorf("%d in use", got)
	}
}

func TestMGID(t *testing.T) {
	for text, want := range map[string]struct{ mgid, mac string }{
		"239.129.2.3":        {"::ffff:239.129.2.3", "01:00:5e:01:02:03"},
		"224.0.0.1":          {"::ffff:224.0.0.1", "01:00:5e:00:00:01"},
		"::ffff:239.1.2.3":   {"::ffff:239.1.2.3", "01:00:5e:01:02:03"},
		"ff0e::1234:5678":    {"ff0e::1234:5678", "33:33:12:34:56:78"},
		"ff0e::ffff:1.2.3.4": {"ff0e::ffff:102:304", "33:33:01:02:03:04"},
	} {
		addr := netip.MustParseAddr(text)
		mgid, err := MGID(addr)
		if err != nil || mgid.String() != want.mgid || MAC(mgid).String() != want.mac {
			t.Errorf("%s: %v, %v, %v", text, mgid, MAC(mgid), err)
		}
		if back := mgid.Addr(); back != addr.Unmap() {
			t.Errorf("%s becomes %v", text, back)
		}
	}
	for _, text := range []string{"10.0.0.1", "223.255.255.255", "240.0.0.0", "fe80::1", "::", "ff01::1"} {
		addr := netip.MustParseAddr(text)
		_, err := MGID(addr)
		if !errors.Is(err, unix.EINVAL) || strings.Contains(err.Error(), unix.EINVAL.Error()) { // callers add the errno's text
			t.Errorf("%s: %v", text, err)
		}
	}
}
