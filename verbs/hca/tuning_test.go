// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// knob reads a setting of a host's eth0, through a sysfs of that host.
func knob(t *testing.T, ns *lab.Namespace, name string) (value string) {
	t.Helper()
	check(t, ns.Do(func() error {
		fs, err := host.MountSysfs()
		if err != nil {
			return err
		}
		defer fs.Close()
		file, err := fs.Open("class/net/eth0/" + name)
		if err != nil {
			return err
		}
		defer file.Close()
		all, err := io.ReadAll(file)
		value = strings.TrimSpace(string(all))
		return err
	}))
	return value
}

// Settings are changed while the card is open, in its own namespace, and restored.
func TestTuning(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	outside, _ := os.ReadFile("/sys/class/net/eth0/napi_defer_hard_irqs")
	for range 2 {
		d, err := Open("eth0", InNamespace(hosts.A.Path()), WithTuning(Tuning{DeferHardIRQs: 3, GROFlushTimeout: 150 * time.Microsecond}))
		check(t, err)
		if defers, timeout := knob(t, hosts.A, "napi_defer_hard_irqs"), knob(t, hosts.A, "gro_flush_timeout"); defers != "3" || timeout != "150000" {
			t.Errorf("settings are %s and %s", defers, timeout)
		}
		if other := knob(t, hosts.B, "napi_defer_hard_irqs"); other != "0" {
			t.Errorf("the other host's setting is %s", other)
		}
		check(t, d.Close())
		if defers, timeout := knob(t, hosts.A, "napi_defer_hard_irqs"), knob(t, hosts.A, "gro_flush_timeout"); defers != "0" || timeout != "0" {
			t.Errorf("settings are left at %s and %s", defers, timeout)
		}
	}
	if now, _ := os.ReadFile("/sys/class/net/eth0/napi_defer_hard_irqs"); string(now) != string(outside) {
		t.Errorf("the machine's own eth0 was tuned: %q, now %q", outside, now)
	}
}

// If a setting cannot be changed, the settings changed before it are restored.
func TestTuningRefused(t *testing.T) {
	host := labtest.Pair(t).A
	for range 8 { // the settings are changed in random order
		untouched(t, host, "eth0", func() {
			_, err := Open("eth0", InNamespace(host.Path()), WithTuning(Tuning{DeferHardIRQs: -1, GROFlushTimeout: time.Microsecond}))
			refused(t, err, unix.EINVAL, "napi_defer_hard_irqs", "tune eth0")
		})
		if value := knob(t, host, "gro_flush_timeout"); value != "0" {
			t.Fatalf("gro_flush_timeout is left at %s", value)
		}
	}
}

// Tuned devices work, and a device whose interface is deleted closes without an error.
func TestTunedTraffic(t *testing.T) {
	t.Parallel()
	l := newStations(t, WithTuning(Tuning{DeferHardIRQs: 2, GROFlushTimeout: 200 * time.Microsecond, BusyPoll: 20 * time.Microsecond, BusyPollBudget: 64}))
	l.bothWays(t, "10.77.0.1", "10.77.0.2", 1024)
	check(t, l.A.Netlink().LinkDel(eth0(t, l.A)))
	check(t, l.a.device.Close())
	check(t, l.b.device.Close())
}
