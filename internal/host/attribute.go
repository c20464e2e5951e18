// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// sizeofNdMsg is the length of struct ndmsg (rtnetlink(7)).
const sizeofNdMsg = 12

// interfaceOf returns the interface index of an ifinfomsg, ifaddrmsg or ndmsg, which have it at the same
// offset. data is at least as long as an ifaddrmsg.
func interfaceOf(data []byte) int { return int(int32(binary.NativeEndian.Uint32(data[4:]))) }

// attribute returns the value of the first attribute of a kind; nil if missing (struct rtattr,
// rtnetlink(7)).
func attribute(attributes []byte, kind uint16) []byte {
	for len(attributes) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(attributes))
		if length < unix.SizeofRtAttr || length > len(attributes) {
			return nil
		}
		if binary.NativeEndian.Uint16(attributes[2:]) == kind {
			return attributes[unix.SizeofRtAttr:length]
		}
		attributes = attributes[min(alignedTo4(length), len(attributes)):]
	}
	return nil
}

func alignedTo4(length int) int { return (length + 3) &^ 3 }
