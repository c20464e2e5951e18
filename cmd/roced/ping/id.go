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

// ids are what meetByID has opened. They live as long as the exchange: a connection ends with its id.
type ids struct {
	channel   *cm.EventChannel
	first     *cm.ID // that listens, or asks
	asked     *cm.ID // that a request has made
	connected *cm.ID // the one of them that has a connection; nil of datagrams
}

// Close closes them. A request that was not accepted is rejected by that, and a peer that is connected is told.
func (i *ids) Close() (err error) {
	for _, id := range []*cm.ID{i.asked, i.first} {
		if id != nil {
			err = errors.Join(err, id.Close())
		}
	}
	if i.channel != nil {
		err = errors.Join(err, i.channel.Close())
	}
	return err
}

// meetByID has the two sides find each other by connection ids (rdma_cm), without TCP. For datagrams the
// client's request says its queue pair, in the first 4 bytes of the private data, and the answer the
// server's; a connection's requests and answers say both themselves.
func (r *meeting) meetByID(ctx context.Context) (err error) {
	if r.ids.channel, err = cm.CreateEventChannel(r.device.Context); err != nil {
		return err
	}
	if r.ids.first, err = r.ids.channel.CreateID(r.options.portSpace(), nil); err != nil {
		return err
	}
	if r.options.Host == "" {
		return r.serve(ctx)
	}
	return r.ask(ctx)
}

func (o *options) portSpace() cm.PortSpace {
	if o.connects() {
		return cm.PortSpaceTCP
	}
	return cm.PortSpaceUDP
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
func (r *meeting) serve(ctx context.Context) (err error) {
	id := r.ids.first
	if err := errors.Join(r.bind(id, r.options.TCPPort), id.Listen(1)); err != nil {
		return err
	}
	at, err := id.LocalAddr()
	if err != nil {
		return err
	}
	if err := meet.Announce(r.device, r.options.notes(), at, "a client", r.options.GIDIndex); err != nil {
		return err
	}
	request, err := r.ids.await(ctx, cm.EventConnectRequest)
	if err != nil {
		return err
	}
	r.ids.asked = request.ID
	local, err := request.ID.LocalAddr()
	if err != nil {
		return err
	}
	r.local = local.Addr()
	if r.options.connects() {
		return r.accept(ctx)
	}
	return r.answer(ctx, request)
}

// answer has datagrams go to the queue pair that a client's request names.
func (r *meeting) answer(ctx context.Context, request *cm.Event) error {
	qpn := binary.BigEndian.Uint32(request.PrivateData)
	if qpn <= 1 || qpn >= uint32(verbs.MulticastQPN) {
		return fmt.Errorf("the client's request names QP 0x%x, which takes no messages; is it roced ping --cm? %w", qpn, unix.EBADMSG)
	}
	peer := meet.Destination{QPN: verbs.QPN(qpn), GID: request.AH.GRH.DGID}
	if err := r.listen(peer.GID); err != nil {
		return err
	}
	if err := r.aim(ctx, peer); err != nil {
		return err
	}
	return request.ID.Accept(&cm.ConnParam{QPN: r.endpoint.QPN(), QKey: card.TestQKey})
}

// accept makes the connection that a client has asked for.
func (r *meeting) accept(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, meet.ReplyTimeout, fmt.Errorf("the client does not confirm the connection: %w", unix.ETIMEDOUT))
	defer cancel()
	return r.establish(ctx, r.ids.asked, r.ids.asked.Accept)
}

// establish makes the queue pair of an id, and the connection by what begins it: to ask, or to accept.
func (r *meeting) establish(ctx context.Context, id *cm.ID, begin func(*cm.ConnParam) error) (err error) {
	r.ids.connected = id
	if err := r.listen(verbs.GIDFromAddr(r.local)); err != nil {
		return err
	}
	if err := begin(&cm.ConnParam{RetryCount: maxRetries, RNRRetryCount: maxRetries}); err != nil {
		return err
	}
	if _, err := r.ids.await(ctx, cm.EventEstablished); err != nil {
		return err
	}
	r.peer.QPN, r.peer.PSN, r.peer.GID, err = r.stream.Peer()
	return err
}

// maxRetries are those of ibv_rc_pingpong; not ready for a message may a peer be for ever.
const maxRetries = 7

// ask finds the way to the server, and asks for its queue pair.
func (r *meeting) ask(ctx context.Context) error {
	id := r.ids.first
	ctx, cancel := context.WithTimeoutCause(ctx, meet.ReplyTimeout, fmt.Errorf("%s does not answer: %w; is the server running there (roced ping --cm -d DEVICE)?", r.options.Host, unix.ETIMEDOUT))
	defer cancel()
	if err := r.resolve(ctx, id); err != nil {
		return err
	}
	local, err := id.LocalAddr()
	if err != nil {
		return err
	}
	r.local = local.Addr()
	if r.options.connects() {
		return r.establish(ctx, id, id.Connect)
	}
	return r.inquire(ctx, id)
}

// inquire tells the server the own queue pair, and is told where datagrams go.
func (r *meeting) inquire(ctx context.Context, id *cm.ID) error {
	if err := r.listen(verbs.GIDFromAddr(r.local)); err != nil {
		return err
	}
	if err := id.Connect(&cm.ConnParam{PrivateData: binary.BigEndian.AppendUint32(nil, uint32(r.endpoint.QPN()))}); err != nil {
		return err
	}
	answer, err := r.ids.await(ctx, cm.EventEstablished)
	if err != nil {
		return err
	}
	return r.aim(ctx, meet.Destination{QPN: answer.QPN, GID: answer.AH.GRH.DGID})
}

func (r *meeting) resolve(ctx context.Context, id *cm.ID) error {
	o := r.options
	found, err := cm.GetAddrInfo(ctx, o.Host, strconv.Itoa(o.TCPPort), &cm.AddrInfo{PortSpace: o.portSpace()})
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
	if _, err := r.ids.await(ctx, cm.EventAddrResolved); err != nil {
		return err
	}
	if err := id.ResolveRoute(); err != nil {
		return err
	}
	_, err = r.ids.await(ctx, cm.EventRouteResolved)
	return err
}

// await waits for an event, with the cause if the wait is ended.
func (i *ids) await(ctx context.Context, want cm.EventType) (*cm.Event, error) {
	event, err := i.channel.Expect(ctx, want)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return event, err
}
