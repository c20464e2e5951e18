// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
)

const (
	qkey  = 0x11111111
	depth = 512 // outstanding receives
	batch = 64  // requests per post, as many as messages per system call of UDP and frames per burst of raw AF_XDP
)

// program contains the objects of a user of verbs: a device, a queue pair, memory.
type program struct {
	device     *hca.Card // nil for a client of a daemon
	ctx        *verbs.Context
	pd         *verbs.PD
	qp         *verbs.QP
	send, recv *verbs.CQ
	mr         *verbs.MR
	slot       int // length of a message's memory in bytes
	wait       bool
	timeout    context.Context // see waitContext
	cancel     context.CancelFunc
	renewed    time.Time
	wcs        [64]verbs.WC
	recvs      [64]verbs.RecvWR
	sges       [depth]verbs.SGE
}

// openCard opens a card with the job's settings.
func openCard(j harness.Job) (*hca.Card, error) {
	return hca.Open(linkName, hca.InNamespace(j.Namespace), hca.WithNetwork(j.Network), hca.WithTuning(j.Tuning), hca.WithSendMode(j.Send))
}

// openContext opens a card, and a context on it whose Close closes the card.
func openContext(j harness.Job) (*verbs.Context, error) {
	card, err := openCard(j)
	if err != nil {
		return nil, err
	}
	return verbs.Open(card)
}

func openProgram(j harness.Job) (*program, error) {
	if j.Socket != "" {
		return dialProgram(j)
	}
	device, err := openCard(j)
	if err != nil {
		return nil, err
	}
	p, err := newProgram(device, j.Variant == "worker", j.Size)
	if err == nil {
		p.device = device
	}
	return p, err
}

// close closes the card, or the connection to the daemon.
func (p *program) close() error {
	if p.device == nil {
		return p.ctx.Close()
	}
	return p.device.Close()
}

func newProgram(session provider.Provider, wait bool, size int) (p *program, err error) {
	p = &program{wait: wait, slot: memberSlot(size), cancel: func() {}}
	if p.ctx, err = verbs.Open(session); err != nil {
		return nil, err
	}
	if p.pd, err = p.ctx.AllocPD(); err != nil {
		return nil, err
	}
	if p.mr, err = p.pd.AllocMR(depth*p.slot, verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	if p.send, err = p.ctx.CreateCQ(depth); err != nil {
		return nil, err
	}
	if p.recv, err = p.ctx.CreateCQ(depth); err != nil {
		return nil, err
	}
	p.qp, err = p.newQP(depth)
	return p, err
}

func (p *program) newQP(depth int) (*verbs.QP, error) {
	qp, err := p.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: p.send, RecvCQ: p.recv,
		Cap: verbs.QPCap{MaxSendWR: uint32(depth), MaxRecvWR: uint32(depth)},
	})
	if err != nil {
		return nil, err
	}
	return qp, qp.Activate(qkey)
}

// postAll posts receives for all slots.
func (p *program) postAll() error {
	for i := range p.sges {
		p.sges[i] = p.mr.SGE(i*p.slot, p.slot)
		if err := p.qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: p.sges[i : i+1]}}); err != nil {
			return err
		}
	}
	return nil
}

// repost reposts the receives of n completions.
func (p *program) repost(n int) error {
	for i, wc := range p.wcs[:n] {
		p.recvs[i] = verbs.RecvWR{ID: wc.ID, SGList: p.sges[wc.ID : wc.ID+1]}
	}
	return p.qp.PostRecv(p.recvs[:n])
}

// poll polls completions, or waits for them if wait is set.
func (p *program) poll(cq *verbs.CQ) (int, error) {
	if !p.wait {
		n, err := cq.Poll(p.wcs[:])
		return p.check(n, err)
	}
	n, err := cq.Wait(p.waitContext(), p.wcs[:])
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return p.check(n, err)
}

// waitContext returns a context with a timeout of between half of tripTimeout and tripTimeout, for waits for lost
// messages. Many waits share it: a timer for each would wake a thread of the runtime, and UDP sockets need no timer
// either.
func (p *program) waitContext() context.Context {
	if now := time.Now(); now.Sub(p.renewed) > tripTimeout/2 {
		p.cancel()
		p.timeout, p.cancel = context.WithTimeout(context.Background(), tripTimeout)
		p.renewed = now
	}
	return p.timeout
}

// check verifies that completions are of sent or received messages.
func (p *program) check(n int, err error) (int, error) {
	for i := range p.wcs[:n] {
		if failed := p.wcs[i].Err(); failed != nil {
			return 0, failed
		}
	}
	return n, err
}

// openReceiver opens a program and posts its receives.
func openReceiver(j harness.Job) (*program, error) {
	p, err := openProgram(j)
	if err != nil {
		return nil, err
	}
	return p, p.postAll()
}

func (p *program) addressOf(peer harness.Endpoint) (*verbs.AH, error) {
	return p.pd.CreateAH(context.Background(), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gidOf(peer)}})
}

func gidOf(e harness.Endpoint) verbs.GID { return verbs.GID(netip.MustParseAddr(e.Address).As16()) }

func rocedReceive(j harness.Job) (harness.Result, error) {
	p, err := openReceiver(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPN: uint32(p.qp.Number())}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for !harness.Stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return harness.Result{}, err
		}
		if n > 0 {
			m.Add(n)
			if err := p.repost(n); err != nil {
				return harness.Result{}, err
			}
		}
	}
	return m.Result(), p.close()
}

// sendDepth returns the number of outstanding sends. The memory of few sends stays in the processor's cache, while many
// sends wake a waiting program less often.
func (p *program) sendDepth() int {
	if p.wait {
		return depth
	}
	return depth / 2
}

// sends returns batch requests, of which the last is signaled. All send the same memory, as in the other variants.
func (p *program) sends(j harness.Job, ah *verbs.AH) []verbs.SendWR {
	wrs := make([]verbs.SendWR, batch)
	for i := range wrs {
		wrs[i] = verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{p.mr.SGE(0, j.Size)}, AH: ah, RemoteQPN: verbs.QPN(j.Peer.QPN), RemoteQKey: qkey}
	}
	wrs[batch-1].Flags = verbs.SendSignaled
	return wrs
}

func rocedSend(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	ah, err := p.addressOf(j.Peer)
	if err != nil {
		return harness.Result{}, err
	}
	wrs := p.sends(j, ah)
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	outstanding, most := 0, p.sendDepth()
	for start := time.Now(); time.Since(start) < j.Duration; {
		for ; outstanding+batch <= most; outstanding += batch {
			if err := p.qp.PostSend(wrs); err != nil {
				return harness.Result{}, err
			}
		}
		n, err := p.poll(p.send)
		if err != nil {
			return harness.Result{}, err
		}
		outstanding -= n * batch
		m.Add(n * batch)
	}
	return m.Result(), p.close()
}

func rocedPong(j harness.Job) (harness.Result, error) {
	p, err := openReceiver(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPN: uint32(p.qp.Number())}); err != nil {
		return harness.Result{}, err
	}
	var ah *verbs.AH
	for !harness.Stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return harness.Result{}, err
		}
		for _, wc := range p.wcs[:n] {
			grh, _ := wc.Payload(p.mr.Bytes()[int(wc.ID)*p.slot:])
			if ah == nil {
				if ah, err = p.pd.CreateAHFromWC(&wc, grh, 1); err != nil {
					return harness.Result{}, err
				}
			}
			if err := p.reply(j, ah, wc.SrcQP); err != nil {
				return harness.Result{}, err
			}
		}
		if err := p.repost(n); err != nil {
			return harness.Result{}, err
		}
	}
	return harness.Result{}, p.close()
}

// reply sends one unsignaled message, which has no completion.
func (p *program) reply(j harness.Job, ah *verbs.AH, to verbs.QPN) error {
	return p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{p.mr.SGE(0, j.Size)}, AH: ah, RemoteQPN: to, RemoteQKey: qkey}})
}

func rocedPing(j harness.Job) (harness.Result, error) {
	p, err := openReceiver(j)
	if err != nil {
		return harness.Result{}, err
	}
	ah, err := p.addressOf(j.Peer)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	r := measureTrips(j.Count, func() bool {
		if err := p.reply(j, ah, verbs.QPN(j.Peer.QPN)); err != nil {
			return false
		}
		for start := time.Now(); time.Since(start) < tripTimeout; {
			if n, _ := p.poll(p.recv); n > 0 {
				return p.repost(n) == nil
			}
		}
		return false
	})
	return r, p.close()
}
