// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
)

// SIDRReq queries the queue pair that serves datagrams for a service (IBA 12.11.1).
type SIDRReq struct {
	RequestID   uint32 // chosen by the sender
	PKey        PKey
	ServiceID   ServiceID
	PrivateData [216]byte
}

const (
	sidrReqRequestID   = 0  // 4 bytes
	sidrReqPKey        = 4  // 2 bytes
	sidrReqServiceID   = 8  // 8 bytes
	sidrReqPrivateData = 16 // 216 bytes
)

// SIDRReq reads the message.
func (m MAD) SIDRReq() SIDRReq {
	d := m[madData:]
	return SIDRReq{
		RequestID: binary.BigEndian.Uint32(d[sidrReqRequestID:]), PKey: PKey(binary.BigEndian.Uint16(d[sidrReqPKey:])),
		ServiceID: ServiceID(binary.BigEndian.Uint64(d[sidrReqServiceID:])), PrivateData: [216]byte(d[sidrReqPrivateData:]),
	}
}

// PutSIDRReq writes the message.
func (m MAD) PutSIDRReq(transactionID uint64, f *SIDRReq) {
	d := m.begin(transactionID, AttributeSIDRReq)
	binary.BigEndian.PutUint32(d[sidrReqRequestID:], f.RequestID)
	binary.BigEndian.PutUint16(d[sidrReqPKey:], uint16(f.PKey))
	binary.BigEndian.PutUint64(d[sidrReqServiceID:], uint64(f.ServiceID))
	copy(d[sidrReqPrivateData:], f.PrivateData[:])
}

// SIDRRep is the response to a SIDRReq (IBA 12.11.2).
type SIDRRep struct {
	RequestID   uint32
	Status      SIDRStatus
	InfoLength  uint8 // number of valid bytes of Info
	QPN         QPN   // valid only with SIDRValid
	ServiceID   ServiceID
	QKey        QKey // valid only with SIDRValid
	Info        [72]byte
	PrivateData [136]byte
}

// SIDRStatus is the result of a SIDRReq.
type SIDRStatus uint8

// The statuses.
const (
	SIDRValid        SIDRStatus = iota // QPN and Q_Key are valid
	SIDRNotSupported                   // there is no listener
	SIDRReject                         // the listener has rejected the request
	SIDRNoQP                           // the listener has no queue pair
	SIDRRedirect                       // use another port
	SIDRVersion                        // unsupported version
)

var sidrStatusNames = [...]string{"valid", "service not supported", "rejected", "no QP", "redirect", "version not supported"}

// String returns a description of the status.
func (s SIDRStatus) String() string {
	if int(s) < len(sidrStatusNames) {
		return sidrStatusNames[s]
	}
	return fmt.Sprintf("SIDR status %d", uint8(s))
}

const (
	sidrRepRequestID   = 0  // 4 bytes
	sidrRepStatus      = 4  // 1 byte
	sidrRepInfoLength  = 5  // 1 byte
	sidrRepQPN         = 8  // 3 bytes
	sidrRepServiceID   = 12 // 8 bytes
	sidrRepQKey        = 20 // 4 bytes
	sidrRepInfo        = 24 // 72 bytes
	sidrRepPrivateData = 96 // 136 bytes
)

// SIDRRep reads the message.
func (m MAD) SIDRRep() SIDRRep {
	d := m[madData:]
	return SIDRRep{
		RequestID: binary.BigEndian.Uint32(d[sidrRepRequestID:]), Status: SIDRStatus(d[sidrRepStatus]), InfoLength: d[sidrRepInfoLength],
		QPN: QPN(uint24(d[sidrRepQPN:])), ServiceID: ServiceID(binary.BigEndian.Uint64(d[sidrRepServiceID:])),
		QKey: QKey(binary.BigEndian.Uint32(d[sidrRepQKey:])), Info: [72]byte(d[sidrRepInfo:]), PrivateData: [136]byte(d[sidrRepPrivateData:]),
	}
}

// PutSIDRRep writes the message.
func (m MAD) PutSIDRRep(transactionID uint64, f *SIDRRep) {
	d := m.begin(transactionID, AttributeSIDRRep)
	binary.BigEndian.PutUint32(d[sidrRepRequestID:], f.RequestID)
	d[sidrRepStatus], d[sidrRepInfoLength] = byte(f.Status), f.InfoLength
	putUint24(d[sidrRepQPN:], uint32(f.QPN))
	binary.BigEndian.PutUint64(d[sidrRepServiceID:], uint64(f.ServiceID))
	binary.BigEndian.PutUint32(d[sidrRepQKey:], uint32(f.QKey))
	copy(d[sidrRepInfo:], f.Info[:])
	copy(d[sidrRepPrivateData:], f.PrivateData[:])
}
