// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server"
	"golang.org/x/sys/unix"
)

var past = time.Unix(0, 1)

// guest is the host of a process. It exists until the process has ended and its sessions are closed, so that attributes
// queried before the device was opened stay valid. If the process is unknown, a guest has only one session.
type guest struct {
	host      *hca.Card
	addresses []netip.Addr
	process   any // nil if unknown
	users     int // under guests.mu: sessions, and the process while it runs
}

// NewSession implements server.Source. All sessions of a process are on one host.
func (g *guests) NewSession(c hca.SessionConfig) (*hca.Session, error) {
	guest, err := g.enter(c.Process)
	if err != nil {
		return nil, err
	}
	session, err := guest.host.NewSession(c)
	if err != nil {
		g.leave(guest)
		return nil, err
	}
	g.ending.Go(func() {
		<-session.Done()
		g.leave(guest)
	})
	return session, nil
}

// QueryDeviceOf returns the attributes of the device for a process, even before it opens the device.
func (g *guests) QueryDeviceOf(process any) (verbs.DeviceAttr, error) {
	if process == nil {
		return provider.Do(g, provider.QueryDevice, provider.None{})
	}
	guest, err := g.enter(process)
	if err != nil {
		return verbs.DeviceAttr{}, err
	}
	defer g.leave(guest)
	return provider.Do(guest.host, provider.QueryDevice, provider.None{})
}

// enter adds a user to the host of a process, which it creates if necessary.
func (g *guests) enter(process any) (*guest, error) {
	if found := g.find(process); found != nil {
		return found, nil
	}
	host, addresses, err := g.newHost()
	if err != nil {
		return nil, err
	}
	made := &guest{host: host, addresses: addresses, process: process, users: 1}
	if process == nil {
		return made, nil
	}
	if other := g.add(made); other != made { // another connection of the process was faster
		g.remove(host, addresses)
		return other, nil
	}
	if err := g.awaitEnd(made); err != nil {
		g.leave(made)
		return nil, err
	}
	return made, nil
}

func (g *guests) find(process any) *guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := g.known[process]
	if found != nil {
		found.users++
	}
	return found
}

// add registers a guest and returns it. If another connection has registered a guest for the process, it returns that.
func (g *guests) add(made *guest) *guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	if other := g.known[made.process]; other != nil {
		other.users++
		return other
	}
	g.known[made.process] = made
	return made
}

func (g *guests) leave(one *guest) {
	g.mu.Lock()
	one.users--
	last := one.users == 0
	if last && one.process != nil {
		delete(g.known, one.process)
	}
	g.mu.Unlock()
	if last {
		g.remove(one.host, one.addresses)
	}
}

// awaitEnd makes the process a user of its guest until it ends or the network is closed.
func (g *guests) awaitEnd(one *guest) error {
	p, is := one.process.(server.Process)
	if !is {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		// Otherwise the process would have a new host for each query.
		return fmt.Errorf("wait for the end of process %d: %w", p.PID, err)
	case err != nil:
		return nil // it has ended already, or cannot be waited for
	}
	process := os.NewFile(uintptr(fd), "process") // non-blocking, so the runtime polls it
	g.mu.Lock()
	one.users++
	g.mu.Unlock()
	g.ending.Go(func() {
		defer g.leave(one)
		defer process.Close()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-one.host.Done():
				_ = process.SetReadDeadline(past)
			case <-stop:
			}
		}()
		awaitReadable(process)
	})
	return nil
}

// awaitReadable waits until a process has ended, or until the read deadline.
func awaitReadable(process *os.File) {
	raw, err := process.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) (done bool) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
