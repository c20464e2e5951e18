// SPDX-License-Identifier: Apache-2.0

package t10

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// guardKind is an algorithm of a guard or checksum.
type guardKind uint8

const (
	noGuard guardKind = iota
	crc16Guard
	ipGuard
	crc32Guard
	crc32cGuard
	xorGuard
)

// guard is the algorithm of a domain's guard with its seed.
type guard struct {
	kind guardKind
	seed uint32
}

func (d *Domain) guard() guard {
	switch d.Type {
	case SigT10DIF:
		if d.T10DIF.Guard == GuardCSUM {
			return guard{ipGuard, uint32(d.T10DIF.Seed)}
		}
		return guard{crc16Guard, uint32(d.T10DIF.Seed)}
	case SigCRC32:
		return guard{crc32Guard, d.Seed}
	case SigCRC32C:
		return guard{crc32cGuard, d.Seed}
	case SigXOR:
		return guard{xorGuard, d.Seed}
	}
	return guard{}
}

// add adds data to a running sum. The data starts at the given offset in the block.
func (g guard) add(sum uint64, p []byte, at int) uint64 {
	switch g.kind {
	case crc16Guard:
		return uint64(CRC16(uint16(sum), p))
	case ipGuard:
		return ipSum(sum, p, at%2 != 0)
	case crc32Guard:
		return uint64(crc32.Update(uint32(sum), crc32.IEEETable, p))
	case crc32cGuard:
		return uint64(crc32.Update(uint32(sum), castagnoli, p))
	case xorGuard:
		return uint64(xorSum(uint32(sum), p, at))
	}
	return 0
}

// value returns the guard for the running sum of a complete block.
func (g guard) value(sum uint64) uint32 {
	if g.kind == ipGuard {
		return uint32(foldIPSum(sum))
	}
	return uint32(sum)
}
