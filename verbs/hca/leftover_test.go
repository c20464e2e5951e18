// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/journal"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
)

// journaled returns the entries of the journals of a kind in a directory.
func journaled(t *testing.T, dir, kind string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, kind+"-*"))
	check(t, err)
	all := ""
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(t, err)
		all += string(text)
	}
	return strings.Join(strings.Fields(all), " ")
}

// A card's changes to the host are journaled while they last.
func TestChangesAreJournaled(t *testing.T) {
	t.Parallel()
	hosts, dir := labtest.Pair(t), t.TempDir()
	s := newStation(t, open(t, hosts.A, WithStateDir(dir), WithTuning(Tuning{DeferHardIRQs: 3})))
	first, second := s.ah("10.77.0.2"), s.ah("fd77::2")
	if got := journaled(t, dir, "neighbours"); got != "10.77.0.2 fd77::2" {
		t.Errorf("neighbours %q", got)
	}
	check(t, first.Close())
	eventually(t, "the first path's end", func() bool { return journaled(t, dir, "neighbours") == "fd77::2" })
	check(t, second.Close())
	if got := journaled(t, dir, "knobs"); got != "napi_defer_hard_irqs 0" {
		t.Errorf("knobs %q", got)
	}
	s.ah("10.77.0.2")
	check(t, s.device.Close())
	for _, kind := range []string{"neighbours", "knobs"} {
		if got := journaled(t, dir, kind); got != "" {
			t.Errorf("%s %q after Close", kind, got)
		}
	}
}

// The next process undoes the leftovers of a killed one, except entries that others have changed since.
func TestLeftoversAreUndone(t *testing.T) {
	hosts, dir := labtest.Pair(t), t.TempDir()
	index := eth0(t, hosts.A).Attrs().Index
	manage := func(ip string, flags int) {
		check(t, hosts.A.Netlink().NeighSet(&netlink.Neigh{LinkIndex: index, IP: net.ParseIP(ip), Flags: netlink.NTF_USE | flags, FlagsExt: netlink.NTF_EXT_MANAGED}))
	}
	manage("10.77.0.2", 0)
	manage("fd77::2", 0)
	manage("10.77.0.3", netlink.NTF_EXT_LEARNED)
	manage("fd77::ab:99", 0) // does not respond
	manage("10.77.0.4", 0)   // the administrator's, in no journal
	check(t, hosts.A.Do(func() error {
		fs, err := host.MountSysfs()
		if err != nil {
			return err
		}
		defer fs.Close()
		if err := fs.Write("class/net/eth0/napi_defer_hard_irqs", "7"); err != nil {
			return err
		}
		here, err := journal.ThisNamespace()
		for kind, lines := range map[string][]string{
			"neighbours": {"10.77.0.2", "fd77::2", "10.77.0.3", "10.77.0.99", "fd77::ab:99", "nonsense"},
			"knobs":      {"napi_defer_hard_irqs 2", "../../../../tmp/x 1", "nonsense"},
		} {
			killed := journal.New(dir, kind, journal.Place{Namespace: here, Index: index})
			for _, line := range lines {
				check(t, killed.Add(line))
			}
			check(t, killed.Close()) // as the kernel does at the end of the process
		}
		return err
	}))
	open(t, hosts.A, WithStateDir(dir))
	for ip, want := range map[string]bool{"10.77.0.2": false, "fd77::2": false, "fd77::ab:99": false, "10.77.0.3": true, "10.77.0.4": true} {
		if managed(t, hosts.A, ip) != want {
			t.Errorf("%s managed: %v", ip, !want)
		}
	}
	for _, network := range []string{"fd77::ab:99/128", "ff02::1:ffab:99/128"} {
		if n := silentEntries(t, hosts.A, network); n != 0 {
			t.Errorf("%d entries of %s", n, network)
		}
	}
	if value := knob(t, hosts.A, "napi_defer_hard_irqs"); value != "2" {
		t.Errorf("the setting is %s, want 2", value)
	}
	if got := journaled(t, dir, "neighbours") + journaled(t, dir, "knobs"); got != "" {
		t.Errorf("journal entries are left: %q", got)
	}
}

// Deleting the interface removes the changes on it: nothing is left to undo.
func TestNothingIsJournaledAfterTheInterface(t *testing.T) {
	t.Parallel()
	hosts, dir := labtest.Pair(t), t.TempDir()
	s := newStation(t, open(t, hosts.A, WithStateDir(dir), WithTuning(Tuning{DeferHardIRQs: 3})))
	s.ah("10.77.0.2")
	check(t, hosts.A.Netlink().LinkDel(eth0(t, hosts.A)))
	s.awaitFatal()
	check(t, s.device.Close())
	for _, kind := range []string{"neighbours", "knobs"} {
		if got := journaled(t, dir, kind); got != "" {
			t.Errorf("%s %q after Close", kind, got)
		}
	}
}
