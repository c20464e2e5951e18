// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// end is a link of a host, with sockets for the host's addresses.
type end struct {
	testing.TB
	*Link
	host   *lab.Namespace
	first  *Socket // of the first address
	index  int
	solver wire.Numbering
}

func newEnd(t testing.TB, host *lab.Namespace, addresses ...string) *end {
	t.Helper()
	index, err := host.Index("eth0")
	check(t, err)
	e := &end{TB: t, host: host, index: index}
	check(t, host.Do(func() (err error) {
		e.Link, err = Open(Config{Index: index})
		return err
	}))
	t.Cleanup(func() { check(t, e.Link.Close()) })
	for _, a := range addresses {
		s := e.listen(netip.MustParseAddr(a))
		e.first = cmp.Or(e.first, s)
	}
	return e
}

func (e *end) listen(address netip.Addr) *Socket {
	e.Helper()
	var s *Socket
	check(e, e.host.Do(func() (err error) {
		s, err = OpenSocket(address, e.index)
		return err
	}))
	check(e, e.Add(s))
	return s
}

// ends returns two hosts on a wire.
func ends(t testing.TB) (a, b *end) {
	hosts := labtest.Pair(t)
	return newEnd(t, hosts.A, "10.77.0.1", "fd77::1"), newEnd(t, hosts.B, "10.77.0.2", "fd77::2")
}

// send commits a datagram, and returns its frame.
func (e *end) send(path wire.Path, qpn wire.QPN, psn int, length int) []byte {
	e.Helper()
	path.SourcePorts = e.SourcePorts()
	template := wire.NewTemplate(path)
	frame := e.Reserve()
	if frame == nil {
		e.Fatal("no frame")
	}
	offset := template.PayloadOffset(false)
	for i := range length {
		frame[offset+i] = byte(psn + i)
	}
	n := template.Seal(frame, &wire.Datagram{DestQP: 5, SourceQP: qpn, PSN: wire.PSN(psn), PKey: wire.PKeyDefault}, length)
	sent := bytes.Clone(frame[:n])
	e.Commit(n)
	return sent
}

// receive receives until count packets have arrived, or no packet arrives for some time, and returns them.
func (e *end) receive(count int) (frames [][]byte) {
	e.Helper()
	for end := time.Now().Add(waittest.Limit); len(frames) < count && time.Now().Before(end); {
		n := e.Receive()
		for range n {
			frame := e.Next()
			var p wire.Packet
			if fault := wire.Parse(frame, &p); fault != wire.FaultNone || !p.CheckICRC() && !e.solver.Solve(&p) {
				e.Fatalf("%v: % x", fault, frame[:min(len(frame), 60)])
			}
			frames = append(frames, bytes.Clone(frame))
		}
		if n > 0 {
			e.Release()
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	return frames
}

var (
	v4 = wire.Path{Source: gid("10.77.0.1"), Dest: gid("10.77.0.2"), TrafficClass: 0x6A, HopLimit: 9}
	v6 = wire.Path{Source: gid("fd77::1"), Dest: gid("fd77::2"), TrafficClass: 0x6A, HopLimit: 9}
)

// Packets of all lengths arrive unchanged, in order, with the requested headers. The IPv4 identification is the one for
// which the ICRC was computed: 0, or the index in a train.
func TestAcross(t *testing.T) {
	a, b := ends(t)
	for _, row := range []struct {
		name    string
		path    wire.Path
		lengths []int
		trains  uint64
	}{
		{"one", v4, []int{77}, 0},
		{"one, IPv6", v6, []int{77}, 0},
		{"a train", v4, []int{1024, 1024, 1024, 1024, 1000}, 1},
		{"a train, IPv6", v6, []int{1024, 1024, 1024, 1024, 1000}, 1},
		{"without payload", v4, []int{0, 0, 0}, 1},
		{"longer and longer", v4, []int{4, 8, 12, 16}, 0},
		{"shorter and shorter", v4, []int{16, 12, 8, 4}, 2},
		{"two lengths in turns", v4, []int{64, 1000, 64, 1000, 64}, 2},
		{"more than a train holds", v4, repeat(100, 150), 3},
		{"more than a datagram holds", v4, repeat(1024, 64), 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := a.Sent().Trains
			var sent [][]byte
			for i, length := range row.lengths {
				sent = append(sent, a.send(row.path, 7, i, length))
			}
			if !a.Flush() {
				t.Fatal("not all packets were sent")
			}
			got := b.receive(len(sent))
			if len(got) != len(sent) {
				t.Fatalf("%d of %d packets", len(got), len(sent))
			}
			for i := range sent {
				sameButID(t, got[i], sent[i])
			}
			if trains := a.Sent().Trains - before; trains != row.trains {
				t.Errorf("%d trains, want %d", trains, row.trains)
			}
		})
	}
}

func repeat(length, count int) (all []int) {
	for range count {
		all = append(all, length)
	}
	return all
}

// sameButID compares frames, except for the identification and dependent fields.
func sameButID(t *testing.T, got, want []byte) {
	t.Helper()
	got, want = bytes.Clone(got), bytes.Clone(want)
	for _, frame := range [][]byte{got, want} {
		if frame[wire.EthernetLen]>>4 == 4 {
			clear(frame[wire.EthernetLen+4 : wire.EthernetLen+6])
			clear(frame[wire.EthernetLen+10 : wire.EthernetLen+12])
			clear(frame[len(frame)-wire.ICRCLen:])
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("\n% x\n% x", got[:min(len(got), 80)], want[:min(len(want), 80)])
	}
}

// Interleaved packets of several flows stay in order within each flow, and are sent from the source ports in their
// headers.
func TestFlows(t *testing.T) {
	a, b := ends(t)
	for i := range 200 {
		a.send(v4, wire.QPN(1+i%7), i, 64+4*(i%3))
	}
	a.Flush()
	last := map[wire.QPN]wire.PSN{}
	ports := map[uint16]bool{}
	for _, frame := range b.receive(200) {
		var p wire.Packet
		wire.Parse(frame, &p)
		from := p.DETH().SrcQP()
		if psn := p.BTH().PSN(); psn < last[from] {
			t.Errorf("queue pair %d: packet %d after %d", from, psn, last[from])
		} else {
			last[from] = psn
		}
		ports[uint16(frame[34])<<8|uint16(frame[35])] = true
	}
	if len(last) != 7 || len(ports) < 2 {
		t.Errorf("%d flows from %d ports", len(last), len(ports))
	}
}

// Interleaved packets of many queue pairs are sent in one train per source port, over both IP versions, in order for
// each queue pair.
func TestManyShareTrains(t *testing.T) {
	a, b := ends(t)
	before := a.Sent()
	const pairs, each = 8, 4
	for i := range each {
		for _, path := range []wire.Path{v4, v6} {
			for pair := range wire.QPN(pairs) {
				a.send(path, 1+pair, i, 100)
			}
		}
	}
	a.Flush()
	next := map[[2]uint32]int{}
	for _, frame := range b.receive(2 * pairs * each) {
		var p wire.Packet
		wire.Parse(frame, &p)
		from := [2]uint32{uint32(p.DETH().SrcQP()), uint32(frame[wire.EthernetLen] >> 4)}
		if psn := int(p.BTH().PSN()); psn != next[from] {
			t.Fatalf("queue pair %v: packet %d, want %d", from, psn, next[from])
		}
		next[from]++
	}
	after := a.Sent()
	if trains := after.Trains - before.Trains; len(next) != 2*pairs || trains > uint64(2*len(a.SourcePorts())) || after.Frames != before.Frames {
		t.Errorf("%d queue pairs, %d trains, %d frames alone", len(next), trains, after.Frames-before.Frames)
	}
}

// Packets longer than the link's MTU are refused, also in a train; others arrive.
func TestTooLong(t *testing.T) {
	a, b := ends(t)
	for i := range 3 {
		a.send(v4, 7, i, 4096)
	}
	for i := range 3 {
		a.send(v4, 7, i, 1024)
	}
	if done := a.Flush(); !done || a.Refused() != 3 || a.Refused() != 0 || len(b.receive(3)) != 3 {
		t.Errorf("done %v", done)
	}
	if a.TrainsUnable() {
		t.Error("trains are disabled")
	}
}

// Packets without a route, or with a source address of another host, are counted as refused; a packet that was taken
// back is not sent.
func TestRefused(t *testing.T) {
	a, _ := ends(t)
	nowhere := v4
	nowhere.Dest = gid("192.0.2.1")
	for i := range 5 {
		a.send(nowhere, 7, i, 64)
	}
	if !a.Flush() || a.Refused() != 5 {
		t.Error("a packet without a route was not refused")
	}
	foreign := v4
	foreign.Source = gid("10.77.0.99")
	a.send(foreign, 7, 0, 64)
	if !a.Flush() || a.Refused() != 1 {
		t.Error("a packet with another host's source address was not refused")
	}
	a.send(v4, 7, 0, 64)
	if a.TakeBack(); a.TakenBack() != 1 || a.TakenBack() != 0 || !a.Flush() {
		t.Error("a packet that was taken back was sent")
	}
}

// Without trains the same packets arrive.
func TestWithoutTrains(t *testing.T) {
	a, b := ends(t)
	a.SetTrains(false)
	for i := range 10 {
		a.send(v4, 7, i, 1024)
	}
	a.Flush()
	if got := b.receive(10); len(got) != 10 || a.Sent().Trains != 0 || a.Sent().Frames != 10 {
		t.Errorf("%d packets, %+v", len(got), a.Sent())
	}
}

// OpenSocket fails if another program uses the port; links of two hosts do not interfere.
func TestTakenPort(t *testing.T) {
	hosts := labtest.Pair(t)
	a := newEnd(t, hosts.A, "10.77.0.1")
	check(t, hosts.A.Do(func() error {
		if _, err := OpenSocket(netip.MustParseAddr("10.77.0.1"), a.index); err == nil || !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%v", err)
		}
		if _, err := OpenSocket(netip.MustParseAddr("10.77.0.9"), a.index); !errors.Is(err, unix.EADDRNOTAVAIL) {
			t.Errorf("%v", err)
		}
		return nil
	}))
}

// Packets to a group arrive only at sockets that have joined it and are not muted, and only on the interface.
func TestGroups(t *testing.T) {
	a, b := ends(t)
	for _, address := range []string{"239.1.2.3", "ff15::5"} {
		group := netip.MustParseAddr(address)
		path := v4
		if group.Is6() {
			path = v6
		}
		path.Dest = wire.GIDFromAddr(group)
		var s *Socket
		check(t, b.host.Do(func() (err error) {
			s, err = OpenGroup(group, b.index)
			return err
		}))
		check(t, b.Add(s))
		count := 0
		sends := func(want int, what string) {
			t.Helper()
			count++
			a.send(path, 7, count, 100)
			a.send(v4, 7, count, 50) // arrives after the others
			a.Flush()
			if got := b.receive(want + 1); len(got) != want+1 {
				t.Errorf("%v, %s: %d packets", group, what, len(got)-1)
			}
		}
		sends(0, "not joined")
		check(t, s.Join(b.index))
		sends(1, "joined")
		check(t, s.Mute())
		sends(0, "muted")
		check(t, s.Hear())
		sends(1, "heard again")
		a.send(path, 7, count, 100)
		a.Flush()
		waittest.Eventually(t, "a packet in the socket", func() bool { return has(s) })
		check(t, s.Mute())
		check(t, s.Hear())
		sends(1, "packets that arrived before Mute are dropped")
		check(t, s.Leave(b.index))
		sends(0, "left")
		if !b.Remove(s) {
			t.Error("Remove did not find the socket")
		}
		check(t, s.Close())
	}
}

// A full socket drops packets, which are counted, also after its removal.
func TestNoRoom(t *testing.T) {
	a, b := ends(t)
	check(t, unix.SetsockoptInt(b.first.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4096))
	const sent = 500
	for i := range sent {
		a.send(v4, wire.QPN(1+i%2), i, 1024)
	}
	a.Flush()
	arrived := 0
	for n := b.Receive(); n > 0; n = b.Receive() {
		for range n {
			b.Next()
			arrived++
		}
		b.Release()
	}
	lost := b.Counters().NoRoom
	if lost == 0 || arrived == 0 || arrived == sent {
		t.Errorf("%d arrived, %d were dropped", arrived, lost)
	}
	for range 2 { // dropped packets count once, even if the socket is added again
		b.Remove(b.first)
		if got := b.Counters().NoRoom; got != lost {
			t.Errorf("%d were dropped, then %d", lost, got)
		}
		check(t, b.Add(b.first))
	}
	b.Remove(b.first)
	check(t, b.first.Close())
	if got := b.Counters().NoRoom; got != lost {
		t.Errorf("%d were dropped, then %d", lost, got)
	}
}

// A link has one descriptor to sleep on, which is readable while a packet is waiting.
func TestSleep(t *testing.T) {
	a, b := ends(t)
	if b.wakes(0) {
		t.Error("readable without a packet")
	}
	a.send(v6, 7, 0, 8)
	a.Flush()
	if !b.wakes(waittest.Limit) || len(b.receive(1)) != 1 {
		t.Error("not readable with a packet")
	}
	if b.wakes(0) {
		t.Error("readable after the packet was received")
	}
}

// wakes reports whether the link's descriptor becomes readable within a time.
func (e *end) wakes(within time.Duration) bool {
	e.Helper()
	return waittest.Readable(e, e.Descriptors()[0], within)
}

// RDMA NICs send no UDP checksum: such packets are accepted over IPv6, too.
func TestWithoutChecksum(t *testing.T) {
	a, b := ends(t)
	frame := a.send(v6, 7, 1, 100)
	a.TakeBack()
	check(t, a.host.Do(func() error {
		fd, err := newUDP(unix.AF_INET6, []option{{unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, 1}})
		check(t, err)
		defer unix.Close(fd)
		check(t, unix.Bind(fd, endpoint(netip.MustParseAddr("fd77::1"), 0, 0)))
		return unix.Sendto(fd, frame[62:], 0, endpoint(netip.MustParseAddr("fd77::2"), wire.UDPPort, 0))
	}))
	for end := time.Now().Add(waittest.Limit); b.Receive() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the packet does not arrive")
		}
	}
	if got := b.Next(); !bytes.Equal(got[62:], frame[62:]) {
		t.Errorf("% x", got)
	}
	b.Release()
}

// A socket that always has packets does not starve another one.
func TestSocketsTakeTurns(t *testing.T) {
	a, b := ends(t)
	for seen, end := false, time.Now().Add(waittest.Limit); !seen; {
		for i := range 200 {
			a.send(v4, 7, i, 1024)
		}
		a.send(v6, 7, 1, 8)
		if a.Flush(); time.Now().After(end) {
			t.Fatal("the other socket has no turn")
		}
		for range 3 { // so that the socket is never empty
			for range b.Receive() {
				seen = seen || b.Next()[wire.EthernetLen]>>4 == 6
			}
			b.Release()
		}
	}
}

// A packet from a link-local address arrives at an address of another scope.
func TestFromLinkLocal(t *testing.T) {
	a, b := ends(t)
	link, err := a.host.Netlink().LinkByName("eth0")
	check(t, err)
	for own := (netip.Addr{}); !own.IsValid(); time.Sleep(time.Millisecond) { // until the address is usable
		addresses, err := a.host.Netlink().AddrList(link, unix.AF_INET6)
		check(t, err)
		for _, one := range addresses {
			if ip, _ := netip.AddrFromSlice(one.IP); ip.IsLinkLocalUnicast() && one.Flags&unix.IFA_F_TENTATIVE == 0 {
				own = ip
				path := v6
				path.Source = wire.GIDFromAddr(own)
				a.send(path, 7, 1, 100)
			}
		}
	}
	if a.Flush(); a.Refused() != 0 || len(b.receive(1)) != 1 {
		t.Error("the packet was refused, or did not arrive")
	}
}

// Forged "packet too big" reports of routers do not reduce the packet size: the kernel ignores them.
func TestReportsAreNotBelieved(t *testing.T) {
	a, _ := ends(t)
	for _, row := range []struct{ fd, level, option, want int }{
		{a.ports.v4[0], unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE},
		{a.ports.v6[0], unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
	} {
		if got, err := unix.GetsockoptInt(row.fd, row.level, row.option); err != nil || got != row.want {
			t.Errorf("%d, %v", got, err)
		}
	}
}

// The first Receive after the descriptor has become readable finds the packet, as a sleeper would not be woken again.
func TestReceiveFindsWhatWakes(t *testing.T) {
	a, b := ends(t)
	for i := range 100 {
		path := v4
		if i%3 != 0 {
			path = v6
		}
		a.send(path, 7, i, 8)
		a.Flush()
		if !b.wakes(waittest.Limit) {
			t.Fatal("the sleeper was not woken")
		}
		for range i % 5 { // by other calls before
			b.calls++
		}
		if n := b.Receive(); n != 1 {
			t.Fatalf("packet %d: found %d packets", i, n)
		}
		b.Next()
		b.Release()
	}
}

// Glance finds packets of the socket that had packets last, and leaves those of other sockets to Receive. It also works
// after that socket has been removed.
func TestGlance(t *testing.T) {
	a, b := ends(t)
	send := func(path wire.Path) {
		a.send(path, 7, 1, 8)
		a.Flush()
		if !b.wakes(waittest.Limit) {
			t.Fatal("no packet arrives")
		}
	}
	takes := func(name string, look func() int, want int) {
		t.Helper()
		n := look()
		if n != want {
			t.Errorf("%s: got %d packets, want %d", name, n, want)
		}
		for range n {
			b.Next()
		}
		b.Release()
	}
	send(v4)
	takes("the first poll", b.Glance, 1)
	takes("an empty poll", b.Glance, 0)
	send(v4)
	takes("a poll of the last socket", b.Glance, 1)
	takes("an empty poll", b.Glance, 0)
	send(v6)
	takes("a poll of another socket", b.Glance, 0)
	takes("Receive", b.Receive, 1)
	send(v6)
	b.Remove(b.first) // the address of IPv4
	takes("a poll of the last socket", b.Glance, 1)
	check(t, b.first.Close())
	for _, s := range b.sockets {
		b.Remove(s)
		check(t, s.Close())
	}
	takes("a poll without a socket", b.Glance, 0)
}

// Receive returns even if a socket has a permanent error.
func TestErrorsThatStay(t *testing.T) {
	a, b := ends(t)
	no, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // no socket: ENOTSOCK
	check(t, err)
	defer unix.Close(no)
	b.pending = []*Socket{{fd: no}}
	if b.Receive() != 0 {
		t.Error("got packets of a descriptor that is no socket")
	}
	b.pending = []*Socket{{fd: no}}
	a.send(v4, 7, 1, 8)
	if a.Flush(); len(b.receive(1)) != 1 {
		t.Error("the other sockets are not polled")
	}
}

// has reports whether a packet waits in a socket.
func has(s *Socket) bool {
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, 0)
	return err == nil && ready > 0
}

// BenchmarkManyQueuePairs sends interleaved packets of 100 bytes from many queue pairs, and from one queue pair for
// comparison. The destination queue pairs do not exist.
func BenchmarkManyQueuePairs(b *testing.B) {
	a, _ := ends(b)
	for _, pairs := range []int{1, 64} {
		b.Run(fmt.Sprint(pairs), func(b *testing.B) {
			for i := range b.N {
				a.send(v4, wire.QPN(1+i%pairs), i, 100)
			}
			a.Flush()
		})
	}
}
