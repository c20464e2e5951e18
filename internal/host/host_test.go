package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// heard collects news, each once, until it is told to stop.
type heard struct{ list []string }

func (h *heard) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(h.list, text) {
		h.list = append(h.list, text)
	}
}

func (h *heard) Port()                  { h.note("port") }
func (h *heard) Routes()                { h.note("routes") }
func (h *heard) Missed()                { h.note("missed") }
func (h *heard) Route(p netip.Prefix)   { h.note("route %v", p) }
func (h *heard) Neighbour(a netip.Addr) { h.note("neighbour %v", a) }

func index(t testing.TB, ns *lab.Namespace, name string) int {
	t.Helper()
	n, err := ns.Index(name)
	check(t, err)
	return n
}

func follow(t *testing.T, ns *lab.Namespace) *Follower {
	t.Helper()
	var f *Follower
	check(t, ns.Do(func() (err error) { f, err = Follow(index(t, ns, "eth0")); return err }))
	t.Cleanup(f.Close)
	return f
}

func queries(t *testing.T, ns *lab.Namespace) *Queries {
	t.Helper()
	var q *Queries
	check(t, ns.Do(func() (err error) { q, err = OpenQueries(index(t, ns, "eth0")); return err }))
	t.Cleanup(q.Close)
	return q
}

// until reads news until some text is among them.
func (h *heard) until(t *testing.T, f *Follower, text string) {
	t.Helper()
	timer := time.AfterFunc(30*time.Second, f.Close)
	defer timer.Stop()
	for !slices.Contains(h.list, text) {
		if err := f.Next(h); err != nil {
			t.Fatalf("%v before %q; heard %q", err, text, h.list)
		}
	}
}

// twoHosts is a pair of hosts, of which the first has another interface.
func twoHosts(t *testing.T) *lab.Namespace {
	t.Helper()
	hosts := labtest.Pair(t)
	check(t, hosts.A.Netlink().LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "eth2"}))
	return hosts.A
}

// What changes on the interface is told, and nothing of what changes on another.
func TestFollowerTellsOfItsInterfaceOnly(t *testing.T) {
	ns := twoHosts(t)
	f := follow(t, ns)
	var h heard
	neighbour := func(dev, ip string) {
		check(t, ns.Netlink().NeighSet(&netlink.Neigh{
			LinkIndex: index(t, ns, dev), IP: net.ParseIP(ip), State: netlink.NUD_PERMANENT, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9},
		}))
	}
	for _, dev := range []string{"eth1", "eth0"} {
		link, err := ns.Netlink().LinkByName(dev)
		check(t, err)
		check(t, ns.Netlink().LinkSetMTU(link, 1400))
		neighbour(dev, map[string]string{"eth1": "10.66.0.1", "eth0": "10.77.0.66"}[dev])
	}
	h.until(t, f, "neighbour 10.77.0.66")
	if !slices.Equal(h.list, []string{"port", "neighbour 10.77.0.66"}) {
		t.Errorf("heard %q", h.list)
	}
}

// Routes are told by their destination, rules by all destinations.
func TestFollowerTellsOfRoutes(t *testing.T) {
	ns := twoHosts(t)
	f := follow(t, ns)
	var h heard
	_, dest, _ := net.ParseCIDR("10.99.0.0/16")
	_, all, _ := net.ParseCIDR("::/0")
	check(t, ns.Netlink().RouteAdd(&netlink.Route{Dst: dest, Gw: net.ParseIP("10.77.0.2")}))
	check(t, ns.Netlink().RouteAdd(&netlink.Route{Dst: all, Gw: net.ParseIP("fd77::2")}))
	rule := netlink.NewRule()
	rule.Table, rule.Family = 7, netlink.FAMILY_V4
	check(t, ns.Netlink().RuleAdd(rule))
	h.until(t, f, "routes")
	for _, want := range []string{"route 10.99.0.0/16", "route ::/0"} {
		if !slices.Contains(h.list, want) {
			t.Errorf("%q is not in %q", want, h.list)
		}
	}
}

// More news than there is room for are told of as missed.
func TestFollowerTellsOfMissedNews(t *testing.T) {
	ns := twoHosts(t)
	f := follow(t, ns)
	check(t, unix.SetsockoptInt(f.socket.GetFd(), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096))
	for i := range 100 {
		check(t, ns.AddAddress("eth0", fmt.Sprintf("10.77.1.%d/24", i)))
	}
	var h heard
	h.until(t, f, "missed")
}

// Close ends a Next that waits.
func TestCloseFollower(t *testing.T) {
	f := follow(t, twoHosts(t))
	ended := make(chan error)
	go func() { ended <- f.Next(&heard{}) }()
	f.Close()
	f.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A list of an interface's addresses is of one piece however much changes on others.
func TestAddressesAreNotInterrupted(t *testing.T) {
	ns := twoHosts(t)
	q := queries(t, ns)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = ns.AddAddress("eth1", fmt.Sprintf("10.66.%d.%d/24", i/200%200, i%200+1))
			}
		}
	}()
	for range 500 {
		list, err := q.Addresses()
		check(t, err)
		if !slices.ContainsFunc(list, func(a Address) bool { return a.IP == netip.MustParseAddr("10.77.0.1") && a.Prefix == 24 && a.Usable() }) {
			t.Fatalf("addresses %v", list)
		}
	}
	close(stop)
	<-done
}

// FuzzTell: news are the kernel's, and whatever they say, nothing else happens.
func FuzzTell(f *testing.F) {
	f.Add(uint16(unix.RTM_NEWROUTE), []byte{2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 99, 0, 0})
	f.Add(uint16(286), []byte("00000000\x19\x0000000000000000000000000")) // an attribute that ends unaligned, at the end
	f.Add(uint16(unix.RTM_NEWNEIGH), []byte{2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 1, 8, 0, 1, 0, 10, 77, 0, 2})
	f.Fuzz(func(_ *testing.T, kind uint16, data []byte) {
		m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: data}
		(&Follower{index: 3}).tell(&heard{}, m)
		if len(data) >= unix.SizeofIfAddrmsg {
			parseAddress(data)
		}
	})
}
