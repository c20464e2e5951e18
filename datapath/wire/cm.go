// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Offsets in a message's data, after the MAD header. All messages of a connection begin with the communication IDs of
// the sender and of the receiver (IBA 12.6).
const (
	cmLocalID  = 0 // 4 bytes: the sender's ID
	cmRemoteID = 4 // 4 bytes: the receiver's ID; reserved in a REQ
)

// CommID is one side's communication ID. Each side chooses its own.
type CommID uint32

// CommIDs holds the IDs of both sides, from the view of the message's sender.
type CommIDs struct{ Local, Remote CommID }

// CommIDs reads the IDs of a message of a connection: any except SIDR_REQ and SIDR_REP.
func (m MAD) CommIDs() CommIDs {
	d := m[madData:]
	return CommIDs{CommID(binary.BigEndian.Uint32(d[cmLocalID:])), CommID(binary.BigEndian.Uint32(d[cmRemoteID:]))}
}

func (c CommIDs) put(data []byte) {
	binary.BigEndian.PutUint32(data[cmLocalID:], uint32(c.Local))
	binary.BigEndian.PutUint32(data[cmRemoteID:], uint32(c.Remote))
}

// MRA reports that a message has been received and that its response will be delayed (IBA 12.6.6).
type MRA struct {
	CommIDs
	Received       Answered // the received message
	ServiceTimeout uint8    // 5 bits: maximum time until the response, 4.096 µs × 2ⁿ
	PrivateData    [222]byte
}

// Answered is the message to which an MRA or a REJ responds, 2 bits.
type Answered uint8

// The messages. A REJ has AnsweredNone if it does not respond to a message, because a timer expired.
const (
	AnsweredREQ  Answered = 0
	AnsweredREP  Answered = 1
	AnsweredNone Answered = 2 // in a REJ
	AnsweredLAP  Answered = 2 // in a MRA
)

const (
	mraReceived    = 8  // 2 bits, the upper ones
	mraTimeout     = 9  // 5 bits, the upper ones
	mraPrivateData = 10 // 222 bytes
)

var (
	bitsAnswered = bits{6, 2}
	bitsTimeout  = bits{3, 5}
)

// MRA reads the message.
func (m MAD) MRA() MRA {
	d := m[madData:]
	return MRA{
		CommIDs: m.CommIDs(), Received: Answered(bitsAnswered.get(d[mraReceived])), ServiceTimeout: bitsTimeout.get(d[mraTimeout]),
		PrivateData: [222]byte(d[mraPrivateData:]),
	}
}

// PutMRA writes the message.
func (m MAD) PutMRA(transactionID uint64, f *MRA) {
	d := m.begin(transactionID, AttributeMRA)
	f.put(d)
	d[mraReceived], d[mraTimeout] = bitsAnswered.put(uint8(f.Received)), bitsTimeout.put(f.ServiceTimeout)
	copy(d[mraPrivateData:], f.PrivateData[:])
}

// REJ refuses a connection, or ends its establishment (IBA 12.6.7).
type REJ struct {
	CommIDs
	Rejected    Answered // the rejected message
	Reason      RejectReason
	InfoLength  uint8    // 7 bits: number of valid bytes of Info
	Info        [72]byte // additional information, which depends on the reason: for example the acceptable value
	PrivateData [148]byte
}

// RejectReason is the reason of a REJ (IBA 12.6.7.2). With RejectConsumer, the private data contains the actual reason.
type RejectReason uint16

// The reasons that roced's cards send.
const (
	RejectNoQP            RejectReason = 1
	RejectNoResources     RejectReason = 3
	RejectTimeout         RejectReason = 4
	RejectUnsupported     RejectReason = 5
	RejectCommID          RejectReason = 6 // the communication ID is unknown
	RejectServiceID       RejectReason = 8 // there is no listener for the service ID
	RejectTransport       RejectReason = 9
	RejectStaleConnection RejectReason = 10
	RejectPrimaryGID      RejectReason = 12 // the path differs from that of the request
	RejectMTU             RejectReason = 26 // unacceptable path MTU
	RejectConsumer        RejectReason = 28
	RejectClassVersion    RejectReason = 31
)

const (
	rejRejected    = 8  // 2 bits, the upper ones
	rejInfoLength  = 9  // 7 bits, the upper ones
	rejReason      = 10 // 2 bytes
	rejInfo        = 12 // 72 bytes
	rejPrivateData = 84 // 148 bytes
)

var bitsInfoLength = bits{1, 7}

// REJ reads the message.
func (m MAD) REJ() REJ {
	d := m[madData:]
	return REJ{
		CommIDs: m.CommIDs(), Rejected: Answered(bitsAnswered.get(d[rejRejected])), Reason: RejectReason(binary.BigEndian.Uint16(d[rejReason:])),
		InfoLength: bitsInfoLength.get(d[rejInfoLength]), Info: [72]byte(d[rejInfo:]), PrivateData: [148]byte(d[rejPrivateData:]),
	}
}

// PutREJ writes the message.
func (m MAD) PutREJ(transactionID uint64, f *REJ) {
	d := m.begin(transactionID, AttributeREJ)
	f.put(d)
	d[rejRejected], d[rejInfoLength] = bitsAnswered.put(uint8(f.Rejected)), bitsInfoLength.put(f.InfoLength)
	binary.BigEndian.PutUint16(d[rejReason:], uint16(f.Reason))
	copy(d[rejInfo:], f.Info[:])
	copy(d[rejPrivateData:], f.PrivateData[:])
}

// RTU reports that a REP has been received and that the connection is established (IBA 12.6.9).
type RTU struct {
	CommIDs
	PrivateData [224]byte
}

// DREP reports that the connection has ended (IBA 12.6.11).
type DREP struct {
	CommIDs
	PrivateData [224]byte
}

const cmPrivateData = 8 // 224 bytes, in RTU and DREP

// RTU reads the message.
func (m MAD) RTU() RTU { return RTU{m.CommIDs(), [224]byte(m[madData+cmPrivateData:])} }

// DREP reads the message.
func (m MAD) DREP() DREP { return DREP{m.CommIDs(), [224]byte(m[madData+cmPrivateData:])} }

// PutRTU writes the message.
func (m MAD) PutRTU(transactionID uint64, f *RTU) {
	d := m.begin(transactionID, AttributeRTU)
	f.put(d)
	copy(d[cmPrivateData:], f.PrivateData[:])
}

// PutDREP writes the message.
func (m MAD) PutDREP(transactionID uint64, f *DREP) {
	d := m.begin(transactionID, AttributeDREP)
	f.put(d)
	copy(d[cmPrivateData:], f.PrivateData[:])
}

// DREQ requests the end of the connection (IBA 12.6.10).
type DREQ struct {
	CommIDs
	RemoteQPN   QPN // the receiver's queue pair
	PrivateData [220]byte
}

const (
	dreqRemoteQPN   = 8  // 3 bytes
	dreqPrivateData = 12 // 220 bytes
)

// DREQ reads the message.
func (m MAD) DREQ() DREQ {
	d := m[madData:]
	return DREQ{CommIDs: m.CommIDs(), RemoteQPN: QPN(uint24(d[dreqRemoteQPN:])), PrivateData: [220]byte(d[dreqPrivateData:])}
}

// PutDREQ writes the message.
func (m MAD) PutDREQ(transactionID uint64, f *DREQ) {
	d := m.begin(transactionID, AttributeDREQ)
	f.put(d)
	putUint24(d[dreqRemoteQPN:], uint32(f.RemoteQPN))
	copy(d[dreqPrivateData:], f.PrivateData[:])
}
