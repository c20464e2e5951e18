package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
)

// SendWR is a send work request of a UD queue pair (ibv_send_wr).
type SendWR struct {
	ID      uint64
	SGList  []SGE
	Opcode  Opcode
	Flags   SendFlags
	ImmData uint32 // for WRSendWithImm, in the host's order
	// InlineData is sent in place of the SGList when Flags has SendInline, and
	// need not be registered (ibv_wr_set_inline_data).
	InlineData []byte

	AH         *AH
	RemoteQPN  QPN
	RemoteQKey QKey // with the high bit set: the queue pair's own is sent
}

// RecvWR is a receive work request (ibv_recv_wr). A datagram needs 40 bytes
// more than its payload: the GRH comes first.
type RecvWR struct {
	ID     uint64
	SGList []SGE
}

// PostSend queues send requests (ibv_post_send). It does not wait: nil means that they are
// queued. What becomes of a signaled one its completion tells; of an unsignaled one only a local
// error is told, which stops the queue (SQE). Where one of the list
// is refused, the error is a *BadWRError that names it: those before it are queued.
func (q *QP) PostSend(wrs []SendWR) error {
	if q == nil {
		return &BadWRError{0, errNil}
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

// announceSends shows the card what was put, if anything was.
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
	s := &q.sendWQE
	s.ID, s.Opcode, s.Flags, s.Imm = wr.ID, wr.Opcode, wr.Flags, wr.ImmData
	s.AH, s.RemoteQPN, s.RemoteQKey = uint32(wr.AH.handle), wr.RemoteQPN, wr.RemoteQKey
	s.SGECount, s.InlineLen = uint16(len(wr.SGList)), 0
	if wr.Flags&SendInline != 0 {
		return q.putInline(s, wr, free)
	}
	data := q.send.Put(s)
	for i, sge := range wr.SGList {
		ring.PutSGE(data[i*ring.SGELen:], sge)
	}
	*free--
	return nil
}

// The errors that a program which posts as fast as it can sees all the time.
var (
	errSendQueueFull = fmt.Errorf("%w: all send requests are outstanding; poll the send CQ (QP.Drain waits for unsignaled ones), or ask for a larger max_send_wr", ErrQueueFull)
	errRecvQueueFull = fmt.Errorf("%w: all receive requests are outstanding; poll the receive CQ, or ask for a larger max_recv_wr", ErrQueueFull)
)

// checkSend finds what a program would be told at once by libibverbs' drivers.
// What is wrong with memory or length is the card's to find (see WCStatus).
func (q *QP) checkSend(wr *SendWR) error {
	switch state := q.State(); {
	case state < QPStateRTS:
		return q.notYet("send requests can be posted from RTS on", state)
	case wr.Opcode != WRSend && wr.Opcode != WRSendWithImm:
		return fmt.Errorf("%w: %v (%d) is not an operation of datagrams; set Opcode to WRSend or WRSendWithImm", ErrInvalid, wr.Opcode, uint8(wr.Opcode))
	case wr.InlineData != nil && wr.Flags&SendInline == 0:
		return fmt.Errorf("%w: InlineData without the flag SendInline", ErrInvalid)
	case wr.AH == nil:
		return fmt.Errorf("%w: a datagram needs an address handle (AH)", ErrInvalid)
	case wr.AH.closed.Load():
		return fmt.Errorf("%w: the request's address handle", ErrObjectClosed)
	case wr.AH.pd != q.pd:
		return fmt.Errorf("%w: the address handle is of another PD", ErrInvalid)
	case wr.RemoteQPN == 0 || wr.RemoteQPN > 0xFFFFFF:
		return fmt.Errorf("%w: remote queue pair number %d", ErrInvalid, uint32(wr.RemoteQPN))
	case uint32(len(wr.SGList)) > q.init.Cap.MaxSendSGE:
		return fmt.Errorf("%w: %d SGEs, max_send_sge is %d", ErrInvalid, len(wr.SGList), q.init.Cap.MaxSendSGE)
	}
	return nil
}

// notYet is the error of a post that the state does not allow.
func (q *QP) notYet(rule string, state QPState) error {
	if q.closed.Load() {
		return fmt.Errorf("%w: the QP", ErrObjectClosed)
	}
	return fmt.Errorf("%w: %s, this queue pair is in %v", ErrState, rule, state)
}

// putInline copies a request's data into its slot.
func (q *QP) putInline(s *ring.Send, wr *SendWR, free *uint32) error {
	length := uint64(len(wr.InlineData))
	if wr.InlineData == nil {
		for _, sge := range wr.SGList {
			length += uint64(sge.Length)
		}
	}
	if length > uint64(q.init.Cap.MaxInlineData) {
		return fmt.Errorf("%w: %d bytes inline, max_inline_data is %d", ErrInvalid, length, q.init.Cap.MaxInlineData)
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
	s.InlineLen, s.SGECount = uint32(length), 0
	data := q.send.Put(s)
	for _, piece := range pieces {
		data = data[copy(data, piece):]
	}
	*free--
	return nil
}

// PostRecv queues receive requests (ibv_post_recv), as PostSend does.
func (q *QP) PostRecv(wrs []RecvWR) error {
	if q == nil {
		return &BadWRError{0, errNil}
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

// announceRecvs shows the card what was put. It looks by itself, except in error.
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
		return q.notYet("receive requests can be posted from INIT on", QPStateReset)
	case uint32(len(wr.SGList)) > q.init.Cap.MaxRecvSGE:
		return fmt.Errorf("%w: %d SGEs, max_recv_sge is %d", ErrInvalid, len(wr.SGList), q.init.Cap.MaxRecvSGE)
	case free == 0:
		return errRecvQueueFull
	}
	return nil
}
