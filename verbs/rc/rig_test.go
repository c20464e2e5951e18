// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// at is the address of the listeners in these tests, which are on the right host.
var at = netip.MustParseAddrPort(addressB + ":7174")

var (
	check, refused    = errtest.Check, errtest.MustRefuse
	eventually, guard = waittest.Eventually, waittest.Guard
)

// closed closes an object at the end of the test, and checks that this frees all its objects.
func closed[T interface{ Close() error }](t testing.TB, one T, err error) T {
	t.Helper()
	check(t, err)
	t.Cleanup(func() { check(t, one.Close()) })
	return one
}

func listen(t testing.TB, c *verbs.Context, o rc.Options) *rc.Listener {
	t.Helper()
	l, err := rc.Listen(c, at, o)
	return closed(t, l, err)
}

func dial(t testing.TB, c *verbs.Context, o rc.Options) *rc.Conn {
	t.Helper()
	conn, err := rc.DialAddr(guard(t), c, at, o)
	return closed(t, conn, err)
}

func accept(t testing.TB, l *rc.Listener) *rc.Conn {
	t.Helper()
	conn, err := l.Accept(guard(t))
	return closed(t, conn, err)
}

// linked connects one device to another, by ids.
func linked(t testing.TB, left, right *verbs.Context, o, other rc.Options) (a, b *rc.Conn) {
	t.Helper()
	l := listen(t, right, other)
	a = dial(t, left, o)
	b = accept(t, l)
	check(t, l.Close())
	return a, b
}

// pair returns a connection over a wire, by ids.
func pair(t testing.TB, o rc.Options) (a, b *rc.Conn) {
	t.Helper()
	left, right := wire(t)
	return linked(t, left, right, o, o)
}

// joined connects two ends that exchange their addresses.
func joined(t testing.TB, left, right *verbs.Context, o, other rc.Options) (a, b *rc.Conn) {
	t.Helper()
	a, err := rc.New(left, o)
	closed(t, a, err)
	b, err = rc.New(right, other)
	closed(t, b, err)
	check(t, a.Connect(b.LocalQP()))
	check(t, b.Connect(a.LocalQP()))
	return a, b
}

// receive receives a message, which the test releases.
func receive(t testing.TB, c *rc.Conn) rc.Message {
	t.Helper()
	m, err := c.Recv(guard(t))
	check(t, err)
	return m
}

// said receives, checks and releases a message.
func said(t testing.TB, c *rc.Conn, want string) {
	t.Helper()
	m := receive(t, c)
	if string(m.Data) != want {
		t.Fatalf("got %q, want %q", m.Data, want)
	}
	m.Release()
}

// region creates a region with all remote access.
func region(t testing.TB, c interface {
	NewRegion(int, verbs.AccessFlags) (*rc.Region, error)
}, length int) *rc.Region {
	t.Helper()
	r, err := c.NewRegion(length, verbs.AccessRemoteRead|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic)
	check(t, err)
	return r
}

func text(i int) string { return fmt.Sprint("message ", i) }
