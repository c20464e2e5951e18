// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// daemonIn starts a service with a card on a namespace's eth0, and returns its socket.
func daemonIn(t *testing.T, ns *lab.Namespace, options ...hca.Option) (socket string) {
	t.Helper()
	opened, err := hca.Open("eth0", append(options, hca.InNamespace(ns.Path()), hca.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	s, err := server.New(server.Config{Devices: []server.Source{opened}, PrivilegedGroup: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	socket = filepath.Join(t.TempDir(), "roced.sock")
	listener, err := net.Listen("unixpacket", socket)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(listener)
	return socket
}

// flagsOf parses a command line that selects a namespace's eth0.
func flagsOf(t *testing.T, ns *lab.Namespace, args string) *Flags {
	t.Helper()
	f := &Flags{Log: slog.New(slog.DiscardHandler)}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(set)
	if err := set.Parse(strings.Fields("-d eth0 --netns " + ns.Path() + " " + args)); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOpenFindsTheDaemon: the service is used if it owns the interface, and no flag needs a card of this process. An
// interface with the same name in another namespace does not count.
func TestOpenFindsTheDaemon(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	holder, stranger := daemonIn(t, hosts.A), filepath.Join(t.TempDir(), "none")
	f := flagsOf(t, hosts.A, "")
	f.sockets = []string{stranger, holder}
	d, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Daemon != holder || d.Attr.Name != "eth0" || !strings.HasSuffix(d.Side("10.77.0.1").String(), ", device of the service") {
		t.Errorf("%v of the service %q", d.Side("10.77.0.1"), d.Daemon)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, args := range []string{"--xdp native", "--tx trains", "--copy", "--socket=none"} {
		f := flagsOf(t, hosts.A, args)
		f.sockets = []string{holder}
		if _, err := f.Open(t.Context()); !errors.Is(err, unix.EBUSY) {
			t.Errorf("%q: %v, want EBUSY", args, err)
		}
	}
	f = flagsOf(t, hosts.B, "") // a free interface of the same name
	f.sockets = []string{holder}
	if d, err = f.Open(t.Context()); err != nil || d.Daemon != "" {
		t.Fatalf("a free interface: %v, of the service %q", err, d.Daemon)
	}
	if _, err := f.Open(t.Context()); !errors.Is(err, unix.EBUSY) { // the interface is in use, and the service has that of the other namespace
		t.Errorf("opened eth0 of the other namespace: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenFindsTheDaemonOverUDP: a service over UDP sockets is used too, since a card over XDP would receive its
// packets.
func TestOpenFindsTheDaemonOverUDP(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	f := flagsOf(t, hosts.A, "")
	f.sockets = []string{daemonIn(t, hosts.A, hca.WithNetwork(hca.NetworkUDP))}
	d, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Daemon != f.sockets[0] || !strings.Contains(d.Side("10.77.0.1").String(), "UDP sockets, device of the service") {
		t.Errorf("%v of the service %q", d.Side("10.77.0.1"), d.Daemon)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	f = flagsOf(t, hosts.A, "--network udp")
	if _, err := f.Open(t.Context()); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("--network udp: %v, want EADDRINUSE", err)
	}
}

// TestOpenOfADaemonThatRefuses: the error contains that of the service, and that of the busy interface.
func TestOpenOfADaemonThatRefuses(t *testing.T) {
	t.Parallel()
	f := &Flags{InterfaceFlags: InterfaceFlags{Device: "eth0"}, Log: slog.New(slog.DiscardHandler)}
	socket := filepath.Join(t.TempDir(), "roced.sock")
	if err := os.WriteFile(socket, nil, 0); err != nil {
		t.Fatal(err)
	}
	f.sockets = []string{socket}
	for _, failed := range []error{unix.EBUSY, unix.ENODEV} {
		if _, err := f.openShared(t.Context(), failed); !errors.Is(err, failed) {
			t.Errorf("%v instead of %v", err, failed)
		}
	}
}

// TestDaemonFlag: with the flag, -d names a device of the service, and no interface is opened.
func TestDaemonFlag(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	socket := daemonIn(t, hosts.A)
	f := &Flags{Log: slog.New(slog.DiscardHandler), GIDIndex: AnyGID}
	f.Daemon = socket
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	d, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = d.Use(t.Context(), func(context.Context) error {
		all, err := d.Counters()
		if err == nil && (len(all) == 0 || LinkLosses(all) != nil) {
			t.Errorf("want counters of the service's card only: %v", all)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	f.Device = "nope"
	if _, err := f.Open(t.Context()); !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), `there are ["eth0"]`) {
		t.Errorf("a device that the service does not have: %v", err)
	}
	f = flagsOf(t, hosts.A, "--xdp generic --socket="+socket)
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "--xdp cannot be combined with --socket") {
		t.Errorf("a mode and --socket: %v", err)
	}
}
