// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/server/peer"
)

// TestMemoryOfAll: users within their own limits do not exceed the limit of all users, and a user that comes then
// gets some still. It can be raised while they are there.
func TestMemoryOfAll(t *testing.T) {
	limits := peer.Limits{Limits: hca.Limits{Memory: 48 << 20}, All: quota.PoolLimits{Memory: 64 << 20}}
	r := newRig(t, Config{Limits: limits, PrivilegedGroup: -1})
	r.a.open(t)
	as := func(uid int) *program {
		var c *client.Client
		asUser(t, uid, func() (err error) {
			c, err = client.Dial(r.a.path, "")
			return err
		})
		if c == nil {
			t.FailNow()
		}
		t.Cleanup(func() { c.Close() })
		ctx, err := verbs.Open(c)
		check(t, err)
		pd, err := ctx.AllocPD()
		check(t, err)
		return &program{TB: t, ctx: ctx, pd: pd}
	}
	one, two := as(4711), as(4712)
	_, err := one.pd.AllocMR(40<<20, 0)
	check(t, err)
	if _, err := two.pd.AllocMR(20<<20, 0); !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), "all users together have") {
		t.Errorf("more than there is: %v", err)
	}
	_, err = two.pd.AllocMR(14<<20, 0)
	check(t, err)
	three := as(4713)
	_, err = three.pd.AllocMR(64<<10, 0)
	check(t, err)
	limits.All.Memory = 0
	r.a.SetLimits(limits)
	_, err = two.pd.AllocMR(20<<20, 0)
	check(t, err)
	check(t, two.ctx.Close())
	eventually(t, "its memory is given back", func() bool { return len(r.a.Users()) == 2 })
}

// TestDescriptorsOfAll: connections that say nothing take no more than what there is, and give it back.
func TestDescriptorsOfAll(t *testing.T) {
	r := newRig(t, Config{Limits: peer.Limits{All: quota.PoolLimits{Descriptors: 512}}, PrivilegedGroup: -1})
	r.a.open(t)
	var conns []*client.Client
	for {
		c, err := client.Dial(r.a.path, "")
		if err != nil {
			if !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), "descriptors of the service") || len(conns) != 512*7/8/peer.ConnectionDescriptors {
				t.Errorf("connection %d: %v", len(conns), err)
			}
			break
		}
		conns = append(conns, c)
	}
	asUser(t, 4711, func() error {
		c, err := client.Dial(r.a.path, "")
		if err != nil {
			return err
		}
		return c.Close()
	})
	for _, c := range conns {
		check(t, c.Close())
	}
	eventually(t, "all is given back", func() bool { return len(r.a.Users()) == 0 })
	for range conns { // as many as before
		r.a.dial(t)
	}
}

// TestRefusedUserIsForgotten: a user that is refused before the first connection leaves no account.
func TestRefusedUserIsForgotten(t *testing.T) {
	r := newRig(t, Config{Limits: peer.Limits{All: quota.PoolLimits{Descriptors: 1}}, PrivilegedGroup: -1})
	if _, err := client.Dial(r.a.path, ""); !errors.Is(err, verbs.ErrLimit) {
		t.Error(err)
	}
	if users := r.a.Users(); len(users) != 0 {
		t.Errorf("%+v", users)
	}
}
