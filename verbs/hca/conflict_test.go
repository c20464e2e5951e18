// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
)

// Two interfaces in one subnet cause a warning that names them and the remedy; after the remedy there is no warning.
func TestTwoInterfacesInOneSubnet(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	says := func() bool {
		t.Helper()
		var log logged
		d, err := Open("eth0", InNamespace(hosts.A.Path()), log.option())
		check(t, err)
		check(t, d.Close())
		return log.says("other=twin0 subnet=10.77.0.0/24") && log.says("net.ipv4.conf.twin0.arp_ignore=1")
	}
	addLink(t, hosts.A, netlink.NewVeth(attrs("twin0", 1500)), true)
	check(t, hosts.A.AddAddress("twin0", "10.99.0.1/24"))
	if says() {
		t.Error("warning for another subnet")
	}
	check(t, hosts.A.AddAddress("twin0", "10.77.0.11/25"))
	if !says() {
		t.Error("no warning for the same subnet")
	}
	check(t, hosts.A.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/twin0/arp_ignore", []byte("1"), 0) }))
	if says() {
		t.Error("warning although the conflict cannot occur")
	}
}

// Without a logger of its own, a card sends only its warnings to the default logger.
func TestWarningsReachTheDefaultLogger(t *testing.T) {
	was := slog.Default()
	defer slog.SetDefault(was)
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	hosts := labtest.Pair(t)
	addLink(t, hosts.A, &netlink.Bridge{LinkAttrs: attrs("bridge0", 1500)}, true)
	d, err := Open("bridge0", InNamespace(hosts.A.Path()))
	check(t, err)
	check(t, d.Close())
	if !bytes.Contains(text.Bytes(), []byte("XDP runs in generic mode")) || !bytes.Contains(text.Bytes(), []byte("device=bridge0")) {
		t.Errorf("%q", &text)
	}
	if bytes.Contains(text.Bytes(), []byte("level=INFO")) {
		t.Errorf("%q has more than warnings", &text)
	}
	text.Reset()
	d, err = Open("bridge0", InNamespace(hosts.A.Path()), WithXDPMode(XDPGeneric))
	check(t, err)
	check(t, d.Close())
	if bytes.Contains(text.Bytes(), []byte("XDP runs in generic mode")) {
		t.Errorf("%q warns of the requested mode", &text)
	}
	defaultLog().WithGroup("g").With("k", 1).Warn("grouped")
	if !bytes.Contains(text.Bytes(), []byte("g.k=1")) {
		t.Errorf("%q", &text)
	}
}
