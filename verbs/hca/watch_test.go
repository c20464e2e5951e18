// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/roced/roced/bpf"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// A card whose XDP program was detached fails with that cause; it can be opened again.
func TestProgramIsTakenAway(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	s := newStation(t, open(t, hosts.A))
	s.receive(0)
	detach(t, attachedProgram(t, hosts.A, "eth0"))
	expect(t, s.wait(1), flushed(0))
	for s.event() != deviceFatal {
	}
	refused(t, s.device.Err(), verbs.ErrDeviceFatal)
	refused(t, s.device.Err(), bpf.ErrDetached, "bpftool link detach", "open the device again")
	refused(t, s.device.Err(), unix.EIO)
	check(t, s.device.Close())
	l := newStationsOn(t, hosts)
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 64)
}

// detach does what `bpftool link detach` does.
func detach(t *testing.T, program uint32) {
	t.Helper()
	links := new(link.Iterator)
	defer links.Close()
	for links.Next() {
		info, err := links.Link.Info()
		check(t, err)
		if uint32(info.Program) == program {
			check(t, links.Link.Detach())
			return
		}
	}
	t.Fatalf("program %d has no link", program)
}
