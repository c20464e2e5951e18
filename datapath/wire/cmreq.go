// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// CMPath is a path of a connection in a REQ or a LAP, from the view of the message's sender.
type CMPath struct {
	LocalLID, RemoteLID uint16 // 0xFFFF on Ethernet
	Local, Remote       GID
	FlowLabel           uint32 // 20 bits
	PacketRate          uint8  // 6 bits
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // 4 bits
	SubnetLocal         bool
	AckTimeout          uint8 // 5 bits: 4.096 µs × 2ⁿ
}

// REQ requests a connection (IBA 12.6.5).
type REQ struct {
	LocalID             CommID
	ServiceID           ServiceID
	LocalCAGUID         uint64
	LocalQKey           QKey
	LocalQPN            QPN
	ResponderResources  uint8 // maximum number of outstanding READs and atomics that the sender accepts
	LocalEECN           uint32
	InitiatorDepth      uint8 // maximum number of READs and atomics that the sender has outstanding
	RemoteEECN          uint32
	RemoteTimeout       uint8 // 5 bits: the receiver must respond within 4.096 µs × 2ⁿ
	TransportService    uint8 // 2 bits: 0 RC, 1 UC, 2 RD, 3 extended
	EndToEndFlowControl bool
	StartingPSN         PSN
	LocalTimeout        uint8 // 5 bits: the sender responds within 4.096 µs × 2ⁿ
	RetryCount          uint8 // 3 bits
	PKey                PKey
	PathMTU             MTU // 4 bits
	RDCExists           bool
	RNRRetryCount       uint8 // 3 bits
	MaxCMRetries        uint8 // 4 bits
	SRQ                 bool
	ExtendedTransport   uint8 // 3 bits
	Primary, Alternate  CMPath
	PrivateData         [92]byte
}

const (
	reqServiceID          = 8   // 8 bytes
	reqLocalCAGUID        = 16  // 8 bytes
	reqLocalQKey          = 28  // 4 bytes
	reqLocalQPN           = 32  // 3 bytes
	reqResponderResources = 35  // 1 byte
	reqLocalEECN          = 36  // 3 bytes
	reqInitiatorDepth     = 39  // 1 byte
	reqRemoteEECN         = 40  // 3 bytes
	reqRemoteTimeout      = 43  // 5 bits; transport service 2, end-to-end flow control 1
	reqStartingPSN        = 44  // 3 bytes
	reqLocalTimeout       = 47  // 5 bits; retry count 3
	reqPKey               = 48  // 2 bytes
	reqPathMTU            = 50  // 4 bits; RDC exists 1, RNR retry count 3
	reqMaxCMRetries       = 51  // 4 bits; SRQ 1, extended transport 3
	reqPrimary            = 52  // 44 bytes
	reqAlternate          = 96  // 44 bytes
	reqPrivateData        = 140 // 92 bytes

	// In a path.
	pathLocalLID     = 0  // 2 bytes
	pathRemoteLID    = 2  // 2 bytes
	pathLocal        = 4  // 16 bytes
	pathRemote       = 20 // 16 bytes
	pathFlowLabel    = 36 // 20 bits, then 6 reserved ones
	pathRate         = 39 // 6 bits, the lower ones
	pathTrafficClass = 40 // 1 byte
	pathHopLimit     = 41 // 1 byte
	pathSL           = 42 // 4 bits; subnet local 1
	pathAckTimeout   = 43 // 5 bits, the upper ones
)

var (
	bitsHigh4     = bits{4, 4} // path MTU, maximum of retries, service level
	bitsBit3      = bits{3, 1} // RDC exists, SRQ, subnet local
	bitsLow3      = bits{0, 3} // retry counts, extended transport
	bitsLow6      = bits{0, 6} // packet rate
	bitsTransport = bits{1, 2}
	bitsFlow      = bits{0, 1}
)

// REQ reads the message.
func (m MAD) REQ() (f REQ) {
	d := m[madData:]
	f.LocalID, f.ServiceID = m.CommIDs().Local, ServiceID(binary.BigEndian.Uint64(d[reqServiceID:]))
	f.LocalCAGUID, f.LocalQKey = binary.BigEndian.Uint64(d[reqLocalCAGUID:]), QKey(binary.BigEndian.Uint32(d[reqLocalQKey:]))
	f.LocalQPN, f.StartingPSN = QPN(uint24(d[reqLocalQPN:])), PSN(uint24(d[reqStartingPSN:]))
	f.LocalEECN, f.RemoteEECN = uint24(d[reqLocalEECN:]), uint24(d[reqRemoteEECN:])
	f.ResponderResources, f.InitiatorDepth = d[reqResponderResources], d[reqInitiatorDepth]
	f.RemoteTimeout, f.LocalTimeout = bitsTimeout.get(d[reqRemoteTimeout]), bitsTimeout.get(d[reqLocalTimeout])
	f.TransportService, f.EndToEndFlowControl = bitsTransport.get(d[reqRemoteTimeout]), bitsFlow.is(d[reqRemoteTimeout])
	f.RetryCount, f.RNRRetryCount, f.MaxCMRetries = bitsLow3.get(d[reqLocalTimeout]), bitsLow3.get(d[reqPathMTU]), bitsHigh4.get(d[reqMaxCMRetries])
	f.PKey, f.PathMTU = PKey(binary.BigEndian.Uint16(d[reqPKey:])), MTU(bitsHigh4.get(d[reqPathMTU]))
	f.RDCExists, f.SRQ, f.ExtendedTransport = bitsBit3.is(d[reqPathMTU]), bitsBit3.is(d[reqMaxCMRetries]), bitsLow3.get(d[reqMaxCMRetries])
	f.Primary, f.Alternate = pathOf(d[reqPrimary:]), pathOf(d[reqAlternate:])
	f.PrivateData = [92]byte(d[reqPrivateData:])
	return f
}

// PutREQ writes the message.
func (m MAD) PutREQ(transactionID uint64, f *REQ) {
	d := m.begin(transactionID, AttributeREQ)
	CommIDs{Local: f.LocalID}.put(d)
	binary.BigEndian.PutUint64(d[reqServiceID:], uint64(f.ServiceID))
	binary.BigEndian.PutUint64(d[reqLocalCAGUID:], f.LocalCAGUID)
	binary.BigEndian.PutUint32(d[reqLocalQKey:], uint32(f.LocalQKey))
	putUint24(d[reqLocalQPN:], uint32(f.LocalQPN))
	putUint24(d[reqLocalEECN:], f.LocalEECN)
	putUint24(d[reqRemoteEECN:], f.RemoteEECN)
	putUint24(d[reqStartingPSN:], uint32(f.StartingPSN))
	binary.BigEndian.PutUint16(d[reqPKey:], uint16(f.PKey))
	d[reqResponderResources], d[reqInitiatorDepth] = f.ResponderResources, f.InitiatorDepth
	d[reqRemoteTimeout] = bitsTimeout.put(f.RemoteTimeout) | bitsTransport.put(f.TransportService) | bitsFlow.putIf(f.EndToEndFlowControl)
	d[reqLocalTimeout] = bitsTimeout.put(f.LocalTimeout) | bitsLow3.put(f.RetryCount)
	d[reqPathMTU] = bitsHigh4.put(uint8(f.PathMTU)) | bitsBit3.putIf(f.RDCExists) | bitsLow3.put(f.RNRRetryCount)
	d[reqMaxCMRetries] = bitsHigh4.put(f.MaxCMRetries) | bitsBit3.putIf(f.SRQ) | bitsLow3.put(f.ExtendedTransport)
	f.Primary.put(d[reqPrimary:])
	f.Alternate.put(d[reqAlternate:])
	copy(d[reqPrivateData:], f.PrivateData[:])
}

func pathOf(d []byte) CMPath {
	return CMPath{
		LocalLID: binary.BigEndian.Uint16(d[pathLocalLID:]), RemoteLID: binary.BigEndian.Uint16(d[pathRemoteLID:]),
		Local: GID(d[pathLocal:]), Remote: GID(d[pathRemote:]),
		FlowLabel: uint24(d[pathFlowLabel:]) >> 4, PacketRate: bitsLow6.get(d[pathRate]),
		TrafficClass: d[pathTrafficClass], HopLimit: d[pathHopLimit],
		SL: bitsHigh4.get(d[pathSL]), SubnetLocal: bitsBit3.is(d[pathSL]), AckTimeout: bitsTimeout.get(d[pathAckTimeout]),
	}
}

func (p *CMPath) put(d []byte) {
	binary.BigEndian.PutUint16(d[pathLocalLID:], p.LocalLID)
	binary.BigEndian.PutUint16(d[pathRemoteLID:], p.RemoteLID)
	copy(d[pathLocal:], p.Local[:])
	copy(d[pathRemote:], p.Remote[:])
	putUint24(d[pathFlowLabel:], p.FlowLabel<<4)
	d[pathRate] = bitsLow6.put(p.PacketRate)
	d[pathTrafficClass], d[pathHopLimit] = p.TrafficClass, p.HopLimit
	d[pathSL] = bitsHigh4.put(p.SL) | bitsBit3.putIf(p.SubnetLocal)
	d[pathAckTimeout] = bitsTimeout.put(p.AckTimeout)
}
