// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// Opcode is the first byte of a BTH: the service in the high three bits, the operation in the low
// five (IBA table 38).
type Opcode uint8

// The opcodes of unreliable datagrams, and of the congestion notification packet.
const (
	OpcodeUDSend          Opcode = 0x64
	OpcodeUDSendImmediate Opcode = 0x65
	OpcodeCNP             Opcode = 0x81
)

// The operations of connected services: the low five bits of their opcodes. UC has only the operations up to
// OpWriteOnlyImmediate.
const (
	OpSendFirst Opcode = iota
	OpSendMiddle
	OpSendLast
	OpSendLastImmediate
	OpSendOnly
	OpSendOnlyImmediate
	OpWriteFirst
	OpWriteMiddle
	OpWriteLast
	OpWriteLastImmediate
	OpWriteOnly
	OpWriteOnlyImmediate
	OpReadRequest
	OpReadResponseFirst
	OpReadResponseMiddle
	OpReadResponseLast
	OpReadResponseOnly
	OpAcknowledge
	OpAtomicAcknowledge
	OpCompareSwap
	OpFetchAdd
	_
	OpSendLastInvalidate
	OpSendOnlyInvalidate
)

// Of returns the opcode of an operation of a service.
func (s Service) Of(operation Opcode) Opcode { return Opcode(s)<<5 | operation }

// Operation returns the low five bits, which are the same for all services.
func (o Opcode) Operation() Opcode { return o & 0x1F }

// Service is a transport service: the high three bits of an opcode.
type Service uint8

// The services (IBA 9.2.1). CNP is RoCEv2's congestion notification (A17.9.3).
const (
	ServiceRC Service = iota
	ServiceUC
	ServiceRD
	ServiceUD
	ServiceCNP
	ServiceXRC
)

// Service returns the opcode's transport service.
func (o Opcode) Service() Service { return Service(o >> 5) }

// HeaderMask is a set of extended headers. It has its own type so that it cannot be confused with an opcode.
type HeaderMask uint16

// The extended headers, in the order in which they follow the BTH.
const (
	HeaderRDETH HeaderMask = 1 << iota
	HeaderDETH
	HeaderXRCETH
	HeaderRETH
	HeaderAtomicETH
	HeaderAETH
	HeaderAtomicAckETH
	HeaderImm
	HeaderIETH
	HeaderCNP       // 16 reserved bytes
	HeaderNoPayload // no payload may follow
)

// headerLen is the length in bytes of each extended header, by bit.
var headerLen = [...]int{4, DETHLen, XRCETHLen, RETHLen, AtomicETHLen, AETHLen, AtomicAckETHLen, ImmLen, IETHLen, 16, 0}

// Headers is a row of the opcode table: the headers after the BTH, and the offset of the payload. The row of an
// undefined opcode is zero.
type Headers struct {
	Name    string
	Mask    HeaderMask
	Payload int // offset of the payload from the BTH, in bytes
}

// Headers returns the opcode's row; ok is false if the opcode is undefined.
func (o Opcode) Headers() (row Headers, ok bool) {
	return opcodes[o], opcodes[o].Payload != 0
}

// String returns the opcode's name in the specification.
func (o Opcode) String() string {
	if name := opcodes[o].Name; name != "" {
		return name
	}
	return fmt.Sprintf("opcode(0x%02x)", uint8(o))
}

// opcodes has a row for every opcode that the specification defines. Packets with other opcodes are dropped.
var opcodes = makeOpcodes()

// operations lists the operations by the low five bits of the opcode. All services share them.
var operations = [32]struct {
	name  string
	mask  HeaderMask
	means Meaning
}{
	0x00: {"SEND_FIRST", 0, MeansSend | MeansStart},
	0x01: {"SEND_MIDDLE", 0, MeansSend},
	0x02: {"SEND_LAST", 0, MeansSend | MeansEnd},
	0x03: {"SEND_LAST_WITH_IMMEDIATE", HeaderImm, MeansSend | MeansEnd | MeansImmediate},
	0x04: {"SEND_ONLY", 0, MeansSend | alone},
	0x05: {"SEND_ONLY_WITH_IMMEDIATE", HeaderImm, MeansSend | alone | MeansImmediate},
	0x06: {"RDMA_WRITE_FIRST", HeaderRETH, MeansWrite | MeansStart},
	0x07: {"RDMA_WRITE_MIDDLE", 0, MeansWrite},
	0x08: {"RDMA_WRITE_LAST", 0, MeansWrite | MeansEnd},
	0x09: {"RDMA_WRITE_LAST_WITH_IMMEDIATE", HeaderImm, MeansWrite | MeansEnd | MeansImmediate},
	0x0A: {"RDMA_WRITE_ONLY", HeaderRETH, MeansWrite | alone},
	0x0B: {"RDMA_WRITE_ONLY_WITH_IMMEDIATE", HeaderRETH | HeaderImm, MeansWrite | alone | MeansImmediate},
	0x0C: {"RDMA_READ_REQUEST", HeaderRETH | HeaderNoPayload, MeansRead | alone},
	0x0D: {"RDMA_READ_RESPONSE_FIRST", HeaderAETH, MeansReadResponse | MeansStart},
	0x0E: {"RDMA_READ_RESPONSE_MIDDLE", 0, MeansReadResponse},
	0x0F: {"RDMA_READ_RESPONSE_LAST", HeaderAETH, MeansReadResponse | MeansEnd},
	0x10: {"RDMA_READ_RESPONSE_ONLY", HeaderAETH, MeansReadResponse | alone},
	0x11: {"ACKNOWLEDGE", HeaderAETH | HeaderNoPayload, MeansAcknowledge | alone},
	0x12: {"ATOMIC_ACKNOWLEDGE", HeaderAETH | HeaderAtomicAckETH | HeaderNoPayload, MeansAtomicAcknowledge | alone},
	0x13: {"COMPARE_SWAP", HeaderAtomicETH | HeaderNoPayload, MeansCompareSwap | alone},
	0x14: {"FETCH_ADD", HeaderAtomicETH | HeaderNoPayload, MeansFetchAdd | alone},
	0x16: {"SEND_LAST_WITH_INVALIDATE", HeaderIETH, MeansSend | MeansEnd | MeansInvalidate},
	0x17: {"SEND_ONLY_WITH_INVALIDATE", HeaderIETH, MeansSend | alone | MeansInvalidate},
}

func makeOpcodes() (table [256]Headers) {
	add := func(service Service, name string, extra HeaderMask, operation ...int) {
		for _, low := range operation {
			mask := operations[low].mask | extra
			table[int(service)<<5|low] = Headers{name + "_" + operations[low].name, mask, BTHLen + mask.length()}
		}
	}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	add(ServiceRC, "RC", 0, append(all, 0x16, 0x17)...)
	add(ServiceUC, "UC", 0, all[:12]...)
	add(ServiceUD, "UD", HeaderDETH, 4, 5)
	add(ServiceXRC, "XRC", HeaderXRCETH, append(all[:13:13], 0x13, 0x14, 0x16, 0x17)...)
	add(ServiceXRC, "XRC", 0, 13, 14, 15, 16, 17, 18)
	addRD(&table)
	table[OpcodeCNP] = Headers{"CNP", HeaderCNP | HeaderNoPayload, BTHLen + HeaderCNP.length()}
	return table
}

// addRD adds the reliable datagram service: every packet has an RDETH, requests also a DETH.
func addRD(table *[256]Headers) {
	for low := 0; low <= 0x14; low++ {
		mask := operations[low].mask | HeaderRDETH
		if low < 0x0D || low > 0x12 {
			mask |= HeaderDETH
		}
		table[int(ServiceRD)<<5|low] = Headers{"RD_" + operations[low].name, mask, BTHLen + mask.length()}
	}
	mask := HeaderRDETH | HeaderDETH | HeaderNoPayload
	table[int(ServiceRD)<<5|0x15] = Headers{"RD_RESYNC", mask, BTHLen + mask.length()}
}

// length returns the sum of the lengths of the headers in the set, in bytes.
func (m HeaderMask) length() (n int) {
	for bit, length := range headerLen {
		if m&(1<<bit) != 0 {
			n += length
		}
	}
	return n
}
