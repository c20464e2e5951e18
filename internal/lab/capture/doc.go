// Package capture records the frames on a link of a lab with an AF_PACKET socket (packet(7)), finds
// the IGMP and MLD messages in them, and writes pcap files.
//
//	switch ── port ──── host's eth0
//	            │
//	         Socket ── Next, Frames: a frame and its direction
//	            ├── Recorder: all frames from Record to Stop, WritePcap
//	            └── MembershipMessages: IGMP and MLD queries, reports and leaves in a frame
//
// Between hosts without NICs a frame may stand for many packets, and lack its checksum. Frame.Packets
// finishes what a NIC would have.
//
// Before Linux 6.2 a Socket cannot read trains, and reports that it lost them; Namespace.CutTrains has the sender cut them.
//
// AF_PACKET sees a received frame after XDP, so frames that roced takes from the link are not seen.
// Capture on the other end of the link.
//
// A Socket is used by one goroutine. A Recorder has a goroutine of its own.
package capture
