// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// connected is a program with queue pairs that are connected to a peer's.
type connected struct {
	*program
	qps    []*verbs.QP
	remote remote
}

// remote is the information that the two sides exchange.
type remote struct {
	QPNs []verbs.QPN
	RKey verbs.RKey
}

const (
	bulkDepth      = 16 // outstanding messages per queue pair
	connectionPort = 18515
)

// openConnected creates the queue pairs, exchanges their numbers with the peer over TCP, and connects them. The server
// announces that it listens.
func openConnected(j harness.Job, server bool) (p *connected, err error) {
	own := j
	own.Size = j.Size * bulkDepth // one slot for all outstanding messages
	p = &connected{}
	if p.program, err = openProgram(own); err != nil {
		return nil, err
	}
	if p.send, err = p.ctx.CreateCQ(bulkDepth * max(j.QueuePairs, 1)); err != nil {
		return nil, err
	}
	if p.recv, err = p.ctx.CreateCQ(2 * bulkDepth * max(j.QueuePairs, 1)); err != nil {
		return nil, err
	}
	access := verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	if p.mr, err = p.pd.AllocMR(max(j.Size*bulkDepth, 1<<16), access); err != nil {
		return nil, err
	}
	told := remote{RKey: p.mr.RKey()}
	for range max(j.QueuePairs, 1) {
		qp, err := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: p.send, RecvCQ: p.recv, Cap: verbs.QPCap{MaxSendWR: bulkDepth, MaxRecvWR: 2 * bulkDepth}})
		if err != nil {
			return nil, err
		}
		p.qps, told.QPNs = append(p.qps, qp), append(told.QPNs, qp.Number())
	}
	if p.remote, err = meet(j, server, told); err != nil {
		return nil, err
	}
	return p, p.connect(j)
}

// connect connects the queue pairs, and posts receives.
func (p *connected) connect(j harness.Job) error {
	gid := gidOf(j.Peer)
	for i, qp := range p.qps {
		attr := verbs.QPAttr{
			AHAttr: verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid}}, Port: 1, DestQPN: p.remote.QPNs[i], AccessFlags: verbs.AccessRemoteWrite | verbs.AccessRemoteRead,
			MaxRDAtomic: bulkDepth, MaxDestRDAtomic: bulkDepth, MinRNRTimer: 1, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
		}
		if err := qp.Connect(&attr); err != nil {
			return err
		}
		for range 2 * bulkDepth {
			if err := p.receive(qp, j.Size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *connected) receive(qp *verbs.QP, size int) error {
	return qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, size)}}})
}

// meet exchanges the information of both sides.
func meet[T any](j harness.Job, server bool, own T) (peer T, err error) {
	err = hca.RunIn(j.Namespace, func() error {
		conn, err := meetOver(j, server)
		if err != nil {
			return err
		}
		defer conn.Close()
		return errors.Join(json.NewEncoder(conn).Encode(own), json.NewDecoder(conn).Decode(&peer))
	})
	return peer, err
}

func meetOver(j harness.Job, server bool) (net.Conn, error) {
	if !server {
		return net.DialTimeout("tcp", net.JoinHostPort(j.Peer.Address, strconv.Itoa(cmp.Or(j.Port, connectionPort))), 10*time.Second)
	}
	listener, err := net.Listen("tcp", fmt.Sprint(":", cmp.Or(j.Port, connectionPort)))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return nil, err
	}
	return listener.Accept()
}

// connectedReceive is the responder of connectedSend.
func connectedReceive(j harness.Job) (harness.Result, error) {
	p, err := openConnected(j, true)
	if err != nil {
		return harness.Result{}, err
	}
	qps := map[verbs.QPN]*verbs.QP{}
	for _, qp := range p.qps {
		qps[qp.Number()] = qp
	}
	for !harness.Stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return harness.Result{}, err
		}
		for _, wc := range p.wcs[:n] {
			if err := p.receive(qps[wc.QPN], j.Size); err != nil {
				return harness.Result{}, err
			}
		}
	}
	return harness.Result{}, p.close()
}

// connectedSend executes SENDs, WRITEs or READs at the maximum rate, and counts packets.
func connectedSend(j harness.Job) (harness.Result, error) {
	p, err := openConnected(j, false)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	wrs := []verbs.SendWR{{
		Opcode: map[string]verbs.Opcode{"rc send": verbs.WRSend, "rc write": verbs.WRRDMAWrite, "rc read": verbs.WRRDMARead}[j.Variant], Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{p.mr.SGE(0, j.Size)}, RKey: p.remote.RKey,
	}}
	outstanding := map[verbs.QPN]int{}
	var m harness.Meter
	for start := time.Now(); time.Since(start) < j.Duration; {
		for _, qp := range p.qps {
			for ; outstanding[qp.Number()] < bulkDepth; outstanding[qp.Number()]++ {
				if err := qp.PostSend(wrs); err != nil {
					return harness.Result{}, err
				}
			}
		}
		n, err := p.poll(p.send)
		if err != nil {
			return harness.Result{}, err
		}
		for _, wc := range p.wcs[:n] {
			outstanding[wc.QPN]--
		}
		if n > 0 {
			m.Add(n * (j.Size / j.MTU))
		}
	}
	return m.Result(), p.close()
}

// connectedPing and connectedPong exchange messages one at a time.
func connectedPing(j harness.Job) (harness.Result, error) {
	p, err := openConnected(j, false)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var failed error
	r := measureTrips(j.Count, func() bool {
		if failed == nil {
			failed = errors.Join(p.one(j), p.await(j))
		}
		return failed == nil
	})
	return r, errors.Join(failed, p.close())
}

func connectedPong(j harness.Job) (harness.Result, error) {
	p, err := openConnected(j, true)
	if err != nil {
		return harness.Result{}, err
	}
	for !harness.Stopping.Load() {
		if err := p.await(j); err != nil {
			return harness.Result{}, err
		}
		if harness.Stopping.Load() {
			break
		}
		if err := p.one(j); err != nil {
			return harness.Result{}, err
		}
	}
	return harness.Result{}, p.close()
}

// one polls completions of earlier messages, and sends a message.
func (p *connected) one(j harness.Job) error {
	n, err := p.send.Poll(p.wcs[:])
	if _, err = p.check(n, err); err != nil {
		return err
	}
	return p.qps[0].PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{p.mr.SGE(0, j.Size)}}})
}

// await receives a message.
func (p *connected) await(j harness.Job) error {
	for !harness.Stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return err
		}
		if n > 0 {
			return p.receive(p.qps[0], j.Size)
		}
	}
	return nil
}
