// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/server/memory"
)

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		if err := child(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	labtest.Main(m)
}

var (
	check             = errtest.Check
	eventually, guard = waittest.Eventually, waittest.Guard
	often             = waittest.Often
)

var (
	addressesA = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fe80::1")}
	addressesB = []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2"), netip.MustParseAddr("fe80::2")}
)

// daemon is a server with its socket.
type daemon struct {
	*Server
	path   string
	shared map[*connection]int // process files that ownRegion has made
}

var pageSize = os.Getpagesize()

// startDaemon serves devices until the test ends.
func startDaemon(t testing.TB, c Config) *daemon {
	t.Helper()
	s, err := New(c)
	check(t, err)
	folder, err := os.MkdirTemp("", "roced") // a socket's path is short
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(folder)) })
	d := &daemon{s, filepath.Join(folder, "s"), map[*connection]int{}}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: d.path, Net: "unixpacket"})
	check(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		check(t, s.Close())
		if err := <-served; !errors.Is(err, verbs.ErrClosed) { // it may not have begun yet
			check(t, err)
		}
	})
	return d
}

// dial opens the daemon's only device until the test ends.
func (d *daemon) dial(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.Dial(d.path, "")
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	return c
}

// rig is two hosts on an in-memory network, with a card and a daemon each.
type rig struct {
	a, b    *daemon
	cards   [2]*hca.Card
	hosts   [2]*memnet.Host
	network *memnet.Network
}

// newCard makes a card on a new host.
func newCard(t testing.TB, n *memnet.Network, name string, addresses ...netip.Addr) (*hca.Card, *memnet.Host) {
	t.Helper()
	host, err := n.AddHost(name, addresses...)
	check(t, err)
	card, err := hca.New(host, hca.WithoutInline())
	check(t, err)
	return card, host
}

// newNetwork returns an in-memory network without hosts.
func newNetwork(t testing.TB) *memnet.Network {
	t.Helper()
	n := memnet.New(0)
	t.Cleanup(func() { check(t, n.Close()) })
	return n
}

func newRig(t testing.TB, c Config) *rig {
	t.Helper()
	return newRigOf(t, c, func(card *hca.Card) Source { return card })
}

// newRigOf serves devices that are created from the cards.
func newRigOf(t testing.TB, c Config, served func(card *hca.Card) Source) *rig {
	t.Helper()
	r := &rig{network: newNetwork(t)}
	for i, addresses := range [][]netip.Addr{addressesA, addressesB} {
		r.cards[i], r.hosts[i] = newCard(t, r.network, []string{"a", "b"}[i], addresses...)
		c.Devices = []Source{served(r.cards[i])}
		d := startDaemon(t, c)
		if i == 0 {
			r.a = d
		} else {
			r.b = d
		}
	}
	return r
}

// anyone are the limits and privileges of most tests.
var anyone = Config{PrivilegedGroup: -1}

// program is a client's objects.
type program struct {
	testing.TB
	client *client.Client
	ctx    *verbs.Context
	pd     *verbs.PD
	mr     *verbs.MR
	cq     *verbs.CQ
	qp     *verbs.QP
}

const testQKey = 0x1234

func newProgram(t testing.TB, c *client.Client) *program {
	t.Helper()
	p := &program{TB: t, client: c}
	var err error
	p.ctx, err = verbs.Open(c)
	check(t, err)
	p.pd, err = p.ctx.AllocPD()
	check(t, err)
	p.mr, err = p.pd.AllocMR(1<<16, verbs.AccessLocalWrite)
	check(t, err)
	p.cq, err = p.ctx.CreateCQ(256)
	check(t, err)
	p.qp = p.newQP()
	return p
}

func (p *program) newQP() *verbs.QP {
	p.Helper()
	qp, err := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64}})
	check(p, err)
	check(p, qp.Activate(testQKey))
	return qp
}

func (p *program) ah(to netip.Addr) *verbs.AH {
	p.Helper()
	ah, err := p.pd.CreateAH(guard(p), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(to)}})
	check(p, err)
	return ah
}

// exchange sends a message from p to peer, and waits until both know.
func (p *program) exchange(ah *verbs.AH, peer *program, text string) {
	p.Helper()
	check(p, peer.qp.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{peer.mr.SGE(1024, 1024)}}}))
	n := copy(p.mr.Bytes(), text)
	check(p, p.qp.PostSend([]verbs.SendWR{{ID: 1, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{p.mr.SGE(0, n)}, AH: ah, RemoteQPN: peer.qp.Number(), RemoteQKey: testQKey}}))
	p.completion()
	wc := peer.completion()
	if _, got := wc.Payload(peer.mr.Bytes()[1024:]); string(got) != text {
		p.Fatalf("%q, want %q", got, text)
	}
}

func (p *program) completion() verbs.WC {
	p.Helper()
	var wcs [1]verbs.WC
	_, err := p.cq.Wait(guard(p), wcs[:])
	check(p, err)
	check(p, wcs[0].Err())
	return wcs[0]
}

// mappings counts the large ones of this process.
func mappings(t testing.TB) (n int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/maps")
	check(t, err)
	for _, line := range strings.Split(string(raw), "\n") {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x rw", &from, &to); err == nil && to-from == memory.MaxArena {
			n++
		}
	}
	return n
}
