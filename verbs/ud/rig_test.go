// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/ud"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var (
	addressesA = addresses("10.0.0.1", "fd00::1", "fe80::1")
	addressesB = addresses("10.0.0.2", "fd00::2", "fe80::2")
	group      = netip.MustParseAddr("239.1.2.3")
)

func addresses(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

var (
	check, refused    = errtest.Check, errtest.MustRefuse
	eventually, guard = waittest.Eventually, waittest.Guard
)

// wire returns two contexts at the ends of an in-memory network.
func wire(t testing.TB, options ...hca.Option) (a, b *verbs.Context) {
	t.Helper()
	left, right, err := hca.OpenPair(addressesA, addressesB, options...)
	check(t, err)
	return contextOn(t, left), contextOn(t, right)
}

func contextOn(t testing.TB, card provider.Provider) *verbs.Context {
	t.Helper()
	c, err := verbs.Open(card)
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// listen creates an endpoint, and checks at the end of the test that its objects are freed.
func listen(t testing.TB, c *verbs.Context, o ud.Options) *ud.Endpoint {
	t.Helper()
	e, err := ud.New(c, o)
	check(t, err)
	t.Cleanup(func() { check(t, e.Close()) })
	return e
}

// pair returns an endpoint at each end of a wire.
func pair(t testing.TB, o ud.Options) (a, b *ud.Endpoint) {
	t.Helper()
	left, right := wire(t)
	return listen(t, left, o), listen(t, right, o)
}

// receive receives a message, which the test releases.
func receive(t testing.TB, e *ud.Endpoint) ud.Message {
	t.Helper()
	m, err := e.Recv(guard(t))
	check(t, err)
	return m
}

// said receives, checks and releases a message.
func said(t testing.TB, e *ud.Endpoint, want string) ud.Message {
	t.Helper()
	m := receive(t, e)
	if string(m.Data) != want {
		t.Fatalf("got %q, want %q", m.Data, want)
	}
	m.Release()
	return m
}

func text(i int) string { return fmt.Sprint("message ", i) }
