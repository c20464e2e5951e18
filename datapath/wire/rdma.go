// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	mathbits "math/bits"
	"time"
)

// The extended headers of connected services (IBA 9.3.3 to 9.3.7; XRC: A14.3). Packet returns views of the headers of
// its opcode.

// XRCETHLen is the length of the header with the number of the shared receive queue of an XRC request, in bytes: 8
// reserved bits, and the number (IBA A14.3).
const XRCETHLen = 4

// SRQN is the number of a shared receive queue of type XRC, 24 bits.
type SRQN uint32

// SRQNMax is the largest SRQN.
const SRQNMax SRQN = 0xFFFFFF

// String formats the number like that of a queue pair.
func (n SRQN) String() string { return QPN(n).String() }

// RETH is a view of an RDMA extended transport header.
type RETH []byte

// RETHLen is the length of the header, in bytes.
const RETHLen = 16

const (
	rethAddr   = 0  // 8 bytes
	rethRKey   = 8  // 4 bytes
	rethLength = 12 // 4 bytes
)

// Addr returns the start address of the data in the responder's memory.
func (h RETH) Addr() uint64 { return binary.BigEndian.Uint64(h[rethAddr:]) }

// RKey returns the key of the responder's memory.
func (h RETH) RKey() uint32 { return binary.BigEndian.Uint32(h[rethRKey:]) }

// Length returns the length of the whole message, in bytes.
func (h RETH) Length() uint32 { return binary.BigEndian.Uint32(h[rethLength:]) }

// AtomicETH is a view of an atomic extended transport header.
type AtomicETH []byte

// AtomicETHLen is the length of the header, in bytes.
const AtomicETHLen = 28

const (
	atomicAddr    = 0  // 8 bytes
	atomicRKey    = 8  // 4 bytes
	atomicSwapAdd = 12 // 8 bytes
	atomicCompare = 20 // 8 bytes
)

// Addr returns the address of the operand in the responder's memory, a multiple of 8.
func (h AtomicETH) Addr() uint64 { return binary.BigEndian.Uint64(h[atomicAddr:]) }

// RKey returns the key of the responder's memory.
func (h AtomicETH) RKey() uint32 { return binary.BigEndian.Uint32(h[atomicRKey:]) }

// SwapAdd returns the new value of a compare-and-swap, or the addend of a fetch-and-add.
func (h AtomicETH) SwapAdd() uint64 { return binary.BigEndian.Uint64(h[atomicSwapAdd:]) }

// Compare returns the expected value of a compare-and-swap.
func (h AtomicETH) Compare() uint64 { return binary.BigEndian.Uint64(h[atomicCompare:]) }

// AETH is a view of an acknowledge extended transport header.
type AETH []byte

// AETHLen is the length of the header, in bytes.
const AETHLen = 4

// Syndrome returns the result of the request.
func (h AETH) Syndrome() Syndrome { return Syndrome(h[0]) }

// MSN returns the number of messages that the responder has completed, 24 bits.
func (h AETH) MSN() uint32 { return uint24(h[1:]) }

// AtomicAckETHLen is the length of the header with an atomic's original value, in bytes.
const AtomicAckETHLen = 8

// Syndrome is the first byte of an AETH: a kind in bits 5 and 6, and its value in the low five bits (IBA 9.7.5.2.1).
type Syndrome uint8

// The kinds of syndromes, and the four NAKs. AckUncounted is an ACK without a number of receive requests.
const (
	SyndromeKind Syndrome = 0x60 // mask of the kind
	SyndromeACK  Syndrome = 0x00 // the value is a number of credits; see AckCredits
	SyndromeRNR  Syndrome = 0x20 // the value is the code of a time; see RNRTime
	SyndromeNAK  Syndrome = 0x60 // the value is the code of an error

	AckUncounted         = SyndromeACK | syndromeValue
	NAKSequence          = SyndromeNAK
	NAKInvalidRequest    = SyndromeNAK | 1
	NAKRemoteAccess      = SyndromeNAK | 2
	NAKRemoteOperational = SyndromeNAK | 3

	syndromeValue Syndrome = 0x1F
)

// Kind returns SyndromeACK, SyndromeRNR, SyndromeNAK or 0x40, which is reserved.
func (s Syndrome) Kind() Syndrome { return s & SyndromeKind }

// rnrTimes holds the times of RNR NAKs by code, in units of 10 µs (IBA table 45).
var rnrTimes = [32]int{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTime returns the time for which a requester must wait after an RNR NAK with this syndrome.
func (s Syndrome) RNRTime() time.Duration {
	return time.Duration(rnrTimes[s&syndromeValue]) * 10 * time.Microsecond
}

// AckTimeout returns the time of a 5-bit code: 4.096 µs × 2ⁿ; 0 for code 0, which means no timeout (IBA 9.7.6.1.3).
func AckTimeout(code uint8) time.Duration {
	if code &= 0x1F; code == 0 {
		return 0
	}
	return 4096 * time.Nanosecond << code
}

// AckCredits returns the ACK syndrome for a number of posted receive requests, rounded down to the next number that has
// a code. The codes stand for 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, …, 32768: they encode the power of two and the next
// lower bit (IBA table 46).
func AckCredits(receives uint32) Syndrome {
	if receives < 2 {
		return SyndromeACK | Syndrome(receives)
	}
	power := mathbits.Len32(min(receives, maxCredits)) - 1
	return SyndromeACK | Syndrome(2*power) | Syndrome(min(receives, maxCredits)>>(power-1)&1)
}

// maxCredits is the largest number of receive requests that has a code.
const maxCredits = 32768

// SRQN returns the destination SRQ of an XRC request. Call it only for packets that have HeaderXRCETH.
func (p *Packet) SRQN() SRQN {
	return SRQN(binary.BigEndian.Uint32(p.frame[p.bth+BTHLen:])) & SRQNMax
}

// RETH returns the header of RDMA requests. Call it only for packets that have HeaderRETH.
func (p *Packet) RETH() RETH { return RETH(p.extended(RETHLen)) }

// AtomicETH returns the header of atomic requests. Call it only for packets that have HeaderAtomicETH.
func (p *Packet) AtomicETH() AtomicETH { return AtomicETH(p.extended(AtomicETHLen)) }

// AETH returns the header of responses. Call it only for packets that have HeaderAETH.
func (p *Packet) AETH() AETH { return AETH(p.extended(AETHLen)) }

// Original returns the previous value of the operand of an atomic. Call it only for packets that have
// HeaderAtomicAckETH.
func (p *Packet) Original() uint64 {
	return binary.BigEndian.Uint64(p.extended(AETHLen + AtomicAckETHLen)[AETHLen:])
}

// InvalidateRKey returns the key in an IETH. Call it only for packets that have HeaderIETH.
func (p *Packet) InvalidateRKey() uint32 { return binary.BigEndian.Uint32(p.frame[p.payload-IETHLen:]) }

// IETHLen is the length of the header with a key to invalidate, in bytes.
const IETHLen = 4

// extended returns the first bytes after the BTH and the XRCETH, for services whose packets have neither DETH nor
// RDETH.
func (p *Packet) extended(length int) []byte {
	from := p.bth + BTHLen
	if p.headers&HeaderXRCETH != 0 {
		from += XRCETHLen
	}
	return p.frame[from : from+length : from+length]
}
