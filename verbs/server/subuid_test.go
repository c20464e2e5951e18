package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
)

// named looks names up, and numbers.
func named(name string) (uint32, bool) {
	uid, is := map[string]uint32{"eve": 1000, "mia": 1001, "root": 0}[name]
	if !is {
		_, err := fmt.Sscanf(name, "%d", &uid)
		is = err == nil
	}
	return uid, is
}

func TestReadSubUIDs(t *testing.T) {
	o := owners{ranges: readSubUIDs(strings.NewReader(`
eve:100000:65536
mia:165536:65536
1002:300000:1
# a comment:5:6
nobody knows:400000:10
eve:500000
eve:600000:0
eve:x:10
eve:4294967290:100
eve:0:10
root:1000000:65536
mia:231000:100000
eve:231072:10
`), named)}
	for uid, want := range map[uint32]uint32{
		0: 0, 5: 5, 1000: 1000, 99999: 99999, 100000: 1000, 165535: 1000, 165536: 1001, 231071: 1001, 231072: 1001, 299999: 1001,
		300000: 1001, 330999: 1001, 331000: 331000, 400000: 400000, 500000: 500000, 600000: 600000, 4294967290: 4294967290,
		1000000: 1000000, 1065535: 1000000, 1065536: 1065536,
	} {
		if got := o.of(uid, time.Now()); got != want {
			t.Errorf("uid %d is %d's, want %d", uid, got, want)
		}
	}
}

// TestSubUIDsAreBounded: a file may be as long as it likes.
func TestSubUIDsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range mostSubUIDs + 10 {
		fmt.Fprintf(&text, "eve:%d:1\n", 100000+2*i)
	}
	if n := len(readSubUIDs(strings.NewReader(text.String()), named)); n != mostSubUIDs {
		t.Errorf("%d ranges", n)
	}
}

// TestSubUIDsFollowTheFile: it may be missing, and is read again when it has changed.
func TestSubUIDsFollowTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	o := owners{path: path}
	now := time.Now()
	after := func(gap time.Duration) uint32 {
		now = now.Add(gap)
		return o.of(100005, now)
	}
	if owner := after(0); owner != 100005 {
		t.Errorf("without the file: %d", owner)
	}
	check(t, os.WriteFile(path, []byte("1000:100000:10\n"), 0o644))
	if owner := after(subUIDGap - 1); owner != 100005 {
		t.Errorf("looked at too early: %d", owner)
	}
	if owner := after(1); owner != 1000 {
		t.Errorf("with it: %d", owner)
	}
	check(t, os.WriteFile(path, []byte("1001:100000:100\n"), 0o644))
	if owner := after(subUIDGap); owner != 1001 {
		t.Errorf("changed: %d", owner)
	}
	check(t, os.Remove(path))
	if owner := after(subUIDGap); owner != 100005 {
		t.Errorf("removed: %d", owner)
	}
}

// TestSubUIDsCountAsTheirOwners: what a user's uids have is the user's.
func TestSubUIDsCountAsTheirOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	check(t, os.WriteFile(path, []byte("4711:100000:10\n"), 0o644))
	c := anyone
	c.SubUIDs, c.Limits = path, Limits{Connections: 3, Limits: hca.Limits{PDs: 2}}
	r := newRig(t, c)
	r.a.open(t)
	for i, uid := range []int{4711, 100000, 100009, 100001, 100010} {
		asUser(t, uid, func() error {
			one, err := client.Dial(r.a.path, "")
			if i == 3 {
				if err == nil || !strings.Contains(err.Error(), "user 4711 has 3 connections") {
					t.Errorf("a fourth connection: %v", err)
				}
				return nil
			}
			if err != nil {
				return err
			}
			t.Cleanup(func() { check(t, one.Close()) })
			ctx, err := verbs.Open(one)
			if err != nil {
				return err
			}
			if _, err = ctx.AllocPD(); (i == 2) != (err != nil) {
				t.Errorf("a PD of connection %d, uid %d: %v", i, uid, err)
			}
			return nil
		})
	}
	page, err := r.a.looker(0).listClients(proto.ListClientsRequest{})
	check(t, err)
	for i, want := range []uint32{4711, 4711, 4711, 100010} {
		if len(page.Clients) != 4 || page.Clients[i].Owner != want {
			t.Errorf("clients %+v", page.Clients)
		}
	}
	users := r.a.Users()
	if len(users) != 2 || users[0].UID != 4711 || users[0].Used.Connections != 3 || users[0].Used.PDs != 2 || users[1].UID != 100010 {
		t.Errorf("users %+v", users)
	}
}
