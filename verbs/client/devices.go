// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// ListDevices returns the service's devices that have a card (ibv_get_device_list). Its errors are those of Dial.
func ListDevices(ctx context.Context, path string) ([]verbs.Device, error) {
	a, err := connect(ctx, path)
	if err != nil {
		return nil, err
	}
	var list []verbs.Device
	for _, name := range a.devices {
		view, _, err := first(a.conn, proto.LookDevice, &proto.LookDeviceRequest{Device: name})
		if verbs.KindOf(err) == verbs.ErrInvalid || verbs.KindOf(err) == verbs.ErrUnsupported {
			continue // removed meanwhile, or without a description
		}
		if err != nil {
			return nil, a.fail(err)
		}
		if view.Open {
			list = append(list, verbs.Device{Name: name, Index: indexOf(view.GIDs), GUID: view.Attr.NodeGUID})
		}
	}
	a.stop()
	return list, a.socket.Close()
}

// indexOf returns the interface index of GIDs, or -1.
func indexOf(gids []verbs.GIDEntry) int {
	if len(gids) == 0 || gids[0].IfIndex == 0 {
		return -1
	}
	return int(gids[0].IfIndex)
}

// WatchDevices reports the service's devices that have a card, and their additions and removals, to a client
// (ib_register_client). It returns when ctx is done, with its cause, or when the service ends; before that it calls
// Remove for the existing devices, as ib_unregister_client does.
func WatchDevices(ctx context.Context, path string, told verbs.DeviceClient) error {
	a, err := connect(ctx, path)
	if err != nil {
		return err
	}
	if err := a.settle(); err != nil {
		return a.fail(err)
	}
	defer context.AfterFunc(ctx, func() { _ = a.socket.Close() })()
	defer a.socket.Close()
	w := &watch{a: a, path: path}
	err = provider.FollowDevices(ctx, w.list, w.changed, told)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("watch devices: %w", err)
}

// watch is a connection that waits for events of devices.
type watch struct {
	a       *attempt
	path    string
	waiting bool // for the reply to NextEvents
}

// The ids of the commands of a watch.
const (
	nextEvents = 1
	look       = 2
)

// list first makes the service queue events, so that no later event is missed.
func (w *watch) list(ctx context.Context) ([]verbs.Device, error) {
	if err := w.wait(); err != nil {
		return nil, err
	}
	if err := request(w, proto.LookDevice, look, &proto.LookDeviceRequest{}); err != nil {
		return nil, err
	}
	if _, err := w.answer(look); err != nil { // ignored: the reply to NextEvents may come first
		return nil, err
	}
	return ListDevices(ctx, w.path)
}

// changed waits for an event of a device.
func (w *watch) changed(context.Context) error {
	for {
		if err := w.wait(); err != nil {
			return err
		}
		m, err := w.answer(nextEvents)
		if err != nil {
			return err
		}
		if m.Kind != proto.Reply {
			return failureOf(m)
		}
		events, err := proto.NextEvents.DecodeGrant(m.Body, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", verbs.ErrHost, err)
		}
		if events.Lost > 0 {
			return nil
		}
		for _, e := range events.Events {
			if e.Kind == proto.DeviceEvent || e.Kind == proto.DeviceOpened {
				return nil
			}
		}
	}
}

func (w *watch) wait() error {
	if w.waiting {
		return nil
	}
	w.waiting = true
	return request(w, proto.NextEvents, nextEvents, &proto.None{})
}

func request[Q, G any](w *watch, command proto.Command[Q, G], id uint32, r *Q) error {
	packet, err := command.EncodeRequest(id, r)
	if err == nil {
		err = w.a.conn.Send(packet)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return nil
}

// answer waits for the reply to a command. Events that arrive before it only mean that the list may have changed; a
// caller that waits for another reply is about to query the list.
func (w *watch) answer(id uint32) (proto.Message, error) {
	for {
		m, descriptors, err := w.a.conn.Receive()
		proto.CloseAll(descriptors) // no descriptors are expected
		if err != nil {
			return m, fmt.Errorf("%w: %w", verbs.ErrHost, err)
		}
		if m.ID == nextEvents {
			w.waiting = false
		}
		if m.ID == id {
			return m, nil
		}
	}
}
