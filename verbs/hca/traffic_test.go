// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
)

// sizes returns message lengths: all small ones, and those around every boundary.
func sizes(mtu int) (all []int) {
	for n := range 65 {
		all = append(all, n)
	}
	for n := 128; n <= mtu; n *= 2 {
		all = append(all, n-3, n-2, n-1, n)
	}
	return all
}

// bothWays sends messages of all sizes in both directions.
func (l *stations) bothWays(t *testing.T, a, b string, mtu int) {
	t.Helper()
	there, back := l.a.ah(b), l.b.ah(a)
	for _, n := range sizes(mtu) {
		message(t, l.a, l.b, there, pattern(n, 1))
		message(t, l.b, l.a, back, pattern(n, 2))
	}
	check(t, there.Close())
	check(t, back.Close())
}

func TestBytesBothWays(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	for _, row := range []struct{ name, a, b string }{
		{"IPv4", "10.77.0.1", "10.77.0.2"},
		{"IPv6", "fd77::1", "fd77::2"},
		{"link-local", linkLocal(t, l.A), linkLocal(t, l.B)},
	} {
		t.Run(row.name, func(t *testing.T) { l.bothWays(t, row.a, row.b, 1024) })
	}
	for _, s := range []*station{l.a, l.b} {
		attr, err := s.ctx.QueryDevice()
		check(t, err)
		got := counts(t, s.device)
		if got["redirected"] != got["delivered"] || len(dropsOf(s.device)) != 0 || attr.XDPMode != "native" || attr.AFXDPMode != "copy" {
			t.Errorf("%s and %s; counters %v", attr.XDPMode, attr.AFXDPMode, got)
		}
	}
}

// The link's MTU determines the RDMA MTU. 4096 does not fit one chunk of memory.
func TestMTUs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		link, rdma int
		options    []Option
	}{
		{336, 256, nil}, {600, 512, nil}, {1103, 512, nil}, {1104, 1024, nil}, {1500, 1024, nil}, {1500, 256, []Option{WithMTU(wire.MTU256)}},
		{2200, 2048, nil}, {4175, 2048, nil}, {4176, 4096, nil}, {4200, 4096, nil}, {9000, 4096, nil},
		{9000, 1024, []Option{WithMTU(wire.MTU1024)}}, {9000, 2048, []Option{WithMTU(wire.MTU2048)}},
		{9000, 4096, []Option{WithXDPMode(XDPGeneric)}},
	} {
		t.Run(fmt.Sprintf("%d gives %d", row.link, row.rdma), func(t *testing.T) {
			hosts := pairOf(t, row.link)
			row.rdma = carried(t, row.rdma)
			l := newStationsOn(t, hosts, row.options...)
			port, err := l.a.ctx.QueryPort(1)
			check(t, err)
			if port.ActiveMTU.Bytes() != row.rdma || port.MaxMsgSize != 1<<30 || port.InterfaceMTU != row.link {
				t.Fatalf("port %+v", port)
			}
			l.bothWays(t, "10.77.0.1", "10.77.0.2", row.rdma)
			if row.link >= 1280 {
				l.bothWays(t, "fd77::1", "fd77::2", row.rdma)
			}
			l.a.post(l.a.send(5, l.a.ah("10.77.0.2"), l.b, l.a.mr.SGE(0, row.rdma+1)))
			expect(t, l.a.wait(1), outcome{5, verbs.WCLocLenErr})
		})
	}
}

// carried returns the RDMA MTU on this kernel where mtu would be possible.
func carried(t *testing.T, mtu int) int {
	t.Helper()
	all, err := xsk.MultiBufferSupported()
	check(t, err)
	if all {
		return mtu
	}
	return min(mtu, 2048)
}

// TestAskedMTU4096: the MTU is granted, or refused with an error that names the required kernel.
func TestAskedMTU4096(t *testing.T) {
	t.Parallel()
	hosts := pairOf(t, 9000)
	d, err := Open("eth0", InNamespace(hosts.A.Path()), WithMTU(wire.MTU4096))
	if carried(t, 4096) == 4096 {
		check(t, err)
		check(t, d.Close())
		return
	}
	if !errors.Is(err, xsk.ErrMultiBuffer) || !strings.Contains(err.Error(), "6.6") {
		t.Errorf("%v", err)
	}
}

// pairOf returns a pair whose link has an MTU. Below 1280 there is no IPv6.
func pairOf(t *testing.T, mtu int) *labtest.PairLab {
	t.Helper()
	if mtu >= 1280 {
		return labtest.Pair(t, lab.WithMTU(mtu))
	}
	hosts := &labtest.PairLab{A: labtest.New(t, "hca-a"), B: labtest.New(t, "hca-b")}
	check(t, lab.Veth(hosts.A, hosts.B, "eth0", "eth0", lab.WithMTU(mtu)))
	check(t, hosts.A.AddAddress("eth0", "10.77.0.1/24"))
	check(t, hosts.B.AddAddress("eth0", "10.77.0.2/24"))
	return hosts
}

// Flows land on all queues, and every queue has a socket.
func TestQueues(t *testing.T) {
	t.Parallel()
	const queues, flows = 4, 64
	l := newStationsOn(t, labtest.Pair(t, lab.WithQueues(queues)))
	if n := len(l.b.device.host.Link().Descriptors()); n != queues {
		t.Fatalf("got %d sockets on %d queues", n, queues)
	}
	r := newRawSender(t, l.A, l.B, l.b.qp.Number())
	for i := range flows {
		l.b.receive(0)
		flow := r.path("10.77.0.1", "10.77.0.2")
		flow.FlowLabel = uint32(i + 1)
		r.send(frame(flow, r.datagram(), pattern(100, i)))
		expect(t, l.b.wait(1), ok(0))
	}
	statistics := map[string]uint64{}
	check(t, l.B.Do(func() (err error) {
		statistics, err = ethtool.Stats("eth0")
		return err
	}))
	sum := uint64(0)
	for queue := range queues {
		n := statistics[fmt.Sprintf("rx_queue_%d_xdp_packets", queue)]
		if n == 0 {
			t.Errorf("no flow reached queue %d", queue)
		}
		sum += n
	}
	if sum < flows {
		t.Errorf("got %d packets on all queues: %v", sum, statistics)
	}
}

// The packets on the wire have the requested fields.
func TestHeaders(t *testing.T) {
	hosts := labtest.Pair(t)
	a, s := newStation(t, open(t, hosts.A)), newSniffer(t, hosts.B)
	route := a.route("10.77.0.2")
	route.GRH.FlowLabel, route.GRH.TrafficClass, route.GRH.HopLimit = 0x54321, 0x68, 5
	ah, err := a.pd.CreateAH(context.Background(), route)
	check(t, err)
	wr := a.send(1, ah, &station{qp: a.qp}, a.piece(0, 5))
	wr.RemoteQPN, wr.RemoteQKey, wr.Opcode, wr.ImmData = 0xABCDEF, 0x1234, verbs.WRSendWithImm, 0xCAFEF00D
	wr.Flags |= verbs.SendSolicited
	check(t, a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState))
	toInit(t, a.qp)
	to(t, a.qp, verbs.QPStateRTR)
	check(t, a.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, SQPSN: 0xFFFFFF}, verbs.QPAttrState|verbs.QPAttrSQPSN))
	for i, psn := range []wire.PSN{0xFFFFFF, 0} {
		a.post(wr)
		f, p := s.next()
		bth, deth := p.BTH(), p.DETH()
		if !p.CheckICRC() || p.Source() != gid("10.77.0.1") || p.Destination() != gid("10.77.0.2") || len(p.Payload()) != 5 {
			t.Errorf("packet %d from %v to %v: % x", i, p.Source(), p.Destination(), f)
		}
		if bth.Opcode() != wire.OpcodeUDSendImmediate || !bth.Solicited() || bth.PSN() != psn || bth.DestQP() != 0xABCDEF || bth.PKey() != wire.PKeyDefault || bth.PadCount() != 3 {
			t.Errorf("BTH % x", bth)
		}
		if deth.QKey() != 0x1234 || deth.SrcQP() != a.qp.Number() || p.Imm() != 0xCAFEF00D {
			t.Errorf("DETH % x, immediate %#x", deth, p.Imm())
		}
		port := int(f[wiretest.UDP])<<8 | int(f[wiretest.UDP+1])
		if f[wiretest.IP+1] != 0x68 || f[wiretest.IP+8] != 5 || f[wiretest.IP+6] != 0x40 || port != int(wire.SourcePort(0x54321)) || f[wiretest.UDP+6]|f[wiretest.UDP+7] != 0 || f[wiretest.BTH+1]&0x40 == 0 {
			t.Errorf("headers % x", f[:wiretest.DETH])
		}
	}
}

// Generic XDP works in the same way, and the log reports it.
func TestGenericMode(t *testing.T) {
	t.Parallel()
	var log logged
	l := newStations(t, WithXDPMode(XDPGeneric), log.option())
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 1024)
	attr, err := l.a.ctx.QueryDevice()
	check(t, err)
	if attr.XDPMode != "generic" || !log.says("xdp=generic") {
		t.Errorf("mode %s", attr.XDPMode)
	}
}

// Copy mode can be required; the worker also works alone, without inline progress of programs.
func TestWorkerAlone(t *testing.T) {
	t.Parallel()
	l := newStations(t, WithoutInline(), WithSocketMode(SocketCopy), WithSpin(0), WithFrames(64))
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 1024)
}
