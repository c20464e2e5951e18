// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"net"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

func TestSpreadByPort(t *testing.T) {
	pair := labtest.Pair(t, lab.WithQueues(2))
	end, err := pair.A.SpreadByPort("eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	countByQueue(t, pair.B)
	before := arrived(t, pair.B)
	for _, to := range []string{"10.77.0.2", "fd77::2"} {
		for port, times := range map[int]int{20000: 300, 20001: 500} {
			err := pair.A.Do(func() error { return sendFrom(port, to, times) })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for queue, sent := range []uint64{600, 1000} {
		n := uint64(0)
		for end := time.Now().Add(waittest.Limit); n < sent && time.Now().Before(end); { // the kernel updates the counters at the end of a poll
			n = arrived(t, pair.B)[queue] - before[queue]
		}
		if n < sent || n > sent+50 { // up to 50 packets for neighbour and router discovery
			t.Errorf("queue %d had %d packets, want %d", queue, n, sent)
		}
	}
	if _, err := pair.A.SpreadByPort("nothing"); err == nil {
		t.Error("no error without an interface")
	}
}

// countByQueue attaches an XDP program that passes all packets, because a veth counts packets by queue only with a
// program.
func countByQueue(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pass.Close() })
	eth0, err := ns.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		attached, err := link.AttachXDP(link.XDPOptions{Program: pass, Interface: eth0.Attrs().Index, Flags: link.XDPDriverMode})
		if err == nil {
			t.Cleanup(func() { attached.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func arrived(t *testing.T, ns *lab.Namespace) (packets []uint64) {
	t.Helper()
	packets, err := ns.ArrivedByQueue("eth0")
	if err != nil {
		t.Fatal(err)
	}
	return packets
}

// sendFrom sends from a socket that is not connected, so it receives no error if the port is closed.
func sendFrom(port int, to string, times int) error {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
	if err != nil {
		return err
	}
	defer conn.Close()
	for range times {
		if _, err := conn.WriteToUDP([]byte("x"), &net.UDPAddr{IP: net.ParseIP(to), Port: 9}); err != nil {
			return err
		}
	}
	return nil
}
