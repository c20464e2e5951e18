package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

// idProgram is one of rdma-core's programs that connect by ids, unmodified, and roced's part of its exchange.
type idProgram struct {
	server, client string // the peer's command as either; %v is the address of the server
	port           uint16
	mtu            int                                       // of the link
	private        func(e *idEnd) []byte                     // what roced tells when it connects
	serve, ask     func(ctx context.Context, e *idEnd) error // roced's part as a server, and as a client
	says           string                                    // what the program writes when all is well, if its exit code does not tell
	shows          string                                    // what that shows
}

// idEnd is roced's end of a connection.
type idEnd struct {
	*station
	channel *cm.EventChannel
	id      *cm.ID
	region  *verbs.MR // that the peer may read and write
	sent    *verbs.CQ // of requests
	heard   []byte    // the peer's private data
}

// maxConnected is how many messages roced expects at once.
const maxConnected = 16

func idProgramCases() (cases []testCase) {
	for _, p := range idPrograms {
		for _, ipv6 := range []bool{false, true} {
			cases = append(cases, p.testCase("the server", p.server, ipv6, p.beClient), p.testCase("the client", p.client, ipv6, p.beServer))
		}
	}
	return cases
}

// badWireCases are some of them over a bad wire, both ends of which get over it.
func badWireCases() (cases []testCase) {
	for _, p := range []idProgram{newRping(20, 60_000, 0), newRstream(100_000, 0)} {
		cases = append(cases, p.testCase("the server", p.server, false, p.beClient), p.testCase("the client", p.client, false, p.beServer))
	}
	for i := range cases {
		cases[i].name += ", over a bad wire"
		cases[i].bad = true
	}
	return cases
}

// testCase is one in which the peer runs a command, and roced is what the other end takes.
func (p *idProgram) testCase(role, command string, ipv6 bool, be func(context.Context, *testbed, *idEnd, bool) (*job.Job, error)) testCase {
	program, _, _ := strings.Cut(command, " ")
	return testCase{
		name: fmt.Sprintf("connections, %s %s, %s, %s", program, role, p.shows, family(ipv6)), mtu: p.mtu,
		run: func(ctx context.Context, l *testbed) (string, error) {
			return p.run(ctx, l, func(e *idEnd) (*job.Job, error) { return be(ctx, l, e, ipv6) })
		},
	}
}

func (p *idProgram) run(ctx context.Context, l *testbed, play func(*idEnd) (*job.Job, error)) (detail string, err error) {
	e := &idEnd{}
	if e.station, err = l.newStation(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if e.region, err = e.pd.AllocMR(1<<17, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite); err != nil {
		return "", err
	}
	if e.sent, err = e.CreateCQ(1); err != nil {
		return "", err
	}
	if e.channel, err = cm.CreateEventChannel(e.Context); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.channel.Close()) }()
	peer, err := play(e)
	if e.id != nil {
		err = errors.Join(err, e.end(e.id))
	}
	if err != nil {
		return "", errors.Join(err, e.dropError())
	}
	if said, err := peer.Wait(); err != nil || !strings.Contains(said, p.says) {
		return "", fmt.Errorf("the peer's program (%v):\n%s", err, tail(said))
	}
	return "both ends are content", nil
}

// told is the private data.
func (p *idProgram) told(e *idEnd) []byte {
	if p.private == nil {
		return nil
	}
	return p.private(e)
}

// beClient is roced's part as the client.
func (p *idProgram) beClient(ctx context.Context, l *testbed, e *idEnd, ipv6 bool) (*job.Job, error) {
	to := netip.AddrPortFrom(ends(ipv6).peer, p.port)
	server := l.peer.Start(ctx, fmt.Sprintf(p.server, to.Addr()))
	if err := e.connect(ctx, to, p.told(e)); err != nil {
		return nil, err
	}
	if err := p.ask(ctx, e); err != nil {
		return nil, err
	}
	return server, nil
}

// beServer is its part as the server.
func (p *idProgram) beServer(ctx context.Context, l *testbed, e *idEnd, ipv6 bool) (client *job.Job, err error) {
	service, err := e.channel.CreateID(cm.PortSpaceTCP, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	own := netip.AddrPortFrom(ends(ipv6).host, p.port)
	if err := errors.Join(service.Bind(own), service.Listen(1)); err != nil {
		return nil, err
	}
	client = l.peer.Start(ctx, fmt.Sprintf(p.client, own.Addr()))
	asked, err := e.channel.Expect(ctx, cm.EventConnectRequest)
	if err != nil {
		return nil, err
	}
	e.id, e.heard = asked.ID, asked.PrivateData
	param := cm.ConnParam{ResponderResources: cm.MaxResources, InitiatorDepth: cm.MaxResources, RNRRetryCount: 7, PrivateData: p.told(e)}
	if err := errors.Join(e.beginConnected(), e.id.Accept(&param)); err != nil {
		return nil, err
	}
	if _, err := e.channel.Expect(ctx, cm.EventEstablished); err != nil {
		return nil, err
	}
	return client, p.serve(ctx, e)
}

// connect asks until the peer listens, which it says only when it ends.
func (e *idEnd) connect(ctx context.Context, to netip.AddrPort, private []byte) (err error) {
	const nobodyListens = 8 // the reason of a REJ
	for {
		if e.id, err = e.channel.CreateID(cm.PortSpaceTCP, nil); err != nil {
			return err
		}
		event, err := e.tryConnect(ctx, to, private)
		switch {
		case err != nil:
			return err
		case event.Type == cm.EventEstablished:
			e.heard = event.PrivateData
			return nil
		case event.Status != nobodyListens:
			return fmt.Errorf("%v: %w", event.Type, event.Err())
		}
		if err := e.end(e.id); err != nil {
			return err
		}
		e.id = nil
		time.Sleep(20 * time.Millisecond)
	}
}

func (e *idEnd) tryConnect(ctx context.Context, to netip.AddrPort, private []byte) (*cm.Event, error) {
	if err := e.id.ResolveAddr(netip.AddrPort{}, to, 5*time.Second); err != nil {
		return nil, err
	}
	if _, err := e.channel.Expect(ctx, cm.EventAddrResolved); err != nil {
		return nil, err
	}
	if err := e.id.ResolveRoute(); err != nil {
		return nil, err
	}
	if _, err := e.channel.Expect(ctx, cm.EventRouteResolved); err != nil {
		return nil, err
	}
	param := cm.ConnParam{ResponderResources: cm.MaxResources, InitiatorDepth: cm.MaxResources, RetryCount: 7, RNRRetryCount: 7, PrivateData: private}
	if err := errors.Join(e.beginConnected(), e.id.Connect(&param)); err != nil {
		return nil, err
	}
	return e.channel.Get(ctx)
}

// beginConnected makes the id's queue pair, which can receive some messages.
func (e *idEnd) beginConnected() (err error) {
	e.qp, err = e.id.CreateQP(e.pd, &verbs.QPInitAttr{SendCQ: e.sent, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: stationDepth, MaxRecvWR: stationDepth}})
	if err != nil {
		return err
	}
	return e.postRecvs(maxConnected, stationBuffer)
}

// say sends a message.
func (e *idEnd) say(ctx context.Context, data []byte) error {
	const buffer = stationDepth * stationBuffer
	copy(e.mr.Bytes()[buffer:], data)
	return e.request(ctx, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(buffer, len(data))}})
}

// request posts a request, and waits until it is done.
func (e *idEnd) request(ctx context.Context, wr verbs.SendWR) error {
	wr.Flags |= verbs.SendSignaled
	if err := e.qp.PostSend([]verbs.SendWR{wr}); err != nil {
		return err
	}
	_, err := next(ctx, e.sent)
	return err
}

// next waits for a completion. One of a request that failed is an error.
func next(ctx context.Context, cq *verbs.CQ) (verbs.WC, error) {
	var wcs [1]verbs.WC
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return wcs[0], err
	}
	return wcs[0], wcs[0].Err()
}

// hear receives a message of a length.
func (e *idEnd) hear(ctx context.Context, length int) ([]byte, error) {
	wc, err := next(ctx, e.cq)
	switch {
	case err != nil:
		return nil, err
	case int(wc.ByteLen) != length:
		return nil, fmt.Errorf("a message of %d bytes came, not of %d", wc.ByteLen, length)
	}
	return e.mr.Bytes()[int(wc.ID)%stationDepth*stationBuffer:][:length], e.postRecvs(1, stationBuffer)
}

// disconnect ends the connection, and waits until the peer agrees.
func (e *idEnd) disconnect(ctx context.Context) error {
	if err := e.id.Disconnect(); err != nil {
		return err
	}
	_, err := e.channel.Expect(ctx, cm.EventDisconnected)
	return err
}

// disconnected waits until the peer has ended the connection, and agrees.
func (e *idEnd) disconnected(ctx context.Context) error {
	if _, err := e.channel.Expect(ctx, cm.EventDisconnected); err != nil {
		return err
	}
	return e.id.Disconnect()
}
