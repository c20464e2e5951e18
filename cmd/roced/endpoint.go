package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
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
	pd             *verbs.PD
	mr             *verbs.MR
	sendCQ, recvCQ *verbs.CQ
	qp             *verbs.QP
	ah             *verbs.AH           // nil before aim
	groups         []*verbs.Membership // that the queue pair is attached to
	trafficClass   uint8               // of what aim makes

	recvs    []verbs.RecvWR // by buffer
	sends    []verbs.SendWR
	stride   int
	nextRecv int
	nextSend int
	sending  int // sends that have not completed
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
	e := &endpoint{stride: (wire.GRHLen + attr.size + 63) &^ 63, trafficClass: attr.trafficClass}
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
		e.sends[i] = verbs.SendWR{SGList: []verbs.SGE{e.mr.SGE((depth+i)*e.stride, 0)}, RemoteQKey: qkey}
	}
	return e.postRecvs(depth)
}

// Close destroys what was made, in reverse order.
func (e *endpoint) Close() (err error) {
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
	ah, err := e.pd.CreateAH(&verbs.AHAttr{Port: port, GRH: verbs.GlobalRoute{SGIDIndex: source, DGID: gid, TrafficClass: e.trafficClass}})
	if err != nil {
		return fmt.Errorf("address of the peer, %v: %w", gid.Addr(), err)
	}
	if e.ah != nil {
		err = e.ah.Close()
	}
	e.ah = ah
	for i := range e.sends {
		e.sends[i].AH, e.sends[i].RemoteQPN = ah, qpn
	}
	return err
}

// shape makes all messages sent from now on so long, and of this operation.
func (e *endpoint) shape(size int, opcode verbs.Opcode) {
	for i := range e.sends {
		e.sends[i].SGList[0].Length, e.sends[i].Opcode = uint32(size), opcode
	}
}

// sendBuffer is what the i-th of the next sends will send, and its request.
func (e *endpoint) sendBuffer(i int) ([]byte, *verbs.SendWR) {
	wr := &e.sends[(e.nextSend+i)%len(e.sends)]
	sge := wr.SGList[0]
	return e.mr.Bytes()[sge.Addr : sge.Addr+uint64(sge.Length)], wr
}

// fill puts a payload into all messages that will be sent.
func (e *endpoint) fill(payload []byte) {
	e.shape(len(payload), verbs.WRSend)
	for i := range e.sends {
		buffer, _ := e.sendBuffer(i)
		copy(buffer, payload)
	}
}

// recvBuffer is the buffer of a receive that has completed.
func (e *endpoint) recvBuffer(wc *verbs.WC) []byte {
	start := int(wc.ID) * e.stride
	return e.mr.Bytes()[start : start+e.stride]
}

// idle is how many sends can be posted now.
func (e *endpoint) idle() int { return len(e.sends) - e.sending }

// postSends posts the next n sends, of which the last one is signaled and its ID says for
// how many it stands.
func (e *endpoint) postSends(n int) error {
	for n > 0 {
		wrs := e.sends[e.nextSend:min(e.nextSend+n, len(e.sends))]
		last := &wrs[len(wrs)-1]
		last.ID, last.Flags = uint64(len(wrs)), verbs.SendSignaled
		err := e.qp.PostSend(wrs)
		last.Flags = 0
		if err != nil {
			return fmt.Errorf("post send: %w", err)
		}
		e.sending += len(wrs)
		e.nextSend = (e.nextSend + len(wrs)) % len(e.sends)
		n -= len(wrs)
	}
	return nil
}

// postRecvs posts the next n receives. Since they complete in order, these are the
// buffers of the n that completed first.
func (e *endpoint) postRecvs(n int) error {
	for n > 0 {
		wrs := e.recvs[e.nextRecv:min(e.nextRecv+n, len(e.recvs))]
		if err := e.qp.PostRecv(wrs); err != nil {
			return fmt.Errorf("post receive: %w", err)
		}
		e.nextRecv = (e.nextRecv + len(wrs)) % len(e.recvs)
		n -= len(wrs)
	}
	return nil
}

// reap takes the completions of sends that there are.
func (e *endpoint) reap() error {
	n, err := e.sendCQ.Poll(e.done[:])
	return e.settle(n, err)
}

// reapSome waits for completions of sends.
func (e *endpoint) reapSome(ctx context.Context, sleep bool) error {
	n, err := await(ctx, e.sendCQ, sleep, e.done[:])
	return e.settle(n, err)
}

// reapAll waits until all that was sent has completed.
func (e *endpoint) reapAll(ctx context.Context, sleep bool) error {
	return e.reapUntil(ctx, sleep, len(e.sends))
}

// reapUntil waits until n sends can be posted. That takes microseconds.
func (e *endpoint) reapUntil(ctx context.Context, sleep bool, n int) error {
	if e.idle() >= n {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	for e.idle() < n {
		if err := e.reapSome(ctx, sleep); err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) settle(n int, err error) error {
	for i := range e.done[:n] {
		if err := e.done[i].Err(); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		e.sending -= int(e.done[i].ID)
	}
	return err
}

// receive waits for messages. Their buffers are the caller's until it posts as many receives.
func (e *endpoint) receive(ctx context.Context, sleep bool, wcs []verbs.WC) (int, error) {
	n, err := await(ctx, e.recvCQ, sleep, wcs)
	return n, errors.Join(err, receiveError(wcs[:n]))
}

// arrived takes messages that have come, without waiting.
func (e *endpoint) arrived(wcs []verbs.WC) (int, error) {
	n, err := e.recvCQ.Poll(wcs)
	if err == nil {
		err = receiveError(wcs[:n])
	}
	return n, err
}

func receiveError(wcs []verbs.WC) error {
	for i := range wcs {
		if err := wcs[i].Err(); err != nil {
			return fmt.Errorf("receive: %w", err)
		}
	}
	return nil
}

// await waits for completions, asleep or spinning, until ctx is done: also when there
// are always some.
func await(ctx context.Context, cq *verbs.CQ, sleep bool, wcs []verbs.WC) (n int, err error) {
	err = ctx.Err()
	if sleep && err == nil {
		n, err = cq.Wait(ctx, wcs)
	}
	for !sleep && n == 0 && err == nil {
		if n, err = cq.Poll(wcs); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}
