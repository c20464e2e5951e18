// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/waittest"
)

// TestSocketsOfContainers: each container's socket is a separate user that cannot see objects or manage sockets of
// others, even as root. A removed socket is closed; other sockets are restored after a restart of the service.
func TestSocketsOfContainers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "roced.sock")
	start := func() *cmdtest.Child {
		service := cmdtest.Command(t, "run", "--loopback", "--socket", own, "--host", "a=10.1.0.1", "--host", "b=10.1.0.2")
		service.Start(t)
		waittest.Eventually(t, "the service answers", func() bool {
			code, _, _ := cmdtest.Run(t, "show", "client", "--service="+own)
			return code == 0
		})
		return service
	}
	service := start()
	add := func(name string) string {
		t.Helper()
		code, path, said := cmdtest.Run(t, "socket", "add", name, "--service="+own)
		if path = strings.TrimSpace(path); code != 0 || path != filepath.Join(dir, "sockets", name, "roced.sock") {
			t.Fatalf("exit code %d: %q: %s", code, path, said)
		}
		return path
	}
	first, second := add("first"), add("second")
	server, port := cmdtest.StartWaiting(t, []string{"ping", "-d", "a", "--service=" + first, "-n", "10"})
	for path, sees := range map[string]bool{first: true, own: true, second: false} {
		_, said, _ := cmdtest.Run(t, "show", "client", "--service="+path)
		if others := strings.Count(said, "\n") > 2; others != sees { // heading, and this command
			t.Errorf("by %s: %s", path, said)
		}
	}
	if code, said, _ := cmdtest.Run(t, "ping", "-d", "b", "-p", port, "-n", "10", "127.0.0.1", "--service="+second); code != 0 {
		t.Errorf("ping: exit code %d: %s", code, said)
	}
	server.Wait()
	for _, name := range []string{"../x", "x/y", ".", "", strings.Repeat("x", 64)} {
		if code, _, said := cmdtest.Run(t, "socket", "add", name, "--service="+own); code == 0 || !strings.Contains(said, "letters") {
			t.Errorf("socket %q: exit code %d: %s", name, code, said)
		}
	}
	for _, args := range [][]string{{"socket", "add"}, {"socket", "add", "x", "y"}, {"socket", "remove"}, {"cdi", "generate"}} {
		if code, _, said := cmdtest.Run(t, args...); code != 2 || !strings.Contains(strings.ToLower(said), "name") {
			t.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
	if code, _, said := cmdtest.Run(t, "socket", "add", "third", "--service="+first); code == 0 || !strings.Contains(said, "not permitted") {
		t.Errorf("a container created a socket: exit code %d: %s", code, said)
	}
	if code, _, said := cmdtest.Run(t, "socket", "remove", "second", "--service="+own); code != 0 {
		t.Errorf("remove: exit code %d: %s", code, said)
	}
	if _, err := os.Stat(filepath.Dir(second)); !os.IsNotExist(err) {
		t.Errorf("a removed socket's folder: %v", err)
	}
	if err := service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = service.Wait()
	service = start()
	if code, _, said := cmdtest.Run(t, "show", "client", "--service="+first); code != 0 {
		t.Errorf("after the service was killed: exit code %d: %s", code, said)
	}
	if _, said, _ := cmdtest.Run(t, "socket", "list", "--service="+own); said != "first "+first+"\n" {
		t.Errorf("list: %q", said)
	}
	add("third")
	if code, _, said := cmdtest.Run(t, "socket", "remove", "third", "--service="+own); code != 0 {
		t.Errorf("remove: exit code %d: %s", code, said)
	}
	if err := service.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, _ := service.End(t); code != 0 {
		t.Errorf("the service ends with exit code %d: %s", code, service.Said())
	}
}

// makeSocket creates a folder with a socket roced.sock.
func makeSocket(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unixpacket", filepath.Join(folder, "roced.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
}

// TestCDI: the output follows the specification of the Container Device Interface.
func TestCDI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "sockets", "web1")
	args := []string{"cdi", "generate", "web1", "--service=" + filepath.Join(dir, "roced.sock"), "--libraries=/opt/lib"}
	cmdtest.CheckFailure(t, args, cli.ExitFailed, "socket web1: ", "no such file", "create it with roced socket add web1")
	makeSocket(t, folder)
	code, text, said := cmdtest.Run(t, args...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var s struct {
		CDIVersion, Kind string
		Devices          []struct {
			Name           string
			ContainerEdits struct {
				Env    []string
				Mounts []struct{ HostPath, ContainerPath string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if s.CDIVersion != "0.5.0" || s.Kind != "roced.dev/verbs" || len(s.Devices) != 1 || s.Devices[0].Name != "web1" {
		t.Fatal(text)
	}
	edits := s.Devices[0].ContainerEdits
	const search = "LD_LIBRARY_PATH=/usr/lib/roced;/usr/lib/roced:/usr/lib/roced/musl"
	if len(edits.Mounts) != 2 || edits.Mounts[0].HostPath != folder || edits.Mounts[1].HostPath != "/opt/lib" || len(edits.Env) != 2 || edits.Env[1] != search {
		t.Error(text)
	}
}

// TestSocketOfTheEnvironment: commands without --socket use ROCED_SOCKET, including those that only derive other
// names from it. A container engine needs absolute paths.
func TestSocketOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sockets", "web1")
	makeSocket(t, path)
	makeSocket(t, filepath.Join(dir, "sockets", ".removed-1"))
	t.Setenv("ROCED_SOCKET", filepath.Join(dir, "roced.sock"))
	for _, row := range []struct {
		want string
		args []string
	}{
		{"web1 " + filepath.Join(path, "roced.sock"), []string{"socket", "list"}},
		{`"hostPath": "` + path + `"`, []string{"cdi", "generate", "web1"}},
		{filepath.Join(dir, "roced.sock"), []string{"socket", "add", "web1"}},
		{filepath.Join(dir, "roced.sock"), []string{"socket", "remove", "web1"}},
		{filepath.Join(dir, "roced.sock"), []string{"show", "gid"}},
	} {
		if _, out, said := cmdtest.Run(t, row.args...); !strings.Contains(out+said, row.want) {
			t.Errorf("%q: output lacks %q: %s%s", row.args, row.want, out, said)
		}
	}
	if _, text, _ := cmdtest.Run(t, "socket", "list"); strings.Contains(text, ".removed") {
		t.Errorf("the folder of a removed socket is listed: %s", text)
	}
	t.Chdir(dir)
	_, text, _ := cmdtest.Run(t, "cdi", "generate", "web1", "--socket=./roced.sock", "--libraries=lib")
	for _, want := range []string{`"hostPath": "` + path + `"`, `"hostPath": "` + filepath.Join(dir, "lib") + `"`} {
		if !strings.Contains(text, want) {
			t.Errorf("output lacks %s: %s", want, text)
		}
	}
}
