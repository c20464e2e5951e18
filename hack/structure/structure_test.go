// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// allowed lists the imports that each package may have within this module. A new import is a decision:
// add it here first. Packages in hack may import all others, and no package imports them.
var allowed = map[string][]string{
	".":                       {},
	"bpf":                     {"internal/capability", "internal/errno"},
	"internal/capability":     {},
	"internal/deadline":       {},
	"internal/errno":          {},
	"internal/errtest":        {},
	"internal/fault":          {},
	"internal/futex":          {},
	"internal/host":           {"internal/errno", "internal/journal"},
	"internal/journal":        {"internal/kernel"},
	"internal/kernel":         {},
	"internal/lab":            {"internal/kernel"},
	"internal/litmus":         {},
	"internal/mounts":         {},
	"internal/needs":          {"internal/tools"},
	"internal/pcapng":         {},
	"internal/release":        {},
	"internal/t10":            {},
	"internal/timers":         {},
	"internal/tools":          {},
	"internal/unit":           {},
	"internal/waittest":       {},
	"internal/lab/capture":    {"datapath/wire", "internal/lab"},
	"internal/lab/labtest":    {"internal/lab", "internal/needs"},
	"datapath/wire":           {},
	"datapath/wire/wiretest":  {},
	"datapath/xsk":            {},
	"verbs/ib":                {"datapath/wire"},
	"datapath/ring":           {"datapath/wire", "verbs/ib"},
	"verbs/provider":          {"datapath/ring", "datapath/wire", "verbs/ib"},
	"verbs":                   {"datapath/ring", "datapath/wire", "internal/errno", "verbs/ib", "verbs/internal/inside", "verbs/provider"},
	"verbs/kernel":            {"datapath/ring", "datapath/wire", "verbs", "verbs/ib", "verbs/internal/inside", "verbs/provider"},
	"verbs/compat":            {"verbs", "verbs/ib", "verbs/internal/inside"},
	"verbs/internal/inside":   {"datapath/wire", "verbs/ib", "verbs/provider"},
	"verbs/ud":                {"internal/deadline", "internal/errno", "verbs", "verbs/internal/transport"},
	"verbs/netdev":            {"verbs", "verbs/ud"},
	"verbs/rc":                {"internal/deadline", "internal/errno", "verbs", "verbs/cm", "verbs/internal/transport"},
	"verbs/proto":             {"datapath/ring", "datapath/wire", "internal/errno", "verbs", "verbs/ib", "verbs/provider"},
	"verbs/client":            {"datapath/ring", "internal/unit", "verbs", "verbs/proto", "verbs/provider"},
	"verbs/server":            {"internal/fault", "verbs", "verbs/hca", "verbs/proto", "verbs/provider", "verbs/server/admin", "verbs/server/memory", "verbs/server/peer"},
	"verbs/server/admin":      {"internal/pcapng", "verbs", "verbs/hca", "verbs/hca/handles", "verbs/proto", "verbs/provider", "verbs/server/peer"},
	"verbs/server/memory":     {"internal/kernel", "verbs", "verbs/hca", "verbs/hca/quota", "verbs/proto", "verbs/server/peer"},
	"verbs/server/peer":       {"verbs", "verbs/hca", "verbs/hca/quota", "verbs/proto"},
	"verbs/c/ctest":           {},
	"verbs/cm":                {"datapath/wire", "verbs", "verbs/ib", "verbs/internal/inside", "verbs/provider"},
	"verbs/verbstest":         {"verbs", "verbs/cm", "verbs/compat", "verbs/ib", "verbs/kernel", "verbs/provider", "verbs/verbstest/hostile", "verbs/verbstest/ids", "verbs/verbstest/rig"},
	"verbs/verbstest/ids":     {"verbs", "verbs/cm", "verbs/ib", "verbs/internal/inside", "verbs/provider", "verbs/verbstest/rig"},
	"verbs/verbstest/hostile": {"datapath/wire", "verbs", "verbs/cm", "verbs/ib", "verbs/kernel", "verbs/provider", "verbs/verbstest/rig"},
	"verbs/verbstest/model":   {"verbs", "verbs/cm", "verbs/kernel", "verbs/provider", "verbs/verbstest/rig"},
	"verbs/verbstest/rig":     {"internal/errtest", "internal/waittest", "verbs", "verbs/cm", "verbs/kernel", "verbs/provider"},
	"mcast":                   {"datapath/wire", "internal/errno"},
	"mcast/membership":        {"internal/errno", "internal/host", "internal/journal"},
	"datapath/link":           {"datapath/wire", "datapath/xsk", "internal/kernel"},
	"datapath/link/udplink":   {"datapath/link", "datapath/wire", "internal/errno"},
	"datapath":                {"datapath/conn", "datapath/conn/dcqcn", "datapath/flight", "datapath/link", "datapath/peers", "datapath/region", "datapath/ring", "datapath/runner", "datapath/wire", "internal/futex", "internal/timers", "verbs/ib"},
	"datapath/peers":          {"datapath/wire"},
	"datapath/region":         {"datapath/ring", "internal/t10", "verbs/ib"},
	"datapath/conn":           {"datapath/flight", "datapath/ring", "datapath/wire", "verbs/ib"},
	"datapath/conn/dcqcn":     {},
	"datapath/flight":         {"internal/timers"},
	"datapath/runner":         {},
	"verbs/hca":               {"datapath", "datapath/conn/dcqcn", "datapath/link", "datapath/region", "datapath/ring", "datapath/wire", "datapath/xsk", "internal/capability", "internal/errno", "internal/fault", "internal/futex", "internal/host", "internal/release", "mcast", "verbs", "verbs/hca/cm", "verbs/hca/handles", "verbs/hca/ids", "verbs/hca/memnet", "verbs/hca/network", "verbs/hca/nic", "verbs/hca/paths", "verbs/hca/port", "verbs/hca/quota", "verbs/hca/udpnet", "verbs/ib", "verbs/kernel", "verbs/provider"},
	"verbs/hca/cm":            {"datapath/wire", "internal/timers", "verbs", "verbs/ib"},
	"verbs/hca/handles":       {"datapath", "datapath/wire", "internal/errno", "verbs", "verbs/hca/quota", "verbs/provider"},
	"verbs/hca/ids":           {"datapath/wire", "internal/errno", "internal/fault", "verbs", "verbs/hca/cm", "verbs/hca/handles", "verbs/hca/network", "verbs/hca/paths", "verbs/hca/quota", "verbs/ib", "verbs/provider"},
	"verbs/hca/memnet":        {"datapath/link", "datapath/wire", "internal/host", "verbs", "verbs/hca/network"},
	"verbs/hca/network":       {"datapath/link", "datapath/wire", "datapath/xsk", "internal/errno", "internal/host", "verbs"},
	"verbs/hca/nic":           {"bpf", "datapath/link", "datapath/wire", "datapath/xsk", "internal/capability", "internal/host", "internal/journal", "mcast/membership", "verbs", "verbs/hca/network"},
	"verbs/hca/udpnet":        {"datapath/link", "datapath/link/udplink", "datapath/wire", "datapath/xsk", "internal/host", "verbs", "verbs/hca/network"},
	"verbs/hca/paths":         {"datapath", "datapath/wire", "internal/host", "verbs", "verbs/hca/network", "verbs/hca/quota"},
	"verbs/hca/port":          {"datapath/wire", "internal/host", "mcast", "verbs", "verbs/hca/network", "verbs/hca/paths", "verbs/ib"},
	"verbs/hca/quota":         {"verbs"},

	// Under verbs/ud and verbs/rc.
	"verbs/internal/transport": {"internal/errno", "verbs"},

	// A module of its own, for Kubernetes.
	"deploy/kubernetes/cmd/roced-device-plugin": {"deploy/kubernetes/internal/deviceplugin", "deploy/kubernetes/internal/libraries"},
	"deploy/kubernetes/cmd/roced-dra":           {"deploy/kubernetes/internal/dra", "deploy/kubernetes/internal/libraries"},
	"deploy/kubernetes/internal/container":      {},
	"deploy/kubernetes/internal/deviceplugin":   {"deploy/kubernetes/internal/container", "deploy/kubernetes/internal/service"},
	"deploy/kubernetes/internal/dra":            {"deploy/kubernetes/internal/container", "deploy/kubernetes/internal/service"},
	"deploy/kubernetes/internal/libraries":      {},
	"deploy/kubernetes/internal/rig":            {"deploy/kubernetes/internal/service", "internal/waittest"},
	"deploy/kubernetes/internal/service":        {"verbs", "verbs/proto"},
	"deploy/kubernetes/manifests":               {},

	"cmd/roced":                    {"cmd/roced/cdi", "cmd/roced/config", "cmd/roced/demo", "cmd/roced/doctor", "cmd/roced/dump", "cmd/roced/exec", "cmd/roced/internal/cli", "cmd/roced/man", "cmd/roced/mcast", "cmd/roced/monitor", "cmd/roced/netdev", "cmd/roced/perf", "cmd/roced/ping", "cmd/roced/run", "cmd/roced/show", "cmd/roced/socket", "cmd/roced/version"},
	"cmd/roced/cdi":                {"cmd/roced/internal/cli", "cmd/roced/internal/daemon", "cmd/roced/internal/libraries", "verbs/client"},
	"cmd/roced/socket":             {"cmd/roced/internal/cli", "cmd/roced/internal/daemon", "verbs/client"},
	"cmd/roced/config":             {"cmd/roced/internal/cli", "cmd/roced/internal/config"},
	"cmd/roced/demo":               {"cmd/roced/internal/card", "cmd/roced/internal/cli", "datapath/wire", "internal/capability", "internal/kernel", "internal/lab", "internal/lab/capture", "verbs", "verbs/hca", "verbs/hca/memnet", "verbs/server", "verbs/server/memory", "verbs/ud"},
	"cmd/roced/doctor":             {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/daemon", "internal/capability", "internal/host", "internal/kernel", "internal/unit", "verbs", "verbs/client", "verbs/hca"},
	"cmd/roced/dump":               {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/daemon", "mcast", "verbs", "verbs/proto"},
	"cmd/roced/exec":               {"cmd/roced/internal/cli", "cmd/roced/internal/config", "cmd/roced/internal/daemon", "cmd/roced/internal/libraries", "cmd/roced/internal/loopback", "cmd/roced/internal/record", "internal/mounts", "verbs", "verbs/client", "verbs/compat", "verbs/hca", "verbs/ib", "verbs/server", "verbs/server/memory"},
	"cmd/roced/man":                {"cmd/roced/internal/cli", "cmd/roced/internal/manual"},
	"cmd/roced/mcast":              {"cmd/roced/internal/card", "cmd/roced/internal/cli", "mcast", "verbs", "verbs/cm", "verbs/hca", "verbs/ud"},
	"cmd/roced/monitor":            {"cmd/roced/internal/cli", "cmd/roced/internal/daemon", "verbs/proto"},
	"cmd/roced/netdev":             {"cmd/roced/internal/card", "cmd/roced/internal/cli", "verbs", "verbs/hca", "verbs/netdev"},
	"cmd/roced/perf":               {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "cmd/roced/perf/compatible", "cmd/roced/perf/options", "cmd/roced/perf/own", "cmd/roced/perf/perftest", "cmd/roced/perf/traffic"},
	"cmd/roced/perf/compatible":    {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "cmd/roced/internal/pingpong", "cmd/roced/perf/connection", "cmd/roced/perf/options", "cmd/roced/perf/perftest", "cmd/roced/perf/protocol", "cmd/roced/perf/report", "cmd/roced/perf/traffic", "verbs", "verbs/ud"},
	"cmd/roced/perf/connection":    {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "cmd/roced/perf/perftest", "internal/errno", "verbs"},
	"cmd/roced/perf/options":       {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "cmd/roced/internal/pingpong", "cmd/roced/perf/connection", "cmd/roced/perf/protocol", "verbs"},
	"cmd/roced/perf/own":           {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "cmd/roced/perf/options", "cmd/roced/perf/protocol", "cmd/roced/perf/report", "cmd/roced/perf/traffic", "verbs", "verbs/ud"},
	"cmd/roced/perf/perftest":      {"cmd/roced/internal/meet", "datapath/wire", "verbs"},
	"cmd/roced/perf/protocol":      {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet"},
	"cmd/roced/perf/report":        {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/perf/options", "cmd/roced/perf/protocol"},
	"cmd/roced/perf/traffic":       {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/perf/protocol", "verbs", "verbs/ud"},
	"cmd/roced/ping":               {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "cmd/roced/internal/pingpong", "verbs", "verbs/cm", "verbs/rc", "verbs/ud"},
	"cmd/roced/run":                {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/config", "cmd/roced/internal/loopback", "cmd/roced/run/device", "cmd/roced/run/metrics", "cmd/roced/run/namespaces", "cmd/roced/run/systemd", "verbs", "verbs/hca", "verbs/hca/quota", "verbs/provider", "verbs/server", "verbs/server/memory", "verbs/server/peer"},
	"cmd/roced/run/chaos":          {},
	"cmd/roced/run/device":         {"cmd/roced/internal/cli", "cmd/roced/internal/config", "internal/errno", "verbs", "verbs/hca", "verbs/provider", "verbs/server/admin"},
	"cmd/roced/run/metrics":        {"cmd/roced/run/device", "internal/release", "verbs/hca", "verbs/server/peer"},
	"cmd/roced/run/namespaces":     {"cmd/roced/internal/cli", "cmd/roced/internal/config", "verbs", "verbs/hca", "verbs/server/peer"},
	"cmd/roced/run/systemd":        {},
	"cmd/roced/show":               {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/daemon", "verbs", "verbs/client", "verbs/hca", "verbs/proto", "verbs/provider"},
	"cmd/roced/version":            {"cmd/roced/internal/cli"},
	"cmd/roced/internal/card":      {"cmd/roced/internal/cli", "cmd/roced/internal/daemon", "internal/capability", "internal/errno", "mcast", "verbs", "verbs/client", "verbs/hca", "verbs/provider", "verbs/rc", "verbs/ud"},
	"cmd/roced/internal/cardtest":  {"cmd/roced/internal/card", "verbs/hca", "verbs/ud"},
	"cmd/roced/internal/cli":       {"internal/capability", "internal/release"},
	"cmd/roced/internal/cmdtest":   {"cmd/roced/internal/card", "cmd/roced/internal/cli", "cmd/roced/internal/meet", "internal/lab", "internal/lab/labtest", "internal/mounts", "internal/needs", "internal/waittest", "verbs", "verbs/hca", "verbs/hca/memnet", "verbs/proto", "verbs/server"},
	"cmd/roced/internal/config":    {"verbs/hca"},
	"cmd/roced/internal/daemon":    {"cmd/roced/internal/loopback", "internal/unit", "verbs", "verbs/client", "verbs/proto"},
	"cmd/roced/internal/record":    {"internal/pcapng", "verbs/hca"},
	"cmd/roced/internal/libraries": {},
	"cmd/roced/internal/loopback":  {"cmd/roced/internal/record", "verbs", "verbs/hca", "verbs/hca/memnet", "verbs/ib", "verbs/provider", "verbs/server"},
	"cmd/roced/internal/manual":    {"cmd/roced/internal/config"},
	"cmd/roced/internal/meet":      {"cmd/roced/internal/card", "cmd/roced/internal/cli", "verbs", "verbs/hca", "verbs/ud"},
	"cmd/roced/internal/pingpong":  {"cmd/roced/internal/card", "cmd/roced/internal/cli", "verbs", "verbs/ud"},
}

// heavy packages must not be linked into programs that only use verbs.
var heavy = map[string][]string{
	"datapath/conn":   {"github.com/", "golang.org/x/sys"},
	"datapath/flight": {"github.com/", "golang.org/x/sys"},
	"datapath/link":   {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"datapath":        {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"datapath/wire":   {"github.com/", "golang.org/x/sys"},
	"mcast":           {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs":           {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/cm":        {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/rc":        {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/ud":        {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/proto":     {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/client":    {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"datapath/ring":   {"github.com/vishvananda/netlink", "github.com/cilium/ebpf", "golang.org/x/sys"},
	"verbs/ib":        {"github.com/", "golang.org/x/sys"},
	"verbs/kernel":    {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
	"verbs/compat":    {"github.com/vishvananda/netlink", "github.com/cilium/ebpf"},
}

// isHack reports whether a folder is not part of releases.
func isHack(folder string) bool { return strings.HasPrefix(folder+"/", "hack/") }

// subcommand returns the subcommand of roced to which a folder belongs, or "".
func subcommand(folder string) string {
	name, is := strings.CutPrefix(folder, "cmd/roced/")
	name, _, _ = strings.Cut(name, "/")
	if !is || name == "internal" {
		return ""
	}
	return name
}

func TestImportsGoOneWay(t *testing.T) {
	for _, f := range sources(t) {
		if isHack(f.folder) || f.isTest() {
			continue
		}
		list, known := allowed[f.folder]
		if !known {
			t.Errorf("%s: package %s is not in the list of this test", f.name, f.folder)
		}
		for _, imported := range f.imports {
			if ours, is := strings.CutPrefix(imported, module); is && !slices.Contains(list, ours) {
				t.Errorf("%s imports %s: %s may import %v", f.name, ours, f.folder, list)
			}
			for _, prefix := range heavy[f.folder] {
				if strings.HasPrefix(imported, prefix) && !strings.HasPrefix(imported, module) {
					t.Errorf("%s imports %s", f.name, imported)
				}
			}
		}
	}
}

// TestNothingImportsHack: no package outside hack imports one of it, tests included.
func TestNothingImportsHack(t *testing.T) {
	for _, f := range sources(t) {
		for _, imported := range f.ours() {
			if isHack(imported) && !isHack(f.folder) {
				t.Errorf("%s imports %s", f.name, imported)
			}
		}
	}
}

// TestSubcommandsAreApart: what two of them need is under cmd/roced/internal. Tests are held to
// it too, except those of the command itself.
func TestSubcommandsAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.folder, "cmd/roced/") {
			continue
		}
		own := subcommand(f.folder)
		seen[own] = true
		for _, imported := range f.ours() {
			if other := subcommand(imported); other != "" && other != own {
				t.Errorf("%s imports the subcommand %s", f.name, other)
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("only %d subcommands found", len(seen))
	}
}

// TestTestingIsNotShipped: a package that uses package testing is for tests, and for others like it.
func TestTestingIsNotShipped(t *testing.T) {
	files := slices.DeleteFunc(sources(t), func(f *file) bool { return f.isTest() })
	forTests := map[string]bool{}
	for _, f := range files {
		forTests[f.folder] = forTests[f.folder] || slices.Contains(f.imports, "testing")
	}
	for _, f := range files {
		for _, imported := range f.ours() {
			if forTests[imported] && !forTests[f.folder] {
				t.Errorf("%s imports %s", f.name, imported)
			}
		}
	}
}

func TestUnsafeIsInOneFileAPackage(t *testing.T) {
	for _, f := range sources(t) {
		if slices.Contains(f.imports, "unsafe") && path.Base(f.name) != "unsafe.go" && path.Base(f.name) != "unsafe_test.go" {
			t.Errorf("%s imports unsafe: it belongs in %s/unsafe.go", f.name, f.folder)
		}
	}
}

// mostFiles is the most files of verbs/hca. More are several packages.
const mostFiles = 40

func TestDeviceHasFewFiles(t *testing.T) {
	n := 0
	for _, f := range sources(t) {
		if f.folder == "verbs/hca" && !f.isTest() {
			n++
		}
	}
	if n == 0 || n > mostFiles {
		t.Errorf("verbs/hca has %d files; it may have %d", n, mostFiles)
	}
}

func TestEveryPackageHasADocFile(t *testing.T) {
	folders := map[string]bool{}
	for _, f := range sources(t) {
		folders[f.folder] = folders[f.folder] || path.Base(f.name) == "doc.go"
	}
	for folder, has := range folders {
		if !has {
			t.Errorf("%s has no doc.go", folder)
		}
	}
}
