// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// uncommented returns the reference with all keys uncommented.
func uncommented() string {
	return regexp.MustCompile(`(?m)^#([[a-z])`).ReplaceAllString(Reference, "$1")
}

// TestReferenceHasEveryKeyAndItsDefault: the reference lists the keys in the order of the table. With all keys
// uncommented it is equal to an empty file with one device.
func TestReferenceHasEveryKeyAndItsDefault(t *testing.T) {
	items, mistakes := read([]byte(uncommented()))
	if mistakes != nil {
		t.Fatal(mistakes)
	}
	there := map[string]bool{}
	for _, i := range items {
		if i.header == "" {
			there[i.key] = true
		}
	}
	for _, k := range keys {
		if !there[k.name] {
			t.Errorf("the reference has no %s", k.name)
		}
	}
	got, err := Parse("reference", []byte(uncommented()))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Devices = []Device{NewDevice("eth0")}
	got.Devices[0].line = 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got reference values %+v, want defaults %+v", got, want)
	}
}

// TestReferenceAsItIs: the reference has the defaults and no device.
func TestReferenceAsItIs(t *testing.T) {
	got, err := Parse("reference", []byte(Reference))
	if err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("%+v, %v", got, err)
	}
}

const full = `
log_level = "debug"
state_dir = "/tmp/x"
socket = { path = "/tmp/s", mode = "0666", group = "rdma" }
access.privileged_group = "0"
[limits]
qp = 12
memory = "3MiB"
[metrics]
listen = "[::1]:9464"
[[device]]
interface = "eth0"
name = "roce0"
rdma_mtu = 1_024
xdp = "generic"
[device.tuning]
busy_poll = "1.5ms"
busy_poll_budget = 0x10
[[device]]
interface = "eth1"
spin = "0s"
tuning = { defer_hard_irqs = 2 }
`

func TestParse(t *testing.T) {
	c, err := Parse("f", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.LogLevel, want.StateDir = slog.LevelDebug, "/tmp/x"
	want.Socket = Socket{"/tmp/s", fs.FileMode(0o666), "rdma"}
	want.Access.PrivilegedGroup = "0"
	want.Limits.QPs, want.Limits.Memory = 12, 3<<20
	want.Metrics.Listen = "[::1]:9464"
	first, second := NewDevice("eth0"), NewDevice("eth1")
	first.Name, first.RDMAMTU, first.XDP, first.line = "roce0", 1024, hca.XDPGeneric, 11
	first.Tuning = hca.Tuning{BusyPoll: 1500 * time.Microsecond, BusyPollBudget: 16}
	second.Spin, second.Tuning.DeferHardIRQs, second.line = 0, 2, 19
	want.Devices = []Device{first, second}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestErrors(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"x", `f:1:1: expected`},
		{"log_level = \"info\"\nlog_level = \"info\"", "f:2:1: log_level: "},
		{"[limits]\nqp = 1\n[limits]\nmr = 1", "f:3:2: limits: "},
		{"loglevel = \"info\"", `f:1:1: loglevel: unknown key; did you mean log_level?`},
		{"[limits]\nqps = 1", `f:2:1: limits.qps: unknown key; did you mean limits.qp?`},
		{"[limits]\nLimits = 1", `f:2:1: limits.Limits: unknown key`},
		{"QP = 1", `f:1:1: QP: unknown key; roced config example`},
		{"qp = 1", `did you mean limits.qp?`},
		{"[limits]\nQP = 1", `f:2:1: limits.QP: unknown key; did you mean limits.`},
		{"log_level = 3", `f:1:1: log_level: invalid number 3; use one of "debug", "info", "warn", "error"`},
		{"log_level = \"loud\"", `invalid string "loud"; use one of "debug"`},
		{"log_level = \"INFO\"", `use one of "debug"`},
		{"log_level = 1979-05-27", `invalid type localdate; use one of`},
		{"log_level = [\"info\"]", `invalid type array`},
		{"state_dir = \"run\"", `use a directory`},
		{"[socket]\npath = \"roced.sock\"", `f:2:1: socket.path: invalid string "roced.sock"; use an absolute path`},
		{"[socket]\npath = \"/" + strings.Repeat("x", 107) + `"`, `use an absolute path of at most 107 bytes`},
		{"[socket]\nmode = 660", `socket.mode: invalid number 660; use permissions in octal as a string, such as "0660"`},
		{"[socket]\nmode = \"0888\"", `permissions in octal`},
		{"[socket]\nmode = \"1777\"", `permissions in octal`},
		{"[limits]\nqp = 0", `f:2:1: limits.qp: invalid number 0; use a number from 1 to`},
		{"[limits.container]\nqp = -1", `f:2:1: limits.container.qp: invalid number -1; use a number from 0 to`},
		{"[limits.container]\ntotal_memory = 1", `limits.container.total_memory: unknown key`},
		{"[limits]\nqp = -1", `use a number from 1 to`},
		{"[limits]\nqp = 99999999999999999999", `f:2:6: `},
		{"[limits]\nqp = 1.5", `invalid type float; use a number from 1`},
		{"[limits]\nqp = true", `invalid value true; use a number`},
		{"[limits]\nqp = \"many\"", `invalid string "many"; use a number`},
		{"[limits]\nmemory = \"1GB\"", `invalid string "1GB"; use a number of bytes`},
		{"[limits]\nmemory = \"GiB\"", `use a number of bytes`},
		{"[limits]\nmemory = 4096", `from 1048576 to`},
		{"[limits]\nmemory = \"4294967295TiB\"", `use a number of bytes`},
		{"[metrics]\nlisten = \"9464\"", `metrics.listen: invalid string "9464"; use "unix:/run`},
		{"[metrics]\nlisten = \"unix:metrics\"", `use "unix:/run`},
		{"[metrics]\nlisten = \":http-alt\"", `use "unix:/run`},
		{"[device]\ninterface = \"eth0\"", `f:1:2: device: invalid table header: use [[device]]`},
		{"device = \"eth0\"", `f:1:1: device: is a table: write [[device]] on a separate line`},
		{"device = [{interface = \"eth0\"}]", `device: is a table: write [[device]]`},
		{"[[limits]]\nqp = 1", `f:1:3: limits: invalid table header: use [limits]`},
		{"[limit]\nqp = 1", `f:1:2: limit: unknown table; use [socket], [access], [limits], [limits.container], [metrics], [namespaces], [[device]], [device.dcqcn], [device.tuning]`},
		{"[device.tuning]\nbusy_poll = \"1s\"", `is a table of a device: add [[device]] before it`},
		{"device.interface = \"eth0\"", `is a key of a device`},
		{"[[device]]", `f:1:1: device: missing interface`},
		{"[[device]]\ninterface = \"a/b\"", `"ip link" lists them`},
		{"[[device]]\ninterface = \"sixteen-letters-\"", `the name of a network interface`},
		{"[[device]]\ninterface = \"eth0\"\n[[device]]\ninterface = \"eth0\"", `f:3:1: device.interface: "eth0" is already used by the device of line 1`},
		{"[[device]]\ninterface = \"eth0\"\n[[device]]\ninterface = \"eth1\"\nname = \"eth0\"", `f:3:1: device.name: "eth0" is already the name of the device of line 1`},
		{"[[device]]\ninterface = \"eth0\"\nname = \"a b\"", `letters, digits`},
		{"[[device]]\ninterface = \"eth0\"\nspin = 20", `f:3:1: device.spin: invalid number 20; use a duration from 0s to 1s with its unit, such as "20us"`},
		{"[[device]]\ninterface = \"eth0\"\nspin = \"2s\"", `a duration from 0s to 1s`},
		{"[[device]]\ninterface = \"eth0\"\nspin = \"-1us\"", `a duration from 0s`},
		{"[[device]]\ninterface = \"eth0\"\nrdma_mtu = 1500", `use one of 0, 256, 512, 1024, 2048, 4096`},
		{"[[device]]\ninterface = \"eth0\"\nframes = 100", `use one of 0, 64, 128`},
		{"[[device]]\ninterface = \"eth0\"\nxpd = \"auto\"", `f:3:1: device.xpd: unknown key; did you mean device.xdp?`},
		{"[[device]]\ninterface = \"eth0\"\nxdp = \"offload\"", `use one of "auto", "native", "generic"`},
		{"[[device]]\ninterface = \"eth0\"\nxdp = \"generic\"\naf_xdp = \"zero-copy\"", `device.af_xdp: "zero-copy" requires native XDP`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"tcp\"", `use one of "auto", "xdp", "udp"`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\nxdp = \"generic\"", `f:1:1: device.xdp: requires XDP and cannot be combined with network = "udp"`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\naf_xdp = \"copy\"", `device.af_xdp: requires XDP`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\nsend = \"trains\"", `device.send: requires XDP`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\nframes = 64", `device.frames: requires XDP`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\nworkers = 2", `device.workers: requires XDP`},
		{"[[device]]\ninterface = \"eth0\"\nworkers = 9", `use a number from 1 to 8`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\ntuning.busy_poll = \"20us\"", `device.tuning: requires XDP`},
		{"[[device]]\ninterface = \"eth0\"\nnetwork = \"udp\"\nmembership = \"netlink\"", `device.membership: requires XDP`},
		{"[[device]]\ninterface = \"eth0\"\nsend = \"trains\"\naf_xdp = \"zero-copy\"", `"zero-copy" cannot be combined with send = "trains"`},
		{"[[device]]\ninterface = \"eth0\"\ncongestion = \"on\"", `use one of "answer", "mark", "off"`},
		{"[[device]]\ninterface = \"eth0\"\ndcqcn.min_rate = 50000", `f:1:1: device.dcqcn.min_rate: min_rate must be less than line_rate: 50000, 40000`},
	} {
		c, err := Parse("f", []byte(row.text))
		if err == nil || c != nil || !strings.Contains(err.Error(), row.want) || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("%q: %+v\n%v\nwant %s", row.text, c, err, row.want)
		}
	}
}

// TestAllErrorsAtOnce: all errors are reported, in line order.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Parse("f", []byte("[[device]]\n[limits]\nqp = 0\nmr = 0\n[other]\nx = 1\n[metrics]\nlistn = \"\"\n"))
	var list Errors
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	var lines []int
	for _, m := range list {
		lines = append(lines, m.Line)
	}
	if !reflect.DeepEqual(lines, []int{1, 3, 4, 5, 8}) {
		t.Errorf("%v", err)
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load("/nonexistent/roced.toml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	path := filepath.Join(t.TempDir(), "roced.toml")
	if err := os.WriteFile(path, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path); err != nil || len(c.Devices) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// FuzzParse: Parse never panics, and errors are Errors with texts.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{full, Reference, uncommented(), "a = {b = [{c = 1}]}", "[[device]]\ndevice.x = 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", []byte(text))
		var list Errors
		switch {
		case err == nil && c == nil:
			t.Error("neither a configuration nor an error")
		case err != nil && (!errors.As(err, &list) || len(list) == 0 || list[0].Text == ""):
			t.Errorf("%#v", err)
		}
	})
}

// TestFileIsTooLong: an endless file is rejected without reading all of it.
func TestFileIsTooLong(t *testing.T) {
	if _, err := Load("/dev/zero"); !errors.Is(err, unix.EFBIG) {
		t.Error(err)
	}
}
