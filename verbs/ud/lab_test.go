// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/ud"
	"github.com/vishvananda/netlink"
)

// contextIn opens a host's eth0.
func contextIn(t testing.TB, host *lab.Namespace) *verbs.Context {
	t.Helper()
	card, err := hca.Open("eth0", hca.InNamespace(host.Path()))
	check(t, err)
	return contextOn(t, card)
}

// hostPair is an endpoint on each of two hosts on a veth pair.
func hostPair(t testing.TB, o ud.Options) (hosts *labtest.PairLab, a, b *ud.Endpoint) {
	t.Helper()
	hosts = labtest.Pair(t)
	return hosts, listen(t, contextIn(t, hosts.A), o), listen(t, contextIn(t, hosts.B), o)
}

func eth0(t testing.TB, host *lab.Namespace) netlink.Link {
	t.Helper()
	link, err := host.Netlink().LinkByName("eth0")
	check(t, err)
	return link
}

func TestOverVeth(t *testing.T) {
	t.Parallel()
	for _, spin := range []bool{false, true} {
		_, a, b := hostPair(t, ud.Options{Spin: spin})
		all, err := b.LocalAddrs()
		check(t, err)
		for _, to := range all { // IPv4, IPv6, link-local
			check(t, a.Send(guard(t), to, []byte("question")))
			m := receive(t, b)
			check(t, m.Reply(guard(t), []byte("answer")))
			m.Release()
			if m := said(t, a, "answer"); m.From != to {
				t.Errorf("got a response from %v, want %v", m.From, to)
			}
		}
		data := strings.Repeat("0123456789abcdef", 64)
		check(t, a.Send(guard(t), b.LocalAddr(), []byte(data)))
		said(t, b, data)
		refused(t, a.Send(guard(t), b.LocalAddr(), make([]byte, 1025)), ud.ErrTooLong)
	}
}

// TestGroupOverVeth discovers a peer by a group, for each IP version, and checks that no membership remains.
func TestGroupOverVeth(t *testing.T) {
	t.Parallel()
	hosts, a, b := hostPair(t, ud.Options{})
	for _, text := range []string{"239.1.2.3", "ff15::1:2:3"} {
		group := netip.MustParseAddr(text)
		check(t, b.Join(group))
		go func() {
			m, err := b.Recv(guard(t))
			if err == nil {
				err = m.Reply(guard(t), []byte("here"))
				m.Release()
			}
			if err != nil {
				t.Error(err)
			}
		}()
		m, err := a.Discover(guard(t), ud.Group(group), []byte("where?"))
		check(t, err)
		if string(m.Data) != "here" || m.From.QPN != b.LocalAddr().QPN {
			t.Errorf("got %q from %v", m.Data, m.From)
		}
		m.Release()
		if !isMember(t, hosts.B, group) {
			t.Errorf("the host is not a member of %v", group)
		}
	}
	check(t, b.Leave(netip.MustParseAddr("239.1.2.3")))
	check(t, b.Close())
	for _, text := range []string{"239.1.2.3", "ff15::1:2:3"} {
		if isMember(t, hosts.B, netip.MustParseAddr(text)) {
			t.Errorf("the host is still a member of %s after Close", text)
		}
	}
}

// isMember reports whether the kernel's tables of a host contain a membership.
func isMember(t testing.TB, host *lab.Namespace, group netip.Addr) bool {
	t.Helper()
	file, name := "/proc/thread-self/net/igmp6", strings.ReplaceAll(group.StringExpanded(), ":", "")
	if group.Is4() {
		b := group.As4()
		file, name = "/proc/thread-self/net/igmp", strings.ToUpper(hexOf([]byte{b[3], b[2], b[1], b[0]}))
	}
	var text []byte
	check(t, hca.RunIn(host.Path(), func() (err error) {
		text, err = os.ReadFile(file)
		return err
	}))
	return strings.Contains(string(text), name)
}

func hexOf(b []byte) (text string) {
	const digits = "0123456789abcdef"
	for _, x := range b {
		text += string([]byte{digits[x>>4], digits[x&15]})
	}
	return text
}

// TestAddressesChange replaces a host's address: later messages use the new one.
func TestAddressesChange(t *testing.T) {
	t.Parallel()
	hosts, a, b := hostPair(t, ud.Options{})
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("first")))
	if m := said(t, b, "first"); m.From.IP() != netip.MustParseAddr("10.77.0.1") {
		t.Errorf("got a message from %v", m.From)
	}
	address, err := netlink.ParseAddr("10.77.0.1/24")
	check(t, err)
	check(t, hosts.A.Netlink().AddrDel(eth0(t, hosts.A), address))
	check(t, hosts.A.AddAddress("eth0", "10.77.0.9/24"))
	eventually(t, "a message from the new address", func() bool {
		if err := a.Send(guard(t), b.LocalAddr(), []byte("again")); err != nil {
			t.Log(err) // the change of the table may be incomplete
			return false
		}
		ctx, cancel := context.WithTimeout(guard(t), 100*time.Millisecond)
		defer cancel()
		m, err := b.Recv(ctx)
		if err != nil {
			return false
		}
		defer m.Release()
		return m.From.IP() == netip.MustParseAddr("10.77.0.9")
	})
}

// TestSmallerMTU decreases the interface's MTU while messages of the old length are sent: the endpoint detects it, and
// continues to work.
func TestSmallerMTU(t *testing.T) {
	hosts, a, b := hostPair(t, ud.Options{})
	to := b.LocalAddr()
	check(t, a.Send(guard(t), to, make([]byte, 1024)))
	said(t, b, string(make([]byte, 1024)))
	check(t, hosts.A.Netlink().LinkSetMTU(eth0(t, hosts.A), 1000))
	eventually(t, "the smaller MTU", func() bool {
		err := a.Send(guard(t), to, make([]byte, 1024))
		var failed *ud.SendError
		if err != nil && !errors.Is(err, ud.ErrTooLong) && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return errors.Is(err, ud.ErrTooLong)
	})
	if a.MaxMessage() != 512 {
		t.Errorf("got MaxMessage %d, want 512", a.MaxMessage())
	}
	for range a.Stats().Sent - 1 { // messages sent before the MTU changed
		if m, err := b.Poll(make([]ud.Message, 1)); m == 0 || err != nil {
			break
		}
	}
	check(t, a.Send(guard(t), to, []byte("short")))
	for {
		m := receive(t, b)
		data := string(m.Data)
		m.Release()
		if data == "short" {
			return
		}
	}
}

// TestCloseEndsResolving closes an endpoint that waits for a neighbour that does not exist.
func TestCloseEndsResolving(t *testing.T) {
	_, a, _ := hostPair(t, ud.Options{})
	nobody := addr("10.77.0.200", 5, verbs.UDPQKey)
	result := make(chan error)
	go func() { result <- a.Send(guard(t), nobody, nil) }()
	ctx, cancel := context.WithCancel(guard(t))
	cancelled := make(chan error)
	go func() { cancelled <- a.Send(ctx, nobody, nil) }()
	conn := a.PacketConn()
	check(t, conn.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	_, err := conn.WriteTo(nil, nobody)
	timedOut(t, err)
	cancel()
	refused(t, <-cancelled, context.Canceled)
	check(t, a.Close())
	if err := <-result; !isClosed(err) && !errors.Is(err, verbs.ErrUnreachable) {
		t.Error(err)
	}
}
