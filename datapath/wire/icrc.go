// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// icrcSeed is the CRC of the eight 0xFF bytes that replace the InfiniBand local route header (IBA A17.3.3). After them
// the CRC register is 0xDEBB20E3; package crc32 expects its inverse.
const icrcSeed = ^uint32(0xDEBB20E3)

// icrc computes the ICRC over a packet from its IP header to the end of its pad. The fields that
// routers may change have been set to ones.
func icrc(masked []byte) uint32 {
	whole := len(masked) &^ 15
	return endICRC(crc32.Update(icrcSeed, crc32.IEEETable, masked[:whole]), masked[whole:])
}

// crcTables[k] holds the CRC of each byte value followed by k zero bytes.
var crcTables = func() (t [8][256]uint32) {
	t[0] = *crc32.IEEETable
	for i := range t[0] {
		for k := 1; k < len(t); k++ {
			t[k][i] = t[0][t[k-1][i]&0xFF] ^ t[k-1][i]>>8
		}
	}
	return t
}()

// endICRC is crc32.Update for fewer than 16 bytes, one word at a time. Package crc32 processes 16 bytes at a time, and
// the rest byte by byte: for a packet of 1 KiB the last 8 bytes took a fifth of the time.
func endICRC(sum uint32, end []byte) uint32 {
	sum = ^sum
	if len(end) >= 8 {
		low, high := sum^binary.LittleEndian.Uint32(end), binary.LittleEndian.Uint32(end[4:])
		sum = crcTables[7][low&0xFF] ^ crcTables[6][low>>8&0xFF] ^ crcTables[5][low>>16&0xFF] ^ crcTables[4][low>>24] ^
			crcTables[3][high&0xFF] ^ crcTables[2][high>>8&0xFF] ^ crcTables[1][high>>16&0xFF] ^ crcTables[0][high>>24]
		end = end[8:]
	}
	if len(end) >= 4 {
		sum ^= binary.LittleEndian.Uint32(end)
		sum = crcTables[3][sum&0xFF] ^ crcTables[2][sum>>8&0xFF] ^ crcTables[1][sum>>16&0xFF] ^ crcTables[0][sum>>24]
		end = end[4:]
	}
	for _, b := range end {
		sum = crcTables[0][byte(sum)^b] ^ sum>>8
	}
	return ^sum
}

// CheckICRC reports whether the packet's ICRC is correct. It sets the fields that routers may change to ones in the
// frame, and restores them before it returns, which is faster than a copy of the headers.
func (p *Packet) CheckICRC() bool {
	p.sum = p.computeICRC()
	return p.sum == p.ICRC()
}

func (p *Packet) computeICRC() uint32 {
	var sum uint32
	body := p.frame[p.ip : len(p.frame)-ICRCLen]
	fecn := &p.frame[p.bth+bthFECN]
	checksum := p.frame[p.bth-UDPLen+udpChecksum : p.bth]
	oldFECN, oldChecksum := *fecn, [2]byte(checksum)
	*fecn, checksum[0], checksum[1] = 0xFF, 0xFF, 0xFF
	if p.v6 {
		old := binary.BigEndian.Uint64(body)
		binary.BigEndian.PutUint64(body, old|ipv6Masked)
		sum = icrc(body)
		binary.BigEndian.PutUint64(body, old)
	} else {
		oldTOS, oldTTL, oldSum := body[ipv4TOS], body[ipv4TTL], [2]byte(body[ipv4Checksum:])
		maskIPv4(body)
		sum = icrc(body)
		body[ipv4TOS], body[ipv4TTL] = oldTOS, oldTTL
		copy(body[ipv4Checksum:], oldSum[:])
	}
	*fecn = oldFECN
	copy(checksum, oldChecksum[:])
	return sum
}

// ipv6Masked has ones in the fields of the first eight bytes of an IPv6 header that the ICRC does not cover: traffic
// class, flow label and hop limit.
const ipv6Masked = 0x0FFFFFFF_000000FF

// maskIPv4 sets the fields of an IPv4 header that the ICRC does not cover to ones. The ICRC covers the identification,
// which routers do not change.
func maskIPv4(h []byte) {
	_ = h[IPv4Len-1]
	h[ipv4TOS], h[ipv4TTL], h[ipv4Checksum], h[ipv4Checksum+1] = 0xFF, 0xFF, 0xFF, 0xFF
}
