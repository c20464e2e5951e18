// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Numbers in the header of a pcap file (pcap-savefile(5)), in the host's byte order.
const (
	pcapMagicNanoseconds = 0xa1b23c4d
	pcapMajor, pcapMinor = 2, 4
	pcapSnapLen          = 1 << 18
	pcapLinkEthernet     = 1
)

// WritePcap writes frames as a pcap file with timestamps in nanoseconds.
func WritePcap(w io.Writer, frames []Recorded) error {
	out := bufio.NewWriter(w)
	order := binary.NativeEndian
	header := order.AppendUint32(nil, pcapMagicNanoseconds)
	header = order.AppendUint16(header, pcapMajor)
	header = order.AppendUint16(header, pcapMinor)
	header = append(header, make([]byte, 8)...) // time zone and accuracy: always 0
	header = order.AppendUint32(header, pcapSnapLen)
	header = order.AppendUint32(header, pcapLinkEthernet)
	out.Write(header)
	for _, frame := range frames {
		record := order.AppendUint32(nil, uint32(frame.Time.Unix()))
		record = order.AppendUint32(record, uint32(frame.Time.Nanosecond()))
		record = order.AppendUint32(record, uint32(len(frame.Data))) // captured
		record = order.AppendUint32(record, uint32(len(frame.Data))) // on the wire
		out.Write(record)
		out.Write(frame.Data)
	}
	return out.Flush()
}
