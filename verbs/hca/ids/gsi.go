// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// QP1 is the connection manager's QP 1, in a session of its own, which no program sees and which no limit counts. It is
// used under Manager.serving.
type QP1 struct {
	Session    CardSession
	card       Card
	pd         *verbs.PD
	cq         *verbs.CQ
	mr         *verbs.MR
	QP         *verbs.QP // nil while a program has QP 1
	Failed     bool      // the queue pair is in error, and must be replaced
	wcs        []verbs.WC
	arrived    []arrival
	Handles    map[cm.Path]*Handle
	sending    []*Handle     // handles of the incomplete requests, in order
	unroutable atomic.Uint64 // messages that were not sent
}

// arrival is a received message. Its payload is valid until the buffer is recycled.
type arrival struct {
	buffer  uint64
	path    cm.Path
	payload []byte
}

// Handle is an address handle that is kept for some time: for further messages, and because a message waits with it for
// the neighbour's response.
type Handle struct {
	ah      *verbs.AH
	path    cm.Path
	sending int // number of incomplete requests
	Used    time.Time
}

const (
	gsiReceives = 256                        // posted receives
	gsiBuffer   = wire.GRHLen + wire.MADLen  // bytes; longer messages are not MADs, and do not fit
	gsiSends    = 32                         // outstanding sends
	gsiBatch    = 64                         // maximum completions per round
	MaxHandles  = 2 * gsiSends               // so that one is free whenever a send is
	HandleIdle  = 2 * paths.NeighbourTimeout // idle time after which a handle is closed
)

// Do implements provider.Provider. Address handles do not wait for the neighbour: the engine holds their packets meanwhile.
func (s CardSession) Do(ctx context.Context, code provider.Code, request, grant any) error {
	if r, is := request.(*provider.CreateAHRequest); is {
		r.NoWait = true
	}
	return s.Provider.Do(ctx, code, request, grant)
}

// openQP1 acquires QP 1.
func openQP1(open func(wake func()) (CardSession, error), c Config, wake func()) (*QP1, error) {
	g := &QP1{card: c.Card, wcs: make([]verbs.WC, gsiBatch), Handles: map[cm.Path]*Handle{}}
	var err error
	if g.Session, err = open(wake); err != nil {
		return nil, err
	}
	if err := g.openObjects(); err != nil {
		return nil, errors.Join(err, g.Session.Close())
	}
	return g, nil
}

func (g *QP1) openObjects() error {
	ctx, err := verbs.Open(g.Session)
	if err != nil {
		return err
	}
	if g.pd, err = ctx.AllocPD(); err != nil {
		return err
	}
	if g.cq, err = ctx.CreateCQ(gsiReceives + gsiSends); err != nil {
		return err
	}
	if g.mr, err = g.pd.AllocMR(gsiReceives*gsiBuffer, verbs.AccessLocalWrite); err != nil {
		return err
	}
	return g.openQP()
}

// open creates the queue pair if necessary; it returns false if that is not possible now.
func (g *QP1) open(taken bool) bool {
	if g.Failed {
		g.closeQP()
	}
	return g.QP != nil || !taken && g.openQP() == nil
}

// openQP creates the queue pair, with all receives posted.
func (g *QP1) openQP() (err error) {
	qp, err := g.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeGSI, SendCQ: g.cq, RecvCQ: g.cq, Port: 1,
		Cap: verbs.QPCap{MaxSendWR: gsiSends, MaxRecvWR: gsiReceives, MaxInlineData: wire.MADLen},
	})
	if err != nil {
		return err
	}
	buffers := make([]arrival, gsiReceives)
	for i := range buffers {
		buffers[i].buffer = uint64(i)
	}
	g.QP, g.Failed = qp, false
	if err := qp.Activate(wire.QKeyGSI); err != nil {
		g.closeQP()
		return err
	}
	g.recycle(buffers)
	return nil
}

// closeQP destroys the queue pair and forgets its outstanding sends.
func (g *QP1) closeQP() {
	if g.QP != nil {
		_ = g.QP.Close() // it belongs to this session; it can fail only if the card has ended
	}
	g.QP, g.Failed, g.sending = nil, false, nil
	for _, h := range g.Handles {
		h.sending = 0
		g.drop(h)
	}
}

// over is a context that is done: with it CQ.Wait polls and, if there is no completion, arms the CQ.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// poll handles completions, and returns the messages that have arrived; n is 0 if there was no completion: then the
// next one wakes the goroutine.
func (g *QP1) poll() (arrived []arrival, n int) {
	n, _ = g.cq.Wait(over, g.wcs) // it fails with the context's error, or the card has ended
	g.arrived = g.arrived[:0]
	for i := range g.wcs[:n] {
		switch wc := &g.wcs[i]; {
		case wc.ID == sendID:
			g.sent(wc)
		case wc.Status == verbs.WCSuccess:
			g.arrived = append(g.arrived, g.arrival(wc))
		default:
			g.Failed = true // flushed: the queue pair is in error
		}
	}
	return g.arrived, n
}

// sendID is the ID of all sends; receives have the number of their buffer.
const sendID = ^uint64(0)

func (g *QP1) arrival(wc *verbs.WC) arrival {
	memory := g.mr.Bytes()[int(wc.ID)*gsiBuffer:][:wc.ByteLen]
	grh := verbs.GRH(memory[:wire.GRHLen])
	remote, local := grh.Addresses()
	return arrival{buffer: wc.ID, payload: memory[wire.GRHLen:], path: cm.Path{
		Local: local, Remote: remote, TrafficClass: grh.TrafficClass(), HopLimit: grh.HopLimit(), FlowLabel: grh.FlowLabel(),
	}}
}

// recycle reposts the buffers of messages.
func (g *QP1) recycle(arrived []arrival) {
	wrs := make([]verbs.RecvWR, len(arrived))
	for i, a := range arrived {
		wrs[i] = verbs.RecvWR{ID: a.buffer, SGList: []verbs.SGE{g.mr.SGE(int(a.buffer)*gsiBuffer, gsiBuffer)}}
	}
	if err := g.QP.PostRecv(wrs); err != nil {
		g.Failed = true
	}
}

// send sends the messages that next returns, as far as there is room, and closes idle handles.
func (g *QP1) send(now time.Time, next func() (cm.Datagram, bool)) {
	for len(g.sending) < gsiSends {
		d, some := next()
		if !some {
			break
		}
		if err := g.Post(now, &d); err != nil {
			g.unroutable.Add(1)
		}
	}
	for _, h := range g.Handles {
		if h.sending == 0 && now.Sub(h.Used) >= HandleIdle {
			g.drop(h)
		}
	}
}

// Post sends a message.
func (g *QP1) Post(now time.Time, d *cm.Datagram) error {
	h, err := g.handleTo(d.Path)
	if err != nil {
		return err
	}
	h.Used = now
	if err := g.QP.PostSend([]verbs.SendWR{{
		ID: sendID, Opcode: verbs.WRSend, Flags: verbs.SendSignaled | verbs.SendInline, InlineData: d.MAD[:],
		AH: h.ah, RemoteQPN: wire.QPNGSI, RemoteQKey: wire.QKeyGSI,
	}}); err != nil {
		g.Failed = true
		return err
	}
	h.sending++
	g.sending = append(g.sending, h)
	return nil
}

// sent handles the completion of the oldest send.
func (g *QP1) sent(wc *verbs.WC) {
	g.sending[0].sending--
	g.sending = g.sending[1:]
	if wc.Status != verbs.WCSuccess {
		g.Failed = true
		g.unroutable.Add(1)
	}
}

// handleTo returns the handle for a path, and creates it if necessary.
func (g *QP1) handleTo(path cm.Path) (*Handle, error) {
	if h := g.Handles[path]; h != nil {
		return h, nil
	}
	source, err := g.card.GIDIndex(path.Local)
	if err != nil {
		return nil, err
	}
	if len(g.Handles) == MaxHandles {
		g.dropOldest()
	}
	ah, err := g.pd.CreateAH(context.Background(), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{
		DGID: path.Remote, SGIDIndex: source, TrafficClass: path.TrafficClass, HopLimit: path.HopLimit, FlowLabel: path.FlowLabel,
	}})
	if err != nil {
		return nil, err
	}
	h := &Handle{ah: ah, path: path}
	g.Handles[path] = h
	return h, nil
}

// drop closes a handle.
func (g *QP1) drop(h *Handle) {
	_ = h.ah.Close() // it belongs to this session; it can fail only if the card has ended
	delete(g.Handles, h.path)
}

// dropOldest closes the least recently used handle.
func (g *QP1) dropOldest() {
	var oldest *Handle
	for _, h := range g.Handles {
		if h.sending == 0 && (oldest == nil || h.Used.Before(oldest.Used)) {
			oldest = h
		}
	}
	g.drop(oldest)
}

// idleAt returns the time when the first idle handle has to be closed.
func (g *QP1) idleAt() (at time.Time, some bool) {
	for _, h := range g.Handles {
		if idle := h.Used.Add(HandleIdle); h.sending == 0 && (!some || idle.Before(at)) {
			at, some = idle, true
		}
	}
	return at, some
}
