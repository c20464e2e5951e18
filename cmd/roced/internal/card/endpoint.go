package card

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// TestQKey is ibv_ud_pingpong's, and perftest's.
const TestQKey verbs.QKey = 0x11111111

// Batch is how many requests are posted, and completions taken, at once. One send
// of a batch is signaled.
const Batch = 32

// Endpoint is a UD queue pair with all it needs: receives that are posted ahead, and
// as many buffers to send from. Buffers of both kinds are used in turn. It belongs
// to one goroutine.
type Endpoint struct {
	Device         *Device
	pd             *verbs.PD
	mr             *verbs.MR
	sendCQ, recvCQ *verbs.CQ
	QP             *verbs.QP
	ah             *verbs.AH           // nil before aim
	groups         []*verbs.Membership // that the queue pair is attached to
	trafficClass   uint8               // of what aim makes
	peerQPN        verbs.QPN           // that Aim has set
	peerGID        verbs.GID

	recvs    []verbs.RecvWR // by buffer
	sends    []verbs.SendWR
	stride   int
	nextRecv int
	nextSend int
	sending  int  // sends that have not completed
	failed   bool // a send has: the queue pair sends no more
	done     [Batch]verbs.WC
}

// EndpointAttr says what an endpoint is to be.
type EndpointAttr struct {
	Depth     int // buffers each way
	Size      int // of the longest message, in bytes
	QKey      verbs.QKey
	BlockSelf bool // what it sends to a group does not come back to it

	TrafficClass uint8 // of what it sends
}

// NewEndpoint makes a queue pair that is ready. All receives are posted.
func NewEndpoint(d *Device, attr EndpointAttr) (*Endpoint, error) {
	e := &Endpoint{Device: d, stride: (wire.GRHLen + attr.Size + 63) &^ 63, trafficClass: attr.TrafficClass}
	if err := e.open(d, attr); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.Attr.Name, err), e.Close())
	}
	return e, nil
}

func (e *Endpoint) open(d *Device, attr EndpointAttr) (err error) {
	depth := attr.Depth
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
	e.QP, err = e.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: e.sendCQ, RecvCQ: e.recvCQ,
		Cap:              verbs.QPCap{MaxSendWR: uint32(depth), MaxRecvWR: uint32(depth)},
		BlockSelfMcastLB: attr.BlockSelf,
	})
	if err != nil {
		return err
	}
	if err := e.QP.Activate(attr.QKey); err != nil {
		return err
	}
	return e.prepare(depth, attr.QKey)
}

// prepare makes the requests, once for all: posting them again costs nothing.
func (e *Endpoint) prepare(depth int, qkey verbs.QKey) error {
	e.recvs = make([]verbs.RecvWR, depth)
	e.sends = make([]verbs.SendWR, depth)
	for i := range depth {
		e.recvs[i] = verbs.RecvWR{ID: uint64(i), SGList: []verbs.SGE{e.mr.SGE(i*e.stride, e.stride)}}
		e.sends[i] = verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE((depth+i)*e.stride, 0)}, RemoteQKey: qkey}
	}
	return e.PostRecvs(depth)
}

// Close waits a while until what was posted has left, and destroys what was made, in
// reverse order.
func (e *Endpoint) Close() (err error) {
	if e.sending > 0 {
		err = e.awaitSent()
	}
	for _, group := range slices.Clone(e.groups) {
		err = errors.Join(err, e.Detach(group))
	}
	if e.ah != nil {
		err = errors.Join(err, e.ah.Close())
	}
	if e.QP != nil {
		err = errors.Join(err, e.QP.Close())
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
