// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// statuses are the errors of failed completions: the cause and the remedy.
var statuses = map[WCStatus]error{
	WCLocLenErr:    errno.New("local length error: the message exceeds the active MTU (datagrams) or the receive; send less, or increase the interface's MTU or the receive's length", unix.EMSGSIZE),
	WCLocQPOpErr:   errno.New("local QP operation error: the queue pair does not support this operation (a read or atomic needs max_rd_atomic), or the address handle is closed or belongs to another PD", unix.EINVAL),
	WCLocProtErr:   errno.New("local protection error: no memory region of this PD with that lkey covers the SGE, or it is not writable; check lkey, range and access flags", unix.EFAULT),
	WCMWBindErr:    errno.New("memory management error: a bind (the window belongs to another PD, or is of type 2 and already bound; or the region lacks AccessMWBind, lacks AccessLocalWrite for remote writes, or does not contain the range), a fast registration, or an invalidation of a key that belongs to no type 2 window of this queue pair and no fast region of its PD", unix.EINVAL),
	WCBadRespErr:   errno.New("bad response error: the peer's response does not match the request; the peer is faulty, or another host uses its address", unix.EPROTO),
	WCLocAccessErr: errno.New("local access error: the peer's RDMA write with immediate data addressed memory that it is not permitted to write", unix.EACCES),
	WCRemInvReqErr: errno.New("remote invalid request error: the responder's receive is too short, its queue pair does not allow this access, an atomic's address is not a multiple of 8, "+
		"or the outstanding reads and atomics exceed its max_dest_rd_atomic; for a receive: the message violates the protocol, or contains a key that cannot be invalidated", errno.RemoteIO),
	WCRemAccessErr:   errno.New("remote access error: no region or window of the peer with that RKey covers the range, or it does not permit this access", unix.EACCES),
	WCRemOpErr:       errno.New("remote operation error: the peer failed to execute the request; its queue pair went to ERR, and its completions contain the cause", errno.RemoteIO),
	WCRetryExcErr:    errno.New("the peer does not respond: no response after retry_cnt timeouts; check that the peer's queue pair is in RTR or RTS, and that the network carries packets to it", unix.ETIMEDOUT),
	WCRNRRetryExcErr: errno.New("the peer has no receive: it was not ready after rnr_retry attempts; post more receives there, or retry longer (rnr_retry 7 retries forever)", unix.ENOBUFS),
	WCRemAbortErr:    errno.New("the peer aborted the request", unix.ECONNABORTED),
	WCWRFlushErr: errno.New("flushed: the queue pair was in error before this request was executed; an earlier completion or event contains the cause; "+
		"QP.Query returns the state; leave SQE by Modify to RTS, ERR by Modify to RESET and Activate or Connect; then post again", unix.ECANCELED),
}

var errTooLong = errno.New("local length error", unix.EMSGSIZE)

// WC is a work completion (ibv_wc).
type WC struct {
	ID        uint64 // ID of the work request
	Status    WCStatus
	Opcode    WCOpcode // valid with WCSuccess only, as in libibverbs
	Flags     WCFlags
	VendorErr uint32 // for WCLocLenErr of a datagram: the active MTU in bytes
	ByteLen   uint32 // receive: bytes, for datagrams including the 40 of the GRH; read or atomic: bytes
	ImmData   uint32 // in host byte order; with WCWithInv see InvalidatedRKey
	QPN       QPN    // the queue pair that the request was posted to
	SrcQP     QPN    // receive: the sending queue pair
	PKeyIndex uint16

	// Of a receive; see Flags.
	SMAC          MAC         // source address of the frame: the sender or the last router
	VLAN          uint16      // VLAN identifier
	NetworkHeader NetworkType // network header of the packet
	SL            uint8       // the priority in the frame's tag, 0 without one
	Port          uint8       // 1

	// Time when the card finished the request, in ns, if the CQ was created with the flags for it (CQInitAttr.WCFlags);
	// else 0. The card reads the clocks when it writes the completion.
	Timestamp uint64 // on the free-running clock that Context.QueryRTValues reads
	Wallclock uint64 // since 1970, UTC
}

// Err returns nil for WCSuccess, otherwise an error with the cause and the remedy.
func (w *WC) Err() error {
	if w.Status == WCSuccess {
		return nil
	}
	s, ok := statuses[w.Status]
	switch {
	case ok && w.Status == WCLocLenErr && w.VendorErr != 0:
		return fmt.Errorf("%w: the message exceeds the active MTU of %d bytes; send less, or increase the interface's MTU to an RDMA MTU of 512, 1024, 2048 or 4096 plus %d bytes", errTooLong, w.VendorErr, wire.MTUOverhead)
	case ok:
		return s
	}
	return fmt.Errorf("%v: %w", w.Status, unix.EIO)
}

// InvalidatedRKey returns the key of this program's window that the peer has invalidated with its message (WCWithInv).
func (w *WC) InvalidatedRKey() RKey { return RKey(w.ImmData) }

// Payload splits a receive buffer into the GRH and the payload. The buffer of a datagram always starts with 40 bytes of
// GRH. Over IPv4 the IP header is in the last 20 of them; the GRH's methods handle both. It returns nil, nil if the
// completion has no GRH or the buffer is shorter than ByteLen.
//
//	grh, payload := wc.Payload(mr.Bytes()[offset:])
//	fmt.Println(grh.SGID(), "sent", payload)
//
//	grh, payload := wc.Payload(mr.Bytes()[offset:])
//	fmt.Println(grh.SGID(), "sent", payload)
func (w *WC) Payload(buffer []byte) (GRH, []byte) {
	if w.Flags&WCGRH == 0 || w.ByteLen < wire.GRHLen || uint64(len(buffer)) < uint64(w.ByteLen) {
		return nil, nil
	}
	return GRH(buffer[:wire.GRHLen:wire.GRHLen]), buffer[wire.GRHLen:w.ByteLen:w.ByteLen]
}

// fill assigns field by field. A composite literal would be built on the stack and copied in larger words than it was
// written in, which defeats store forwarding in the processor.
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
