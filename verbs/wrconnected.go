// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// services are the transport services of the types of connected queue pairs.
var services = [...]wire.Service{QPTypeRC: wire.ServiceRC, QPTypeUC: wire.ServiceUC, QPTypeXRCSend: wire.ServiceXRC}

// checkConnected detects errors in the fields that only connected queue pairs use.
func (q *QP) checkConnected(wr *SendWR) error {
	switch service, means := services[q.init.Type], wr.Opcode.Means(); {
	case !wr.Opcode.On(service):
		return noOperation(wr.Opcode, fmt.Sprintf("%v queue pairs", q.init.Type))
	case wr.Flags&SendInline != 0 && !means.Is(wire.MeansSend|wire.MeansWrite):
		return fmt.Errorf("%w: SendInline is invalid with %v, which sends no data", ErrInvalid, wr.Opcode)
	case means.Is(wire.MeansAtomic) && (len(wr.SGList) != 1 || wr.SGList[0].Length != atomicSize):
		return fmt.Errorf("%w: %v needs one SGE of %d bytes for the original value", ErrInvalid, wr.Opcode, atomicSize)
	case wr.Opcode.Local() && len(wr.SGList) != 0:
		return fmt.Errorf("%w: %v takes no SGEs", ErrInvalid, wr.Opcode)
	case wr.RemoteSRQN > wire.SRQNMax:
		return fmt.Errorf("%w: SRQ number 0x%x exceeds 24 bits", ErrInvalid, uint32(wr.RemoteSRQN))
	case wr.Opcode == WRBindMW:
		return wr.Bind.check()
	case wr.Opcode == WRRegMR || wr.Opcode == WRRegMRIntegrity:
		return wr.Reg.check(q.pd, wr.Opcode == WRRegMRIntegrity)
	}
	return nil
}

// atomicSize is the operand size of an atomic in bytes.
const atomicSize = 8

// putFixedConnected is putFixed for a connected queue pair.
func (q *QP) putFixedConnected(wr *SendWR, sges, inline int) []byte {
	s := &q.connectedWQE
	s.ID, s.Opcode, s.Flags, s.Imm = wr.ID, wr.Opcode, wr.Flags, wr.ImmData
	s.SGECount, s.InlineLen = uint16(sges), uint32(inline)
	s.RemoteAddr, s.RKey, s.RemoteSRQN = wr.RemoteAddr, wr.RKey, wr.RemoteSRQN
	switch wr.Opcode {
	case WRSendWithInv, WRLocalInv:
		s.Imm = uint32(wr.InvalidateRKey)
	case WRBindMW:
		s.RemoteAddr, s.RKey = wr.Bind.Addr, wr.Bind.key(wr.RKey)
	case WRRegMR, WRRegMRIntegrity:
		s.RemoteAddr, s.RKey = wr.Reg.MR.IOVA(), wr.Reg.Key
	}
	return q.send.PutConnected(s)
}

// putOperands writes the part before the SGEs, and returns the rest of data.
func putOperands(data []byte, wr *SendWR) []byte {
	switch wr.Opcode {
	case WRAtomicCmpAndSwp, WRAtomicFetchAndAdd:
		ring.PutAtomic(data, ring.Atomic{CompareAdd: wr.CompareAdd, Swap: wr.Swap})
		return data[ring.AtomicLen:]
	case WRBindMW:
		wr.Bind.put(data, wr.RKey)
		return data[ring.BindLen:]
	case WRRegMR, WRRegMRIntegrity:
		wr.Reg.put(data, wr.Opcode == WRRegMRIntegrity)
	}
	return data
}
