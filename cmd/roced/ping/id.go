package ping

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// meetByID has the two sides find each other by connection ids (rdma_cm), without TCP. The client's
// request says its queue pair, in the first 4 bytes of the private data, and the answer the server's.
func (r *meeting) meetByID(ctx context.Context) (err error) {
	channel, err := cm.CreateEventChannel(r.device.Context)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, channel.Close()) }()
	id, err := channel.CreateID(cm.PortSpaceUDP, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, id.Close()) }()
	if r.options.Host == "" {
		return r.serve(ctx, channel, id)
	}
	return r.ask(ctx, channel, id)
}

// bind binds an id to the address that --gid-index chooses; without that to all.
func (r *meeting) bind(id *cm.ID, port int) error {
	address := netip.IPv6Unspecified()
	if index := r.options.GIDIndex; index != card.AnyGID {
		entry, err := r.device.ChooseGID(index, netip.Addr{}, verbs.GID{})
		if err != nil {
			return err
		}
		if address = entry.GID.Addr(); address.Is6() && address.IsLinkLocalUnicast() {
			address = address.WithZone(r.device.Attr.Name)
		}
	}
	return id.Bind(netip.AddrPortFrom(address, uint16(port)))
}

// serve waits for a client's request, and answers it.
func (r *meeting) serve(ctx context.Context, channel *cm.EventChannel, id *cm.ID) (err error) {
	if err := errors.Join(r.bind(id, r.options.TCPPort), id.Listen(1)); err != nil {
		return err
	}
	at, err := id.LocalAddr()
	if err != nil {
		return err
	}
	if err := meet.Announce(r.device, r.options.out, at, "a client", r.options.GIDIndex); err != nil {
		return err
	}
	asked, err := await(ctx, channel, cm.EventConnectRequest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asked.ID.Close()) }() // which rejects it, if it was not accepted
	if err := r.meetClient(ctx, asked); err != nil {
		return err
	}
	return asked.ID.Accept(&cm.ConnParam{QPN: r.endpoint.QPN(), QKey: card.TestQKey})
}

// meetClient makes the endpoint for a client, with the address that it has asked.
func (r *meeting) meetClient(ctx context.Context, asked *cm.Event) error {
	qpn := binary.BigEndian.Uint32(asked.PrivateData)
	if qpn <= 1 || qpn >= uint32(verbs.MulticastQPN) {
		return fmt.Errorf("the client's request names QP 0x%x, which takes no messages; is it roced ping --cm? %w", qpn, unix.EBADMSG)
	}
	local, err := asked.ID.LocalAddr()
	if err != nil {
		return err
	}
	peer := meet.Destination{QPN: verbs.QPN(qpn), GID: asked.AH.GRH.DGID}
	r.local = local.Addr()
	if err := r.listen(peer.GID); err != nil {
		return err
	}
	return r.aim(ctx, peer)
}

// ask finds the way to the server, and asks for its queue pair.
func (r *meeting) ask(ctx context.Context, channel *cm.EventChannel, id *cm.ID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, meet.ReplyTimeout, fmt.Errorf("%s does not answer: %w; is the server running there (roced ping --cm -d DEVICE)?", r.options.Host, unix.ETIMEDOUT))
	defer cancel()
	if err := r.resolve(ctx, channel, id); err != nil {
		return err
	}
	local, err := id.LocalAddr()
	if err != nil {
		return err
	}
	r.local = local.Addr()
	if err := r.listen(verbs.GIDFromAddr(r.local)); err != nil {
		return err
	}
	if err := id.Connect(&cm.ConnParam{PrivateData: binary.BigEndian.AppendUint32(nil, uint32(r.endpoint.QPN()))}); err != nil {
		return err
	}
	answer, err := await(ctx, channel, cm.EventEstablished)
	if err != nil {
		return err
	}
	return r.aim(ctx, meet.Destination{QPN: answer.QPN, GID: answer.AH.GRH.DGID})
}

func (r *meeting) resolve(ctx context.Context, channel *cm.EventChannel, id *cm.ID) error {
	o := r.options
	found, err := cm.GetAddrInfo(ctx, o.Host, strconv.Itoa(o.TCPPort), &cm.AddrInfo{PortSpace: cm.PortSpaceUDP})
	if err != nil {
		return err
	}
	if o.GIDIndex != card.AnyGID {
		if err := r.bind(id, 0); err != nil {
			return err
		}
	}
	if err := id.ResolveAddr(netip.AddrPort{}, found[0].Dest, meet.ReplyTimeout); err != nil {
		return err
	}
	if _, err := await(ctx, channel, cm.EventAddrResolved); err != nil {
		return err
	}
	if err := id.ResolveRoute(); err != nil {
		return err
	}
	_, err = await(ctx, channel, cm.EventRouteResolved)
	return err
}

// await waits for an event, with the cause if the wait is ended.
func await(ctx context.Context, channel *cm.EventChannel, want cm.EventType) (*cm.Event, error) {
	event, err := channel.Expect(ctx, want)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return event, err
}
