//go:build linux

package ctest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// TestOtherVersion: a service of another version is told once on stderr, and there are no devices.
func TestOtherVersion(t *testing.T) {
	dir, err := os.MkdirTemp("", "roced-version-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &service{lib: build(t), socket: filepath.Join(dir, "roced.sock")}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: s.socket, Net: "unixpacket"})
	if err == nil {
		err = os.Chmod(s.socket, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go refuseAll(listener)
	out := s.output(t, "ibv_devices")
	if strings.Count(out, "versions 90 to 91") != 1 || strings.Contains(out, "loop") {
		t.Errorf("ibv_devices beside a service of another version says:\n%s", out)
	}
}

// refuseAll is a service that has no version in common with anybody.
func refuseAll(listener *net.UnixListener) {
	for {
		socket, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		conn := proto.NewConn(socket, false)
		if m, _, err := conn.Receive(); err == nil {
			cause := fmt.Errorf("%w: the service's protocol has versions 90 to 91; use the same release of roced for both", verbs.ErrUnsupported)
			_ = conn.Send(proto.EncodeFailure(proto.Failure, m.Code, m.ID, cause))
		}
	}
}
