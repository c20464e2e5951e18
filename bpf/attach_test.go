// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

// attachIn attaches to a device in the namespace.
func attachIn(ns *lab.Namespace, s *Steering, device string, mode Mode) error {
	return ns.Do(func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return s.Attach(link.Attrs().Index, mode)
	})
}

// attachedXDP returns the device's XDP state as reported by the kernel.
func attachedXDP(t *testing.T, ns *lab.Namespace, device string) netlink.LinkXdp {
	t.Helper()
	link, err := ns.Netlink().LinkByName(device)
	must(t, err)
	if link.Attrs().Xdp == nil {
		return netlink.LinkXdp{}
	}
	return *link.Attrs().Xdp
}

func programID(t *testing.T, program *ebpf.Program) uint32 {
	t.Helper()
	info, err := program.Info()
	must(t, err)
	id, _ := info.ID()
	return uint32(id)
}

func TestAttachModes(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, test := range []struct {
		device    string
		ask, want Mode
		attached  uint32 // XDP_ATTACHED_DRV, XDP_ATTACHED_SKB: <linux/if_link.h>
	}{
		{"eth0", Auto, Native, 1},
		{"eth0", Native, Native, 1},
		{"eth0", Generic, Generic, 2},
		{"lo", Auto, Generic, 2}, // has no native XDP
		{"lo", Generic, Generic, 2},
	} {
		t.Run(fmt.Sprintf("%s on %s", test.ask, test.device), func(t *testing.T) {
			s := load(t, Config{})
			must(t, attachIn(hosts.A, s, test.device, test.ask))
			if got := s.AttachedMode(); got != test.want {
				t.Errorf("mode %s, want %s", got, test.want)
			}
			if xdp := attachedXDP(t, hosts.A, test.device); xdp.AttachMode != test.attached || xdp.ProgId != programID(t, s.objs.RocedSteer) {
				t.Errorf("kernel state: %+v", xdp)
			}
			if fell := s.Fallback() != nil; fell != (test.ask == Auto && test.want == Generic) {
				t.Errorf("fallback: %v", s.Fallback())
			}
			must(t, s.Close())
			if got := s.AttachedMode(); got != Auto {
				t.Errorf("mode %s after Close", got)
			}
			if xdp := attachedXDP(t, hosts.A, test.device); xdp.Attached {
				t.Errorf("attached after Close: %+v", xdp)
			}
		})
	}
}

func TestJumboMTUIsNative(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithMTU(9000))
	s := load(t, Config{})
	must(t, attachIn(hosts.A, s, "eth0", Native))
}

func TestNoNative(t *testing.T) {
	ns := labtest.New(t, "roced-bpf")
	s := load(t, Config{})
	if err := attachIn(ns, s, "lo", Native); !errors.Is(err, ErrNoNative) || !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("%v, want %v", err, ErrNoNative)
	}
	must(t, attachIn(ns, s, "lo", Auto))
	if err := s.Fallback(); !errors.Is(err, ErrNoNative) {
		t.Errorf("fallback %v, want %v", err, ErrNoNative)
	}
}

func TestAttachTwice(t *testing.T) {
	ns := labtest.New(t, "roced-bpf")
	s := load(t, Config{})
	must(t, attachIn(ns, s, "lo", Generic))
	if err := attachIn(ns, s, "lo", Generic); !errors.Is(err, unix.EALREADY) {
		t.Errorf("%v, want %v", err, unix.EALREADY)
	}
}

// TestAttachAfterAnother checks that Attach succeeds on an interface whose program is just being detached.
func TestAttachAfterAnother(t *testing.T) {
	ns := labtest.New(t, "roced-bpf")
	before, after := load(t, Config{}), load(t, Config{})
	must(t, attachIn(ns, before, "lo", Generic))
	closed := make(chan error)
	go func() {
		time.Sleep(attachPause)
		closed <- before.Close()
	}()
	must(t, attachIn(ns, after, "lo", Generic))
	must(t, <-closed)
}

func TestNoSuchInterface(t *testing.T) {
	ns := labtest.New(t, "roced-bpf")
	s := load(t, Config{})
	for _, index := range []int{-1, 0, 1 << 20} {
		err := ns.Do(func() error { return s.Attach(index, Auto) })
		if !errors.Is(err, unix.ENODEV) {
			t.Errorf("interface %d: %v, want %v", index, err, unix.ENODEV)
		}
	}
}

// TestOtherRefusals checks errors that no test interface returns.
func TestOtherRefusals(t *testing.T) {
	device := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}}
	for _, test := range []struct {
		errno unix.Errno
		mode  Mode
		want  []error
		not   error
	}{
		{unix.EPERM, Native, []error{ErrPermission, unix.EPERM}, ErrNoNative},
		{unix.ERANGE, Native, []error{ErrNoNative, unix.ERANGE}, ErrPermission},
		{unix.ENOMEM, Generic, []error{unix.ENOMEM}, ErrNoNative},
	} {
		err := new(Steering).explainAttach(test.errno, device, test.mode)
		for _, want := range test.want {
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if errors.Is(err, test.not) || !strings.Contains(err.Error(), "eth0") {
			t.Errorf("%v, not %v, of eth0", err, test.not)
		}
	}
}

// passAll returns a program that passes all packets.
func passAll(t testing.TB) *ebpf.Program {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pass_all", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.LoadImm(asm.R0, 2, asm.DWord), asm.Return()},
	})
	must(t, err)
	t.Cleanup(func() { program.Close() })
	return program
}

// TestFramesOnTheWire sends frames over veth, and checks that each is counted. The frames contain the VLAN tag, which a
// VLAN interface would leave to the NIC.
func TestFramesOnTheWire(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			hosts := labtest.Pair(t)
			h := newHost(t, newWorld(100, false))
			must(t, attachIn(hosts.A, h.Steering, "eth0", mode))
			ours := tag{tpidCustomer, 100}
			sendFrames(t, hosts.B,
				tagged(toOwn4(), ours),
				tagged(toGroup6(), ours),
				tagged(toOwn4().with(func(f *frame) { f.qpn = unknownQP }), ours),
				tagged(toOwn6().with(func(f *frame) { f.dst = peer6 }), ours),
				tagged(toOwn4(), tag{tpidCustomer, 101}),
				toOwn4().bytes(),
				tagged(toGroup4().with(func(f *frame) { f.qpn = knownQP }), ours),
			)
			// The last frame is counted after all earlier ones.
			waitFor(t, func() bool { return h.counters(t)[DropGroupQPN] == 1 })
			got := h.counters(t)
			if got[PassVLAN] < 2 {
				t.Errorf("%s: %d, want the 2 frames and other packets of the hosts", PassVLAN, got[PassVLAN])
			}
			got[PassVLAN] = 0
			if want := (Counters{DropNoRing: 2, DropUnknownQP: 1, PassNotOwn: 1, DropGroupQPN: 1}); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// sendFrames sends raw frames on the namespace's eth0 (packet(7)).
func sendFrames(t *testing.T, ns *lab.Namespace, frames ...[]byte) {
	t.Helper()
	must(t, ns.Do(func() error {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, frame := range frames {
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: device.Index}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// waitFor waits for a condition. The timeout is long enough for a busy machine.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waittest.Limit); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("timeout")
		}
	}
}
