// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

const otherVersions = "versions 90 to 91"

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
	s.refuse(t)
	out := s.output(t, "ibv_devices")
	if strings.Count(out, otherVersions) != 1 || strings.Contains(out, "loop") {
		t.Errorf("ibv_devices with a service of another version: got:\n%s", out)
	}
}

// TestOtherVersionAtOpen: a device that was listed is of a service whose place one of another version has taken.
func TestOtherVersionAtOpen(t *testing.T) {
	s := serve(t)
	c := s.command(t, glibc().program(t, "tests/otherversion"))
	var said bytes.Buffer
	c.Stderr = &said
	in, inErr := c.StdinPipe()
	out, outErr := c.StdoutPipe()
	if err := errors.Join(inErr, outErr, c.Start()); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Errorf("the program lists no device")
	}
	_ = s.process.Process.Kill()
	<-s.ended
	_ = os.Remove(s.socket)
	s.refuse(t)
	_, _ = in.Write([]byte("\n"))
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], otherVersions) {
		t.Errorf("stderr has %q", lines)
	}
}

// refuse has a service of another version listen at the socket.
func (s *service) refuse(t *testing.T) {
	t.Helper()
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: s.socket, Net: "unixpacket"})
	if err == nil {
		err = os.Chmod(s.socket, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go refuseAll(listener)
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
			cause := fmt.Errorf("%w: the service's protocol has "+otherVersions+"; use the same release of roced for both", verbs.ErrUnsupported)
			_ = conn.Send(proto.EncodeFailure(proto.Failure, m.Code, m.ID, cause))
		}
	}
}
