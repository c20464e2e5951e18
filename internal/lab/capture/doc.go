// SPDX-License-Identifier: Apache-2.0

// Package capture records the frames on a link of a lab with an AF_PACKET socket (packet(7)), finds
// the IGMP and MLD messages in them, and writes pcap files.
//
//	switch ── port ──── host's eth0
//	            │
//	         Socket ── Next, Frames: a frame and its direction
//	            ├── Recorder: all frames from Record to Stop, WritePcap
//	            └── MembershipMessages: IGMP and MLD queries, reports and leaves in a frame
//
// Between hosts without NICs a frame may contain a train of packets and lack its checksum. Frame.Packets
// completes it as a NIC would.
//
// Before Linux 6.2 a Socket cannot read trains and reports them as lost; Namespace.CutTrains makes the sender
// segment them.
//
// AF_PACKET receives frames after XDP, so it does not see frames that XDP redirects to roced. Capture at the other end
// of the link instead.
//
// A Socket is used by one goroutine. A Recorder has its own goroutine.
package capture
