package mcast

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/hack/netlab"
	"golang.org/x/sys/unix"
)

// watcher sees the IGMP and MLD that passes a link.
type watcher struct {
	testing.TB
	fd   int
	seen map[sighting]int
}

// sighting is one thing that was said about a group, or a query.
type sighting struct {
	what    string // "report", "leave", "query"
	version string // "IGMPv2", "IGMPv3", "MLDv1", "MLDv2"; queries: ""
	group   netip.Addr
}

func watch(t testing.TB, host *netlab.Namespace) *watcher {
	t.Helper()
	return watchLink(t, host, "eth0")
}

func watchLink(t testing.TB, host *netlab.Namespace, name string) *watcher {
	t.Helper()
	index, err := host.Index(name)
	check(t, err)
	w := &watcher{TB: t, seen: map[sighting]int{}}
	check(t, host.Do(func() (err error) {
		w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	}))
	t.Cleanup(func() { check(t, unix.Close(w.fd)) })
	check(t, unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20))
	network := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	check(t, unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: network, Ifindex: index}))
	return w
}

// count is how often something was said about a group, in whatever version.
func (w *watcher) count(what string, group netip.Addr) (n int) {
	w.Helper()
	w.drain()
	for s, times := range w.seen {
		if s.what == what && s.group == group {
			n += times
		}
	}
	return n
}

func (w *watcher) versions(what string, group netip.Addr) map[string]bool {
	versions := map[string]bool{}
	for s := range w.seen {
		if s.what == what && s.group == group {
			versions[s.version] = true
		}
	}
	return versions
}

// settle waits until nothing more is said about a group, and counts the reports.
func (w *watcher) settle(group netip.Addr) int {
	w.Helper()
	n, since := 0, time.Now()
	eventually(w, "end of the reports", func() bool {
		if now := w.count("report", group); now != n {
			n, since = now, time.Now()
		}
		return n > 0 && time.Since(since) > 300*time.Millisecond
	})
	return n
}

func (w *watcher) drain() {
	w.Helper()
	packet := make([]byte, 9216)
	for {
		n, err := unix.Read(w.fd, packet)
		if err == unix.EAGAIN {
			return
		}
		check(w, err)
		for _, s := range sightings(packet[:n]) {
			w.seen[s]++
		}
	}
}

// sightings reads an IP packet.
func sightings(p []byte) []sighting {
	const igmp, icmp6 = 2, 58
	switch {
	case len(p) >= 28 && p[0]>>4 == 4 && p[9] == igmp:
		return readIGMPMessage(p[4*int(p[0]&15):])
	case len(p) >= 56 && p[0]>>4 == 6 && p[6] == 0 && p[40] == icmp6: // after 8 bytes of options
		return readMLDMessage(p[48:])
	}
	return nil
}

func readIGMPMessage(m []byte) []sighting {
	group := netip.AddrFrom4([4]byte(m[4:]))
	switch m[0] {
	case 0x11:
		return []sighting{{what: "query", group: group}}
	case 0x16:
		return []sighting{{"report", "IGMPv2", group}}
	case 0x17:
		return []sighting{{"leave", "IGMPv2", group}}
	case 0x22:
		return readRecords(m, "IGMPv3", 4)
	}
	return nil
}

func readMLDMessage(m []byte) []sighting {
	switch m[0] {
	case 130:
		return []sighting{{what: "query", group: netip.AddrFrom16([16]byte(m[8:]))}}
	case 131:
		return []sighting{{"report", "MLDv1", netip.AddrFrom16([16]byte(m[8:]))}}
	case 132:
		return []sighting{{"leave", "MLDv1", netip.AddrFrom16([16]byte(m[8:]))}}
	case 143:
		return readRecords(m, "MLDv2", 16)
	}
	return nil
}

// readRecords reads the records of IGMPv3 and MLDv2, which differ in the address's length.
func readRecords(m []byte, version string, length int) (list []sighting) {
	records := m[8:]
	for range binary.BigEndian.Uint16(m[6:]) {
		group, _ := netip.AddrFromSlice(records[4 : 4+length])
		sources := int(binary.BigEndian.Uint16(records[2:]))
		switch kind := records[0]; {
		case kind == 2 || kind == 4: // is, or changes to, "exclude": a member of no chosen sources
			list = append(list, sighting{"report", version, group})
		case kind == 3 && sources == 0:
			list = append(list, sighting{"leave", version, group})
		}
		records = records[4+length*(1+sources)+4*int(records[1]):]
	}
	return list
}
