// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/admin"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// withDoors are the limits of most tests, and sockets of containers.
func withDoors(t *testing.T) Config {
	c := anyone
	folder := t.TempDir()
	c.Listen = func(name string) (net.Listener, string, error) {
		path := filepath.Join(folder, name)
		l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		return l, path, err
	}
	return c
}

// by is the daemon as a container finds it.
func (d *daemon) by(t *testing.T, name string) *daemon {
	t.Helper()
	path, err := d.AddSocket(name)
	check(t, err)
	return &daemon{d.Server, path, d.shared}
}

// TestHolesOfAContainer: a program that takes pages out of registered memory is barred with all programs of its container's socket.
// The host's root, and others' containers, whose programs are root too, are not.
func TestHolesOfAContainer(t *testing.T) {
	r := newRig(t, withDoors(t))
	r.a.open(t)
	bad, other := r.a.by(t, "bad"), r.a.by(t, "other")
	sharing := []*raw{r.a.opened(t), other.opened(t)}
	for _, c := range sharing {
		c.shareMemory()
	}
	for range 2 {
		p := newProgram(t, bad.dial(t))
		own, key := p.ownRegion(r.a, 1<<40, provider.AllocMRRequest{Length: pageSize})
		own.punch()
		check(t, p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{{Length: 64, LKey: key}}, AH: p.ah(addressesA[0]), RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}}))
		if event, err := p.ctx.GetAsyncEvent(guard(t)); err != nil || event.Type != verbs.EventDeviceFatal {
			t.Fatal(event.Type, err)
		}
		check(t, p.ctx.Close())
		r.a.alone(t, len(sharing))
	}
	refusedFirst(bad.opened(t), "the container's next program", proto.ShareMemory, &proto.ShareMemoryRequest{}, verbs.ErrPermission, unix.EPERM)
	for _, d := range []*daemon{r.a, other} {
		d.opened(t).shareMemory()
	}
	for _, c := range sharing {
		c.allocPD()
	}
}

// TestContainersShareNothing: what programs of one user share, those of two containers do not, nor with the host's, though
// all are root.
func TestContainersShareNothing(t *testing.T) {
	r := newRig(t, withDoors(t))
	one, two := r.a.by(t, "one"), r.a.by(t, "two")
	first := one.opened(t)
	memory := first.shareMemory()
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	check(t, err)
	defer file.Close()
	pass := func(c *raw, fd int) {
		t.Helper()
		check(t, unix.Sendmsg(c.passing(), []byte{0}, unix.UnixRights(fd), nil, 0))
	}
	pass(first, int(file.Fd()))
	ask(first, proto.OpenXRCD, &proto.OpenXRCDRequest{HasFile: true, Create: true, Exclusive: true})
	for name, d := range map[string]*daemon{"another container": two, "the host": r.a} {
		c := d.opened(t)
		pass(c, memory)
		refusedFirst(c, "the process file from "+name, proto.ShareMemory, &proto.ShareMemoryRequest{HasFile: true}, verbs.ErrInvalid, unix.EINVAL)
		pass(c, int(file.Fd()))
		if err := refused(c, proto.OpenXRCD, &proto.OpenXRCDRequest{HasFile: true}); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("the domain from %s: %v", name, err)
		}
	}
	again := one.opened(t)
	pass(again, memory)
	_, ends := ask(again, proto.ShareMemory, &proto.ShareMemoryRequest{HasFile: true})
	proto.CloseAll(ends)
	pass(again, int(file.Fd()))
	ask(again, proto.OpenXRCD, &proto.OpenXRCDRequest{HasFile: true})
}

// TestPortsOfAContainer: root of a container has no privileges here, also not that of low ports.
func TestPortsOfAContainer(t *testing.T) {
	needs.Root(t)
	r := newRig(t, withDoors(t))
	bind := func(d *daemon) error {
		ctx, err := verbs.Open(d.dial(t))
		check(t, err)
		channel, err := cm.CreateEventChannel(ctx)
		check(t, err)
		defer channel.Close()
		id, err := channel.CreateID(cm.PortSpaceTCP, nil)
		check(t, err)
		defer id.Close()
		return id.Bind(netip.AddrPortFrom(addressesA[0], 80))
	}
	check(t, bind(r.a))
	if err := bind(r.a.by(t, "web")); !errors.Is(err, unix.EACCES) {
		t.Errorf("port 80 by a container's socket: %v", err)
	}
}

// TestComplaintsOfContainers: a container that fills its line of the log leaves those of others, and of the host's root.
func TestComplaintsOfContainers(t *testing.T) {
	var said bytes.Buffer
	c := withDoors(t)
	c.Log = slog.New(slog.NewTextHandler(&said, nil))
	r := newRig(t, c)
	one, two := r.a.by(t, "one"), r.a.by(t, "two")
	for _, d := range []*daemon{one, one, two, r.a} {
		bad := d.raw(t)
		check(t, bad.Send([]byte("garbage")))
		bad.hungUp()
		r.a.alone(t, 0)
	}
	check(t, r.a.Close()) // nothing is said any more
	lines := said.String()
	for text, n := range map[string]int{"connection of a client ended": 3, "socket=one": 1, "socket=two": 1} {
		if strings.Count(lines, text) != n {
			t.Errorf("not %d times %q in\n%s", n, text, lines)
		}
	}
}

// TestContainersAreNotHeard: a user of the host gets no events of a container's programs that have the user's uid.
func TestContainersAreNotHeard(t *testing.T) {
	r := newRig(t, withDoors(t))
	r.a.open(t)
	m := r.a.hear(t, 4711)
	web := r.a.by(t, "web")
	web.open(t)
	check(t, os.Chmod(filepath.Dir(filepath.Dir(web.path)), 0o755))
	web.openedAs(t, 4711)
	r.a.openedAs(t, 4711)
	if e := m.next(t); e.Kind != proto.ClientOpened || e.Client != 2 {
		t.Errorf("%+v", e)
	}
}

// late is a listener whose first connection is delayed until the test releases it.
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
	eventually(t, "all objects are freed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.connections)+len(s.Users())+len(s.listeners) == 0
	})
	next := admin.NewClient(new(peer.Peer), time.Now())
	s.admin.Add(next)
	page, err := s.admin.View(next).ListClients(proto.ListClientsRequest{})
	if check(t, err); page.Clients[0].Number != 1 {
		t.Error("the connection was started")
	}
}
