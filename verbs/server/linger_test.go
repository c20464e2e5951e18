package server

import (
	"net"
	"testing"

	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// lingering gives a descriptor whose last close takes an hour, or until the test ends: of a TCP connection that
// lingers, with data that nobody takes.
func lingering(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	check(t, unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	peer, err := listener.Accept()
	check(t, err)
	t.Cleanup(func() { _ = peer.Close() })
	check(t, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))
	for err == nil {
		err = unix.Sendto(fd, make([]byte, 1<<16), unix.MSG_DONTWAIT, nil)
	}
	return fd
}

// sendRights sends a lingering descriptor to a socket, and keeps none. The socket need not take it.
func sendRights(t *testing.T, to int) {
	t.Helper()
	fd := lingering(t)
	_ = unix.Sendmsg(to, []byte{1}, unix.UnixRights(fd), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	go unix.Close(fd) // it is the last one, if it was not taken
}

// Descriptors whose close waits cost nobody else anything, wherever a client sends them: not to the card, nor when
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
		"by files that nobody asks for":              {func(bad *raw) int { return bad.passing() }, func(*raw) {}},
		"by an event channel of a session that ends": {func(bad *raw) int { return bad.eventChannelEnd() }, func(*raw) {}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := r.a.opened(t)
			to := row.to(bad)
			for range 3 {
				sendRights(t, to)
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
	for range 20 { // one at most is served
		bad := r.a.raw(t)
		raw, err := bad.socket.SyscallConn()
		check(t, err)
		check(t, raw.Control(func(fd uintptr) { sendRights(t, int(fd)) }))
		check(t, bad.socket.Close())
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
