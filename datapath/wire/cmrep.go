// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// REP accepts a connection (IBA 12.6.8).
type REP struct {
	CommIDs
	LocalQKey           QKey
	LocalQPN            QPN
	LocalEECN           uint32
	StartingPSN         PSN
	ResponderResources  uint8 // maximum number of outstanding READs and atomics that the sender accepts
	InitiatorDepth      uint8 // maximum number of READs and atomics that the sender has outstanding
	TargetAckDelay      uint8 // 5 bits: 4.096 µs × 2ⁿ
	Failover            uint8 // 2 bits: whether the alternate path is accepted
	EndToEndFlowControl bool
	RNRRetryCount       uint8 // 3 bits
	SRQ                 bool
	LocalCAGUID         uint64
	PrivateData         [196]byte
}

const (
	repLocalQKey          = 8  // 4 bytes
	repLocalQPN           = 12 // 3 bytes
	repLocalEECN          = 16 // 3 bytes
	repStartingPSN        = 20 // 3 bytes
	repResponderResources = 24 // 1 byte
	repInitiatorDepth     = 25 // 1 byte
	repTargetAckDelay     = 26 // 5 bits; failover 2, end-to-end flow control 1
	repRNRRetryCount      = 27 // 3 bits, the upper ones; SRQ 1
	repLocalCAGUID        = 28 // 8 bytes
	repPrivateData        = 36 // 196 bytes
)

var (
	bitsHigh3 = bits{5, 3}
	bitsBit4  = bits{4, 1}
)

// REP reads the message.
func (m MAD) REP() (f REP) {
	d := m[madData:]
	f.CommIDs, f.LocalQKey, f.LocalQPN = m.CommIDs(), QKey(binary.BigEndian.Uint32(d[repLocalQKey:])), QPN(uint24(d[repLocalQPN:]))
	f.LocalEECN, f.StartingPSN = uint24(d[repLocalEECN:]), PSN(uint24(d[repStartingPSN:]))
	f.ResponderResources, f.InitiatorDepth = d[repResponderResources], d[repInitiatorDepth]
	f.TargetAckDelay, f.Failover = bitsTimeout.get(d[repTargetAckDelay]), bitsTransport.get(d[repTargetAckDelay])
	f.EndToEndFlowControl = bitsFlow.is(d[repTargetAckDelay])
	f.RNRRetryCount, f.SRQ = bitsHigh3.get(d[repRNRRetryCount]), bitsBit4.is(d[repRNRRetryCount])
	f.LocalCAGUID, f.PrivateData = binary.BigEndian.Uint64(d[repLocalCAGUID:]), [196]byte(d[repPrivateData:])
	return f
}

// PutREP writes the message.
func (m MAD) PutREP(transactionID uint64, f *REP) {
	d := m.begin(transactionID, AttributeREP)
	f.put(d)
	binary.BigEndian.PutUint32(d[repLocalQKey:], uint32(f.LocalQKey))
	putUint24(d[repLocalQPN:], uint32(f.LocalQPN))
	putUint24(d[repLocalEECN:], f.LocalEECN)
	putUint24(d[repStartingPSN:], uint32(f.StartingPSN))
	d[repResponderResources], d[repInitiatorDepth] = f.ResponderResources, f.InitiatorDepth
	d[repTargetAckDelay] = bitsTimeout.put(f.TargetAckDelay) | bitsTransport.put(f.Failover) | bitsFlow.putIf(f.EndToEndFlowControl)
	d[repRNRRetryCount] = bitsHigh3.put(f.RNRRetryCount) | bitsBit4.putIf(f.SRQ)
	binary.BigEndian.PutUint64(d[repLocalCAGUID:], f.LocalCAGUID)
	copy(d[repPrivateData:], f.PrivateData[:])
}
