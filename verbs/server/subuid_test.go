// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
)

// TestSubUIDsCountAsTheirOwners: resources of a user's further uids are charged to the user.
func TestSubUIDsCountAsTheirOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	check(t, os.WriteFile(path, []byte("4711:100000:10\n"), 0o644))
	c := anyone
	c.SubUIDs, c.Limits = path, peer.Limits{Connections: 3, Limits: hca.Limits{PDs: 2}}
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
	page, err := r.a.looker(0).ListClients(proto.ListClientsRequest{})
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
