// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// LAP requests the receiver to load an alternate path for a connection (IBA 12.8.1).
type LAP struct {
	CommIDs
	RemoteQPN     QPN   // the receiver's queue pair
	RemoteTimeout uint8 // 5 bits: the receiver must respond within 4.096 µs × 2ⁿ
	Alternate     CMPath
	PrivateData   [168]byte
}

const (
	lapRemoteQPN     = 12 // 3 bytes
	lapRemoteTimeout = 15 // 5 bits, the upper ones
	lapLocalLID      = 20 // 2 bytes
	lapRemoteLID     = 22 // 2 bytes
	lapLocal         = 24 // 16 bytes
	lapRemote        = 40 // 16 bytes
	lapFlowLabel     = 56 // 20 bits, then 4 reserved ones
	lapTrafficClass  = 59 // 1 byte
	lapHopLimit      = 60 // 1 byte
	lapRate          = 61 // 6 bits, the lower ones
	lapSL            = 62 // 4 bits; subnet local 1
	lapAckTimeout    = 63 // 5 bits, the upper ones
	lapPrivateData   = 64 // 168 bytes
)

// LAP reads the message.
func (m MAD) LAP() LAP {
	d := m[madData:]
	return LAP{
		CommIDs: m.CommIDs(), RemoteQPN: QPN(uint24(d[lapRemoteQPN:])), RemoteTimeout: bitsTimeout.get(d[lapRemoteTimeout]),
		Alternate: CMPath{
			LocalLID: binary.BigEndian.Uint16(d[lapLocalLID:]), RemoteLID: binary.BigEndian.Uint16(d[lapRemoteLID:]),
			Local: GID(d[lapLocal:]), Remote: GID(d[lapRemote:]),
			FlowLabel: uint24(d[lapFlowLabel:]) >> 4, PacketRate: bitsLow6.get(d[lapRate]),
			TrafficClass: d[lapTrafficClass], HopLimit: d[lapHopLimit],
			SL: bitsHigh4.get(d[lapSL]), SubnetLocal: bitsBit3.is(d[lapSL]), AckTimeout: bitsTimeout.get(d[lapAckTimeout]),
		},
		PrivateData: [168]byte(d[lapPrivateData:]),
	}
}

// PutLAP writes the message.
func (m MAD) PutLAP(transactionID uint64, f *LAP) {
	d := m.begin(transactionID, AttributeLAP)
	f.put(d)
	putUint24(d[lapRemoteQPN:], uint32(f.RemoteQPN))
	d[lapRemoteTimeout] = bitsTimeout.put(f.RemoteTimeout)
	binary.BigEndian.PutUint16(d[lapLocalLID:], f.Alternate.LocalLID)
	binary.BigEndian.PutUint16(d[lapRemoteLID:], f.Alternate.RemoteLID)
	copy(d[lapLocal:], f.Alternate.Local[:])
	copy(d[lapRemote:], f.Alternate.Remote[:])
	putUint24(d[lapFlowLabel:], f.Alternate.FlowLabel<<4)
	d[lapTrafficClass], d[lapHopLimit], d[lapRate] = f.Alternate.TrafficClass, f.Alternate.HopLimit, bitsLow6.put(f.Alternate.PacketRate)
	d[lapSL] = bitsHigh4.put(f.Alternate.SL) | bitsBit3.putIf(f.Alternate.SubnetLocal)
	d[lapAckTimeout] = bitsTimeout.put(f.Alternate.AckTimeout)
	copy(d[lapPrivateData:], f.PrivateData[:])
}

// APR is the response to a LAP (IBA 12.8.2).
type APR struct {
	CommIDs
	InfoLength  uint8 // number of valid bytes of Info
	Status      APRStatus
	Info        [72]byte
	PrivateData [148]byte
}

// APRStatus is the result of loading the alternate path.
type APRStatus uint8

// The statuses.
const (
	APRLoaded      APRStatus = 0
	APRCommID      APRStatus = 1 // the communication ID is unknown
	APRUnsupported APRStatus = 2
)

const (
	aprInfoLength  = 8  // 1 byte
	aprStatus      = 9  // 1 byte
	aprInfo        = 12 // 72 bytes
	aprPrivateData = 84 // 148 bytes
)

// APR reads the message.
func (m MAD) APR() APR {
	d := m[madData:]
	return APR{
		CommIDs: m.CommIDs(), InfoLength: d[aprInfoLength], Status: APRStatus(d[aprStatus]),
		Info: [72]byte(d[aprInfo:]), PrivateData: [148]byte(d[aprPrivateData:]),
	}
}

// PutAPR writes the message.
func (m MAD) PutAPR(transactionID uint64, f *APR) {
	d := m.begin(transactionID, AttributeAPR)
	f.put(d)
	d[aprInfoLength], d[aprStatus] = f.InfoLength, byte(f.Status)
	copy(d[aprInfo:], f.Info[:])
	copy(d[aprPrivateData:], f.PrivateData[:])
}
