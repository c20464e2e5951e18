package hca

import (
	"net"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// The two ways exclude each other on an interface: what comes first is not robbed, and names itself.
func TestWaysExcludeEachOther(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	in := InNamespace(hosts.A.Path())
	xdp, err := Open("eth0", in, WithNetwork(NetworkXDP))
	check(t, err)
	_, err = Open("eth0", in, WithNetwork(NetworkUDP))
	refused(t, err, unix.EBUSY, "by XDP", "roced_steer", "open eth0")
	check(t, xdp.Close())
	udp, err := Open("eth0", in, WithNetwork(NetworkUDP))
	check(t, err)
	for _, way := range []Network{NetworkXDP, NetworkAuto} {
		_, err = Open("eth0", in, WithNetwork(way))
		refused(t, err, unix.EBUSY, "(process ", "UDP 4791", "10.77.0.1")
	}
	_, err = Open("eth0", in, WithNetwork(NetworkUDP)) // another card of the same process
	refused(t, err, unix.EADDRINUSE, "(process ", "10.77.0.1")
	check(t, udp.Close())
	xdp, err = Open("eth0", in)
	check(t, err)
	check(t, xdp.Close())
}

// Another program's port is named, and options that only XDP has rule UDP sockets out.
func TestOpenUDPRefuses(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	in := InNamespace(hosts.A.Path())
	for _, option := range []Option{WithXDPMode(XDPGeneric), WithSocketMode(SocketCopy), WithSendMode(SendTrains), WithTuning(Tuning{BusyPollBudget: 1})} {
		_, err := Open("eth0", in, WithNetwork(NetworkUDP), option)
		refused(t, err, verbs.ErrInvalid, "mean nothing over UDP sockets")
	}
	var sink *net.UDPConn
	check(t, hosts.A.Do(func() (err error) {
		sink, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP("fd77::1"), Port: wire.UDPPort})
		return err
	}))
	_, err := Open("eth0", in, WithNetwork(NetworkUDP))
	refused(t, err, unix.EADDRINUSE, "fd77::1", "(process ")
	check(t, sink.Close())
	card, err := Open("eth0", in, WithNetwork(NetworkUDP))
	check(t, err)
	check(t, card.Close())
}
