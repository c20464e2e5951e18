// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"syscall"
	"testing"

	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// lingerer makes TCP connections that linger with data that their peers do not read, until it is closed.
type lingerer struct {
	testing.TB
	listener net.Listener
	peers    []net.Conn
}

func newLingerer(t testing.TB) *lingerer {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	l := &lingerer{TB: t, listener: listener}
	t.Cleanup(l.close)
	return l
}

// connect returns a descriptor whose last close takes an hour, or until the lingerer is closed.
func (l *lingerer) connect() int {
	l.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(l, err)
	port := l.listener.Addr().(*net.TCPAddr).Port
	check(l, unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	peer, err := l.listener.Accept()
	check(l, err)
	l.peers = append(l.peers, peer)
	check(l, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))
	for err == nil {
		err = unix.Sendto(fd, make([]byte, 1<<16), unix.MSG_DONTWAIT, nil)
	}
	return fd
}

// close resets the connections, whose closes then return.
func (l *lingerer) close() {
	_ = l.listener.Close()
	for _, peer := range l.peers {
		_ = peer.Close()
	}
	l.peers = nil
}

// sendRights sends a lingering descriptor to a socket that the service does not close meanwhile, and keeps none.
func (l *lingerer) sendRights(to int) {
	l.Helper()
	fd := l.connect()
	err := unix.Sendmsg(to, []byte{1}, unix.UnixRights(fd), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if err != nil { // the socket accepts none: the close of this one must not block
		check(l, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{}))
	}
	check(l, unix.Close(fd))
}

// throwRights sends a lingering descriptor by a connection of its own, of which the service may have closed its end before.
func (l *lingerer) throwRights(bad *raw) {
	l.Helper()
	raw, err := bad.socket.SyscallConn()
	check(l, err)
	check(l, raw.Control(func(to uintptr) {
		fd := l.connect()
		_ = unix.Sendmsg(int(to), []byte{1}, unix.UnixRights(fd), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		go unix.Close(fd) // it may be the last one
	}))
	check(l, bad.socket.Close())
}

// Descriptors whose close waits affect no other client, wherever a client sends them: not to the card, nor when
// channels, sessions and connections end, nor where connections are refused.
func TestLingeringDescriptors(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	for name, row := range map[string]struct {
		to  func(bad *raw) int
		end func(bad *raw)
	}{
		"by signals": {func(bad *raw) int { return bad.signal }, func(bad *raw) { bad.wake() }},
		"by a completion channel": {
			func(bad *raw) int { return bad.compChannelEnd() },
			func(bad *raw) {
				ask(bad, proto.DestroyCompChannel, &provider.DestroyCompChannelRequest{Channel: bad.channel})
			},
		},
		"by an event channel": {
			func(bad *raw) int { return bad.eventChannelEnd() },
			func(bad *raw) {
				ask(bad, proto.DestroyEventChannel, &provider.DestroyEventChannelRequest{Channel: bad.channel})
			},
		},
		"by a file that is passed": {
			func(bad *raw) int { return bad.passing() },
			func(bad *raw) {
				packet, err := proto.OpenXRCD.EncodeRequest(1, &proto.OpenXRCDRequest{HasFile: true, Create: true})
				check(bad, err)
				check(bad, bad.Send(packet))
				_, _, err = bad.Receive()
				check(bad, err)
			},
		},
		"by unexpected files":                        {func(bad *raw) int { return bad.passing() }, func(*raw) {}},
		"by an event channel of a session that ends": {func(bad *raw) int { return bad.eventChannelEnd() }, func(*raw) {}},
	} {
		t.Run(name, func(t *testing.T) {
			bad, lingerer := r.a.opened(t), newLingerer(t)
			to := row.to(bad)
			for range 3 {
				lingerer.sendRights(to)
			}
			row.end(bad)
			stillWell()
			check(t, bad.socket.Close())
			stillWell()
			r.a.dial(t)
		})
	}
}

func (r *raw) compChannelEnd() int {
	r.Helper()
	grant, ends := ask(r, proto.CreateCompChannel, &proto.None{})
	r.channel = grant.Channel
	r.Cleanup(func() { proto.CloseAll(ends) })
	return ends[0]
}

func (r *raw) eventChannelEnd() int {
	r.Helper()
	grant, ends := ask(r, proto.CreateEventChannel, &proto.None{})
	r.channel = grant.Channel
	r.Cleanup(func() { proto.CloseAll(ends) })
	return ends[0]
}

// The same in connections that are refused: others can connect.
func TestLingeringDescriptorsUnread(t *testing.T) {
	config := anyone
	config.Limits.Connections = 3
	r := newRig(t, config)
	for range 2 {
		r.a.raw(t)
	}
	r.a.alone(t, 2) // sockets that connect before Serve accept descriptors
	lingerer := newLingerer(t)
	for range 20 { // one at most is served
		bad := r.a.raw(t)
		lingerer.throwRights(bad)
	}
	eventually(t, "others are served", func() bool {
		c := r.a.raw(t)
		packet, err := proto.Hello.EncodeRequest(1, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
		check(t, err)
		if c.Send(packet) != nil {
			return false
		}
		m, _, err := c.Receive()
		check(t, c.socket.Close())
		return err == nil && (m.Kind == proto.Reply || m.Kind == proto.Failure)
	})
}

// TestLingeringDescriptorsBeforeRefusal: where the kernel cannot refuse descriptors (before Linux 6.16), those that clients
// send without being asked block no more threads than those that they pass, also on connections beyond their user's limit.
func TestLingeringDescriptorsBeforeRefusal(t *testing.T) {
	const connections = 2 * peer.MaxUserThreads
	r := newRig(t, Config{Limits: peer.Limits{Connections: connections}, PrivilegedGroup: -1})
	r.a.open(t)
	stillWell := neighbours(t, r)
	r.a.acceptRights()
	lingerer := newLingerer(t)
	throw := func() { lingerer.throwRights(r.a.connectAs(t, 4711)) }
	eventually(t, "the closes block", func() bool { throw(); return blocked() >= peer.MaxUserThreads })
	for range 2 * connections {
		throw()
	}
	r.a.opened(t) // it is accepted after the others
	stillWell()
	eventually(t, "as many closes block as may", func() bool { return blocked() == peer.MaxUserThreads })
	lingerer.close()
	eventually(t, "the closes have returned", func() bool { return blocked() == 0 && len(r.a.Users()) == 1 })
}

// acceptRights has the socket of a daemon accept descriptors, as all sockets do before Linux 6.16.
func (d *daemon) acceptRights() {
	for _, l := range d.listeners {
		if raw, err := l.(syscall.Conn).SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 1) })
		}
	}
}
