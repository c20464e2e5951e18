// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// manager listens for notifications, as systemd does.
func manager(t *testing.T) (receive func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		buffer := make([]byte, 4096)
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
}

func TestNotify(t *testing.T) {
	receive := manager(t)
	n := NewNotifier(slog.New(slog.DiscardHandler))
	for _, row := range []struct {
		notify func()
		want   string
	}{
		{func() { n.Ready("2 devices") }, "READY=1\nSTATUS=2 devices"},
		{func() { n.Status("eth0 has gone") }, "STATUS=eth0 has gone"},
		{n.Alive, "WATCHDOG=1"},
		{n.Stopping, "STOPPING=1\nSTATUS=stopping"},
		{n.Reloading, "RELOADING=1\nMONOTONIC_USEC="},
	} {
		row.notify()
		if got := receive(); got != row.want && !(strings.HasSuffix(row.want, "=") && strings.HasPrefix(got, row.want) && len(got) > len(row.want)) {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

func TestNotifyWithoutManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	var log bytes.Buffer
	NewNotifier(slog.New(slog.NewTextHandler(&log, nil))).Ready("")
	if log.Len() > 0 {
		t.Error(log.String())
	}
	t.Setenv("NOTIFY_SOCKET", "/nonexistent")
	NewNotifier(slog.New(slog.NewTextHandler(&log, nil))).Ready("")
	if !strings.Contains(log.String(), "cannot notify the service manager") {
		t.Error(log.String())
	}
}

func TestSocketsOfTheRightKind(t *testing.T) {
	dir := t.TempDir()
	listen := func(network, address string) net.Listener {
		t.Helper()
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	packets, stream, tcp := listen("unixpacket", filepath.Join(dir, "p")), listen("unix", filepath.Join(dir, "s")), listen("tcp", "127.0.0.1:0")
	s, err := sortSockets(map[string][]net.Listener{"roced.socket": {packets}, "metrics": {tcp, stream}})
	if err != nil || len(s.Programs) != 1 || len(s.Metrics) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, wrong := range []net.Listener{stream, tcp} {
		if _, err := sortSockets(map[string][]net.Listener{"roced.socket": {wrong}}); err == nil || !strings.Contains(err.Error(), "ListenSequentialPacket=") {
			t.Errorf("%s: %v", wrong.Addr().Network(), err)
		}
	}
}

func TestJournal(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := slog.New(newJournal(&out, level)).With("device", "eth0").WithGroup("of")
	log.Debug("too little")
	level.Set(slog.LevelDebug)
	log.Debug("a", "time", 1)
	log.Info("b")
	log.Warn("c")
	log.Error("d")
	log.Log(t.Context(), slog.LevelError+8, "e")
	want := "<7>msg=a device=eth0 of.time=1\n<6>msg=b device=eth0\n<4>msg=c device=eth0\n<3>msg=d device=eth0\n<3>msg=e device=eth0\n"
	if out.String() != want {
		t.Errorf("%q\nwant %q", out.String(), want)
	}
}

func TestIsJournal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if t.Setenv("JOURNAL_STREAM", "1:2"); isJournal(w) {
		t.Error("another file is accepted as the journal")
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(w.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	if t.Setenv("JOURNAL_STREAM", strings.Join([]string{itoa(stat.Dev), itoa(stat.Ino)}, ":")); !isJournal(w) {
		t.Error("the journal is not recognized")
	}
	NewLogger(w, slog.LevelInfo).Warn("x")
	line := make([]byte, 100)
	n, err := r.Read(line)
	if err != nil || string(line[:n]) != "<4>msg=x\n" {
		t.Errorf("%q, %v", line[:n], err)
	}
}

func itoa(n uint64) string { return slog.Uint64Value(n).String() }

func TestWatchdogInterval(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "2000000")
	t.Setenv("WATCHDOG_PID", itoa(uint64(os.Getpid())))
	if interval, err := WatchdogInterval(); err != nil || interval.Seconds() != 2 {
		t.Errorf("%v, %v", interval, err)
	}
}
