package server

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// late is a listener whose first connection comes when the test says so.
type late struct {
	*net.UnixListener
	first chan *net.UnixConn
}

func (l *late) Accept() (net.Conn, error) {
	if c, is := <-l.first; is {
		return c, nil
	}
	return nil, net.ErrClosed
}

// TestAcceptedByARemovedSocket: a connection that was accepted, and not started yet, when its container's socket was
// removed, would be of the next container whose socket has that name.
func TestAcceptedByARemovedSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l := &late{first: make(chan *net.UnixConn)}
	var err error
	l.UnixListener, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	check(t, err)
	s, err := New(Config{PrivilegedGroup: -1, Listen: func(string) (net.Listener, string, error) { return l, path, nil }})
	check(t, err)
	defer s.Close()
	_, err = s.AddSocket("web")
	check(t, err)
	program, err := net.Dial("unixpacket", path)
	check(t, err)
	defer program.Close()
	accepted, err := l.AcceptUnix()
	check(t, err)
	eventually(t, "the socket is served", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.listeners) == 1
	})
	check(t, s.RemoveSocket("web"))
	l.first <- accepted
	close(l.first)
	if n, err := program.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%d bytes, %v; want the end of the connection", n, err)
	}
	eventually(t, "nobody has anything", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.connections)+len(s.accounts)+len(s.listeners) == 0
	})
	if s.last != 0 {
		t.Error("the connection was started")
	}
}
