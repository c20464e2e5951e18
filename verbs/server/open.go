package server

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// hello settles the version, and lists the devices.
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
	c.confine()
	return reply(c, proto.Hello.Untyped, m.ID, &proto.Welcome{Version: version, Devices: namesOf(c.sources())})
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
	c.server.arenas.enter(c)
	c.background.Go(func() { c.watch(session) })
	c.tell(proto.ClientOpened)
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	doorbell, err := c.arena.PlaceOf(session.DoorbellMemory())
	if err != nil {
		return err
	}
	err = reply(c, proto.OpenDevice.Untyped, m.ID, &proto.Opened{Size: uint64(len(c.arena.memory)), Doorbell: doorbell}, c.arena.fd, c.signals.client, c.signals.calls)
	c.signals.handedOver()
	return err
}

func (c *connection) newSession(name string) (*hca.Session, error) {
	device, err := c.find(name)
	if err != nil {
		return nil, err
	}
	if err := c.server.shut.check(c.peer.holder(), time.Now()); err != nil {
		return nil, err
	}
	c.command = commandOf(c.peer.pid)
	arena, err := newArena(c.account.quota, c.account.quota.Limits().Memory)
	if err != nil {
		return nil, err
	}
	signals, err := newSignals()
	if err != nil {
		arena.close(true)
		return nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	session, err := c.sessionOn(device, hca.SessionConfig{
		Quota: c.account.quota, Memory: arena, Wake: signals.tell, Forget: signals.forget, Calls: signals.calls,
		Observe: c.observe(device.Name()), Noticed: c.server.monitors.note,
		Process: c.process(), Sharer: c.peer.sharer(),
		Privileged:  func() bool { return c.peer.privileged(c.server.group) },
		BindService: c.peer.mayBindService,
		Block:       c.place.block,
	})
	if err != nil {
		signals.close()
		arena.close(true)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.device, c.arena, c.signals = session, device.Name(), arena, signals
	return session, nil
}

// sessionOn makes a session on a device, or on that of the caller's namespace.
func (c *connection) sessionOn(device Source, config hca.SessionConfig) (*hca.Session, error) {
	d, is := device.(ofCaller)
	if !is {
		return device.NewSession(config)
	}
	caller, err := c.findOther()
	if err != nil {
		return nil, err
	}
	return d.NewSessionOf(caller, config)
}

// process is the client's process, nil if the kernel does not say which: it is in a namespace of which the service sees
// no processes.
func (c *connection) process() any {
	if c.peer.pid == 0 {
		return nil
	}
	return Process{c.peer.pid, c.peer.uid}
}

// Process is a process of a user: a session's hca.SessionConfig.Process.
type Process struct {
	PID int
	UID uint32
}

// ofProcess is a Source that is another device for each process.
type ofProcess interface {
	QueryDeviceOf(process any) (verbs.DeviceAttr, error)
}

// listDevices lists the devices that can be opened.
func (c *connection) listDevices(m proto.Message) error {
	if _, err := proto.ListDevices.DecodeRequest(m.Body); err != nil {
		return err
	}
	list := []proto.ListedDevice{}
	for _, d := range c.sources() {
		if attr, err := c.describe(d); err == nil {
			list = append(list, proto.ListedDevice{Name: d.Name(), NodeGUID: attr.NodeGUID, SysImageGUID: attr.SysImageGUID, NodeType: proto.NodeCA})
		}
	}
	return reply(c, proto.ListDevices.Untyped, m.ID, &list)
}

// describe is what a device is for the client; an error if it has no card now.
func (c *connection) describe(d Source) (verbs.DeviceAttr, error) {
	switch d := d.(type) {
	case ofCaller:
		caller, err := c.findOther()
		if err != nil {
			return verbs.DeviceAttr{}, err
		}
		return d.QueryDeviceOf(caller)
	case ofProcess:
		return d.QueryDeviceOf(c.process())
	case provider.Doer:
		return provider.Do(d, provider.QueryDevice, provider.None{})
	}
	return verbs.DeviceAttr{}, nil
}
