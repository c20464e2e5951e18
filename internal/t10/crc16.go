// SPDX-License-Identifier: Apache-2.0

package t10

import "encoding/binary"

// crc16Poly is the polynomial of T10-DIF without its x^16.
const crc16Poly = 0x8bb7

// crc16Slices is the number of bytes per step. In measurements the loop was a quarter slower with 8, and hardly faster
// with 32.
const crc16Slices = 16

// crc16Tables[i][b] is the CRC of byte b followed by i zeros.
var crc16Tables = makeCRC16Tables()

func makeCRC16Tables() *[crc16Slices][256]uint16 {
	t := new([crc16Slices][256]uint16)
	for b := range 256 {
		crc := uint16(b) << 8
		for range 8 {
			top := crc >> 15
			crc = crc<<1 ^ top*crc16Poly
		}
		t[0][b] = crc
	}
	for i := 1; i < crc16Slices; i++ {
		for b := range 256 {
			before := t[i-1][b]
			t[i][b] = before<<8 ^ t[0][before>>8]
		}
	}
	return t
}

// CRC16 returns the CRC16-T10DIF of data that follows data with the given CRC; 0 at the beginning. Lookups
// that do not depend on the previous bytes come first, which doubled its speed.
func CRC16(crc uint16, p []byte) uint16 {
	t := crc16Tables
	for len(p) >= crc16Slices {
		a, b := binary.BigEndian.Uint64(p), binary.BigEndian.Uint64(p[8:])
		rest := t[13][a>>40&0xff] ^ t[12][a>>32&0xff] ^ t[11][a>>24&0xff] ^ t[10][a>>16&0xff] ^
			t[9][a>>8&0xff] ^ t[8][a&0xff] ^ t[7][b>>56] ^ t[6][b>>48&0xff] ^
			t[5][b>>40&0xff] ^ t[4][b>>32&0xff] ^ t[3][b>>24&0xff] ^ t[2][b>>16&0xff] ^
			t[1][b>>8&0xff] ^ t[0][b&0xff]
		crc ^= uint16(a >> 48)
		crc = rest ^ t[15][crc>>8] ^ t[14][crc&0xff]
		p = p[crc16Slices:]
	}
	for _, c := range p {
		crc = crc<<8 ^ t[0][byte(crc>>8)^c]
	}
	return crc
}
