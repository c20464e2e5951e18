// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
)

// MADLen is the length of a management datagram, and MADHeaderLen that of its header, in bytes (IBA 13.4.2).
const (
	MADLen       = 256
	MADHeaderLen = 24
)

// The header (IBA 13.4.3). The data follows it.
const (
	madBaseVersion   = 0  // 1 byte
	madClass         = 1  // 1 byte
	madClassVersion  = 2  // 1 byte
	madMethod        = 3  // 1 byte
	madStatus        = 4  // 2 bytes, then 2 whose meaning depends on the class
	madTransactionID = 8  // 8 bytes
	madAttribute     = 16 // 2 bytes, then 2 reserved ones
	madModifier      = 20 // 4 bytes
	madData          = MADHeaderLen
)

// The versions and the class of connection management (IBA 12.6, 13.4.4).
const (
	MADBaseVersion uint8 = 1
	ClassCM        uint8 = 0x07
	ClassVersionCM uint8 = 2
)

// Method is the method of a MAD (IBA 13.4.5).
type Method uint8

// The methods of connection management. MethodResponse is the bit that all responses have.
const (
	MethodGet      Method = 0x01
	MethodSet      Method = 0x02
	MethodSend     Method = 0x03 // the method of all messages of connections; it has no response
	MethodGetResp  Method = 0x81
	MethodResponse Method = 0x80
)

// MADStatus is the result in a response (IBA 13.4.7).
type MADStatus uint16

// The statuses of invalid and unsupported requests.
const (
	MADStatusBadVersion  MADStatus = 1 << 2 // base version, class version, or their combination
	MADStatusUnsupported MADStatus = 3 << 2 // the combination of method and attribute is not supported
)

// Attribute is the subject of a MAD; with MethodSend, the type of the connection management message.
type Attribute uint16

// The messages (IBA 12.6).
const (
	AttributeREQ     Attribute = 0x10
	AttributeMRA     Attribute = 0x11
	AttributeREJ     Attribute = 0x12
	AttributeREP     Attribute = 0x13
	AttributeRTU     Attribute = 0x14
	AttributeDREQ    Attribute = 0x15
	AttributeDREP    Attribute = 0x16
	AttributeSIDRReq Attribute = 0x17
	AttributeSIDRRep Attribute = 0x18
	AttributeLAP     Attribute = 0x19
	AttributeAPR     Attribute = 0x1A
)

var attributeNames = [...]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

// String returns the message's name in the specification.
func (a Attribute) String() string {
	if a >= AttributeREQ && a <= AttributeAPR {
		return attributeNames[a-AttributeREQ]
	}
	return fmt.Sprintf("attribute(0x%04x)", uint16(a))
}

// MAD is a view of a management datagram: the payload of a packet to QP 1. ParseMAD returns one for received bytes. The
// method with the name of a message reads it; the method with the prefix Put writes it, and writes all 256 bytes.
type MAD []byte

// ParseMAD checks the length, after which no accessor can fail. ok is false for another length. The contents are not
// checked.
func ParseMAD(payload []byte) (m MAD, ok bool) {
	return MAD(payload[:len(payload):len(payload)]), len(payload) == MADLen
}

// MADHeader holds the fields of the header, except reserved ones.
type MADHeader struct {
	BaseVersion   uint8
	Class         uint8
	ClassVersion  uint8
	Method        Method
	Status        MADStatus
	TransactionID uint64 // chosen by the requester; a response repeats it
	Attribute     Attribute
	Modifier      uint32
}

// Header reads the header.
func (m MAD) Header() MADHeader {
	return MADHeader{
		BaseVersion: m[madBaseVersion], Class: m[madClass], ClassVersion: m[madClassVersion], Method: Method(m[madMethod]),
		Status: MADStatus(binary.BigEndian.Uint16(m[madStatus:])), TransactionID: binary.BigEndian.Uint64(m[madTransactionID:]),
		Attribute: Attribute(binary.BigEndian.Uint16(m[madAttribute:])), Modifier: binary.BigEndian.Uint32(m[madModifier:]),
	}
}

// PutHeader writes the header and sets all bytes after it to zero.
func (m MAD) PutHeader(h MADHeader) {
	clear(m)
	m[madBaseVersion], m[madClass], m[madClassVersion], m[madMethod] = h.BaseVersion, h.Class, h.ClassVersion, byte(h.Method)
	binary.BigEndian.PutUint16(m[madStatus:], uint16(h.Status))
	binary.BigEndian.PutUint64(m[madTransactionID:], h.TransactionID)
	binary.BigEndian.PutUint16(m[madAttribute:], uint16(h.Attribute))
	binary.BigEndian.PutUint32(m[madModifier:], h.Modifier)
}

// begin writes the header of a connection management message, and returns the zeroed data.
func (m MAD) begin(transactionID uint64, attribute Attribute) (data []byte) {
	m.PutHeader(MADHeader{
		BaseVersion: MADBaseVersion, Class: ClassCM, ClassVersion: ClassVersionCM, Method: MethodSend,
		TransactionID: transactionID, Attribute: attribute,
	})
	return m[madData:]
}

// bits describes a field inside a byte.
type bits struct{ shift, width uint8 }

func (f bits) get(b byte) uint8 { return b >> f.shift & (1<<f.width - 1) }
func (f bits) put(v uint8) byte { return v & (1<<f.width - 1) << f.shift }
func (f bits) is(b byte) bool   { return f.get(b) != 0 }
func (f bits) putIf(set bool) byte {
	if set {
		return f.put(1)
	}
	return 0
}

func putUint24(b []byte, v uint32) {
	_ = b[2]
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}
