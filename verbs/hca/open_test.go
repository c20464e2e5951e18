// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// untouched checks that a failed Open leaked no descriptor and no goroutine, and left the interface's XDP program
// unchanged.
func untouched(t *testing.T, host *lab.Namespace, name string, attempt func()) {
	t.Helper()
	program, fds, routines := attachedProgram(t, host, name), labtest.Descriptors(), settledGoroutines(t)
	attempt()
	if now := attachedProgram(t, host, name); now != program {
		t.Errorf("got another XDP program: %d before, %d now", program, now)
	}
	eventually(t, "the end of descriptors", func() bool { return len(labtest.Leaked(fds, labtest.Descriptors())) == 0 })
	quietGoroutines(t, routines)
}

// settledGoroutines returns the number of goroutines when it no longer changes.
func settledGoroutines(t *testing.T) (n int) {
	t.Helper()
	for same := 0; same < 10; same++ {
		if now := runtime.NumGoroutine(); now != n {
			n, same = now, 0
		}
		time.Sleep(time.Millisecond)
	}
	return n
}

// attachedProgram returns the id of an interface's XDP program, or 0.
func attachedProgram(t *testing.T, host *lab.Namespace, name string) uint32 {
	t.Helper()
	link, err := host.Netlink().LinkByName(name)
	if err != nil || link.Attrs().Xdp == nil || !link.Attrs().Xdp.Attached {
		return 0
	}
	return link.Attrs().Xdp.ProgId
}

// All reasons for which an interface cannot be opened: the errno, and an error that names the remedy.
func TestOpenRefuses(t *testing.T) {
	hosts := labtest.Pair(t)
	a := hosts.A
	plain := filepath.Join(t.TempDir(), "plain")
	check(t, os.WriteFile(plain, nil, 0o600))
	rows := []struct {
		name    string
		device  string
		options []Option
		want    error
		says    []string
	}{
		{"no such interface", "eth7", nil, unix.ENODEV, []string{`no interface "eth7"`, "ip link"}},
		{"empty name", "", nil, unix.ENODEV, []string{`no interface ""`}},
		{"loopback", "lo", nil, unix.EOPNOTSUPP, []string{"loopback"}},
		{"down", "down0", nil, unix.ENETDOWN, []string{"ip link set dev down0 up"}},
		{"MTU too small", "small0", nil, unix.EINVAL, []string{"MTU 335", "needs 336", "ip link set dev small0 mtu"}},
		{"RDMA MTU that does not fit", "eth0", []Option{WithMTU(wire.MTU2048)}, unix.EINVAL, []string{"RDMA MTU 2048", "1500 allows 1024", "mtu 2128"}},
		{"RDMA MTU 4096 that does not fit", "eth0", []Option{WithMTU(wire.MTU4096)}, unix.EINVAL, []string{"mtu 4176"}},
		{"no RDMA MTU", "eth0", []Option{WithMTU(6)}, unix.EINVAL, []string{"MTU256 (1) to MTU4096 (5)"}},
		{"no native XDP", "bridge0", []Option{WithXDPMode(XDPNative)}, bpf.ErrNoNative, []string{"native XDP", "bridge0"}},
		{"no zero-copy", "eth0", []Option{WithSocketMode(SocketZeroCopy)}, unix.EOPNOTSUPP, []string{"zero-copy", "queue 0"}},
		{"ring size", "eth0", []Option{WithFrames(100)}, unix.EINVAL, []string{"100", "power of two"}},
		{"nonexistent namespace", "eth0", []Option{InNamespace("/run/netns/nowhere")}, unix.ENOENT, []string{"/run/netns/nowhere", "ip netns list"}},
		{"file that is not a namespace", "eth0", []Option{InNamespace(plain)}, unix.EINVAL, []string{plain, "not the file of a network namespace"}},
	}
	addLink(t, a, &netlink.Bridge{LinkAttrs: attrs("bridge0", 1500)}, true)
	addLink(t, a, netlink.NewVeth(attrs("down0", 1500)), false)
	addLink(t, a, netlink.NewVeth(attrs("small0", 335)), true)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			untouched(t, a, row.device, func() {
				d, err := Open(row.device, append([]Option{InNamespace(a.Path())}, row.options...)...)
				refused(t, err, row.want, append(row.says, "open "+row.device)...)
				if err == nil {
					check(t, d.Close())
				}
			})
		})
	}
	// Afterwards the interface still works.
	l := newStationsOn(t, hosts)
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 64)
}

func attrs(name string, mtu int) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	return a
}

func addLink(t *testing.T, host *lab.Namespace, link netlink.Link, up bool) {
	t.Helper()
	if veth, ok := link.(*netlink.Veth); ok {
		veth.PeerName, veth.PeerMTU = veth.Name+"p", uint32(veth.MTU)
	}
	check(t, host.Netlink().LinkAdd(link))
	if up {
		check(t, host.Netlink().LinkSetUp(link))
	}
}

// Another XDP program is named by its id, with the remedy; so is roced's own.
func TestOpenWhereAnotherProgramIs(t *testing.T) {
	hosts := labtest.Pair(t)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Name: "somebody_elses", License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R0, 2), asm.Return(), // XDP_PASS
	}})
	check(t, err)
	defer program.Close()
	attach := func(fd int) {
		check(t, hosts.A.Do(func() error {
			return netlink.LinkSetXdpFdWithFlags(eth0(t, hosts.A), fd, nl.XDP_FLAGS_DRV_MODE)
		}))
	}
	attach(program.FD())
	again := func(says ...string) {
		t.Helper()
		untouched(t, hosts.A, "eth0", func() {
			_, err := Open("eth0", InNamespace(hosts.A.Path()))
			refused(t, err, unix.EBUSY, append(says, "program id ", "eth0")...)
		})
	}
	again("somebody_elses", "ip link set dev eth0 xdp off")
	attach(-1)
	open(t, hosts.A)
	name, err := os.ReadFile("/proc/self/comm")
	check(t, err)
	again("a program of roced, held by process", "("+strings.TrimSpace(string(name))+")", "type macvlan")
}

// Closing restores the interface, and it can be reopened immediately although the kernel releases a queue a moment
// later.
func TestCloseAndOpenAgain(t *testing.T) {
	hosts := labtest.Pair(t)
	untouched(t, hosts.A, "eth0", func() {
		for range 10 {
			d, err := Open("eth0", InNamespace(hosts.A.Path()))
			check(t, err)
			if attachedProgram(t, hosts.A, "eth0") == 0 {
				t.Fatal("no program while the device is open")
			}
			check(t, d.Close())
		}
	})
}

// Without InNamespace, the namespace is the calling thread's.
func TestOpenInThreadsNamespace(t *testing.T) {
	hosts := labtest.Pair(t)
	check(t, hosts.A.Do(func() error {
		d, err := Open("eth0")
		if err != nil {
			return err
		}
		if attachedProgram(t, hosts.A, "eth0") == 0 {
			t.Error("the device is not in the thread's namespace")
		}
		return d.Close()
	}))
}

// While a card is open, all traffic except RoCE still flows.
func TestOtherTraffic(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	before := counts(t, l.b.device)
	for _, address := range []string{"10.77.0.2", "fd77::2"} {
		sink := listenUDP(t, l.B, address)
		sendUDP(t, l.A, sink, "to a socket")
		buffer := make([]byte, 64)
		check(t, sink.SetReadDeadline(time.Now().Add(waitTimeout)))
		n, err := sink.Read(buffer)
		if err != nil || string(buffer[:n]) != "to a socket" {
			t.Errorf("%s: %q, %v", address, buffer[:n], err)
		}
	}
	ping(t, l.A, "10.77.0.2")
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 64)
	got := moved(before, counts(t, l.b.device))
	if got[noise] < 3 || len(dropsOf(l.b.device)) != 0 {
		t.Errorf("counters: %v", got)
	}
}

func listenUDP(t *testing.T, host *lab.Namespace, address string) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	check(t, host.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
		return err
	}))
	t.Cleanup(func() { check(t, conn.Close()) })
	return conn
}

func sendUDP(t *testing.T, host *lab.Namespace, to *net.UDPConn, text string) {
	t.Helper()
	check(t, host.Do(func() error {
		conn, err := net.DialUDP("udp", nil, to.LocalAddr().(*net.UDPAddr))
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte(text))
		return errors.Join(err, conn.Close())
	}))
}

// ping sends an ICMP echo request and waits for the reply.
func ping(t *testing.T, host *lab.Namespace, address string) {
	t.Helper()
	check(t, host.Do(func() error {
		conn, err := net.Dial("ip4:icmp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		request := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0} // type, code, checksum, id, sequence
		if _, err := conn.Write(request); err != nil {
			return err
		}
		answer := make([]byte, 64)
		if err := conn.SetReadDeadline(time.Now().Add(waitTimeout)); err != nil {
			return err
		}
		_, err = conn.Read(answer)
		return err
	}))
}
