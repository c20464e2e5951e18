// Package t10 is protection information and other signatures over blocks of data: what a card checks, inserts,
// strips or converts while it copies a message between memory and the wire.
//
//	T10-DIF, a field of 8 bytes behind each block of Interval bytes, big-endian (SBC-3, 4.22):
//
//	+------------------ Interval ------------------+- 2 --+----- 2 -----+---- 4 ----+
//	|                     data                     | guard | application | reference |
//	+----------------------------------------------+-------+-------------+-----------+
//
//	CRC32, CRC32C, XOR: a field of 4 bytes behind each block.
//
//	          source, in slices of any length                     destination, in slices of any length
//	   data | field | data | field ──► check ──► Transfer ──► copy or make ──► data | field | data | field
//
// What happens follows from the two domains of Attrs:
//
//	source   destination   a field is
//	none     some          inserted
//	some     none          checked and stripped
//	some     some          checked and passed: each tag that both domains name alike is copied, so that an error
//	                       is found at the end too; what they name differently is made anew
//
// A failed check ends nothing. Transfer.Failed returns the first block that failed, until Transfer.Forget.
//
// Names and meanings are those of the kernel's struct ib_sig_attrs, ib_sig_domain, ib_t10_dif_domain and
// ib_sig_err. Pure: no clock, no memory but the caller's slices, no allocation.
package t10
