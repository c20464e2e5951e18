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

// QP1 is QP 1 as the connection manager uses it, in a session of its own, which no program sees and
// which counts against nobody's limits. It is used under Manager.serving.
type QP1 struct {
	Session    CardSession
	card       Card
	pd         *verbs.PD
	cq         *verbs.CQ
	mr         *verbs.MR
	QP         *verbs.QP // nil while a program has QP 1
	Failed     bool      // the queue pair is in error, and is to be replaced
	wcs        []verbs.WC
	arrived    []arrival
	Handles    map[cm.Path]*Handle
	sending    []*Handle     // of the requests that have not completed, in order
	unroutable atomic.Uint64 // messages that were not sent
}

// arrival is a message that was received. Its payload is valid until the buffer is recycled.
type arrival struct {
	buffer  uint64
	path    cm.Path
	payload []byte
}

// Handle is an address handle, kept for some time: for further messages, and since a message waits
// with it for the neighbour's answer.
type Handle struct {
	ah      *verbs.AH
	path    cm.Path
	sending int // requests that have not completed
	Used    time.Time
}

const (
	gsiReceives = 256                        // that are posted
	gsiBuffer   = wire.GRHLen + wire.MADLen  // bytes; longer messages are not MADs, and find no room
	gsiSends    = 32                         // that are outstanding
	gsiBatch    = 64                         // completions that a round takes
	MaxHandles  = 2 * gsiSends               // so that one is free whenever a send is
	HandleIdle  = 2 * paths.NeighbourTimeout // after which a handle is closed
)

// Do implements provider.Provider. Address handles do not wait for the neighbour: the engine holds their packets meanwhile.
func (s CardSession) Do(ctx context.Context, code provider.Code, request, grant any) error {
	if r, is := request.(*provider.CreateAHRequest); is {
		r.NoWait = true
	}
	return s.Provider.Do(ctx, code, request, grant)
}

// openQP1 takes QP 1.
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

// open makes the queue pair if there is none; false if there cannot be one now.
func (g *QP1) open(taken bool) bool {
	if g.Failed {
		g.closeQP()
	}
	return g.QP != nil || !taken && g.openQP() == nil
}

// openQP makes the queue pair, with all receives posted.
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

// closeQP destroys the queue pair and what was sent with it.
func (g *QP1) closeQP() {
	if g.QP != nil {
		_ = g.QP.Close() // it is this session's; the card has ended, if that fails
	}
	g.QP, g.Failed, g.sending = nil, false, nil
	for _, h := range g.Handles {
		h.sending = 0
		g.drop(h)
	}
}

// over is a context that is done: with it CQ.Wait polls and, if there is nothing, arms.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// poll takes completions, and gives the messages that have arrived; n is 0 if there was no completion:
// then the next one wakes.
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

// recycle posts the buffers of messages again.
func (g *QP1) recycle(arrived []arrival) {
	wrs := make([]verbs.RecvWR, len(arrived))
	for i, a := range arrived {
		wrs[i] = verbs.RecvWR{ID: a.buffer, SGList: []verbs.SGE{g.mr.SGE(int(a.buffer)*gsiBuffer, gsiBuffer)}}
	}
	if err := g.QP.PostRecv(wrs); err != nil {
		g.Failed = true
	}
}

// send sends what next gives, as far as there is room, and closes handles that were not used for long.
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

// sent takes the completion of the oldest send.
func (g *QP1) sent(wc *verbs.WC) {
	g.sending[0].sending--
	g.sending = g.sending[1:]
	if wc.Status != verbs.WCSuccess {
		g.Failed = true
		g.unroutable.Add(1)
	}
}

// handleTo finds or makes the handle for a path.
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
	_ = h.ah.Close() // it is this session's; the card has ended, if that fails
	delete(g.Handles, h.path)
}

// dropOldest closes the handle that was not used for longest.
func (g *QP1) dropOldest() {
	var oldest *Handle
	for _, h := range g.Handles {
		if h.sending == 0 && (oldest == nil || h.Used.Before(oldest.Used)) {
			oldest = h
		}
	}
	g.drop(oldest)
}

// idleAt is when the first handle is to be closed, of those that nothing is being sent with.
func (g *QP1) idleAt() (at time.Time, some bool) {
	for _, h := range g.Handles {
		if idle := h.Used.Add(HandleIdle); h.sending == 0 && (!some || idle.Before(at)) {
			at, some = idle, true
		}
	}
	return at, some
}
