// SPDX-License-Identifier: Apache-2.0

// Package t10 implements protection information and other signatures over blocks of data, which a card
// checks, inserts, strips or converts while it copies a message between memory and the wire.
//
//	T10-DIF, a field of 8 bytes after each block of Interval bytes, big-endian (SBC-3, 4.22):
//
//	+------------------ Interval ------------------+- 2 --+----- 2 -----+---- 4 ----+
//	|                     data                     | guard | application | reference |
//	+----------------------------------------------+-------+-------------+-----------+
//
//	CRC32, CRC32C, XOR: a field of 4 bytes after each block.
//
//	          source, in slices of any length                     destination, in slices of any length
//	   data | field | data | field ──► check ──► Transfer ──► copy or make ──► data | field | data | field
//
// The two domains of Attrs determine the operation:
//
//	source   destination   a field is
//	none     some          inserted
//	some     none          checked and stripped
//	some     some          checked and passed: tags that both domains define alike are copied, so that an error is
//	                       also detected at the destination; others are generated
//
// A failed check does not stop the transfer. Transfer.Failed returns the first block that failed, until
// Transfer.Forget.
//
// Names and semantics are those of the kernel's struct ib_sig_attrs, ib_sig_domain, ib_t10_dif_domain and
// ib_sig_err. The package uses no clock and no memory except the caller's slices, and does not allocate.
package t10
