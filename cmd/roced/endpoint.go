package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// testQKey is ibv_ud_pingpong's, and perftest's.
const testQKey verbs.QKey = 0x11111111

// batch is how many requests are posted, and completions taken, at once. One send
// of a batch is signaled.
const batch = 32

// endpoint is a UD queue pair with all it needs: receives that are posted ahead, and
// as many buffers to send from. Buffers of both kinds are used in turn. It belongs
// to one goroutine.
type endpoint struct {
	device         *device
	pd             *verbs.PD
	mr             *verbs.MR
	sendCQ, recvCQ *verbs.CQ
	qp             *verbs.QP
	ah             *verbs.AH           // nil before aim
	groups         []*verbs.Membership // that the queue pair is attached to
	trafficClass   uint8               // of what aim makes
	peer           destination         // that aim has set

	recvs    []verbs.RecvWR // by buffer
	sends    []verbs.SendWR
	stride   int
	nextRecv int
	nextSend int
	sending  int  // sends that have not completed
	failed   bool // a send has: the queue pair sends no more
	done     [batch]verbs.WC
}

// endpointAttr says what an endpoint is to be.
type endpointAttr struct {
	depth     int // buffers each way
	size      int // of the longest message, in bytes
	qkey      verbs.QKey
	blockSelf bool // what it sends to a group does not come back to it

	trafficClass uint8 // of what it sends
}

// newEndpoint makes a queue pair that is ready. All receives are posted.
func newEndpoint(d *device, attr endpointAttr) (*endpoint, error) {
	e := &endpoint{device: d, stride: (wire.GRHLen + attr.size + 63) &^ 63, trafficClass: attr.trafficClass}
	if err := e.open(d, attr); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.attr.Name, err), e.Close())
	}
	return e, nil
}

func (e *endpoint) open(d *device, attr endpointAttr) (err error) {
	depth := attr.depth
	if e.pd, err = d.AllocPD(); err != nil {
		return err
	}
	if e.mr, err = e.pd.AllocMR(2*depth*e.stride, verbs.AccessLocalWrite); err != nil {
		return err
	}
	if e.sendCQ, err = d.CreateCQ(depth); err != nil {
		return err
	}
	if e.recvCQ, err = d.CreateCQ(depth); err != nil {
		return err
	}
	e.qp, err = e.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: e.sendCQ, RecvCQ: e.recvCQ,
		Cap:              verbs.QPCap{MaxSendWR: uint32(depth), MaxRecvWR: uint32(depth)},
		BlockSelfMcastLB: attr.blockSelf,
	})
	if err != nil {
		return err
	}
	if err := e.qp.Activate(attr.qkey); err != nil {
		return err
	}
	return e.prepare(depth, attr.qkey)
}

// prepare makes the requests, once for all: posting them again costs nothing.
func (e *endpoint) prepare(depth int, qkey verbs.QKey) error {
	e.recvs = make([]verbs.RecvWR, depth)
	e.sends = make([]verbs.SendWR, depth)
	for i := range depth {
		e.recvs[i] = verbs.RecvWR{ID: uint64(i), SGList: []verbs.SGE{e.mr.SGE(i*e.stride, e.stride)}}
		e.sends[i] = verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE((depth+i)*e.stride, 0)}, RemoteQKey: qkey}
	}
	return e.postRecvs(depth)
}

// Close waits a while until what was posted has left, and destroys what was made, in
// reverse order.
func (e *endpoint) Close() (err error) {
	if e.sending > 0 {
		err = e.awaitSent()
	}
	for _, group := range slices.Clone(e.groups) {
		err = errors.Join(err, e.detach(group))
	}
	if e.ah != nil {
		err = errors.Join(err, e.ah.Close())
	}
	if e.qp != nil {
		err = errors.Join(err, e.qp.Close())
	}
	for _, cq := range []*verbs.CQ{e.recvCQ, e.sendCQ} {
		if cq != nil {
			err = errors.Join(err, cq.Close())
		}
	}
	if e.mr != nil {
		err = errors.Join(err, e.mr.Close())
	}
	if e.pd != nil {
		err = errors.Join(err, e.pd.Close())
	}
	return err
}

// attach receives from now on what is sent to a group.
func (e *endpoint) attach(group *verbs.Membership) error {
	if err := e.qp.AttachMcast(group.MGID(), group.MLID()); err != nil {
		return err
	}
	e.groups = append(e.groups, group)
	return nil
}

// detach undoes the attach to a group.
func (e *endpoint) detach(group *verbs.Membership) error {
	e.groups = slices.DeleteFunc(e.groups, func(g *verbs.Membership) bool { return g == group })
	return e.qp.DetachMcast(group.MGID(), group.MLID())
}

// aim sends from now on to a queue pair at a GID, from a line of the GID table.
// Nothing is being sent.
func (e *endpoint) aim(source int, gid verbs.GID, qpn verbs.QPN) error {
	ah, err := e.pd.CreateAH(context.Background(), &verbs.AHAttr{Port: port, GRH: verbs.GlobalRoute{SGIDIndex: source, DGID: gid, TrafficClass: e.trafficClass}})
	if err != nil {
		return fmt.Errorf("address of the peer, %v: %w", gid.Addr(), err)
	}
	if e.ah != nil {
		err = e.ah.Close()
	}
	e.ah, e.peer = ah, destination{QPN: qpn, GID: gid}
	for i := range e.sends {
		e.sends[i].AH, e.sends[i].RemoteQPN = ah, qpn
	}
	return err
}
