// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/memory"
)

// hello agrees on the version, and lists the devices.
func (c *connection) hello(m proto.Message) error {
	r, err := proto.Hello.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	version, common := proto.CommonVersion(r.Oldest, r.Newest)
	if !common {
		return c.fail(m, fmt.Errorf("%w: the client's protocol has versions %d to %d, the service's %d to %d; use the same release of roced for both",
			verbs.ErrUnsupported, r.Oldest, r.Newest, proto.OldestVersion, proto.Version))
	}
	c.greeted = true
	if err := c.server.devices.confine(c.peer); err != nil {
		c.warn("a program sees no devices", err)
	}
	return c.reply(proto.Hello.Untyped, m.ID, &proto.Welcome{Version: version, Devices: namesOf(c.server.devices.seenBy(c.peer))})
}

// open makes the connection's session.
func (c *connection) open(m proto.Message) error {
	r, err := proto.OpenDevice.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	if c.session != nil {
		return c.fail(m, fmt.Errorf("%w: the connection has a session already", verbs.ErrBusy))
	}
	session, err := c.newSession(r.Device)
	if err != nil {
		return c.fail(m, err)
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	arena := c.memory.Arena()
	doorbell, err := arena.PlaceOf(session.DoorbellMemory())
	if err != nil {
		return err
	}
	err = c.reply(proto.OpenDevice.Untyped, m.ID, &proto.Opened{Size: uint64(arena.Size()), Doorbell: doorbell}, arena.FD(), c.signals.client, c.signals.calls)
	c.signals.handedOver()
	return err
}

// newSession opens a device, and makes the session, its memory and its signals.
func (c *connection) newSession(name string) (*hca.Session, error) {
	device, err := c.server.devices.find(c.peer, name)
	if err != nil {
		return nil, err
	}
	quota := c.place.Quota()
	memory, err := c.server.memory.Open(memory.User{Holder: c.peer.Holder(), Sharer: c.peer.Sharer(), Quota: quota, Log: c.log})
	if err != nil {
		return nil, err
	}
	signals, err := newSignals()
	if err != nil {
		memory.Close(true)
		return nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	session, err := c.server.devices.newSession(c.peer, device, hca.SessionConfig{
		Quota: quota, Memory: memory.Arena(), Wake: signals.notify, Forget: signals.forget, Calls: signals.calls,
		Observe: c.server.admin.Observe(c.client, device.Name()), Noticed: c.server.admin.NoteMarked,
		Process: processOf(c.peer), Sharer: c.peer.Sharer(),
		Privileged:  func() bool { return c.peer.IsPrivileged(c.server.group) },
		BindService: c.peer.MayBindService,
		Block:       c.place.Block,
	})
	if err != nil {
		signals.close()
		memory.Close(true)
		return nil, err
	}
	c.mu.Lock()
	c.memory, c.signals, c.session = memory, signals, session
	c.mu.Unlock()
	memory.Watch(session)
	c.background.Go(func() { c.watch(session) })
	c.server.admin.Open(c.client, session, device.Name())
	return session, nil
}

// listDevices lists the devices that can be opened.
func (c *connection) listDevices(m proto.Message) error {
	if _, err := proto.ListDevices.DecodeRequest(m.Body); err != nil {
		return err
	}
	list := []proto.ListedDevice{}
	for _, d := range c.server.devices.seenBy(c.peer) {
		if attr, err := c.server.devices.query(c.peer, d); err == nil {
			list = append(list, proto.ListedDevice{Name: d.Name(), NodeGUID: attr.NodeGUID, SysImageGUID: attr.SysImageGUID, NodeType: proto.NodeCA})
		}
	}
	return c.reply(proto.ListDevices.Untyped, m.ID, &list)
}

// close closes the session and answers; then the connection is over.
func (c *connection) close(m proto.Message) error {
	if _, err := proto.Close.DecodeRequest(m.Body); err != nil {
		return err
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	if err := c.session.Close(); err != nil {
		return errors.Join(err, c.fail(m, err))
	}
	if err := c.reply(proto.Close.Untyped, m.ID, &proto.None{}); err != nil {
		return err
	}
	return c.awaitEnd()
}

// farewell is how long a client may take to hang up after it has closed its session.
const farewell = 5 * time.Second

// awaitEnd waits for the client to hang up: until then it may copy completions out of the memory.
func (c *connection) awaitEnd() error {
	if err := c.socket.SetReadDeadline(time.Now().Add(farewell)); err != nil {
		return err
	}
	for {
		if _, _, err := c.conn.Receive(); err != nil {
			return err
		}
	}
}
