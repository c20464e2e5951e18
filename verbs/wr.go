// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// SendWR is a send work request (ibv_send_wr). Fields that the operation or the type of the queue pair does not use are
// ignored.
type SendWR struct {
	ID      uint64
	SGList  []SGE
	Opcode  Opcode
	Flags   SendFlags
	ImmData uint32 // for operations with immediate data, in host byte order
	// InlineData is sent instead of the SGList if Flags has SendInline. It need not be in a memory region
	// (ibv_wr_set_inline_data).
	InlineData []byte

	// For datagrams.
	AH         *AH
	RemoteQPN  QPN
	RemoteQKey QKey // if the high bit is set, the Q_Key of the queue pair is sent instead (IBA 10.2.5)

	// For connected queue pairs.
	RemoteAddr       uint64  // RDMA and atomics: address in the peer's region; for atomics a multiple of 8
	RKey             RKey    // key of the peer's region or window
	CompareAdd, Swap uint64  // atomics: the value to compare or add, and the value to swap in
	InvalidateRKey   RKey    // WRSendWithInv: key of the peer; WRLocalInv: key of a window or fast region of this program
	Bind             *MWBind // WRBindMW; the low 8 bits of RKey become those of the window's new key
	Reg              *RegMR  // WRRegMR
	RemoteSRQN       SRQN    // of an XRC initiator: number of the peer's SRQ (SRQ.Number)
}

// RecvWR is a receive work request (ibv_recv_wr). A datagram needs 40 bytes more than its payload, for the GRH in front
// of it. If the receive is too short for a datagram, the datagram is dropped and counted (drop_no_room), and the
// receive stays queued; some hardware completes it with WCLocLenErr instead.
type RecvWR struct {
	ID     uint64
	SGList []SGE
}

// PostSend queues send requests without waiting (ibv_post_send). nil means that all are queued; the result of each is
// in its completion. An unsignaled request completes only when it fails, which stops the queue (SQE; for RC and XRC the
// queue pair goes to ERR). If a request is refused, the error is a *BadWRError that identifies it; the requests before
// it are queued.
func (q *QP) PostSend(wrs []SendWR) error {
	if q == nil {
		return &BadWRError{0, errNil}
	}
	if q.target {
		return &BadWRError{0, errTarget}
	}
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	if err := q.ctx.gone(); err != nil {
		return &BadWRError{0, err}
	}
	free := q.sendEntries - q.send.Outstanding(q.sendPolled.Load())
	for i := range wrs {
		if err := q.putSend(&wrs[i], &free); err != nil {
			q.announceSends(i)
			return &BadWRError{i, err}
		}
	}
	q.announceSends(len(wrs))
	return nil
}

// announceSends publishes n requests to the card.
func (q *QP) announceSends(n int) {
	if n > 0 {
		q.send.Publish()
		q.ring()
	}
}

func (q *QP) ring() {
	if q.ctx.doorbell.Ring(q.completionToken.Load()) {
		q.ctx.provider.Wake()
	}
}

func (q *QP) putSend(wr *SendWR, free *uint32) error {
	if err := q.checkSend(wr); err != nil {
		return err
	}
	if *free == 0 {
		return errSendQueueFull
	}
	if wr.Flags&SendInline != 0 {
		return q.putInline(wr, free)
	}
	data := q.putFixed(wr, len(wr.SGList), 0)
	if q.connected {
		data = putOperands(data, wr)
	}
	for i, sge := range wr.SGList {
		ring.PutSGE(data[i*ring.SGELen:], sge)
	}
	*free--
	return nil
}

// putFixed writes the fixed part of a request into the next slot, and returns the rest of the slot.
func (q *QP) putFixed(wr *SendWR, sges, inline int) []byte {
	if q.connected {
		return q.putFixedConnected(wr, sges, inline)
	}
	s := &q.sendWQE
	s.ID, s.Opcode, s.Flags, s.Imm = wr.ID, wr.Opcode, wr.Flags, wr.ImmData
	s.SGECount, s.InlineLen = uint16(sges), uint32(inline)
	s.AH, s.RemoteQPN, s.RemoteQKey = uint32(wr.AH.handle), wr.RemoteQPN, wr.RemoteQKey
	return q.send.Put(s)
}

// These errors are allocated once: a program that posts as fast as it can gets them often.
var (
	errSendQueueFull = fmt.Errorf("%w: all send requests are outstanding; poll the send CQ (QP.Drain waits for unsignaled ones), or request a larger max_send_wr", ErrQueueFull)
	errRecvQueueFull = fmt.Errorf("%w: all receive requests are outstanding; poll the receive CQ, or request a larger max_recv_wr", ErrQueueFull)
)

// sendFlags are the supported flags.
const sendFlags = SendFence | SendSignaled | SendSolicited | SendInline

// checkSend detects the errors that libibverbs' drivers report when a request is posted. Errors in memory or length are
// detected by the card (see WCStatus).
func (q *QP) checkSend(wr *SendWR) error {
	switch state := q.State(); {
	case state < QPStateRTS && !q.failedIn(state):
		return q.wrongState("send requests can be posted from RTS on", state)
	case !q.connected && !wr.Opcode.On(wire.ServiceUD):
		return noOperation(wr.Opcode, "datagrams; set Opcode to WRSend or WRSendWithImm")
	case wr.Flags&^sendFlags != 0:
		return fmt.Errorf("%w: unknown send flags 0x%x; valid are SendFence, SendSignaled, SendSolicited and SendInline", ErrInvalid, uint8(wr.Flags&^sendFlags))
	case wr.InlineData != nil && wr.Flags&SendInline == 0:
		return fmt.Errorf("%w: InlineData requires the flag SendInline", ErrInvalid)
	case uint32(len(wr.SGList)) > q.init.Cap.MaxSendSGE:
		return fmt.Errorf("%w: %d SGEs; max_send_sge is %d", ErrInvalid, len(wr.SGList), q.init.Cap.MaxSendSGE)
	case q.connected:
		return q.checkConnected(wr)
	}
	return q.checkDatagram(wr)
}

// noOperation returns the error for an operation that a type of queue pair, or every type, lacks.
func noOperation(o Opcode, of string) error {
	switch o {
	case WRTSO, WRDriver1, WRFlush, WRAtomicWrite:
		return fmt.Errorf("%w: operation %v (%d)", ErrUnsupported, o, uint8(o))
	}
	return fmt.Errorf("%w: %v (%d) is not an operation of %s", ErrInvalid, o, uint8(o), of)
}

// checkDatagram detects errors in the fields that only datagrams have.
func (q *QP) checkDatagram(wr *SendWR) error {
	switch {
	case wr.AH == nil:
		return fmt.Errorf("%w: a datagram needs an address handle (AH)", ErrInvalid)
	case wr.AH.closed.Load():
		return fmt.Errorf("%w: the request's address handle", ErrObjectClosed)
	case wr.AH.pd != q.pd:
		return fmt.Errorf("%w: the address handle belongs to another PD", ErrInvalid)
	case wr.RemoteQPN == 0 || wr.RemoteQPN > 0xFFFFFF:
		return fmt.Errorf("%w: remote queue pair number %d; valid are 1 to 0xffffff", ErrInvalid, uint32(wr.RemoteQPN))
	}
	return nil
}

// failedIn reports whether the card has moved the queue pair to ERR and this program has not noticed yet.
func (q *QP) failedIn(state QPState) bool { return state != QPStateReset && q.send.Failed() }

// wrongState returns the error of a post in a state that does not allow it.
func (q *QP) wrongState(rule string, state QPState) error {
	if q.closed.Load() {
		return fmt.Errorf("%w: the QP", ErrObjectClosed)
	}
	return fmt.Errorf("%w: %s; this queue pair is in %v", ErrState, rule, state)
}

// putInline copies a request's data into its slot.
func (q *QP) putInline(wr *SendWR, free *uint32) error {
	length := uint64(len(wr.InlineData))
	if wr.InlineData == nil {
		for _, sge := range wr.SGList {
			length += uint64(sge.Length)
		}
	}
	if length > uint64(q.init.Cap.MaxInlineData) {
		return fmt.Errorf("%w: %d bytes inline; max_inline_data is %d", ErrInvalid, length, q.init.Cap.MaxInlineData)
	}
	var pieces [ring.MaxSGE][]byte
	pieces[0] = wr.InlineData
	if wr.InlineData == nil {
		for i, sge := range wr.SGList {
			var err error
			if pieces[i], err = q.ctx.inlineBytes(sge); err != nil {
				return err
			}
		}
	}
	data := q.putFixed(wr, 0, int(length))
	for _, piece := range pieces {
		data = data[copy(data, piece):]
	}
	*free--
	return nil
}

// whyNoRecv returns the error of posting a receive to a queue pair without a receive queue.
func (q *QP) whyNoRecv() error {
	if q.init.Type == QPTypeXRCSend {
		return errInitiator
	}
	return errSharedReceives
}

var errSharedReceives = fmt.Errorf("%w: this queue pair uses an SRQ; post receives there", ErrInvalid)

// PostRecv queues receive requests (ibv_post_recv). Errors are those of PostSend; ErrInvalid if the queue pair has an
// SRQ.
func (q *QP) PostRecv(wrs []RecvWR) error {
	if q == nil {
		return &BadWRError{0, errNil}
	}
	if q.recv == nil {
		return &BadWRError{0, q.whyNoRecv()}
	}
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	if err := q.ctx.gone(); err != nil {
		return &BadWRError{0, err}
	}
	free := q.recvEntries - q.recv.Outstanding(q.recvPolled.Load())
	for i := range wrs {
		if err := q.checkRecv(&wrs[i], free); err != nil {
			q.announceRecvs(i)
			return &BadWRError{i, err}
		}
		q.recv.Put(wrs[i].ID, wrs[i].SGList)
		free--
	}
	q.announceRecvs(len(wrs))
	return nil
}

// announceRecvs publishes n requests to the card. The card needs a doorbell only in ERR, where it flushes them;
// otherwise it reads them when a packet arrives.
func (q *QP) announceRecvs(n int) {
	if n > 0 {
		q.recv.Publish()
		if q.recv.MustRing() {
			q.ring()
		}
	}
}

func (q *QP) checkRecv(wr *RecvWR, free uint32) error {
	switch {
	case q.State() == QPStateReset:
		return q.wrongState("receive requests can be posted from INIT on", QPStateReset)
	case uint32(len(wr.SGList)) > q.init.Cap.MaxRecvSGE:
		return fmt.Errorf("%w: %d SGEs; max_recv_sge is %d", ErrInvalid, len(wr.SGList), q.init.Cap.MaxRecvSGE)
	case free == 0:
		return errRecvQueueFull
	}
	return nil
}
