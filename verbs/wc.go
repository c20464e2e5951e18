package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// statuses say what happened, and what to do about it.
var statuses = map[WCStatus]error{
	WCLocLenErr:    errno.New("local length error: the message is longer than the active MTU (datagrams), or than the receive; send less, or raise the interface's MTU or the receive's length", unix.EMSGSIZE),
	WCLocQPOpErr:   errno.New("local QP operation error: the queue pair does not have this operation (a read or atomic needs max_rd_atomic), or the address handle is closed or belongs to another PD", unix.EINVAL),
	WCLocProtErr:   errno.New("local protection error: no memory region of this PD with that lkey covers the SGE, or it may not be written; check lkey, range and access flags", unix.EFAULT),
	WCMWBindErr:    errno.New("memory management error: a bind (the window belongs to another PD, or is of type 2 and bound already; or the region lacks AccessMWBind, lacks AccessLocalWrite for remote writing, or does not hold the range), a fast registration, or an invalidation of a key that no window of type 2 of this queue pair and no fast region of its PD has", unix.EINVAL),
	WCBadRespErr:   errno.New("bad response error: the peer's answer does not fit the request; the peer does not work as it should, or another host has its address", unix.EPROTO),
	WCLocAccessErr: errno.New("local access error: a write with immediate data of the peer's named memory of this side that it may not write to", unix.EACCES),
	WCRemInvReqErr: errno.New("remote invalid request error: the responder's receive is too short, its queue pair does not allow this access, an atomic's address is no multiple of 8, "+
		"or there are more reads and atomics at once than its max_dest_rd_atomic; of a receive: its message breaks the protocol, or names a key that cannot be invalidated", errno.RemoteIO),
	WCRemAccessErr:   errno.New("remote access error: no region or window of the peer with that RKey covers the range, or it does not allow this access", unix.EACCES),
	WCRemOpErr:       errno.New("remote operation error: the peer could not carry out the request; its queue pair went to ERR, and its completions say why", errno.RemoteIO),
	WCRetryExcErr:    errno.New("the peer does not answer: no response after retry_cnt timeouts; does the peer's queue pair exist, in RTR or RTS, and does the network carry packets to it?", unix.ETIMEDOUT),
	WCRNRRetryExcErr: errno.New("the peer has no receive: it was not ready after rnr_retry attempts; post more receives there, or wait longer (rnr_retry 7 retries without end)", unix.ENOBUFS),
	WCRemAbortErr:    errno.New("the peer has aborted the request", unix.ECONNABORTED),
	WCWRFlushErr: errno.New("flushed: the queue pair was in error before this request was carried out; an earlier completion or an event says why; "+
		"QP.Query tells the state: SQE is left by Modify to RTS, ERR by Modify to RESET and Activate or Connect; then post again", unix.ECANCELED),
}

var errTooLong = errno.New("local length error", unix.EMSGSIZE)

// WC is a work completion (ibv_wc).
type WC struct {
	ID        uint64 // of the work request
	Status    WCStatus
	Opcode    WCOpcode // valid with WCSuccess only, as in libibverbs
	Flags     WCFlags
	VendorErr uint32 // of a datagram's WCLocLenErr: the active MTU in bytes
	ByteLen   uint32 // of a receive: bytes, of a datagram including the 40 of the GRH; of a read or atomic: bytes
	ImmData   uint32 // in the host's order; with WCWithInv see InvalidatedRKey
	QPN       QPN    // the queue pair that the request was posted to
	SrcQP     QPN    // of a receive: the queue pair that sent
	PKeyIndex uint16

	// Of a receive; see the flags.
	SMAC          MAC         // of the frame: the sender's, or the last router's
	VLAN          uint16      // the VLAN's identifier
	NetworkHeader NetworkType // of the packet
	SL            uint8       // the priority in the frame's tag, 0 without one
	Port          uint8       // 1

	// When the card carried the request out, in ns, from a CQ that was made with the wish for it
	// (CQInitAttr.WCFlags); else 0. The card reads the clocks for each completion as it writes it.
	Timestamp uint64 // of the free-running clock that Context.QueryRTValues reads
	Wallclock uint64 // since 1970, UTC
}

// Err is nil for WCSuccess, else an error that says what to do.
func (w *WC) Err() error {
	if w.Status == WCSuccess {
		return nil
	}
	s, ok := statuses[w.Status]
	switch {
	case ok && w.Status == WCLocLenErr && w.VendorErr != 0:
		return fmt.Errorf("%w: longer than the active MTU of %d bytes; send less, or raise the interface's MTU: it needs %d bytes more than an RDMA MTU of 512, 1024, 2048 or 4096", errTooLong, w.VendorErr, wire.MTUOverhead)
	case ok:
		return s
	}
	return fmt.Errorf("%v: %w", w.Status, unix.EIO)
}

// InvalidatedRKey is the key of a window of this program that the peer has invalidated with its message (WCWithInv).
func (w *WC) InvalidatedRKey() RKey { return RKey(w.ImmData) }

// Payload splits a receive buffer into the GRH and the payload. The buffer of a datagram always starts with 40
// bytes of GRH. Over IPv4 the IP header is in the last 20 of them; the GRH's methods handle both.
// It gives nil, nil if the completion has no GRH or the buffer is shorter than ByteLen.
//
//	grh, payload := wc.Payload(mr.Bytes()[offset:])
//	fmt.Println(grh.SGID(), "sent", payload)
func (w *WC) Payload(buffer []byte) (GRH, []byte) {
	if w.Flags&WCGRH == 0 || w.ByteLen < wire.GRHLen || uint64(len(buffer)) < uint64(w.ByteLen) {
		return nil, nil
	}
	return GRH(buffer[:wire.GRHLen:wire.GRHLen]), buffer[wire.GRHLen:w.ByteLen:w.ByteLen]
}

// fill assigns field by field. A composite literal would be built on the stack and copied in larger
// words than it was written in, which defeats store forwarding in the processor.
func (w *WC) fill(c *ring.CQE) {
	w.ID = c.ID
	w.Status = c.Status
	w.Opcode = c.Opcode
	w.Flags = c.Flags
	w.VendorErr = c.VendorErr
	w.ByteLen = c.ByteLen
	w.ImmData = c.Imm
	w.QPN = c.QPN
	w.SrcQP = c.SourceQP
	w.PKeyIndex = c.PKeyIndex
	w.SMAC = c.SMAC
	w.VLAN = c.VLAN
	w.NetworkHeader = c.NetworkHeader
	w.SL = c.SL
	w.Port = c.Port
	w.Timestamp = c.Timestamp
	w.Wallclock = c.Wallclock
}
