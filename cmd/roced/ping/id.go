// SPDX-License-Identifier: Apache-2.0

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

// ids holds the ids that meetByID has opened for datagrams, until the end of the exchange.
type ids struct {
	channel   *cm.EventChannel
	first     *cm.ID // listens, or sends the request
	requested *cm.ID // created by a request
}

// Close closes the ids. A pending request is rejected.
func (i *ids) Close() (err error) {
	for _, id := range []*cm.ID{i.requested, i.first} {
		if id != nil {
			err = errors.Join(err, id.Close())
		}
	}
	if i.channel != nil {
		err = errors.Join(err, i.channel.Close())
	}
	return err
}

// meetByID connects the two sides through connection ids (rdma_cm), without TCP. For datagrams the first
// 4 bytes of the private data carry the queue pair number, in the request and in the response; messages for connections
// have a field for it.
func (r *meeting) meetByID(ctx context.Context) (err error) {
	if r.options.connects() {
		return r.connectByID(ctx)
	}
	if r.ids.channel, err = cm.CreateEventChannel(r.device.Context); err != nil {
		return err
	}
	if r.ids.first, err = r.ids.channel.CreateID(cm.PortSpaceUDP, nil); err != nil {
		return err
	}
	if r.options.Host == "" {
		return r.serve(ctx)
	}
	ctx, cancel := r.withTimeout(ctx)
	defer cancel()
	return r.request(ctx)
}

// connectByID establishes a connection.
func (r *meeting) connectByID(ctx context.Context) error {
	o := r.options
	own, err := r.ownAddress()
	if err != nil {
		return err
	}
	if o.Host == "" {
		at := netip.AddrPortFrom(own, uint16(o.TCPPort))
		r.stream, err = card.AcceptStream(ctx, r.device, at, o.stream(netip.Addr{}), r.announce)
	} else {
		ctx, cancel := r.withTimeout(ctx)
		defer cancel()
		var to netip.AddrPort
		if to, err = r.find(ctx, cm.PortSpaceTCP); err != nil {
			return err
		}
		r.stream, err = card.DialStream(ctx, r.device, to, o.stream(own))
		err = r.refused(ctx, err)
	}
	if err != nil {
		return err
	}
	r.peer = destination(r.stream.RemoteQP())
	return nil
}

// maxMAD is the size of a message of the connection manager, in bytes.
const maxMAD = 256

// needed returns the command that the peer has to run.
func (r *meeting) needed() string {
	command := "roced ping --cm"
	switch {
	case r.options.srq:
		command += " --srq"
	case r.options.rc:
		command += " --rc"
	}
	return "check that the server runs there (" + command + " -d DEVICE), with --cm and the same --rc on both sides"
}

// refused adds the command of needed to the error of a client's connection request.
func (r *meeting) refused(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, unix.ETIMEDOUT): // after all retries of the connection manager
		return r.unanswered()
	}
	return fmt.Errorf("%w; %s", err, r.needed())
}

// unanswered returns the error of a server that does not respond.
func (r *meeting) unanswered() error {
	return fmt.Errorf("%s does not respond: %w; %s; %s", r.options.Host, unix.ETIMEDOUT, r.needed(), card.Unanswered(maxMAD))
}

// withTimeout limits the wait for a server.
func (r *meeting) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, meet.ReplyTimeout, r.unanswered())
}

func (r *meeting) announce(at netip.AddrPort) error {
	return meet.Announce(r.device, r.options.notes(), at, "a client", r.options.GIDIndex)
}

// find resolves the server's address and port.
func (r *meeting) find(ctx context.Context, space cm.PortSpace) (netip.AddrPort, error) {
	found, err := cm.GetAddrInfo(ctx, r.options.Host, strconv.Itoa(r.options.TCPPort), &cm.AddrInfo{PortSpace: space})
	if err != nil {
		return netip.AddrPort{}, err
	}
	address, err := r.device.InZone(found[0].Dest.Addr())
	return netip.AddrPortFrom(address, found[0].Dest.Port()), err
}

// ownAddress returns the address that --gid-index selects, or the unspecified address, which stands for all addresses.
func (r *meeting) ownAddress() (netip.Addr, error) {
	index := r.options.GIDIndex
	if index == card.AnyGID {
		return netip.IPv6Unspecified(), nil
	}
	entry, err := r.device.ChooseGID(index, netip.Addr{}, verbs.GID{})
	if err != nil {
		return netip.Addr{}, err
	}
	address := entry.GID.Addr()
	if address.Is6() && address.IsLinkLocalUnicast() {
		address = address.WithZone(r.device.Attr.Name)
	}
	return address, nil
}

// bind binds an id to ownAddress.
func (r *meeting) bind(id *cm.ID, port int) error {
	address, err := r.ownAddress()
	if err != nil {
		return err
	}
	return id.Bind(netip.AddrPortFrom(address, uint16(port)))
}

// serve waits for a client's request and responds.
func (r *meeting) serve(ctx context.Context) (err error) {
	id := r.ids.first
	if err := errors.Join(r.bind(id, r.options.TCPPort), id.Listen(1)); err != nil {
		return err
	}
	at, err := id.LocalAddr()
	if err != nil {
		return err
	}
	if err := r.announce(at); err != nil {
		return err
	}
	request, err := r.ids.await(ctx, cm.EventConnectRequest)
	if err != nil {
		return err
	}
	r.ids.requested = request.ID
	local, err := request.ID.LocalAddr()
	if err != nil {
		return err
	}
	r.local = local.Addr()
	return r.answer(ctx, request)
}

// answer sends datagrams to the queue pair in a client's request, and sends the client this side's queue pair number.
func (r *meeting) answer(ctx context.Context, request *cm.Event) error {
	qpn := binary.BigEndian.Uint32(request.PrivateData)
	if qpn <= 1 || qpn >= uint32(verbs.MulticastQPN) {
		return fmt.Errorf("the client's request has QP 0x%x, which cannot receive; check that the client is roced ping --cm: %w", qpn, unix.EBADMSG)
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

// request resolves the path to the server and requests its queue pair number.
func (r *meeting) request(ctx context.Context) error {
	id := r.ids.first
	if err := r.resolve(ctx, id); err != nil {
		return err
	}
	local, err := id.LocalAddr()
	if err != nil {
		return err
	}
	r.local = local.Addr()
	return r.exchangeQPN(ctx, id)
}

// exchangeQPN sends this side's queue pair number and receives the server's.
func (r *meeting) exchangeQPN(ctx context.Context, id *cm.ID) error {
	if err := r.listen(verbs.GIDFromAddr(r.local)); err != nil {
		return err
	}
	if err := id.Connect(&cm.ConnParam{PrivateData: binary.BigEndian.AppendUint32(nil, uint32(r.endpoint.QPN()))}); err != nil {
		return err
	}
	answer, err := r.ids.await(ctx, cm.EventEstablished)
	if err != nil {
		return r.refused(ctx, err)
	}
	return r.aim(ctx, meet.Destination{QPN: answer.QPN, GID: answer.AH.GRH.DGID})
}

func (r *meeting) resolve(ctx context.Context, id *cm.ID) error {
	to, err := r.find(ctx, cm.PortSpaceUDP)
	if err != nil {
		return err
	}
	if r.options.GIDIndex != card.AnyGID {
		if err := r.bind(id, 0); err != nil {
			return err
		}
	}
	if err := id.ResolveAddr(netip.AddrPort{}, to, meet.ReplyTimeout); err != nil {
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

// await waits for an event. If ctx is done, it returns the cause.
func (i *ids) await(ctx context.Context, want cm.EventType) (*cm.Event, error) {
	event, err := i.channel.Expect(ctx, want)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return event, err
}
